/**
 * The webhook side of `tributary serve`: everything that receives events and acts on them, for a set of companies; and
 * whatever else is to run beside it.
 *
 * Promise: it listens from the first moment to the last, and answers 503 whenever an event cannot be stored. The warehouse
 * may be away at the start or go away later, the source too: what depends on them is begun again by itself, and what does
 * not goes on. One part's failure ends no other. When it stops, it first takes no more deliveries and finishes those in
 * hand, then lets go of everything else. Killed instead, it leaves nothing that the next one would trip over.
 */
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DeliveryReader } from "../connector/Delivery.ts"
import type { ListenError } from "../http/Server.ts"
import * as TablePlan from "../warehouse/TablePlan.ts"
import * as RunStore from "../sync/RunStore.ts"
import type { Database } from "../postgres/Database.ts"
import * as Polling from "../postgres/Polling.ts"
import type { Company } from "../sync/Company.ts"
import * as InboxMetrics from "../status/InboxMetrics.ts"
import * as DeliveryGaps from "../reconcile/DeliveryGaps.ts"
import * as Reconcile from "../reconcile/Reconcile.ts"
import * as Inbox from "../inbox/InboxWriter.ts"
import * as HttpServer from "../ingest/HttpServer.ts"
import * as Metrics from "../status/Metrics.ts"
import * as Receiver from "../ingest/Ingest.ts"
import * as SigningSecrets from "../subscriptions/SigningSecrets.ts"
import * as Supervisor from "./Supervisor.ts"
import * as ProcessInbox from "../inbox/ProcessInbox.ts"

/** Something else that runs as long as the service does, under the same care as its own parts. */
export interface BackgroundService {
  /** Begins the line that tells of a failure. */
  readonly what: string
  readonly run: Effect.Effect<unknown, unknown, Database | SqlClient.SqlClient>
  /** Whether it does not wait for the tables of the companies; default false. */
  readonly isEarly?: boolean
}

export interface ServiceOptions<E> {
  readonly reader: DeliveryReader
  readonly listen: Pick<
    HttpServer.HttpServerOptions,
    "host" | "port" | "tls" | "bodyBytesMax" | "more" | "connectionsPerAddressMax" | "monitoring" | "metricsToken"
  >
  /** How old a delivery may be, and how far ahead the sender's clock. */
  readonly window: Receiver.IngestOptions["settings"]
  /** The address in front of the listener; null when nobody said. */
  readonly publicUrl: string | null
  /** How long events are kept after they were acted on. */
  readonly keepMs: number
  /** How often subscriptions and delivery logs are looked at; null when nobody does. */
  readonly checkEveryMs: number | null
  /** What opens the secrets of each company. */
  readonly secrets: ReadonlyArray<SigningSecrets.SecretsCompany>
  /** Connected within the warehouse; asks nothing of the source. */
  readonly companies: Effect.Effect<ReadonlyArray<Company>, E, Database | SqlClient.SqlClient | Scope.Scope>
  readonly warehouse: Layer.Layer<Database | SqlClient.SqlClient, E>
  /** What else runs, from when the tables of the companies are there unless it says otherwise. */
  readonly parts?: (companies: ReadonlyArray<Company>) => ReadonlyArray<BackgroundService>
  /** What else `/metrics` says of these companies; cheap, and it never fails. */
  readonly figures?: (
    companies: ReadonlyArray<Company>
  ) => Effect.Effect<Effect.Effect<ReadonlyArray<Metrics.Metric>>, never, SqlClient.SqlClient>
  /** What `/metrics` says besides, also while the warehouse is away. */
  readonly always?: Effect.Effect<ReadonlyArray<Metrics.Metric>>
  /** Whether waiting may help against what the warehouse or the companies failed with. */
  readonly isPassing: (error: E) => boolean
}

export interface Service<E> {
  /** Where it listens; not the address that a sender outside uses. */
  readonly url: string
  readonly port: number
  /** Where health and metrics are answered. */
  readonly monitoringUrl: string
  /** Ends when events can be stored for the first time; answers the warehouse. */
  readonly ready: Effect.Effect<Context.Context<Database | SqlClient.SqlClient>>
  /** Fails with what waiting does not help against; never ends otherwise. */
  readonly ended: Effect.Effect<never, E>
}

