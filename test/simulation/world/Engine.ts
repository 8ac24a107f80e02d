/**
 * The production code, wired as in `main.ts`, with simulated services beneath it.
 *
 * Promise: only this file knows how the pipeline is called. It replaces the network, the connections, the clock, the
 * random numbers and the scheduler, and nothing else of the pipeline.
 */
import {
  Cause,
  Clock,
  Context,
  Duration,
  Effect,
  type Fiber,
  Layer,
  Logger,
  Random,
  Redacted,
  Scheduler,
  type Scope
} from "effect"
import * as HttpClient from "effect/http/HttpClient"
import type * as SqlClient from "effect/sql/SqlClient"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import * as ServiceClient from "../../../connectors/service-v2/client/ServiceClient.ts"
import { Budget } from "../../../src/budget/Budget.ts"
import { Budgets, layerPostgres } from "../../../src/budget/Budgets.ts"
import { protect } from "../../../src/connector/ProtectedConnector.ts"
import { select } from "../../../src/connector/SelectedConnector.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import * as SourceGuard from "../../../src/sync/SourceGuard.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { engineDefault, type EngineSettings, freshnessDefault } from "../../../src/sync/EngineSettings.ts"
import * as TaskWorker from "../../../src/tasks/TaskWorker.ts"
import type { TaskWorkerOptions } from "../../../src/tasks/WorkerState.ts"
import { verifyResource } from "../../../src/verify/Verify.ts"
import type { Database } from "../../../src/postgres/Database.ts"
import { bucketOf, type Keeper } from "../../../src/processes/Ownership.ts"
import * as FaultyOwnership from "../../processes/FaultyOwnership.ts"
import type { Chance } from "../kernel/Chance.ts"
import type { Owner } from "../kernel/Kernel.ts"
import type { Scene } from "../kernel/Scene.ts"
import { family, type Plan } from "../Plan.ts"
import type { Ports } from "./Ports.ts"
import type { Connections } from "./Connections.ts"
import type { Network } from "./Network.ts"
import { currentOf, type Program } from "./Programs.ts"
import { companyName } from "./Sender.ts"
import type { Source } from "./Source.ts"

export interface Machine<P extends Plan = Plan> extends Scene<P> {
  readonly connections: Connections
  readonly network: Network
  readonly source: Source
  readonly ports: Ports
}

export interface CycleOptions {
  readonly full: boolean
  readonly acceptDeletions?: boolean
  /** Accepts the restore of the source, as an operator does. */
  readonly acceptRestored?: boolean
  /** Runs a backfill beside live syncing. */
  readonly backfill?: boolean
  /** The release and configuration of the process; the current release when absent. */
  readonly program?: Program
  /** Whether a person goes back to privacy rules of the process that others replaced; default: yes. */
  readonly goesBack?: boolean
}

/** The longest Retry-After that a client waits for, as configured by default. */
const pauseWaitMax = Duration.minutes(10)

/** The background work of a process for its companies, until the end of the scope. */
export const own = <R>(
  { connections, drawn, fired }: Machine,
  names: ReadonlyArray<string>,
  keeper: Keeper<R>
): Effect.Effect<unknown, never, Exclude<R, Scope.Scope> | Scope.Scope> =>
  Layer.build(
    FaultyOwnership.make({
      buckets: new Set(names.map(bucketOf)),
      isOff: () => !drawn.on.has("O1") || !connections.faults.on,
      onStop: () => fired("O1 an owner loses its companies")
    }).layer(keeper)
  )

/** The worker of a process of serve. Its schedule is off: a scheduled run would hide a loss. */
export const makeWorker = (
  { drawn }: Pick<Machine, "drawn">,
  more: Partial<Pick<TaskWorkerOptions, "push" | "checks">>
) =>
  TaskWorker.make({
    scheduleOf: () => ({ timing: { kind: "off" }, missed: "once", jitterMax: null }),
    freshnessOf: () => freshnessDefault,
    concurrency: drawn.concurrency,
    datasets: datasetsDefault,
    models: [],
    reader: deliveryReader,
    lookEveryMs: 1_000,
    ...more
  })

/** Settings that every process of the plan shares. */
export const engineOf = ({ drawn }: Pick<Machine, "drawn">): EngineSettings => ({
  ...engineDefault,
  // No full scans except those that the engine requests: a repair would hide a loss.
  fullScanInterval: Duration.infinity,
  overlap: Duration.millis(drawn.overlap / 1000),
  cursorlessScanInterval: drawn.resources.includes(family[1]!)
    ? Duration.millis(drawn.sweepEvery / 1000)
    : Duration.zero
})

