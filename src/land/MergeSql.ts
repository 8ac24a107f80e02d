/**
 * The statements that land records of one table.
 *
 * Promise: newer wins. A version replaces the row only when its time of change is later, or equal (or absent) and its read
 * did not begin earlier. Under the {@link ConflictPolicy} `source` only the time of the reads counts. An equal row is not
 * written. The replaced version is in the history before the transaction ends.
 */
import { identifier, literal, nameFor } from "../warehouse/Identifier.ts"
import { type Column, roleColumn, type Table } from "../warehouse/Table.ts"
import * as ChangeBatch from "./ChangeBatch.ts"
import { requestSql } from "./Refetch.ts"

/**
 * The staging tables of a landing, dropped with its transaction. Each resource has its own, in case an older release left
 * one behind.
 */
const stageOf = (table: Table): string => identifier(nameFor(`stage_${table.name}`, new Set()))
const missingOf = (table: Table): string => identifier(nameFor(`gone_${table.name}`, new Set()))

/** The columns of a record: its fields, then custom fields and extra. */
const recordColumns = (table: Table): ReadonlyArray<Column> => [
  ...table.columns,
  ...table.meta.filter((column) => column.name === "custom_fields" || column.name === "_extra")
]

/** As text, because jsonb calls 1.10 and 1.1 equal. */
const comparable = (table: Table, alias: string, column: Column): string =>
  column.name === "_extra" && table.resource.ignoredFields.length > 0
    ? `nullif((${alias}."_extra" - array[${table.resource.ignoredFields.map(literal).join(", ")}]::text[])::text, '{}')`
    : column.kind === "json" || column.kind === "list"
      ? `${alias}.${column.sql}::text`
      : `${alias}.${column.sql}`

/** Whether a value of the row `t` is not that of the version sent. */
const differs = (table: Table, sent: string): string => {
  const ignored = new Set(table.resource.ignoredFields)
  const columns = recordColumns(table).filter((column) => column.name !== "id" && !ignored.has(column.field))
  // First the stamp, which differs in most changed rows: Postgres stops at the first difference.
  const isStamp = (column: Column) => column.field === table.resource.roles.modifiedAt
  const inOrder = [...columns.filter(isStamp), ...columns.filter((column) => !isStamp(column))]
  const side = (alias: string) => inOrder.map((column) => comparable(table, alias, column)).join(", ")
  return `(t."_deleted_at" is not null or (${side("t")}) is distinct from (${side(sent)}))`
}

/**
 * The version that wins. `newer`: the one changed last. `source`: the one read last, because a person said that the source
 * was restored, or because this record is being repaired.
 */
export type ConflictPolicy = "newer" | "source"

/** The quoted column with the time of change; undefined where the records have none. */
const stampOf = (table: Table): string | undefined => roleColumn(table, "modifiedAt")?.sql

/**
 * Whether scans read a row, by the instant of `resources.<path>.since`: a parameter, null for every row. A row without a
 * stamp is not read.
 */
const isScanned = (table: Table, since: string): string => {
  const column = stampOf(table)
  return `(${since}::timestamptz is null${column === undefined ? "" : ` or t.${column} >= ${since}::timestamptz`})`
}

/** Whether the values of a row pass each filter of the resource. */
const passing = (table: Table): ReadonlyArray<string> =>
  table.resource.where.flatMap(({ field, match, value }) => {
    const column = table.columns.find((one) => one.field === field)
    if (column === undefined) return []
    const text = `t.${column.sql}::text`
    return match === "exact"
      ? [`${text} = ${literal(value)}`]
      : [`position(lower(${literal(value)}) in lower(${text})) > 0`]
  })

/** Whether a full scan should return a row: scans read it, and its values pass the filters of the resource. */
export const isExpected = (table: Table, since: string): string =>
  [isScanned(table, since), ...passing(table)].join(" and ")

/** Whether a row is missing when a full scan did not return it: it should have, or the row does not pass the filters. */
const isDecided = (table: Table, since: string): string =>
  `(${[isScanned(table, since), ...passing(table).map((one) => `(${one}) is not true`)].join(" or ")})`

/**
 * Whether a stored time is before the begin of a read. A time in the future is from before the warehouse's clock was set
 * back, so that it is before each read that began since.
 */
export const isBefore = (at: string, began: string, comparison: "<" | "<=" = "<"): string =>
  `(${at} ${comparison} ${began} or (${at} > tributary.now() and ${began} <= tributary.now()))`

