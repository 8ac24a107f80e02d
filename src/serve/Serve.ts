/**
 * The services of `tributary serve`: they receive events and process them, for the companies of a registry.
 *
 * Promise: the process listens from its start to its end, and answers 503 while events cannot be stored. The warehouse and
 * the source may be unavailable at any time: services that need them restart by themselves, and the others go on. No failed
 * service ends another. At the end, the process accepts no more deliveries, finishes those in flight, and then stops. A
 * killed process leaves nothing that hinders the next one. A process whose privacy rules others replaced ends, and stores
 * nothing under them meanwhile: landings have their fence, and deliveries are stored without their bodies.
 */
import { hostname } from "node:os"
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import { matches } from "../catalogue/Protection.ts"
import type { DeliveryReader } from "../connector/Delivery.ts"
import type { ListenError } from "../http/Server.ts"
import { RulesChanged } from "../warehouse/RulesChanged.ts"
import * as RunStore from "../sync/RunStore.ts"
import { Database, type DatabaseShape } from "../postgres/Database.ts"
import * as InboxMetrics from "../status/InboxMetrics.ts"
import * as OwnedBuckets from "../processes/OwnedBuckets.ts"
import type { Ownership } from "../processes/Ownership.ts"
import * as Processes from "../processes/Processes.ts"
import * as InboxWriter from "../inbox/InboxWriter.ts"
import * as HttpServer from "../ingest/HttpServer.ts"
import * as Metrics from "../status/Metrics.ts"
import * as ReceivingMetrics from "../status/ReceivingMetrics.ts"
import * as Ingest from "../ingest/Ingest.ts"
import * as SigningSecrets from "../subscriptions/SigningSecrets.ts"
import * as Supervisor from "../processes/Supervisor.ts"
import * as TaskWorker from "../tasks/TaskWorker.ts"
import type { TaskWorkerOptions } from "../tasks/WorkerState.ts"
import * as Registry from "./Registry.ts"
import * as Tables from "./Tables.ts"

/** The companies at the time of a call. */
export type CurrentCompanies = () => ReadonlyArray<Registry.ServedCompany>

/** A service that runs as long as the process, or as long as the process owns a company, under the supervisor. */
export interface BackgroundService {
  /** The name of the service, which begins the log line of a failure. */
  readonly what: string
  readonly run: Effect.Effect<unknown, unknown, Database | SqlClient.SqlClient>
  /** Whether it starts before the tables of the companies exist; default false. */
  readonly beforeTables?: boolean
}

/** The work beside receiving events and the worker. */
export interface BackgroundWork {
  /** Services of every process. */
  readonly services: ReadonlyArray<BackgroundService>
  /** Services that run in one process at a time. */
  readonly singletons: ReadonlyArray<BackgroundService>
}

export interface ServiceOptions<E> {
  readonly reader: DeliveryReader
  readonly listen: Pick<
    HttpServer.HttpServerOptions,
    "host" | "port" | "tls" | "bodyBytesMax" | "more" | "connectionsPerAddressMax" | "monitoring" | "metricsToken"
  >
  /** The maximum age of a delivery, and how far the sender's clock may be ahead. */
  readonly window: Ingest.IngestOptions["settings"]
  /** The address of the listener from outside; null when it is not configured. */
  readonly publicUrl: string | null
  /** How often subscriptions and delivery logs are checked; null: never. */
  readonly checkInterval: Duration.Duration | null
  /** Reads and connects the companies, without a request to the source of any. */
  readonly companies: Effect.Effect<Registry.CompanySource<E>, E, Database | SqlClient.SqlClient | Scope.Scope>
  readonly warehouse: Layer.Layer<Database | SqlClient.SqlClient, E>
  /** Divides the companies between the processes on the warehouse. */
  readonly ownership: (database: DatabaseShape) => Ownership<E>
  readonly worker: Omit<TaskWorkerOptions, "reader" | "checks">
  /** More work for the companies, in the process with this name. */
  readonly work?: (
    companies: CurrentCompanies,
    processId: string
  ) => Effect.Effect<BackgroundWork, never, Database | Scope.Scope>
  /** More metrics of the companies; cheap, and never failing. */
  readonly metrics?: (
    companies: CurrentCompanies
  ) => Effect.Effect<Effect.Effect<ReadonlyArray<Metrics.Metric>>, never, SqlClient.SqlClient>
  /** Metrics that do not need the warehouse. */
  readonly always?: Effect.Effect<ReadonlyArray<Metrics.Metric>>
  /** Whether an error of the warehouse or the companies is transient. */
  readonly isTransient: (error: E) => boolean
}

export interface Service<E> {
  /** The address that it listens on; a sender outside may use another address. */
  readonly url: string
  readonly port: number
  /** The address of health and metrics. */
  readonly monitoringUrl: string
  /** The warehouse, once events can be stored for the first time. */
  readonly ready: Effect.Effect<Context.Context<Warehouse>>
  /** Fails with an error that is not transient. */
  readonly ended: Effect.Effect<never, E | RulesChanged>
}

