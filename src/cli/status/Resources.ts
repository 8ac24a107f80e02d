/** The state of each resource in the warehouse: rows, cursor, last run and age. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FieldFinding from "../../warehouse/FieldFinding.ts"
import { identifier } from "../../warehouse/Identifier.ts"
import { learnedOverlap } from "../../warehouse/Overlap.ts"
import type { Datasets } from "../../warehouse/Table.ts"
import * as TablePlan from "../../warehouse/TablePlan.ts"
import { control } from "../../postgres/Tables.ts"
import * as Query from "../../postgres/Query.ts"
import * as Sql from "../../postgres/Sql.ts"
import * as Statement from "../../postgres/Statement.ts"

export interface ResourceStatus {
  readonly companyId: bigint
  readonly resource: string
  readonly rows: number
  readonly deleted: number
  readonly cursor: string | null
  /** The status of the last run. */
  readonly lastRun: string | null
  readonly lastRunAt: string | null
  /** The start of the last successful run, and the time since. */
  readonly freshAt: string | null
  readonly ageMs: number | null
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

/** The live checkpoints, each with its last run, its last successful run and its quarantine. */
const checkpoints = Query.run(
  control
    .selectFrom("tributary.checkpoints as c")
    .leftJoin(
      (eb) =>
        eb
          .selectFrom("tributary.runs")
          .distinctOn(["company_id", "resource"])
          .selectAll()
          .where("lane", "=", "live")
          .orderBy("company_id")
          .orderBy("resource")
          .orderBy("id", "desc")
          .as("r"),
      (join) => join.onRef("r.company_id", "=", "c.company_id").onRef("r.resource", "=", "c.resource")
    )
    .leftJoin(
      (eb) =>
        eb
          .selectFrom("tributary.freshness")
          // Two names may have the same company number.
          .select((e) => ["company_id", "resource", e.fn.max("fresh_at").as("at")])
          .groupBy(["company_id", "resource"])
          .as("ok"),
      (join) => join.onRef("ok.company_id", "=", "c.company_id").onRef("ok.resource", "=", "c.resource")
    )
    .leftJoin(
      (eb) =>
        eb
          .selectFrom("tributary.quarantine")
          .select((e) => ["company_id", "resource", e.fn.countAll().as("records")])
          .where("resolved_at", "is", null)
          .groupBy(["company_id", "resource"])
          .as("q"),
      (join) => join.onRef("q.company_id", "=", "c.company_id").onRef("q.resource", "=", "c.resource")
    )
    .select([
      "c.company_id",
      "c.resource",
      "c.cursor",
      "r.status",
      "r.started_at",
      "r.error",
      "r.note",
      "c.full_scan_reason",
      "r.remedy",
      "ok.at as fresh_at",
      "q.records as quarantined"
    ])
    .where("c.lane", "=", "live")
    .orderBy("c.company_id")
    .orderBy("c.resource")
)

const keyOf = (companyId: bigint, resource: string): string => `${companyId} ${resource}`

export const learnedOverlapsStatement = Statement.make({
  name: "read the learned overlaps",
  columns: { company: "int8", resource: "text", ms: "float8" },
  text: `select c.company_id as company, c.resource, ${learnedOverlap("c")}::float8 as ms
           from tributary.checkpoints c where c.lane = 'live' and c.learned_overlap_ms > 0`
})

export const tablesStatement = Statement.make({
  name: "list the tables of a dataset",
  params: ["name"],
  columns: { name: "name" },
  text: `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = $1 and c.relkind = 'r'`
})

/** The rows and soft-deleted rows of these resources, by company and resource. */
const countRows = Effect.fnUntraced(function* (datasets: Datasets, resources: ReadonlySet<string>) {
  const tableNames = yield* TablePlan.readNames("")
  const existing = new Set((yield* Statement.run(tablesStatement, [datasets.current])).map(({ name }) => name))
  const counts = new Map<string, { readonly rows: number; readonly deleted: number }>()
  for (const resource of resources) {
    const table = tableNames.get(resource) ?? resource
    if (!existing.has(table)) continue
    const rows = yield* Sql.rows<{ company: bigint; rows: number; deleted: number }>(
      `select "_company_id" as company, (count(*) filter (where "_deleted_at" is null))::int as rows,
              (count(*) filter (where "_deleted_at" is not null))::int as deleted
         from ${identifier(datasets.current)}.${identifier(table)} group by 1`
    )
    for (const { company, ...count } of rows) counts.set(keyOf(company, resource), count)
  }
  return counts
})

/** The state of every resource with a live checkpoint. */
export const readResources = Effect.fn("status.read")(function* (datasets: Datasets) {
  const now = yield* Clock.currentTimeMillis
  const rows = yield* checkpoints
  const learned = yield* Statement.run(learnedOverlapsStatement)
  const overlaps = new Map(learned.map(({ company, resource, ms }) => [keyOf(company, resource), ms]))
  const findings = yield* FieldFinding.read
  const counts = yield* countRows(datasets, new Set(rows.map(({ resource }) => resource)))
  return rows.map((row): ResourceStatus => {
    const key = keyOf(row.company_id, row.resource)
    return {
      companyId: row.company_id,
      resource: row.resource,
      rows: counts.get(key)?.rows ?? 0,
      deleted: counts.get(key)?.deleted ?? 0,
      cursor: row.cursor,
      lastRun: row.status,
      lastRunAt: row.started_at?.toISOString() ?? null,
      freshAt: row.fresh_at?.toISOString() ?? null,
      ageMs: row.fresh_at === null ? null : now - row.fresh_at.getTime(),
      quarantined: Number(row.quarantined ?? 0),
      error: row.error,
      remedy: row.remedy,
      note: row.note,
      fullWanted: row.full_scan_reason,
      overlapMs: overlaps.get(key) ?? 0,
      findings: findings
        .filter((one) => keyOf(one.companyId, one.resource) === key)
        .map(({ field, kind, rows: found, runs }) => ({ field, kind, rows: found, runs }))
    }
  })
})
