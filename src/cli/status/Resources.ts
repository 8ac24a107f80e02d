/** The state of each resource in the warehouse: rows, cursor, last run and age. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { FieldRule, PatternRule } from "../../catalogue/Protection.ts"
import { keptPart, type Resource } from "../../catalogue/Resource.ts"
import { type CompanyConfiguration, exclusionOf } from "../../configuration/Companies.ts"
import * as FieldFinding from "../../warehouse/FieldFinding.ts"
import { identifier } from "../../warehouse/Identifier.ts"
import { learnedOverlap } from "../../warehouse/Overlap.ts"
import { tablesStatement } from "../../warehouse/RelationPlan.ts"
import type { Datasets } from "../../warehouse/Table.ts"
import * as TablePlan from "../../warehouse/TablePlan.ts"
import * as Sql from "../../postgres/Sql.ts"
import * as Statement from "../../postgres/Statement.ts"

export interface ResourceStatus {
  readonly companyId: bigint
  /** Its name; null where none is configured any more. */
  readonly company: string | null
  readonly resource: string
  /** The pattern of `exclude_resources` by which it is no longer read; null where it is read. */
  readonly excludedBy: string | null
  /** Which of its records are kept; null for all of them. */
  readonly part: string | null
  /** The privacy rules of its fields: each with the name or pattern. */
  readonly privacy: ReadonlyArray<Pick<PatternRule, "pattern"> & Pick<FieldRule, "kind">>
  readonly rows: number
  readonly deleted: number
  readonly cursor: string | null
  /** The status of the last run. */
  readonly lastRun: string | null
  readonly lastRunAt: string | null
  /** The start of the last successful run, or the time at which events prove it fresh; and the time since. */
  readonly freshAt: string | null
  readonly ageMs: number | null
  /** Whether that is the proof by events. */
  readonly isProven: boolean
  readonly quarantined: number
  readonly error: string | null
  readonly remedy: string | null
  /** A remark of a successful last run. */
  readonly note: string | null
  /** Why the next run is a full scan; null when it need not be one. */
  readonly fullWanted: string | null
  /** The overlap learned from late rows; the configured one may be longer. */
  readonly overlapMs: number
  /** Fields that full scans found to be unusual. */
  readonly findings: ReadonlyArray<FieldFinding.FieldFinding>
}

export const checkpointsStatement = Statement.make({
  name: "read the state of checkpoints",
  params: ["int8[]?"],
  columns: {
    companyId: "int8",
    company: "text?",
    resource: "text",
    cursor: "text?",
    status: "text?",
    startedAt: "timestamptz?",
    ...Statement.columns("text?", "error", "remedy", "note", "fullWanted"),
    freshAt: "timestamptz?",
    isProven: "bool",
    quarantined: "float8"
  },
  text: `select c.company_id as "companyId",
         (select n.company from tributary.companies n where n.company_id = c.company_id) as company, c.resource, c.cursor, r.status, r.started_at as "startedAt", r.error, r.remedy, r.note,
         c.full_scan_reason as "fullWanted", f.fresh_at as "freshAt", coalesce(f.proven_at = f.fresh_at, false) as "isProven", coalesce(q.records, 0)::float8 as quarantined
    from tributary.checkpoints c
    left join lateral (
      select status, started_at, error, remedy, note from tributary.runs
       where company_id = c.company_id and resource = c.resource and lane = 'live' order by id desc limit 1) r on true
    left join (
      select company_id, resource, max(fresh_at) as fresh_at, max(proven_at) as proven_at from tributary.freshness
       where $1::bigint[] is null or company_id = any($1) group by 1, 2) f
      on f.company_id = c.company_id and f.resource = c.resource
    left join (
      select company_id, resource, count(*) as records from tributary.quarantine
       where resolved_at is null and ($1::bigint[] is null or company_id = any($1)) group by 1, 2) q
      on q.company_id = c.company_id and q.resource = c.resource
   where c.lane = 'live' and ($1::bigint[] is null or c.company_id = any($1)) order by 1, 3`
})