/** Whether the version sent wins over the row `t`. `began` is when the read that brought it began. */
const wins = (table: Table, authority: ConflictPolicy, sent: string, began: string): string => {
  const later = isBefore('t."_observed_at"', began, "<=")
  const column = stampOf(table)
  if (authority === "source" || column === undefined) return later
  const [keptAt, sentAt] = [`t.${column}`, `${sent}.${column}`]
  // A deleted row that is read again exists: only the time of the reads decides.
  return (
    `(case when t."_deleted_at" is not null or ${keptAt} is null or ${sentAt} is null or ${keptAt} = ${sentAt} ` +
    `then ${later} else ${sentAt} > ${keptAt} end)`
  )
}

/**
 * The rows of the table that records of the stage would replace, looked up one by one by their key. A plain join would
 * let Postgres, which knows nothing of the stage, read the whole table for every batch.
 */
const matched = (table: Table): string =>
  `${stageOf(table)} s cross join lateral (select * from ${table.current} k ` +
  `where k."_company_id" = $1 and k."id" = s."id" offset 0) t`

const list = (columns: ReadonlyArray<Column>, alias?: string): string =>
  columns.map((column) => (alias === undefined ? column.sql : `${alias}.${column.sql}`)).join(", ")

/** The first release (`server_version_num`) whose statements can return a row as it was before them. */
export const countStaleAnswers = 180_000

/** Statements that write records. */
export interface UpsertSql {
  /** Creates the staging table of the transaction. */
  readonly createStage: string
  readonly emptyStage: string
  /** Fields, custom fields, extra, absent positions, began, source. */
  readonly copyStage: string
  /** Company, fields, custom fields, extra, run, began, source, origin: straight into the table, for first loads. */
  readonly copyDirect: string
  /** Gives partial records the values that the warehouse holds. Parameters: company. */
  readonly fillAbsent: string
  /**
   * Inserts and updates, and writes the versions that it replaces to the history, for Postgres 18 and later: they can
   * return a row as it was. Parameters as of {@link merge}; returns one row: written, updated, late, earliest_ms.
   */
  readonly mergeKeeping: string
  /** Before Postgres 18: writes the versions about to be replaced to the history. Parameters: company. */
  readonly supersede: string
  /**
   * Before Postgres 18, after {@link supersede}: inserts and updates. Parameters: company, origin, run, an instant, and
   * whether it is a full scan. Rows written that are stamped before the instant, and that were not here with that stamp, are
   * counted as `late`; `earliest_ms` is the earliest of their stamps. Returns one row: written, late, earliest_ms.
   */
  readonly merge: string
  /** Counts records of the stage that are older than the row which was kept. Parameters: company. */
  readonly countStale: string | null
  /** Counts live rows without a stamp. Parameters: company. */
  readonly countUnstamped: string | null
  /** Requests the children of the written rows. Parameters: company, run, resources, fields. */
  readonly requestChildren: string
}

/** Statements that soft-delete rows. */
export interface SoftDeleteSql {
  /** Creates the transaction's table of rows that a completed full scan did not return. */
  readonly createMissing: string
  readonly clearMissing: string
  /**
   * Finds the live rows that the scan did not return and that no read has returned since. Parameters: company, resource,
   * began, lane, since or null.
   */
  readonly findMissing: string
  /** Counts the live rows, and those among them that the scan did not return. Parameters: company, resource, lane, since or null. */
  readonly countUnseen: string
  /** Keeps missing rows that another lane may have landed after the scan had read their page: by pushes and reads by
   * number, and by another scan those that may have become visible after the position of this one. Parameters: company, scan
   * began, lane, position of the scan or null, overlap in milliseconds. */
  readonly keepConcurrent: string
  /** Keeps missing rows whose own stamp is later than the position of the scan less the overlap, within which a record may
   * become visible after its stamp: a page was answered by a cache, or by a replica that is behind. It applies only to a
   * scan that is behind a cursor of the resource: otherwise a source whose position follows its newest record would keep a
   * removed row for ever. Before the first cursor it applies without the overlap. Stamps later than both the warehouse's
   * clock and the cursor are ignored. Null without stamps. Parameters: company, position of the scan, cursors of all lanes,
   * overlap in milliseconds. */
  readonly keepUnreached: string | null
  /** Finds live rows with these ids that no read has returned since, and (unless the source decides) that did not change
   * after the time beside the id (null: any). Parameters: company, ids, began, times of change. */
  readonly findMissingAmong: string
  /** Writes the rows about to be tombstoned to the history. Parameters: company, scan began. */
  readonly archiveMissing: string
  /** Parameters: company, scan began, run, source, origin. */
  readonly tombstone: string
  /**
   * Lets rows that were restored continue their history: the version is later than those of the history, and begins when
   * the last of them ends or later. So no two versions are valid at one moment. An earlier version may end later, where the
   * warehouse's clock was set back since. Parameters: company.
   */
  readonly continueVersions: string
}

