/**
 * The records of a table that changed a closed period: those whose values or period are not those of the close.
 *
 * Promise: it answers each record that belongs to the period before or after its changes since a position of the change feed, and
 * whose values now differ from those at the position, or whose period does. A record without a date of its own belongs to the
 * period of the record to which it refers, at the same time.
 */
import { literal } from "../warehouse/Identifier.ts"
import { recordJson, type Table } from "../warehouse/Table.ts"
import { type Dated, dayOfRecord, dayOfRow, isInPeriod, joinDated } from "./Figures.ts"
import type { Period } from "./Period.ts"

/** A row of {@link changedSql}. */
export interface ChangedRow {
  readonly id: string
  /** The version at the close; 0: there was no record. */
  readonly from: string
  /** The current version. */
  readonly to: string
  /** Whether the record existed at the close, and exists now. */
  readonly existed: boolean
  readonly exists: boolean
  readonly wasIn: boolean
  readonly isIn: boolean
  /** Field, value at the close and value now, as text. */
  readonly changes: ReadonlyArray<readonly [field: string, from: string | null, to: string | null]>
  /** The records that are not answered because of the limit are counted too. */
  readonly total: string
}

/** The records of the table with versions after position `$2`, each with its first such version; `$1` is the company. */
const changedSince = ({ view }: Table): string =>
  `select u.id, min(coalesce(u.version, 1)) as first ` +
  `from tributary.change_batches b cross join unnest(b.ids, b.versions) with ordinality u(id, version, place) ` +
  `where b.company_id = $1 and b.history = ${literal(view)} and b.kind = 'versions' and b.last_position > $2 ` +
  `and b.last_position - b.changes + u.place > $2 group by 1`

/** `$1` is the company, `$2` the position, `$3` the limit. */
export const changedSql = (table: Table, dated: Dated, period: Period): string => {
  const { through } = dated
  const inPeriod = (day: string) => isInPeriod(day, period)
  const parts: Array<string> = [`changed as materialized (${changedSince(table)})`]
  let candidates = "select id, first from changed"
  let joins = ""
  let dayBefore = dayOfRecord(dated, "b.record", period)
  let dayAfter = dayOfRow(dated, "k", period)
  if (through !== null) {
    const { parent, column } = through
    // The day of each parent that changed: at the position and now.
    parts.push(
      `parents as materialized (select c.id, ${dayOfRecord(dated, "h.record", period)} as before, ${dayOfRow(dated, "p", period)} as after ` +
        `from (${changedSince(parent)}) c ` +
        `left join ${parent.view} h on h."_company_id" = $1 and h."id" = c.id and h."_version" = c.first - 1 ` +
        `left join ${parent.current} p on p."_company_id" = $1 and p."id" = c.id)`
    )
    candidates +=
      ` union all select k."id", null from parents d join ${table.current} k on k."_company_id" = $1 and k.${column} = d.id ` +
      `where ${inPeriod("d.before")} <> ${inPeriod("d.after")} and not exists (select from changed c where c.id = k."id")`
    const field = (table.resource.businessDate as { readonly through: string }).through
    const parentBefore = `(b.record ->> ${literal(field)})::bigint`
    joins =
      ` left join parents q on q.id = ${parentBefore}` +
      ` left join ${parent.current} o on o."_company_id" = $1 and o."id" = ${parentBefore}${joinDated(dated, "k")}`
    dayBefore = `case when q.id is null then ${dayOfRow(dated, "o", period)} else q.before end`
    dayAfter = dayOfRow(dated, "d", period)
  }
  return (
    `with ${parts.join(", ")}, candidates as (${candidates}), found as materialized (` +
    `select n.id, coalesce(n.first - 1, k."_version") as "from", k."_version" as "to", b.record as before, ` +
    `case when k."_deleted_at" is null and k."id" is not null then ${recordJson(table, "k")} end as after, ` +
    `b.record is not null and ${inPeriod(dayBefore)} as "wasIn", ` +
    `k."id" is not null and k."_deleted_at" is null and ${inPeriod(dayAfter)} as "isIn" ` +
    `from candidates n left join ${table.current} k on k."_company_id" = $1 and k."id" = n.id ` +
    `left join ${table.view} b on b."_company_id" = $1 and b."id" = n.id ` +
    `and b."_version" = coalesce(n.first - 1, k."_version") and b."_op" <> 'delete'${joins}) ` +
    `select id::text as id, "from"::text as "from", "to"::text as "to", before is not null as existed, after is not null as "exists", ` +
    `"wasIn", "isIn", (select coalesce(json_agg(json_build_array(f, before ->> f, after ->> f) order by f), '[]') ` +
    `from unnest(tributary.changed_fields(coalesce(before, '{}'), coalesce(after, '{}'))) f ` +
    `where before ->> f is not null or after ->> f is not null) as changes, ` +
    `(count(*) over ())::text as total from found ` +
    `where ("wasIn" or "isIn") and ("wasIn" <> "isIn" or before::text is distinct from after::text) order by found.id limit $3`
  )
}

/** A version that came after the close. */
export interface VersionRow {
  readonly id: string
  readonly version: string
  readonly op: string
  readonly origin: string
  readonly source: string | null
  readonly runId: string | null
  readonly observedAt: string
  readonly fields: ReadonlyArray<string>
}

/** The versions of records after those at the close: `$1` is the company, `$2` are the records, `$3` their versions at the close. */
export const versionsSql = ({ view }: Table): string =>
  `select h."id"::text as id, h."_version"::text as version, h."_op" as op, h."_origin" as origin, h."_source" as source, ` +
  `h."_run_id"::text as "runId", to_char(h."_valid_from" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "observedAt", ` +
  `case when h."_op" = 'update' then tributary.changed_fields(p.record, h.record) else '{}' end as fields ` +
  `from unnest($2::bigint[], $3::bigint[]) c(id, version) ` +
  `join ${view} h on h."_company_id" = $1 and h."id" = c.id and h."_version" > c.version ` +
  `left join ${view} p on p."_company_id" = $1 and p."id" = c.id and p."_version" = h."_version" - 1 ` +
  `order by h."id", h."_version"`