/** The address to which the source delivers the events of a company. */
export const hookUrl = (publicUrl: string | null, company: string): string | null =>
  publicUrl === null ? null : `${publicUrl}/hooks/${company}`

/** The parts that receive deliveries, while the warehouse is available. */
interface Receiving {
  readonly ingest: Ingest.Ingest
  readonly inbox: InboxWriter.InboxWriter
  readonly metrics: Effect.Effect<ReadonlyArray<Metrics.Metric>>
}

const unavailable: Ingest.Answer = {
  status: 503,
  text: "Events cannot be stored now. Send it again.\n",
  retryAfterSeconds: 10
}

const connectPauseMinMs = 1_000
const connectPauseMaxMs = 30_000
const secretsEveryMs = 5_000
/** The interval at which dropped tables, columns and views are created again. A sync creates them at once. */
const tablesEveryMs = 30_000
const heartbeatEveryMs = 20_000
const heartbeatRetryMs = 2_000
const deregisterMaxMs = 2_000

type Warehouse = Database | SqlClient.SqlClient

interface ServeState<E> {
  readonly options: ServiceOptions<E>
  readonly ready: Deferred.Deferred<Context.Context<Warehouse>>
  /** Null while the warehouse is unavailable. */
  receiving: Receiving | null
}

/** Runs until its scope ends. */
export const start = Effect.fnUntraced(function* <E extends { readonly message: string }>(
  options: ServiceOptions<E>
): Effect.fn.Return<Service<E>, ListenError, Scope.Scope> {
  const state: ServeState<E> = { options, ready: yield* Deferred.make<Context.Context<Warehouse>>(), receiving: null }
  const running = yield* Effect.forkDetach(runWithWarehouse(state))
  // Finalizers run in reverse: the listener stops first, and deliveries in flight are still stored.
  yield* Effect.addFinalizer(() => Fiber.interrupt(running))
  const { url, port, monitoringUrl } = yield* listen(state)
  return { url, port, monitoringUrl, ready: Deferred.await(state.ready), ended: Fiber.join(running) }
})

/** Listens, also while the warehouse is unavailable. */
const listen = <E>(state: ServeState<E>) =>
  HttpServer.listen({
    ...state.options.listen,
    receiver: {
      signatureHeader: state.options.reader.signatureHeader,
      receive: (arrival, done) =>
        state.receiving === null ? done(unavailable) : state.receiving.ingest.receive(arrival, done),
      refuseTooLarge: (company) => state.receiving?.ingest.refuseTooLarge(company) ?? unavailable,
      refuseBusy: (company) => state.receiving?.ingest.refuseBusy(company) ?? unavailable
    },
    ready: Effect.suspend(
      () => state.receiving?.inbox.probe ?? Effect.fail({ message: "the warehouse is unavailable" })
    ),
    metrics: Effect.gen(function* () {
      const always = state.options.always === undefined ? [] : yield* state.options.always
      if (state.receiving === null) return Metrics.render([...always, ...ReceivingMetrics.unavailable])
      const { ingest, inbox, metrics } = state.receiving
      return Metrics.render([...always, ...ReceivingMetrics.make(ingest.stats(), inbox.stats()), ...(yield* metrics)])
    })
  })

/** Connects to the warehouse and runs the services, again after each transient error. */
const runWithWarehouse = Effect.fnUntraced(function* <E extends { readonly message: string }>(
  state: ServeState<E>
): Effect.fn.Return<never, E | RulesChanged> {
  const { warehouse, isTransient } = state.options
  const mayPass = (error: E | RulesChanged) => !(error instanceof RulesChanged) && isTransient(error)
  return yield* Layer.build(Layer.fresh(warehouse)).pipe(
    Effect.flatMap((context) => Effect.provideContext(runServices(state), context)),
    Effect.scoped,
    Effect.tapError((error) =>
      mayPass(error)
        ? Effect.logWarning(
            `${error.message}; deliveries are answered 503 until the warehouse is available, which is tried again soon`
          )
        : Effect.void
    ),
    Effect.retry({
      while: mayPass,
      schedule: Schedule.min([Schedule.exponential(connectPauseMinMs), Schedule.spaced(connectPauseMaxMs)])
    })
  )
})