export interface MergeSql extends UpsertSql, SoftDeleteSql {}

/**
 * Plans a merge by key lookups. Without statistics of a table that is just being loaded, Postgres would read the whole
 * table for every batch. JIT is off, because before Postgres 18 a disabled plan adds 1e10 to the cost of a statement, so
 * that every statement would be compiled.
 */
export const planForKeys =
  "set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off; " +
  "set local enable_material = off; set local enable_nestloop = on; set local work_mem = '32MB'; set local jit = off"

/** Plans the search for missing rows by one pass over both sides. */
export const planForAll =
  "set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on; " +
  "set local enable_material = on; set local enable_nestloop = off; set local jit = off"

/** Every column of a row except the company. */
const rowColumns = (table: Table): ReadonlyArray<Column> => [...table.columns, ...table.meta]

/** The insert of versions into the history; a select of the same columns follows. */
const historyInsert = (table: Table): string =>
  `insert into ${table.superseded} ("_company_id", ${list(rowColumns(table))}, "_valid_to")`

const upsertSql = (table: Table, authority: ConflictPolicy): UpsertSql => {
  const sent = recordColumns(table)
  const stage = stageOf(table)
  const own = rowColumns(table)
  const bare = (column: Column) => column.sqlType.split(" ")[0]
  const history = historyInsert(table)
  const column = stampOf(table)
  const stamp = (alias: string) => (column === undefined ? "null::timestamptz" : `${alias}.${column}`)
  /** The assignments of a row that is replaced; `fresh` has the names of its table, `began` and the rest are values. */
  const replaced = (fresh: string, began: string, origin: string, runId: string): string =>
    `${sent
      .filter((column) => column.name !== "id")
      .map((column) => `${column.sql} = ${fresh}.${column.sql}`)
      .join(", ")}, "_version" = t."_version" + 1, ` +
    `"_op" = case when t."_deleted_at" is null then 'update' else 'insert' end, "_deleted_at" = null, ` +
    `"_origin" = ${origin}, "_run_id" = ${runId}, "_source" = ${fresh}."_source", "_observed_at" = ${began}`
  const target = `("_company_id", ${list(sent)}, "_origin", "_run_id", "_source", "_observed_at", "_version")`
  // A row that was lost with its table continues the versions of its history.
  const version =
    `1 + coalesce((select max(h."_version") from ${table.superseded} h ` +
    `where h."_company_id" = $1::bigint and h."id" = s."id"), 0)`
  // A row may have been deleted by hand after this read began: its versions are valid one after the other.
  const begins =
    `greatest(s."_began", (select h."_valid_to" from ${table.superseded} h where h."_company_id" = $1::bigint ` +
    `and h."id" = s."id" and not exists (select from ${table.current} k where k."_company_id" = $1::bigint and k."id" = s."id") ` +
    `order by h."_version" desc limit 1))`
  const source = `$1::bigint, ${list(sent, "s")}, $2::text, $3::bigint, s."_source", ${begins}, ${version}`
  /** Writes the versions of "merged" to the change feed. */
  const fed = `fed as (${ChangeBatch.insert(table, "merged", { company: "$1::bigint", began: "began" })})`
  /**
   * A row is late when its stamp is before the instant, unless it was here with that stamp: the row that it replaces has
   * it (`was`); or, in a full scan, the feed has this version already, since the row was deleted by hand, or the record was
   * in quarantine.
   */
  const counts = (was: string, more = "") =>
    `select count(*)::int as written, (count(*) filter (where is_late))::int as late, ` +
    `(extract(epoch from min(stamp) filter (where is_late)) * 1000)::float8 as earliest_ms${more} from (` +
    `select m.*, m.stamp < $4::timestamptz and not coalesce(${was} >= m.stamp, false) and not ($5::boolean and (` +
    `${ChangeBatch.had(table, { company: "$1::bigint", id: "m.id", version: "m.version", among: `select s."id" from ${stage} s` })} ` +
    `or exists (select from tributary.quarantine q where q.company_id = $1::bigint ` +
    `and q.resource = ${literal(table.resource.path)} and q.record_id = m.id::text))) as is_late from merged m offset 0) counted`
  // Named by position, so that no column of a record clashes.
  const old = ["_company_id", ...own.map(({ name }) => name)].map((name, index) => ({ name, as: `c${index}` }))
  const oldOf = (column: string) => old.find(({ name }) => identifier(name) === column)?.as
  const oldVersion = oldOf(identifier("_version"))!
  return {
    createStage:
      `create temp table if not exists ${stage} (${sent.map((column) => `${column.sql} ${bare(column)}`).join(", ")}, ` +
      `"_absent" smallint[], "_began" timestamptz, "_source" text) on commit drop`,
    emptyStage: `truncate ${stage}`,
    copyStage: `copy ${stage} from stdin`,
    copyDirect: `copy ${table.current} ("_company_id", ${list(sent)}, "_run_id", "_observed_at", "_source", "_origin") from stdin`,
    fillAbsent: `update ${stage} s set ${table.columns
      .map((column, index) => ({ column, index }))
      .filter(({ column }) => column.name !== "id")
      .map(
        ({ column, index }) =>
          `${column.sql} = case when ${index} = any(s."_absent") then t.${column.sql} else s.${column.sql} end`
      )
      .join(", ")} from ${table.current} t where t."_company_id" = $1 and t."id" = s."id" and s."_absent" is not null`,
    supersede:
      `${history} select t."_company_id", ${list(own, "t")}, s."_began" from ${matched(table)} ` +
      `where ${wins(table, authority, "s", `s."_began"`)} and ${differs(table, "s")}`,
    merge:
      `with merged as (insert into ${table.current} as t ${target} select ${source} from ${stage} s ` +
      `on conflict ("_company_id", "id") do update set ` +
      `${replaced("excluded", `excluded."_observed_at"`, `excluded."_origin"`, `excluded."_run_id"`)} ` +
      `where ${wins(table, authority, "excluded", `excluded."_observed_at"`)} and ${differs(table, "excluded")} ` +
      `returning ${stamp("t")} as stamp, t."id" as id, t."_version" as version, t."_observed_at" as began), ${fed} ` +
      counts(
        column === undefined
          ? "m.stamp"
          : `(select h.${column} from ${table.superseded} h where h."_company_id" = $1::bigint and h."id" = m.id ` +
              `and h."_version" = m.version - 1)`
      ),
    mergeKeeping:
      `with merged (stamp, id, version, began, ${old.map(({ as }) => as).join(", ")}) as (` +
      `merge into ${table.current} t using ${stage} s on t."_company_id" = $1::bigint and t."id" = s."id" ` +
      `when matched and ${wins(table, authority, "s", `s."_began"`)} and ${differs(table, "s")} ` +
      `then update set ${replaced("s", `s."_began"`, "$2::text", "$3::bigint")} ` +
      `when not matched then insert ${target} values (${source}) ` +
      `returning ${stamp("new")}, new."id", new."_version", new."_observed_at", ${old.map(({ name }) => `old.${identifier(name)}`).join(", ")}), ` +
      `kept as (${history} select ${old.map(({ as }) => as).join(", ")}, began from merged where ${oldVersion} is not null), ${fed} ` +
      counts(column === undefined ? "m.stamp" : `m.${oldOf(column)}`, `, count(${oldVersion})::int as updated`),
    countStale:
      column !== undefined && authority === "newer"
        ? `select count(*)::int as records from ${matched(table)} where t."_deleted_at" is null and s.${column} < t.${column} ` +
          `and ${isBefore('t."_observed_at"', 's."_began"', "<=")}`
        : null,
    countUnstamped:
      column !== undefined
        ? `select count(*)::int as rows from ${table.current} where "_company_id" = $1 and "_deleted_at" is null and ${column} is null`
        : null,
    requestChildren: requestSql(
      `select $1::bigint, child.resource, child.field, t."id"::text, tributary.now() ` +
        `from ${matched(table)} cross join unnest($3::text[], $4::text[]) child(resource, field) ` +
        `where t."_run_id" = $2 and t."_observed_at" >= s."_began"`
    )
  }
}

