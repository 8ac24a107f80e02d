/**
 * The sync of several companies: identify, prepare the tables, then read each resource.
 *
 * Promise: resources are synced concurrently and independently: the most urgent freshness target first, children after
 * their parents. A failure, a damaged table, or privacy rules that others replaced, stop one resource, unless the source refuses the identity, too
 * (`FailureScope.ts`). The report has every requested resource, also those with an access block.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { Priority } from "../budget/Budget.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { ConnectorShape, Identity } from "../connector/Connector.ts"
import type { Lane } from "../land/Checkpoint.ts"
import * as ColumnPromotion from "../warehouse/ColumnPromotion.ts"
import { childrenOf, type Datasets, tableOf } from "../warehouse/Table.ts"
import type { Index } from "../warehouse/Indexes.ts"
import { type Model, modelDatasetsOf } from "../warehouse/Model.ts"
import type { RulesChanged } from "../warehouse/RulesChanged.ts"
import type { TableDamaged } from "../warehouse/TableDamage.ts"
import * as TablePlan from "../warehouse/TablePlan.ts"
import * as Views from "../warehouse/Views.ts"
import type { Database } from "../postgres/Database.ts"
import * as Statement from "../postgres/Statement.ts"
import { retryTransient } from "../postgres/Transaction.ts"
import { type Failure, failureOf, noTotals, type Outcome } from "./Outcome.ts"
import { Progress } from "./Progress.ts"
import * as RunStore from "./RunStore.ts"
import * as SourceGuard from "./SourceGuard.ts"
import { engineDefault, type EngineSettings, freshnessDefault } from "./EngineSettings.ts"
import { laneOf, type SyncMode, syncResource } from "./SyncResource.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

/** A company to sync: one token of one source. */
export interface SyncCompany {
  readonly name: string
  readonly connector: ConnectorShape
  readonly resources: ReadonlyArray<Resource>
  /** Whether a person named the resources. If so, a resource without access is a failure; otherwise it is skipped. */
  readonly named?: boolean
  readonly engine?: EngineSettings
  /** Records per page as configured; null or absent is what the history shows. */
  readonly pageSize?: number | null
}

export interface SyncOptions {
  readonly companies: ReadonlyArray<SyncCompany>
  readonly datasets: Datasets
  readonly mode?: SyncMode
  /** Resources of one company that are read at the same time. */
  readonly concurrency: number
  readonly batchRecordsMax: number
  /** The freshness target of a resource. */
  readonly freshnessOf?: (resource: string) => Duration.Duration
  /** Views for people, kept up to date beside the tables. */
  readonly models?: ReadonlyArray<Model>
  /** Indexes beside those of the models. */
  readonly indexes?: ReadonlyArray<Index>
}

export interface CompanyReport {
  readonly name: string
  readonly companyId: bigint | null
  readonly outcomes: ReadonlyArray<Outcome>
  /** Why nothing of the company could be read. */
  readonly failure: Failure | null
}

export interface SyncReport {
  readonly companies: ReadonlyArray<CompanyReport>
  readonly durationMs: number
}

const skipped = (companyId: bigint, resource: Resource, lane: Lane, failure: Failure): Outcome => ({
  companyId,
  resource: resource.path,
  status: "skipped",
  lane,
  kind: null,
  resumed: false,
  runId: null,
  cursor: null,
  durationMs: 0,
  totals: noTotals,
  massDeleteBlocked: null,
  notes: [],
  failure
})

/** Why the token may not read a resource, and the remedy. */
export interface AccessBlock {
  readonly kind: "NotInScope" | "NotLicensed"
  readonly reason: string
  readonly remedy: string
}

/** The access block that scopes and modules show; null when there is none. */
export const accessBlockOf = (resource: Resource, { scopes, features }: Identity): AccessBlock | null => {
  const scope = scopes === null ? null : resource.traits.missingScope(scopes, resource.area, "read")
  if (scope !== null) {
    return {
      kind: "NotInScope",
      reason: `the token lacks the scope ${scope}`,
      remedy: `give the token the scope ${scope}`
    }
  }
  if (features !== null && resource.feature !== null && !features.includes(resource.feature)) {
    return {
      kind: "NotLicensed",
      reason: `the module ${resource.feature} is not licensed`,
      remedy: "nothing to do, unless you license the module"
    }
  }
  return null
}

/** Whether the source rejected the resource because of an access block. */
export const isAccessBlock = (failure: Failure | null): boolean => failure?.disposition === "blocked"

export const lastReadStatement = Statement.make({
  name: "read when resources were last read",
  params: ["int8"],
  columns: { resource: "text", at: "timestamptz" },
  text: `select resource, greatest(cursor_read_at, full_scan_at) as at from tributary.checkpoints
     where company_id = $1 and lane = 'live' and coalesce(cursor_read_at, full_scan_at) is not null`
})