/** The address to which the source delivers the events of a company. */
export const hookUrl = (publicUrl: string | null, company: string): string | null =>
  publicUrl === null ? null : `${publicUrl}/hooks/${company}`

/** What can receive, while there is a warehouse. */
interface Receiving {
  readonly receiver: Receiver.Ingest
  readonly inbox: Inbox.InboxWriter
  readonly figures: Effect.Effect<ReadonlyArray<Metrics.Metric>>
}

const away: Receiver.Answer = {
  status: 503,
  text: "Events cannot be stored now. Send it again.\n",
  retryAfterSeconds: 10
}

/** All that is known before there is a warehouse. */
const down: Metrics.Metric = {
  name: "tributary_webhook_inbox_up",
  help: "1 while events can be stored, 0 while they cannot.",
  type: "gauge",
  samples: [{ value: 0 }]
}

const connectPauseMinMs = 1_000
const connectPauseMaxMs = 30_000
const secretsEveryMs = 5_000
/** A table, column or view that was dropped while the service runs is made anew; a sync makes it at once. */
const tablesEveryMs = 30_000
const aliveEveryMs = 20_000
const aliveSoonMs = 2_000
const purgeEveryMs = 60 * 60_000
const farewellMaxMs = 2_000

/** Runs until its scope ends. */
export const start = Effect.fnUntraced(function* <E extends { readonly message: string }>(
  options: ServiceOptions<E>
): Effect.fn.Return<Service<E>, ListenError, Scope.Scope> {
  const { reader, checkEveryMs } = options
  const ready = yield* Deferred.make<Context.Context<Database | SqlClient.SqlClient>>()
  let current: Receiving | null = null

  /** Everything that needs the warehouse, from its being there to the end of the service. */
  const within = Effect.gen(function* () {
    const held = yield* SigningSecrets.keyring(options.secrets)
    const inbox = yield* Inbox.make()
    const receiver = yield* Receiver.make({ reader, held, inbox, settings: options.window })
    const companies = yield* options.companies
    const names = companies.map(({ name }) => name)
    const figures = Effect.map(
      Effect.all([
        yield* InboxMetrics.make(names),
        options.figures === undefined ? Effect.succeed([]) : yield* options.figures(companies)
      ]),
      (all) => all.flat()
    )
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        current = { receiver, inbox, figures }
      }),
      () =>
        Effect.sync(() => {
          current = null
        })
    )
    const prepared = yield* Deferred.make<void>()
    const workers = companies.map((company) => ({ company, arrived: Latch.makeUnsafe(false) }))
    yield* Effect.all(
      [
        Supervisor.runForever(
          "the tables",
          Effect.andThen(
            Effect.andThen(prepare(companies), Deferred.succeed(prepared, undefined)),
            Effect.forever(Effect.andThen(Effect.sleep(tablesEveryMs), prepare(companies)))
          )
        ),
        Supervisor.runForever("the signing secrets", Effect.forever(Effect.delay(held.refresh, secretsEveryMs))),
        Supervisor.runForever(
          "the sign of life",
          signsOfLife(
            inbox,
            companies,
            Deferred.succeed(ready, yield* Effect.context<Database | SqlClient.SqlClient>())
          )
        ),
        Supervisor.runForever(
          "the removal of old events",
          Effect.forever(Effect.andThen(purge(options.keepMs), Effect.sleep(purgeEveryMs)))
        ),
        Supervisor.runForever("the end of runs whose process is gone", RunStore.watchAbandoned),
        Supervisor.runForever(
          "the passing on of news",
          ProcessInbox.fanOut(
            inbox.arrived,
            workers.map(({ arrived }) => arrived)
          )
        ),
        ...workers.map(({ company, arrived }) =>
          Supervisor.runForever(
            `company ${company.name}: acting on events`,
            Effect.andThen(
              Deferred.await(prepared),
              ProcessInbox.run({ company, reader, inbox: { arrived }, lookEveryMs: Polling.everyMs(workers.length) })
            )
          )
        ),
        ...(checkEveryMs === null
          ? []
          : companies.map((company) =>
              Supervisor.runForever(
                `company ${company.name}: looking for missed events`,
                Effect.andThen(
                  Deferred.await(prepared),
                  Reconcile.run(company, { url: hookUrl(options.publicUrl, company.name), checkEveryMs })
                )
              )
            )),
        ...(options.parts?.(companies) ?? []).map(({ what, run, isEarly }) =>
          Supervisor.runForever(what, isEarly === true ? run : Effect.andThen(Deferred.await(prepared), run))
        )
      ],
      { concurrency: "unbounded", discard: true }
    )
    return yield* Effect.never
  })

  const connected = Effect.gen(function* () {
    for (let pauseMs = connectPauseMinMs; ; pauseMs = Math.min(2 * pauseMs, connectPauseMaxMs)) {
      const error = yield* Layer.build(Layer.fresh(options.warehouse)).pipe(
        Effect.flatMap((warehouse) => Effect.provideContext(within, warehouse)),
        Effect.scoped,
        Effect.flip
      )
      if (!options.isPassing(error)) return yield* Effect.fail(error)
      yield* Effect.logWarning(
        `${error.message}; deliveries are answered 503 until the warehouse is there; trying again in ${pauseMs / 1000} s`
      )
      yield* Effect.sleep(pauseMs)
    }
  })
  const running = yield* Effect.forkDetach(connected)
  // Before the listener, so that it ends after it: what is in hand then is still stored.
  yield* Effect.addFinalizer(() => Fiber.interrupt(running))

  const listener = yield* HttpServer.listen({
    ...options.listen,
    receiver: {
      signatureHeader: reader.signatureHeader,
      receive: (arrival, done) => (current === null ? done(away) : current.receiver.receive(arrival, done)),
      refuseTooLarge: (company) => (current === null ? away : current.receiver.refuseTooLarge(company)),
      refuseBusy: (company) => (current === null ? away : current.receiver.refuseBusy(company))
    },
    ready: Effect.suspend(() =>
      current === null ? Effect.fail({ message: "the warehouse is away" }) : current.inbox.probe
    ),
    metrics: Effect.gen(function* () {
      const always = options.always === undefined ? [] : yield* options.always
      if (current === null) return Metrics.render([...always, down])
      const { receiver, inbox, figures } = current
      return Metrics.render([...always, ...Metrics.ofReceiving(receiver.stats(), inbox.stats()), ...(yield* figures)])
    })
  })
  return {
    url: listener.url,
    port: listener.port,
    monitoringUrl: listener.monitoringUrl,
    ready: Deferred.await(ready),
    ended: Fiber.join(running)
  }
})