/** Runs everything that needs the warehouse. */
const runServices = Effect.fnUntraced(function* <E>(
  state: ServeState<E>
): Effect.fn.Return<never, E | RulesChanged, Warehouse | Scope.Scope> {
  const { options } = state
  const registry = yield* Registry.make(yield* options.companies)
  const companies: CurrentCompanies = () => [...registry.companies().values()]
  const keyring = yield* SigningSecrets.keyring(companies().map(({ secrets }) => secrets))
  const tables = yield* Tables.make
  yield* tables.confirm(companies().map(({ company }) => company))
  const { checkInterval, publicUrl, reader } = options
  const urlOf = (company: string) => hookUrl(publicUrl, company)
  const worker = yield* TaskWorker.make({
    ...options.worker,
    reader,
    ...(checkInterval === null ? {} : { checks: { interval: checkInterval, urlOf } })
  })
  const inbox = yield* InboxWriter.make({ rules: tables.rules, onStored: worker.noteEvents })
  const isExcluded = (company: string, resource: string) =>
    registry
      .companies()
      .get(company)
      ?.excluded.some(({ pattern }) => matches(pattern, resource)) === true
  const ingest = yield* Ingest.make({ reader, keyring, inbox, settings: options.window, isExcluded })
  const inboxMetrics = yield* InboxMetrics.make(() => [...registry.companies().keys()])
  const moreMetrics = options.metrics === undefined ? Effect.succeed([]) : yield* options.metrics(companies)
  const metrics = Effect.map(Effect.all([inboxMetrics, moreMetrics]), (all) => all.flat())
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      state.receiving = { ingest, inbox, metrics }
    }),
    () =>
      Effect.sync(() => {
        state.receiving = null
      })
  )
  const tablesReady = yield* Deferred.make<void>()
  const markReady = Deferred.succeed(state.ready, yield* Effect.context<Warehouse>())
  const processId = yield* Processes.makeId
  const owned = OwnedBuckets.make(processId)
  const work = options.work === undefined ? noWork : yield* options.work(companies, processId)
  const services: ReadonlyArray<BackgroundService> = [
    {
      what: "the tables",
      run: Effect.gen(function* () {
        const createAll = Effect.suspend(() => tables.create(companies().map(({ company }) => company)))
        yield* createAll
        yield* Deferred.succeed(tablesReady, undefined)
        return yield* Effect.forever(Effect.delay(createAll, tablesEveryMs))
      }),
      beforeTables: true
    },
    {
      what: "the companies",
      run: registry.watch(Effect.suspend(() => keyring.replaceCompanies(companies().map(({ secrets }) => secrets)))),
      beforeTables: true
    },
    {
      what: "the signing secrets",
      run: Effect.forever(Effect.delay(keyring.refresh, secretsEveryMs)),
      beforeTables: true
    },
    { what: "the heartbeat", run: sendHeartbeats(inbox, registry, processId, markReady), beforeTables: true },
    { what: "the record of ownership", run: owned.store, beforeTables: true },
    { what: "the closing of abandoned runs", run: RunStore.watchAbandoned, beforeTables: true },
    { what: "the tasks, the outbox, the events and the checks", run: worker.run },
    ...work.services
  ]
  const afterTables = (all: ReadonlyArray<BackgroundService>) =>
    runAll(
      all.map(({ beforeTables = false, ...service }) =>
        beforeTables ? service : { ...service, run: Effect.andThen(Deferred.await(tablesReady), service.run) }
      )
    )
  const keeper = (bucket: number) =>
    Effect.all(
      [
        afterTables(bucket === singletonBucket ? work.singletons : []),
        registry.runWork(bucket, ({ company }) =>
          Supervisor.runForever(
            `company ${company.name}`,
            Deferred.await(tablesReady).pipe(
              Effect.andThen(tables.prepare(company)),
              Effect.andThen(worker.own(company)),
              Effect.andThen(Effect.never),
              Effect.scoped
            )
          )
        )
      ],
      { concurrency: "unbounded", discard: true }
    )
  yield* Layer.build(
    options.ownership(yield* Database).layer((bucket) => Effect.andThen(owned.own(bucket), keeper(bucket)))
  )
  return yield* Effect.raceFirst(tables.replaced, Effect.andThen(afterTables(services), Effect.never))
})

const noWork: BackgroundWork = { services: [], singletons: [] }

/** The bucket whose owner runs the services of which there is one. */
const singletonBucket = 0

const runAll = (services: ReadonlyArray<BackgroundService>) =>
  Effect.forEach(services, ({ what, run }) => Supervisor.runForever(what, run), {
    concurrency: "unbounded",
    discard: true
  })

/** Sends heartbeats while events can be stored. A missing heartbeat shows that they cannot. */
const sendHeartbeats = Effect.fnUntraced(function* (
  inbox: InboxWriter.InboxWriter,
  registry: Pick<Registry.Registry<unknown>, "companies" | "revision" | "changed">,
  processId: string,
  onFirst: Effect.Effect<unknown>
) {
  const { changed } = registry
  const deregister = Processes.deregister(processId).pipe(Effect.timeoutOption(deregisterMaxMs), Effect.ignore)
  return yield* Effect.forever(
    Effect.gen(function* () {
      // The inbox itself logs a failure.
      const proof = yield* Effect.exit(inbox.probe)
      if (proof._tag === "Failure") return yield* Effect.sleep(heartbeatRetryMs)
      yield* changed.close
      const details = { host: hostname(), pid: process.pid, companyRevision: registry.revision() }
      yield* Processes.heartbeat(processId, [...registry.companies().keys()], details)
      yield* onFirst
      // Another program may wait until this process has applied a change.
      yield* Effect.timeoutOption(changed.await, heartbeatEveryMs)
    })
  ).pipe(Effect.onInterrupt(() => deregister))
})