const syncCompany = Effect.fn("syncCompany")(function* (
  options: SyncOptions,
  company: SyncCompany,
  damaged: ReadonlyMap<string, TableDamaged | RulesChanged>
) {
  const { mode = {} } = options
  const lane = laneOf(mode)
  const identified = yield* Effect.result(SourceGuard.identify(company))
  if (identified._tag === "Failure") {
    if (identified.failure instanceof DatabaseError) return yield* identified.failure
    const failure = failureOf(identified.failure)
    return { name: company.name, companyId: null, outcomes: [], failure } satisfies CompanyReport
  }
  const identity = identified.success
  const { companyId } = identity
  yield* (yield* Progress).identified(companyId, company.name)
  const lastRead = yield* retryTransient(Statement.run(lastReadStatement, [companyId]))
  const synced = new Map(lastRead.map(({ resource, at }) => [resource, at.getTime()]))
  const freshnessOf = options.freshnessOf ?? (() => freshnessDefault)
  const dueAt = ({ path }: Resource) => (synced.get(path) ?? 0) + Duration.toMillis(freshnessOf(path))
  const tables = new Map(company.resources.map((one) => [one.path, tableOf(one, options.datasets)]))
  const parentOf = ({ parent }: Resource) => (parent !== null && tables.has(parent.resource) ? parent.resource : null)
  /** Children begin after their parents, so that no child occupies a slot while its parent waits for one. */
  const inOrder = [...company.resources].sort((a, b) => dueAt(a) - dueAt(b))
  const resources = [
    ...inOrder.filter((resource) => parentOf(resource) === null),
    ...inOrder.filter((resource) => parentOf(resource) !== null)
  ]
  const ended = new Map<string, Deferred.Deferred<void>>()
  for (const { path } of resources) ended.set(path, yield* Deferred.make<void>())

  /** Set by the first failure that concerns the company. */
  let stopped: Failure | null = null
  const one = Effect.fnUntraced(function* (resource: Resource) {
    if (stopped !== null) return skipped(companyId, resource, lane, stopped)
    const barrier = company.named === true ? null : accessBlockOf(resource, identity)
    if (barrier !== null) {
      const { kind, reason, remedy } = barrier
      const message = `${resource.path}: ${reason}`
      return skipped(companyId, resource, lane, { kind, message, remedy, disposition: "blocked", stops: "resource" })
    }
    const damage = damaged.get(resource.path)
    if (damage !== undefined) {
      return { ...skipped(companyId, resource, lane, failureOf(damage)), status: "failed" as const }
    }
    const target = {
      companyId,
      connector: company.connector,
      table: tables.get(resource.path)!,
      children: childrenOf(tables, resource.path)
    }
    const { batchRecordsMax } = options
    const { engine = engineDefault } = company
    const outcome = yield* syncResource(target, { mode, batchRecordsMax, engine }).pipe(
      Effect.provideService(Priority, { class: lane, dueAt: dueAt(resource) })
    )
    if (outcome.failure?.stops === "company") stopped ??= outcome.failure
    return company.named !== true && isAccessBlock(outcome.failure)
      ? { ...outcome, status: "skipped" as const }
      : outcome
  })
  const outcomes = yield* Effect.forEach(
    resources,
    Effect.fnUntraced(function* (resource) {
      const parent = parentOf(resource)
      const settled = ended.get(parent ?? "")
      if (settled !== undefined) yield* Deferred.await(settled)
      return yield* Effect.ensuring(one(resource), Deferred.succeed(ended.get(resource.path)!, undefined))
    }),
    { concurrency: options.concurrency }
  )
  const order = new Map(company.resources.map(({ path }, index) => [path, index]))
  return {
    name: company.name,
    companyId,
    outcomes: outcomes.sort((a, b) => order.get(a.resource)! - order.get(b.resource)!),
    failure: stopped
  } satisfies CompanyReport
})

/** Updates the views. A failure is a note, and does not stop the sync. */
export const applyViews = Effect.fnUntraced(function* ({
  models,
  datasets,
  indexes
}: Pick<SyncOptions, "models" | "datasets" | "indexes">) {
  if (models === undefined || models.length === 0) return
  const progress = yield* Progress
  for (const where of modelDatasetsOf(datasets)) {
    yield* Views.apply(models, where, indexes).pipe(
      Effect.flatMap(({ refused }) =>
        Effect.forEach(refused, ({ name, reason, remedy }) =>
          progress.note(`${where.models}.${name} was left as it is: ${reason}; ${remedy}`)
        )
      ),
      Effect.catch((error) => progress.note(`the views were left as they are: ${error.message}`))
    )
  }
})

/** Syncs all companies. Fails only when the tables cannot be prepared. */
export const sync = Effect.fn("sync")(function* (
  options: SyncOptions
): Effect.fn.Return<SyncReport, TablePlan.TableConflict | DatabaseError, Database | SqlClient.SqlClient> {
  const clock = yield* Clock.Clock
  const beganAt = MonotonicClock.nowMs(clock)
  const resources = new Map(options.companies.flatMap(({ resources }) => resources.map((one) => [one.path, one])))
  const { damaged, rules } = yield* retryTransient(
    TablePlan.applyUndamaged([...resources.values()].map((resource) => tableOf(resource, options.datasets)))
  )
  const damagedOf = new Map([...damaged, ...rules].map((damage) => [damage.resource, damage]))
  yield* Effect.ignore(RunStore.markAbandoned)
  const [companies] = yield* Effect.all(
    [
      Effect.forEach(options.companies, (company) => syncCompany(options, company, damagedOf), {
        concurrency: "unbounded"
      }),
      applyViews(options)
    ],
    { concurrency: "unbounded" }
  )
  // After all runs have ended: no run may continue while its table gets columns.
  const sentences = yield* ColumnPromotion.inferAll(
    [...resources.values()].filter(({ path }) => !damagedOf.has(path)),
    options.datasets
  )
  const progress = yield* Progress
  for (const sentence of sentences) yield* progress.note(sentence)
  return { companies, durationMs: Math.floor(MonotonicClock.nowMs(clock) - beganAt) }
})
