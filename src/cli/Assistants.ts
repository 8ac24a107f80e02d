/**
 * The capabilities of assistants (the Model Context Protocol) from a configuration: the warehouse, a plan and a dry run.
 *
 * Promise: nothing is migrated, sent to the source or stored. Without a warehouse none is created.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { TextEncoder } from "node:util"
import * as StoredCompanies from "../companies/StoredCompanies.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import * as Configurations from "../configuration/Configuration.ts"
import type { AssistantHandler } from "../dashboard/Dashboard.ts"
import type { Backend } from "../dashboard/PageRunner.ts"
import type { FileProblem } from "../files/ReadFile.ts"
import { toolFailure, type ToolFailure } from "../mcp/Answer.ts"
import {
  Capabilities,
  type DryRunRequest,
  failureOf,
  type OpenWarehouse,
  type PlanRequest,
  unreachable
} from "../mcp/Capabilities.ts"
import type { Problem } from "../outbox/Push.ts"
import { type DatabaseError, sqlLayer } from "../postgres/Database.ts"
import * as Reader from "../warehouse/Reader.ts"
import { Source } from "./Source.ts"
import { Version } from "./Version.ts"
import * as Warehouse from "./Warehouse.ts"

/** Concurrent calls of tools: each query has a connection of its own, which the budget of connections does not count. */
const callsMax = 2
/** Names of companies in a message. */
const namesMax = 50

/** A mistake in the arguments or the configuration, which names what exists. */
const invalid = ({ message }: { readonly message: string }): ToolFailure =>
  toolFailure("invalid_argument", message, "Correct the argument; freshness and list_tables show the names.")

/** The configuration with the companies of the warehouse. */
const extended = (settings: Configuration, warehouse: Effect.Effect<OpenWarehouse, ToolFailure>) =>
  Effect.flatMap(
    Effect.flatMap(warehouse, ({ pools }) => pools),
    ({ context }) =>
      StoredCompanies.extend(settings, StoredCompanies.readOnly(settings)).pipe(
        Effect.provideContext(context),
        Effect.mapError(failureOf)
      )
  )

const plan = Effect.fnUntraced(function* (
  settings: Configuration,
  warehouse: Effect.Effect<OpenWarehouse, ToolFailure>,
  { companies, full, resources }: PlanRequest
) {
  const [Plan, Targets] = yield* Effect.promise(() => Promise.all([import("./plan.ts"), import("./Targets.ts")]))
  const all = yield* extended(settings, warehouse)
  const targets = yield* Effect.mapError(Targets.connect(all, { companies, resources }), invalid)
  return yield* Plan.run(all, { full, backfill: null, probe: false }, targets)
}, Effect.scoped)

/** The given company, or the only one. */
const companyNameOf = (settings: Configuration, given: string | null): Effect.Effect<string, ToolFailure> => {
  const names = Configurations.namesOf(settings)
  if (given !== null && names.includes(given)) return Effect.succeed(given)
  if (given === null && names.length === 1) return Effect.succeed(names[0]!)
  return Effect.fail(
    toolFailure(
      "unknown_company",
      given === null ? "The argument company is missing." : `There is no company ${given}.`,
      names.length === 0
        ? "The operator configures a company: tributary init."
        : `Give company as one of: ${names.slice(0, namesMax).join(", ")}.`
    )
  )
}

const dryRun = Effect.fnUntraced(function* (
  settings: Configuration,
  warehouse: Effect.Effect<OpenWarehouse, ToolFailure>,
  { company, operation, records, resource }: DryRunRequest
) {
  const [DryRun, NdJson, Targets] = yield* Effect.promise(() =>
    Promise.all([import("../outbox/DryRun.ts"), import("../outbox/input/NdJson.ts"), import("./Targets.ts")])
  )
  const all = yield* extended(settings, warehouse)
  const name = yield* companyNameOf(all, company)
  const found = yield* Effect.mapError(Targets.resourceOf(all, resource), invalid)
  const problems: Array<Problem> = []
  const lines = Stream.fromAsyncIterable(NdJson.read(chunkOf(records)), invalidLines).pipe(Stream.flattenIterable)
  const checked = DryRun.dryRun({
    company: name,
    resource: found,
    operation,
    batchRecordsMax: all.push.batchRecordsMax,
    useBatch: all.push.useBatch,
    records: lines,
    onProblem: (problem) => Effect.sync(() => void problems.push(problem))
  })
  const nothing = { given: 0, bytes: 0, calls: { batch: 0, single: 0 }, first: [] }
  const report = yield* Effect.catchTag(checked, "EnqueueRejected", ({ message }) =>
    problems.length > 0
      ? Effect.succeed(nothing)
      : Effect.fail(toolFailure("invalid_records", message, "Give one JSON object on each line."))
  )
  const { bytes, calls, first, given } = report
  return { company: name, problems, given, bytes, calls, first: first.map(({ text }) => text) }
})

const invalidLines = () =>
  toolFailure("invalid_records", "The records cannot be read.", "Give one JSON object on each line.")

