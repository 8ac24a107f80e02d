/**
 * Findings of completed full scans about fields: absent ones, and volatile ones, which change with every read.
 *
 * Promise: a field that no record of a full scan has, although rows have values of it, is absent; it stays reported until
 * a full scan returns it again. The values stay. A field that changed in nearly all rows that a full scan rewrote, when it
 * rewrote most of them and their stamps did not change, is volatile; it is reported from the third such scan in a row.
 * The search costs nothing while records have all fields and most rows are unchanged.
 */
import * as Effect from "effect/Effect"
import type { Page } from "../connector/Connector.ts"
import { type FieldFinding, describeFinding, volatileRunsMin } from "../warehouse/FieldFinding.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { planForKeys } from "./MergeSql.ts"
import type { ResourceLock } from "./ResourceLock.ts"

/** A full scan of fewer records finds nothing. */
const recordsMin = 20

/** Rewritten rows that are compared. */
const sampleMax = 200
/** When more fields changed, the change is the work of people. */
const volatileMax = 3
const volatileShare = 0.9

export interface FieldFindings {
  /** Adds the records of a landing; `updated` of them replaced a version. */
  readonly meet: (pages: ReadonlyArray<{ readonly page: Page }>, updated: number) => void
  /** Ends a full scan that this run has read from its first page. Returns the new findings as sentences. */
  readonly complete: Effect.Effect<ReadonlyArray<string>, DatabaseError>
  /** Resets the findings, because the scan begins again. */
  readonly restart: () => void
}

interface FindingsContext {
  readonly lock: ResourceLock
  readonly runId: bigint
}

/** The fields of the scan so far. */
interface ScanFields {
  records: number
  updated: number
  /** Positions of fields that no record has had yet; null before the first one. */
  absent: ReadonlyArray<number> | null
}

const meet = (scan: ScanFields, pages: ReadonlyArray<{ readonly page: Page }>, updated: number): void => {
  scan.updated += updated
  for (const { page } of pages) {
    scan.records += page.records.length
    for (const record of page.records) {
      if (scan.absent !== null && scan.absent.length === 0) break
      if (!record.partial) scan.absent = []
      else {
        const { columns } = record
        scan.absent = (scan.absent ?? columns.map((_, index) => index)).filter((index) => columns[index] === undefined)
      }
    }
  }
}

/** Finds fields that changed in nearly all of the rewritten rows. */
const findVolatile = Effect.fnUntraced(function* ({ lock, runId }: FindingsContext, { records, updated }: ScanFields) {
  const { run, companyId, table } = lock
  if (updated < Math.max(recordsMin, records / 2)) return []
  yield* run("prepare the comparison of changed rows of", planForKeys)
  const columns = [...table.columns.map(({ name }) => name), "custom_fields"]
  const { rows } = yield* run<{ name: string; changed: number; sampled: number }>(
    "compare changed rows of",
    `with sample as (
       select to_jsonb(t) || coalesce(t."_extra", '{}') as fresh, to_jsonb(s) || coalesce(s."_extra", '{}') as old
         from ${table.current} t join ${table.superseded} s
           on s."_company_id" = t."_company_id" and s."id" = t."id" and s."_version" = t."_version" - 1
        where t."_company_id" = $1 and t."_run_id" = $2 and t."_op" = 'update' limit ${sampleMax}
     ), extra as (
       select distinct jsonb_object_keys(fresh -> '_extra') as name from sample where jsonb_typeof(fresh -> '_extra') = 'object'
     )
     select f.key as name, count(*)::int as changed, (select count(*) from sample)::int as sampled
       from sample, jsonb_each(fresh) f
      where f.value is distinct from old -> f.key
        and (f.key = any($3::text[]) or f.key in (select name from extra))
      group by f.key`,
    [companyId, runId, columns]
  )
  const most = rows.filter(({ changed, sampled }) => sampled >= recordsMin && changed >= sampled * volatileShare)
  if (most.length === 0 || most.length > volatileMax) return []
  const fieldOf = (name: string) => table.columns.find((column) => column.name === name)?.field ?? name
  const fields = most.map(({ name }) => fieldOf(name))
  return fields.includes(table.resource.roles.modifiedAt ?? "") ? [] : fields.map((field) => ({ field, rows: updated }))
})

/** Finds fields that no record of the scan had, although rows have values of them. */
const findAbsent = Effect.fnUntraced(function* ({ lock }: FindingsContext, { absent }: ScanFields) {
  const { run, companyId, table } = lock
  const columns = (absent ?? []).map((index) => table.columns[index]!)
  if (columns.length === 0) return []
  const { rows } = yield* run<Record<string, number>>(
    "count values of absent fields of",
    `select ${columns.map((column, index) => `count(${column.sql})::float8 as "c${index}"`).join(", ")}
       from ${table.current} where "_company_id" = $1 and "_deleted_at" is null`,
    [companyId]
  )
  return columns.map(({ field }, index) => ({ field, rows: rows[0]![`c${index}`]! })).filter((one) => one.rows > 0)
})

export const forgetStatement = Statement.make({
  name: "forget findings about fields of",
  params: ["int8", "text", "text", "text[]"],
  text: `delete from tributary.field_findings
      where company_id = $1 and resource = $2 and kind = $3 and not (field = any($4::text[]))`
})

export const noteStatement = Statement.make({
  name: "note findings about fields of",
  params: ["int8", "text", "text", "int8", "text[]", "int8[]"],
  columns: { field: "text", runs: "int4", rows: "float8" },
  text: `insert into tributary.field_findings as f
       (company_id, resource, field, kind, rows, first_run_id, last_run_id, found_at)
     select $1, $2, field, $3, rows, $4, $4, tributary.now() from unnest($5::text[], $6::bigint[]) as n (field, rows)
     on conflict (company_id, resource, kind, field)
       do update set rows = excluded.rows, runs = f.runs + 1, last_run_id = excluded.last_run_id
     returning field, runs, rows::float8 as rows`
})

/** Stores the findings of one kind. Returns those that are reported now, as sentences. */
const saveFindings = Effect.fnUntraced(function* (
  { lock, runId }: FindingsContext,
  kind: FieldFinding["kind"],
  found: ReadonlyArray<{ readonly field: string; readonly rows: number }>
) {
  const { runStatement, companyId, resource } = lock
  const fields = found.map(({ field }) => field)
  yield* runStatement(forgetStatement, [companyId, resource, kind, fields])
  if (found.length === 0) return []
  const sizes = found.map((one) => one.rows)
  const { rows } = yield* runStatement(noteStatement, [companyId, resource, kind, runId, fields, sizes])
  const reportedAtRun = kind === "volatile" ? volatileRunsMin : 1
  return rows.filter(({ runs }) => runs === reportedAtRun).map((one) => describeFinding(resource, { ...one, kind }))
})

const complete = Effect.fnUntraced(function* (context: FindingsContext, scan: ScanFields) {
  if (scan.records < recordsMin) return []
  const absent = yield* saveFindings(context, "absent", yield* findAbsent(context, scan))
  return [...absent, ...(yield* saveFindings(context, "volatile", yield* findVolatile(context, scan)))]
})

const noFields = (): ScanFields => ({ records: 0, updated: 0, absent: null })

export const make = (lock: ResourceLock, runId: bigint): FieldFindings => {
  const scan = noFields()
  return {
    meet: (pages, updated) => meet(scan, pages, updated),
    complete: Effect.suspend(() => complete({ lock, runId }, scan)),
    restart: () => void Object.assign(scan, noFields())
  }
}