const keyOf = (companyId: bigint, resource: string): string => `${companyId} ${resource}`

export const learnedOverlapsStatement = Statement.make({
  name: "read the learned overlaps",
  columns: { company: "int8", resource: "text", ms: "float8" },
  text: `select c.company_id as company, c.resource, ${learnedOverlap("c")}::float8 as ms
           from tributary.checkpoints c where c.lane = 'live' and c.learned_overlap_ms > 0`
})

/** The rows and soft-deleted rows of these resources, by company and resource. */
const countRows = Effect.fnUntraced(function* (
  datasets: Datasets,
  resources: ReadonlySet<string>,
  companyIds: ReadonlyArray<bigint> | null
) {
  const tableNames = yield* TablePlan.readNames("")
  const existing = new Set((yield* Statement.run(tablesStatement, [datasets.current])).map(({ name }) => name))
  const counts = new Map<string, { readonly rows: number; readonly deleted: number }>()
  for (const resource of resources) {
    const table = tableNames.get(resource) ?? resource
    if (!existing.has(table)) continue
    const rows = yield* Sql.rows<{ company: bigint; rows: number; deleted: number }>(
      `select "_company_id" as company, (count(*) filter (where "_deleted_at" is null))::int as rows,
              (count(*) filter (where "_deleted_at" is not null))::int as deleted
         from ${identifier(datasets.current)}.${identifier(table)}
        where $1::bigint[] is null or "_company_id" = any($1) group by 1`,
      [companyIds]
    )
    for (const { company, ...count } of rows) counts.set(keyOf(company, resource), count)
  }
  return counts
})

/** The state of every resource with a live checkpoint, of these companies or of all. */
export const readResources = Effect.fn("status.read")(function* (
  datasets: Datasets,
  companyIds: ReadonlyArray<bigint> | null = null,
  companies: ReadonlyArray<Pick<CompanyConfiguration, "name" | "excluded">> = [],
  resourceOf: (path: string) => Resource | undefined = () => undefined
) {
  const companyOf = new Map(companies.map((one) => [one.name, one]))
  const now = yield* Clock.currentTimeMillis
  const rows = yield* Statement.run(checkpointsStatement, [companyIds])
  const learned = yield* Statement.run(learnedOverlapsStatement)
  const overlaps = new Map(learned.map(({ company, resource, ms }) => [keyOf(company, resource), ms]))
  const findings = yield* FieldFinding.read
  const counts = yield* countRows(datasets, new Set(rows.map(({ resource }) => resource)), companyIds)
  return rows.map((row): ResourceStatus => {
    const { company, companyId, resource, cursor, status, startedAt, freshAt, isProven, quarantined } = row
    const { error, remedy, note, fullWanted } = row
    const key = keyOf(companyId, resource)
    const configured = companyOf.get(company ?? "")
    const of = resourceOf(resource)
    return {
      companyId,
      company,
      resource,
      excludedBy: configured === undefined ? null : (exclusionOf(configured, resource)?.pattern ?? null),
      part: of === undefined ? null : keptPart(of),
      privacy: (of?.protection?.rules ?? []).map(({ pattern, rule: { kind } }) => ({ pattern, kind })),
      rows: counts.get(key)?.rows ?? 0,
      deleted: counts.get(key)?.deleted ?? 0,
      cursor,
      lastRun: status,
      lastRunAt: startedAt?.toISOString() ?? null,
      freshAt: freshAt?.toISOString() ?? null,
      ageMs: freshAt === null ? null : now - freshAt.getTime(),
      isProven,
      quarantined,
      error,
      remedy,
      note,
      fullWanted,
      overlapMs: overlaps.get(key) ?? 0,
      findings: findings
        .filter((one) => keyOf(one.companyId, one.resource) === key)
        .map(({ field, kind, rows: found, runs }) => ({ field, kind, rows: found, runs }))
    }
  })
})
