/**
 * The comparison of a close with the records of now.
 *
 * Promise: a period whose digests are those of the close has no changed record. A digest that differs is explained by the
 * listed records, or reported as unexplained. Changes that the change feed no longer has are an error, never "no change".
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Resource } from "../catalogue/Resource.ts"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import { query, queryNamed } from "../postgres/driver/Connection.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { type Datasets, type Table, tableOf } from "../warehouse/Table.ts"
import { type ChangedRow, changedSql, type VersionRow, versionsSql } from "./ChangedRecords.ts"
import { CloseFailed } from "./CloseFailed.ts"
import type { Content } from "./Document.ts"
import * as Figures from "./Figures.ts"
import * as Period from "./Period.ts"
import * as ReadFigures from "./ReadFigures.ts"
import * as Snapshot from "./Snapshot.ts"

/** The changed records of a resource that are listed. */
const listedMax = 100_000

/** `in` and `out`: its business date moved into the period or out of it. */
export type ChangeKind = "inserted" | "changed" | "deleted" | "moved in" | "moved out"

export interface ChangedRecord {
  readonly resource: string
  readonly id: string
  readonly kind: ChangeKind
  /** The version at the close; 0: there was no record. */
  readonly fromVersion: number
  readonly toVersion: number
  /** Values as text, null where there is none. */
  readonly changes: ReadonlyArray<{
    readonly field: string
    readonly from: string | null
    readonly to: string | null
  }>
  /** The versions since; none where only the record that has its date changed. */
  readonly versions: ReadonlyArray<{
    readonly version: number
    readonly op: string
    readonly origin: string
    readonly source: string | null
    readonly runId: string | null
    readonly observedAt: string
    readonly fields: ReadonlyArray<string>
  }>
}

export interface PeriodFigures {
  readonly count: number
  readonly sums: Readonly<Record<string, string>>
  readonly digest: string
}

export interface ResourceComparison {
  readonly resource: string
  /** Those at the close and now; only where they differ. */
  readonly figures: { readonly close: PeriodFigures; readonly now: PeriodFigures } | null
  readonly changed: number
  /** Why the records cannot be listed; null where they can. */
  readonly problem: string | null
}

export interface Comparison {
  readonly company: string
  readonly month: string
  readonly revision: number
  readonly closedAt: string
  readonly closePosition: string
  readonly comparedAt: string
  readonly position: string
  readonly equal: boolean
  /** Resources with a difference. */
  readonly resources: ReadonlyArray<ResourceComparison>
  readonly records: ReadonlyArray<ChangedRecord>
}

export interface CompareOptions {
  readonly close: Content
  readonly datasets: Datasets
  /** All resources with their inferred columns. */
  readonly catalogue: ReadonlyMap<string, Resource>
}

export const replacedStatement = Statement.make({
  name: "find tables that were replaced since",
  params: ["int8", "int8"],
  columns: { view: "text" },
  text: `select distinct history as view from tributary.change_batches
          where company_id = $1 and last_position > $2 and kind = 'truncate'`
})

const kindOf = ({ existed, exists, wasIn, isIn }: ChangedRow): ChangeKind =>
  !existed ? "inserted" : !exists ? "deleted" : wasIn && isIn ? "changed" : isIn ? "moved in" : "moved out"

const recordOf = (resource: string, row: ChangedRow, versions: ReadonlyArray<VersionRow>): ChangedRecord => ({
  resource,
  id: row.id,
  kind: kindOf(row),
  fromVersion: Number(row.from),
  toVersion: Number(row.to),
  changes: row.changes.map(([field, from, to]) => ({ field, from, to })),
  versions: versions.map(({ id: _id, version, ...rest }) => ({ version: Number(version), ...rest }))
})

const isSame = (one: PeriodFigures, other: PeriodFigures): boolean => one.digest === other.digest

const shown = ({ count, sums, digest }: PeriodFigures): PeriodFigures => ({ count, sums, digest })

/** Compares. Writes nothing. */
export const run = Effect.fn("Compare.run")(function* (
  options: CompareOptions
): Effect.fn.Return<
  Comparison,
  CloseFailed | DatabaseError | ChangeFeed.PositionLost,
  Database | SqlClient | Scope.Scope
> {
  const { close, datasets, catalogue } = options
  const period = Period.parse(close.period.month, close.period.timeZone)
  const start = ChangeFeed.parse(close.position)
  if (period === null || start === null)
    return yield* new CloseFailed({ kind: "invalid", message: `the close names no period or position that exists` })
  const companyId = BigInt(close.company.id)
  const { client, position, at } = yield* Snapshot.open(companyId)
  yield* ChangeFeed.confirm(start)
  const replaced = new Set(
    (yield* queryNamed(client, replacedStatement, [companyId, start.number])).map(({ view }) => view)
  )
  const current = new Map(
    (yield* ReadFigures.ofResources({
      client,
      companyId,
      period,
      datasets,
      catalogue,
      models: [],
      resources: close.resources.flatMap(({ resource }) => catalogue.get(resource) ?? [])
    })).map((one) => [one.resource, one])
  )
  const listOf = Effect.fnUntraced(function* (table: Table, dated: Figures.Dated) {
    const operation = `compare ${table.name}`
    const rows = yield* query<ChangedRow & object>(client, operation, changedSql(table, dated, period), [
      companyId,
      start.number,
      listedMax
    ])
    const versions = yield* query<VersionRow & object>(client, operation, versionsSql(table), [
      companyId,
      rows.map(({ id }) => id),
      rows.map(({ from }) => from)
    ])
    const byId = new Map<string, Array<VersionRow>>()
    for (const version of versions) byId.set(version.id, [...(byId.get(version.id) ?? []), version])
    return {
      total: Number(rows[0]?.total ?? 0),
      records: rows.map((row) => recordOf(table.resource.path, row, byId.get(row.id) ?? []))
    }
  })
  const resources: Array<ResourceComparison> = []
  const records: Array<ChangedRecord> = []
  for (const closed of close.resources) {
    if (closed.period === null) continue
    const { resource } = closed
    const spec = catalogue.get(resource)
    const now = current.get(resource)?.period
    const table = spec === undefined ? null : tableOf(spec, datasets)
    const dated = table === null ? null : Figures.datedOf(table, catalogue)
    if (table === null || dated === null || now === undefined || now === null) {
      resources.push({
        resource,
        figures: null,
        changed: 0,
        problem: "its table or its business date no longer exists"
      })
      continue
    }
    const figures = isSame(closed.period, now) ? null : { close: shown(closed.period), now: shown(now) }
    const isReplaced = [table, ...(dated.through === null ? [] : [dated.through.parent])].some(({ view }) =>
      replaced.has(view)
    )
    if (isReplaced) {
      const problem = "its table was replaced after the close, so that its earlier versions are gone"
      if (figures !== null) resources.push({ resource, figures, changed: 0, problem })
      continue
    }
    const listed = yield* listOf(table, dated)
    records.push(...listed.records)
    if (figures === null && listed.total === 0) continue
    const problem =
      listed.total === 0
        ? "it changed without the change feed: rows were edited in the database, or the catalogue has other fields"
        : listed.total > listed.records.length
          ? `only the first ${listed.records.length} of ${listed.total} records are listed`
          : null
    resources.push({ resource, figures, changed: listed.total, problem })
  }
  return {
    company: close.company.name,
    month: period.month,
    revision: close.revision,
    closedAt: close.closedAt,
    closePosition: close.position,
    comparedAt: at.toISOString(),
    position: ChangeFeed.textOf(position),
    equal: resources.length === 0,
    resources,
    records
  }
}, Effect.scoped)