/** The companies of the plan, each with its connector. */
export const companiesOf = (
  { drawn, source, network }: Machine,
  owner: Owner,
  life: number,
  { catalogue, pageSize, resources }: Program
) => {
  const names = [...source.tokens.keys()].map(companyName)
  return Effect.forEach([...source.tokens], ([company, token]) =>
    Effect.gen(function* () {
      const name = companyName(company)
      const baseUrl = source.addressOf(company)
      const secret = Redacted.make(token)
      const { requestsPerMinute } = drawn
      const budgets = yield* Budgets
      const budget = yield* budgets.of({ baseUrl, token: secret, scope: "token", requestsPerMinute, pauseWaitMax })
      const connector = yield* ServiceClient.make({
        baseUrl,
        token: secret,
        catalogue,
        companyId: null,
        pageSize,
        paging: { mode: pagingMode(drawn) },
        itemsKey: "auto"
      }).pipe(
        Effect.provideService(Budget, budget),
        Effect.provideService(HttpClient.HttpClient, network.client(owner, life)),
        Effect.orDie
      )
      const selected = protect(select(connector))
      const number = source.numberOf(company)
      const warehouseNumber = number === company ? null : BigInt(company)
      return {
        name,
        token: secret,
        // Without companies of equal numbers, the connector's number is the one in the warehouse.
        connector:
          drawn.later.sameNumber === null
            ? selected
            : yield* SourceGuard.guarded({ name, configured: names, warehouseNumber }, selected),
        resources,
        engine: engineOf({ drawn })
      }
    })
  )
}

/** One `tributary sync` of every company of the plan. */
export const cycle = Effect.fnUntraced(function* (machine: Machine, owner: Owner, life: number, options: CycleOptions) {
  const { drawn } = machine
  const { goesBack = true, program = currentOf(drawn) } = options
  if (goesBack && drawn.later.rules.length > 0)
    yield* TablePlan.applyUndamaged(
      program.resources.map((resource) => tableOf(resource)),
      { goesBack }
    )
  return yield* sync({
    companies: yield* companiesOf(machine, owner, life, program),
    datasets: datasetsDefault,
    mode: {
      full: options.full,
      acceptDeletions: options.acceptDeletions ?? false,
      acceptRestored: options.acceptRestored ?? false,
      backfill: options.backfill === true ? { since: null, until: null } : undefined
    },
    concurrency: drawn.concurrency,
    batchRecordsMax: drawn.batchRecordsMax
  })
})

/** `tributary verify` of every company of the plan. */
export const verify = Effect.fnUntraced(function* (machine: Machine, owner: Owner, life: number) {
  const companies = yield* companiesOf(machine, owner, life, currentOf(machine.drawn))
  const reports = yield* Effect.forEach(companies, ({ connector, resources }) =>
    Effect.flatMap(connector.identify, ({ companyId }) =>
      Effect.forEach(resources, (resource) =>
        verifyResource({ companyId, connector, table: tableOf(resource), sample: null, seed: 1, repair: null })
      )
    )
  )
  return reports.flat()
})

const pagingMode = ({ dialect }: Plan) => {
  const { paging } = dialect
  return paging === "page" || paging === "offset" || paging === "link" ? paging : "auto"
}

const randomOf = (chance: Chance): Context.Service.Shape<typeof Random.Random> => ({
  nextIntUnsafe: () => chance.integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  nextDoubleUnsafe: () => chance.next()
})

/** The services of a simulated process. */
export type Services = Database | SqlClient.SqlClient | Scope.Scope

/** Runs a program in a process. `ended` is called when it ended, never when the process was killed. */
export const start = <A>(
  machine: Machine,
  owner: Owner,
  program: Effect.Effect<A, unknown, Services>,
  clock: { readonly skew: () => number; readonly monotonicOrigin: number },
  chance: Chance,
  ended: (result: { readonly result: A | null; readonly cause: string | null }) => void
): Fiber.Fiber<A, unknown> => {
  const { kernel, connections } = machine
  const context = Context.make(Clock.Clock, kernel.clock(owner, clock.skew, clock.monotonicOrigin)).pipe(
    Context.add(Scheduler.Scheduler, kernel.scheduler(owner)),
    Context.add(Random.Random, randomOf(chance)),
    Context.add(Logger.CurrentLoggers, new Set())
  )
  const whole = Effect.scoped(
    Effect.flatMap(connections.services(owner), (services) =>
      (machine.drawn.sharedBudget ? Effect.provide(program, layerPostgres) : program).pipe(Effect.provide(services))
    )
  )
  const fiber = Effect.runForkWith(context)(whole)
  fiber.addObserver((exit) => {
    if (owner.state === "dead") return
    // A process that exits takes keepers that hang, and their connections, with it.
    kernel.kill(owner)
    connections.cut(owner)
    ended(
      exit._tag === "Success"
        ? { result: exit.value, cause: null }
        : { result: null, cause: Cause.pretty(exit.cause).split("\n")[0]! }
    )
  })
  return fiber
}