const chunkOf = async function* (text: string) {
  yield new TextEncoder().encode(text)
}

/** The capabilities on a warehouse that is connected elsewhere. */
const make = Effect.fnUntraced(function* (
  settings: Configuration,
  warehouse: Effect.Effect<OpenWarehouse, ToolFailure>
) {
  const source = yield* Source
  return Capabilities.of({
    version: yield* Version,
    datasets: settings.datasets,
    warehouse,
    plan: (request) => Effect.provideService(plan(settings, warehouse, request), Source, source),
    dryRun: (request) => Effect.provideService(dryRun(settings, warehouse, request), Source, source),
    slots: Semaphore.makeUnsafe(callsMax)
  })
})

const noWarehouse = toolFailure(
  "no_warehouse",
  "There is no warehouse yet.",
  "The operator runs tributary sync, or tributary demo to try it."
)

/** The failure of a connection, which the log of this process explains. */
const away = <A, R>(
  effect: Effect.Effect<A, Warehouse.WarehouseError | FileProblem, R>
): Effect.Effect<A, ToolFailure, R> =>
  effect.pipe(
    Effect.tapError((error) => Effect.logWarning(`the warehouse does not answer: ${Warehouse.describe(error)}`)),
    Effect.mapError(() => unreachable)
  )

/** The value of the first success. Until then each use tries again; its resources end with the scope. */
const once = Effect.fnUntraced(function* <A, E, R>(make: Effect.Effect<A, E, R | Scope.Scope>) {
  const scope = yield* Effect.scope
  const turn = Semaphore.makeUnsafe(1)
  let made: { readonly value: A } | null = null
  return turn.withPermit(
    Effect.gen(function* () {
      if (made !== null) return made.value
      const own = yield* Scope.fork(scope)
      const value = yield* make.pipe(
        Scope.provide(own),
        Effect.onError((cause) => Scope.close(own, Exit.failCause(cause)))
      )
      made = { value }
      return value
    })
  )
})

/** SQLSTATE of a login that fails: the role does not exist yet, or has another password. */
const isLoginRefused = ({ code }: DatabaseError): boolean => code === "28P01" || code === "28000"

/** The warehouse of the configuration, as {@link once}. */
const openWarehouse = Effect.fnUntraced(function* (settings: Configuration, demo: boolean) {
  const location = Warehouse.locationOf(settings, demo)
  const scope = yield* Effect.scope
  const options = { url: location.readerUrl ?? null, datasets: settings.datasets }
  const database = Layer.provideMerge(Warehouse.databaseLayer(location), Layer.succeed(Reader.ReaderOptions, options))
  const open = Effect.gen(function* () {
    if (!(yield* away(Warehouse.exists(location)))) return yield* Effect.fail(noWarehouse)
    const context = yield* away(Layer.build(database))
    const login = yield* away(Effect.provideContext(Reader.loginOf, context))
    const connectPools = Effect.gen(function* () {
      const own = Context.merge(context, yield* Layer.build(Layer.provide(sqlLayer, Layer.succeedContext(context))))
      return { pages: yield* Effect.provideContext(Reader.pages, own), context: own }
    })
    const pools = yield* once(away(connectPools))
    yield* Effect.forkIn(Effect.ignore(pools), scope)
    return {
      context,
      connect: Effect.catchIf(Reader.connectGranted(login), isLoginRefused, () => Reader.connectAs(login)),
      pools
    } satisfies OpenWarehouse
  })
  return yield* once(open)
})

/** Serves one assistant on the standard input and output, until the input ends. */
export const serveStdio = Effect.fnUntraced(function* (settings: Configuration, demo: boolean) {
  const warehouse = yield* openWarehouse(settings, demo)
  const capabilities = yield* make(settings, warehouse)
  // The warehouse answers while the modules are loaded, so that the first tool finds it connected.
  yield* Effect.forkScoped(Effect.ignore(warehouse), { startImmediately: true })
  const Server = yield* Effect.promise(() => import("../mcp/Server.ts"))
  return yield* Layer.launch(Server.stdio.pipe(Layer.provide(Layer.succeed(Capabilities, capabilities))))
}, Effect.scoped)

/** Serves assistants at the address of the dashboard. Its modules are loaded with the first request. */
export const forDashboard = Effect.fnUntraced(function* (settings: Configuration) {
  const context = yield* Effect.context<Source>()
  const clock = yield* Clock.Clock
  return async (backend: () => Backend | null): Promise<AssistantHandler> => {
    const { serve } = await import("../mcp/Http.ts")
    const warehouse = Effect.suspend(() => {
      const connected = backend()
      return connected === null
        ? Effect.fail(unreachable)
        : Effect.succeed({
            context: connected.context,
            connect: Effect.flatMap(connected.reader, (pages) => pages.connect),
            pools: Effect.map(connected.reader, (pages) => ({ pages, context: connected.context }))
          })
    })
    const capabilities = Layer.effect(Capabilities, make(settings, warehouse))
    // With the context also come its loggers.
    return serve(capabilities.pipe(Layer.provideMerge(Layer.succeedContext(context))), clock)
  }
})
