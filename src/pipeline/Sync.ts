/**
 * The pipeline in order: who are we, which tables, then every resource by its best way.
 *
 * Promise: resources are synced side by side and independently; what stops one stops no other, except a token that is
 * no longer good, which stops its company and nothing else. The report names every resource that was asked for.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Resource } from "../catalogue/Resource.ts"
import type { ConnectorShape } from "../connector/Connector.ts"
import { type Datasets, tableOf } from "../model/Table.ts"
import * as TablePlan from "../model/TablePlan.ts"
import type { Database } from "../postgres/Database.ts"
import { type Failure, failureOf, noTotals, type Outcome } from "./Outcome.ts"
import { Progress } from "./Progress.ts"
import { syncResource } from "./SyncResource.ts"

/** A company to sync: one token of one source. */
export interface SyncCompany {
  /** What people call it. */
  readonly name: string
  readonly connector: ConnectorShape
  readonly resources: ReadonlyArray<Resource>
}

export interface SyncOptions {
  readonly companies: ReadonlyArray<SyncCompany>
  readonly datasets: Datasets
  readonly full: boolean
  readonly acceptDeletions: boolean
  /** Resources of one company that are read at the same time. */
  readonly concurrency: number
  readonly batchRecordsMax: number
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

const skipped = (companyId: bigint, resource: Resource, failure: Failure): Outcome => ({
  companyId,
  resource: resource.path,
  status: "skipped",
  kind: null,
  resumed: false,
  runId: null,
  cursor: null,
  durationMs: 0,
  totals: noTotals,
  disbelieved: null,
  failure
})

const syncCompany = Effect.fn("syncCompany")(function* (options: SyncOptions, company: SyncCompany) {
  const progress = yield* Progress
  const identified = yield* Effect.result(company.connector.identify)
  if (identified._tag === "Failure") {
    const failure = failureOf(identified.failure)
    yield* progress.note(`${company.name}: ${failure.message}; ${failure.remedy}`)
    return { name: company.name, companyId: null, outcomes: [], failure } satisfies CompanyReport
  }
  const { companyId } = identified.success
  /** Set once by whichever resource learns that the token is no longer good. */
  let stopped: Failure | null = null
  const outcomes = yield* Effect.forEach(
    company.resources,
    (resource) =>
      Effect.suspend(() => {
        if (stopped !== null) return Effect.succeed(skipped(companyId, resource, stopped))
        return syncResource({
          companyId,
          connector: company.connector,
          table: tableOf(resource, options.datasets),
          full: options.full,
          acceptDeletions: options.acceptDeletions,
          batchRecordsMax: options.batchRecordsMax
        }).pipe(
          Effect.tap((outcome) =>
            Effect.sync(() => {
              if (outcome.failure?.stops === "company") stopped ??= outcome.failure
            })
          )
        )
      }),
    { concurrency: options.concurrency }
  )
  return { name: company.name, companyId, outcomes, failure: stopped } satisfies CompanyReport
})

/** Syncs everything that was asked for. Fails only when the warehouse itself cannot be prepared. */
export const sync = Effect.fn("sync")(function* (
  options: SyncOptions
): Effect.fn.Return<SyncReport, TablePlan.TableConflict | SqlError, Database | SqlClient.SqlClient> {
  const clock = yield* Clock.Clock
  const beganAt = clock.monotonicTimeNanosUnsafe()
  const resources = new Map(options.companies.flatMap(({ resources }) => resources.map((one) => [one.path, one])))
  yield* TablePlan.apply([...resources.values()].map((resource) => tableOf(resource, options.datasets)))
  const companies = yield* Effect.forEach(options.companies, (company) => syncCompany(options, company), {
    concurrency: "unbounded"
  })
  return { companies, durationMs: Number((clock.monotonicTimeNanosUnsafe() - beganAt) / 1_000_000n) }
})
