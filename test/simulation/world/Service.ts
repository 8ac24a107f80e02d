/**
 * The webhook side of `tributary serve` in a simulated process, and the commands for subscriptions.
 *
 * Promise: the parts are those of `src/serve/Serve.ts` and are wired as there, without the listener. `Ports.ts` passes
 * each delivery to the receiver.
 */
import { Duration, Effect, Random, Schedule } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { protectDeliveries } from "../../../src/connector/ProtectedConnector.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as ProcessSlot from "../../../src/warehouse/ProcessSlot.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { protectionOf } from "../../../src/warehouse/WarehouseCatalogue.ts"
import * as RunStore from "../../../src/sync/RunStore.ts"
import type { Company } from "../../../src/sync/Company.ts"
import { bucketOf } from "../../../src/processes/Ownership.ts"
import * as Processes from "../../../src/processes/Processes.ts"
import * as InboxRetention from "../../../src/retention/InboxRetention.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import * as InboxStore from "../../../src/inbox/InboxStore.ts"
import * as Ingest from "../../../src/ingest/Ingest.ts"
import * as Secrets from "../../../src/subscriptions/SigningSecrets.ts"
import * as Subscriptions from "../../../src/subscriptions/Subscriptions.ts"
import * as Supervisor from "../../../src/processes/Supervisor.ts"
import type { Owner } from "../kernel/Kernel.ts"
import type { Plan } from "../Plan.ts"
import { companiesOf, engineOf, type Machine, makeWorker, own } from "./Engine.ts"
import type { Program } from "./Programs.ts"
import { aheadSeconds, publicUrl, toleranceSeconds } from "./Sender.ts"

const secretsEveryMs = 5_000
/** The longest delay of a delivery beyond the interval of cycles: a burst, and an attempt that is in flight. */
const deliveryDelay = Duration.seconds(34)
const aliveEveryMs = 20_000

/** The events to subscribe to: all events of the synced resources. */
export const eventsOf = (drawn: Plan): ReadonlyArray<string> =>
  drawn.resources.flatMap((path) => ["created", "updated", "cancelled"].map((verb) => `${path}.${verb}`))

/** The path of the configuration, so that both sides have the same address. */
const addressOf = (company: string): string => `${publicUrl}/hooks/${company}`

const tablesOf = ({ resources }: Program) => resources.map((resource) => tableOf(resource, datasetsDefault))

/** Seeded like everything else. */
const secureRandom = Effect.map(Random.Random, (random) =>
  SecureRandom.make((size) => Uint8Array.from({ length: size }, () => Math.floor(random.nextDoubleUnsafe() * 256)))
)

const companiesAndSecrets = Effect.fnUntraced(function* (
  machine: Machine,
  owner: Owner,
  life: number,
  program: Program
) {
  const { drawn } = machine
  const made = yield* companiesOf(machine, owner, life, program)
  const tables = new Map(tablesOf(program).map((table) => [table.resource.path, table]))
  const companies = made.map(({ name, connector }): Company => ({
    name,
    connector: {
      ...connector,
      subscriptions: {
        ...connector.subscriptions!,
        deliveryDelayMax: Duration.sum(Duration.millis(drawn.webhooks.cycleEvery / 1000), deliveryDelay)
      }
    },
    tables: Effect.succeed(tables),
    engine: engineOf(machine),
    batchRecordsMax: drawn.batchRecordsMax,
    events: eventsOf(drawn)
  }))
  const secrets = yield* Secrets.make(made.map(({ name, token }) => ({ name, token, configured: [] }))).pipe(
    Effect.provideService(SecureRandom.SecureRandom, yield* secureRandom)
  )
  return { companies, secrets }
})

/** Receives, processes and reconciles until it is interrupted. `skew` returns how far the process's clock is ahead. */
export const serve = Effect.fnUntraced(function* (
  machine: Machine,
  owner: Owner,
  life: number,
  skew: () => number,
  program: Program
) {
  const { drawn, ports } = machine
  yield* ProcessSlot.acquire
  // The tables of other seeds exist before they begin.
  const { revision } =
    drawn.later.rules.length > 0
      ? yield* TablePlan.applyUndamaged(tablesOf(program), { goesBack: true })
      : { revision: 0n }
  const { companies, secrets } = yield* companiesAndSecrets(machine, owner, life, program)
  const { keyring } = secrets
  const { keep, checkEvery } = drawn.webhooks
  const worker = yield* makeWorker(machine, {
    checks: { interval: Duration.millis(checkEvery / 1000), urlOf: addressOf }
  })
  const inbox = yield* InboxWriter.make({ rules: () => revision, onStored: worker.noteEvents })
  const receiver = yield* Ingest.make({
    reader: protectDeliveries(deliveryReader, protectionOf(program.catalogue, program.entries)),
    keyring,
    inbox,
    settings: { tolerance: Duration.seconds(toleranceSeconds), aheadMax: Duration.seconds(aheadSeconds) }
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => ports.close(owner)))
  ports.open(owner, {
    skew,
    receive: ({ company, signature, body }, done) =>
      receiver.receive({ company, signatures: signature === undefined ? [] : [signature], body }, ({ status }) =>
        done(status)
      )
  })
  const names = companies.map(({ name }) => name)
  const keeper = (bucket: number) =>
    Effect.all(
      companies
        .filter(({ name }) => bucketOf(name) === bucket)
        .map((company) => Effect.scoped(Effect.andThen(worker.own(company), Effect.never))),
      { concurrency: "unbounded", discard: true }
    )
  yield* own(machine, names, keeper)
  return yield* Effect.all(
    [
      Supervisor.runForever("the signing secrets", Effect.forever(Effect.delay(keyring.refresh, secretsEveryMs))),
      Supervisor.runForever(
        "the heartbeat",
        Effect.repeat(
          Effect.andThen(inbox.probe, Processes.heartbeat(owner.name, names)),
          Schedule.spaced(aliveEveryMs)
        )
      ),
      Supervisor.runForever(
        "the removal of old events",
        Effect.repeat(
          InboxRetention.remove({ retention: Duration.millis(keep / 1000) }),
          Schedule.spaced(Math.max(5_000, Math.min(keep / 2000, 60_000)))
        )
      ),
      Supervisor.runForever("the tasks, the outbox, the events and the checks", worker.run),
      Supervisor.runForever("the closing of abandoned runs", RunStore.watchAbandoned)
    ],
    { concurrency: "unbounded", discard: true }
  )
})

export type Command = "ensure" | "rotate" | "replay"

/** A command that a person runs. */
export const command = Effect.fnUntraced(function* (
  machine: Machine,
  owner: Owner,
  life: number,
  what: Command,
  program: Program
) {
  const { companies, secrets } = yield* companiesAndSecrets(machine, owner, life, program)
  yield* Effect.forEach(
    companies,
    (company) => {
      const subscription = { url: addressOf(company.name), events: company.events }
      if (what === "replay") return Effect.asVoid(InboxStore.replay(company.name, { state: "dead_letter" }))
      return what === "ensure"
        ? Effect.asVoid(Subscriptions.ensure(company, subscription))
        : Effect.asVoid(Subscriptions.rotate(company, subscription, null))
    },
    { discard: true }
  ).pipe(Effect.provideService(Secrets.SigningSecrets, secrets))
})