const softDeleteSql = (table: Table, authority: ConflictPolicy): SoftDeleteSql => {
  const goneRows = missingOf(table)
  const column = stampOf(table)
  return {
    createMissing: `create temp table if not exists ${goneRows} (id bigint primary key) on commit drop`,
    clearMissing: `truncate ${goneRows}`,
    // An anti-join, so that Postgres can hash: this looks at every row of the table.
    findMissing:
      `insert into ${goneRows} select t."id" from ${table.current} t where t."_company_id" = $1 ` +
      `and t."_deleted_at" is null and ${isBefore('t."_observed_at"', "$3::timestamptz")} and ${isDecided(table, "$5")} and not exists (` +
      `select 1 from (select unnest(ids) as id from tributary.scan_ids where company_id = $1 and resource = $2 and lane = $4) seen ` +
      `where seen.id = t."id")`,
    countUnseen:
      `select count(*)::int as live, (count(*) filter (where seen.id is null))::int as unseen from ${table.current} t ` +
      `left join (select distinct unnest(ids) as id from tributary.scan_ids where company_id = $1 and resource = $2 and lane = $3) seen ` +
      `on seen.id = t."id" where t."_company_id" = $1 and t."_deleted_at" is null and ${isExpected(table, "$4")}`,
    keepConcurrent:
      `delete from ${goneRows} g using ${table.current} t, tributary.runs r ` +
      `where t."_company_id" = $1 and t."id" = g.id and r.id = t."_run_id" and r.lane <> $3::text ` +
      `and (r.lane in ('push', 'records') or coalesce(${column === undefined ? "null::timestamptz" : `t.${column}`} > ` +
      `$4::timestamptz - $5::float8 * interval '1 millisecond', true)) ` +
      `and (r.finished_at is null or not ${isBefore("r.finished_at", "$2::timestamptz")})`,
    keepUnreached:
      column !== undefined && authority === "newer"
        ? `delete from ${goneRows} g using ${table.current} t, ` +
          `(select max(text::timestamptz) as at from unnest($3::text[]) as text) cursor ` +
          `where t."_company_id" = $1 and t."id" = g.id ` +
          `and t.${column} > $2::timestamptz - case when cursor.at is null then 0 else $4::float8 end * interval '1 millisecond' ` +
          `and t.${column} <= greatest(tributary.now(), cursor.at) ` +
          `and (cursor.at is null or $2::timestamptz < cursor.at)`
        : null,
    findMissingAmong:
      `insert into ${goneRows} select distinct t."id" from ${table.current} t ` +
      `join unnest($2::bigint[], $4::timestamptz[]) absent (id, changed) on absent.id = t."id" ` +
      `where t."_company_id" = $1 and t."_deleted_at" is null and ${isBefore('t."_observed_at"', "$3::timestamptz", "<=")} ` +
      `and coalesce(${column === undefined || authority === "source" ? "null::timestamptz" : `t.${column}`} <= absent.changed, true)`,
    archiveMissing:
      `${historyInsert(table)} select t."_company_id", ${list(rowColumns(table), "t")}, $2::timestamptz from ${table.current} t ` +
      `join ${goneRows} g on g.id = t."id" where t."_company_id" = $1`,
    tombstone:
      `with gone as (update ${table.current} t set "_version" = t."_version" + 1, "_op" = 'delete', "_origin" = $5::text, ` +
      `"_run_id" = $3::bigint, "_source" = $4::text, "_observed_at" = $2::timestamptz, "_deleted_at" = $2::timestamptz ` +
      `from ${goneRows} g where g.id = t."id" and t."_company_id" = $1 returning t."id" as id, t."_version" as version) ` +
      ChangeBatch.insert(table, "gone", { company: "$1::bigint", began: "$2::timestamptz" }),
    continueVersions:
      `update ${table.current} t set "_version" = greatest(t."_version", h.version + 1), ` +
      `"_observed_at" = greatest(t."_observed_at", h.ended) ` +
      `from (select distinct on ("id") "id", "_version" as version, "_valid_to" as ended ` +
      `from ${table.superseded} where "_company_id" = $1 order by "id", "_version" desc) h ` +
      `where t."_company_id" = $1 and t."id" = h."id" and (t."_version" <= h.version or t."_observed_at" < h.ended)`
  }
}

export const mergeSql = (table: Table, authority: ConflictPolicy = "newer"): MergeSql => ({
  ...upsertSql(table, authority),
  ...softDeleteSql(table, authority)
})