/** The tables of everything that events may ask for, as a sync makes them. */
const prepare = Effect.fnUntraced(function* (companies: ReadonlyArray<Company>) {
  const tables = new Map((yield* Effect.forEach(companies, ({ tables }) => tables)).flatMap((one) => [...one]))
  yield* TablePlan.apply([...tables.values()])
})

/** Says every now and then that events can be stored, and that they cannot by saying nothing. */
const signsOfLife = Effect.fnUntraced(function* (
  inbox: Inbox.InboxWriter,
  companies: ReadonlyArray<Company>,
  proven: Effect.Effect<unknown>
) {
  const drawn = [yield* Random.nextInt, yield* Random.nextInt]
  const instance = drawn.map((part) => Math.abs(part).toString(36)).join("-")
  const names = companies.map(({ name }) => name)
  const farewell = DeliveryGaps.deregister(instance).pipe(Effect.timeoutOption(farewellMaxMs), Effect.ignore)
  return yield* Effect.forever(
    Effect.gen(function* () {
      // The inbox tells of it itself.
      const proof = yield* Effect.exit(inbox.probe)
      if (proof._tag === "Failure") return yield* Effect.sleep(aliveSoonMs)
      yield* DeliveryGaps.heartbeat(instance, names)
      yield* proven
      yield* Effect.sleep(aliveEveryMs)
    })
  ).pipe(Effect.onInterrupt(() => farewell))
})

const purge = Effect.fnUntraced(function* (keepMs: number) {
  const { events, dead, gaps } = yield* Inbox.purge({ keepMs })
  if (events + gaps > 0) yield* Effect.logInfo(`removed ${events} settled events and ${gaps} closed gaps that were old`)
  if (dead > 0) {
    yield* Effect.logWarning(
      `removed ${dead} dead events, which cannot be replayed any longer: they were older than ${Inbox.deadDays} days, or there were too many`
    )
  }
})
