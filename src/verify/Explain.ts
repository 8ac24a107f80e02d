/**
 * The history of a record in the warehouse, with the origin of each version.
 *
 * Promise: every version that the warehouse has of a record is listed, with its run, its request or event, and its
 * changes. Quarantine entries, refetch requests and the last full scan are added. Only the warehouse is read; of the
 * resource only the name is needed.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { identifier } from "../warehouse/Identifier.ts"
import type { Datasets } from "../warehouse/Table.ts"
import { instantOf } from "./Expected.ts"
import { canonical, isObject, type JsonObject, NumberToken, parse, print } from "../json/Json.ts"
import type { Explanation, FieldChange, QuarantineEntry, RunSummary, Version } from "./Explanation.ts"

/** A name that a table can have. */
const nameShape = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const idShape = /^-?\d{1,19}$/

/** In UTC whatever the session's time zone. */
const utc = (text: string | null): string | null => (text === null ? null : (instantOf(text)?.text ?? text))

const asText = (expression: string, name: string) => `to_json(${expression}) #>> '{}' as "${name}"`

const runColumns = `r.id, r.kind, r.lane, r.status, ${asText("r.started_at", "beganAt")}, ${asText("r.finished_at", "endedAt")}`

const inUtc = <Run extends RunSummary>(run: Run): Run => ({
  ...run,
  beganAt: utc(run.beganAt),
  endedAt: utc(run.endedAt)
})

const noMembers: JsonObject = new Map()

const membersOf = (text: string): JsonObject => {
  const value = parse(text)
  return isObject(value) ? value : noMembers
}

const changesBetween = (before: JsonObject, after: JsonObject): ReadonlyArray<FieldChange> =>
  [...new Set([...after.keys(), ...before.keys()])].flatMap((field) => {
    const [from, to] = [before.get(field), after.get(field)]
    const isSame = from === to || (from !== undefined && to !== undefined && canonical(from) === canonical(to))
    if (isSame) return []
    return [{ field, from: from === undefined ? null : print(from), to: to === undefined ? null : print(to) }]
  })

/** The history of a resource, by the names that it has in the API and in the database. */
export interface HistoryView {
  readonly path: string
  /** Of the view of all versions, unquoted. */
  readonly view: string
}

/** The renamed history with this path or table. */
const readRenamed = (name: string) =>
  Query.first(
    control
      .selectFrom("tributary.sql_names")
      .select(["api_name as path", "sql_name as view"])
      .where("scope", "=", "")
      .where((is) => is.or({ api_name: name, sql_name: name }))
      .orderBy((of) => of("api_name", "=", name), "desc")
      .limit(1)
  )

export const historyExistsStatement = Statement.make({
  name: "look for a history",
  params: ["text"],
  columns: { exists: "bool" },
  text: "select to_regclass($1) is not null as exists"
})

/** The history of the resource with this path or table; null when the warehouse has none. */
export const findHistory = Effect.fnUntraced(function* (
  datasets: Datasets,
  name: string
): Effect.fn.Return<HistoryView | null, DatabaseError, SqlClient.SqlClient> {
  const renamed = yield* readRenamed(name)
  const history = renamed ?? { path: name, view: name }
  if (!nameShape.test(history.view)) return null
  const [row] = yield* Statement.run(historyExistsStatement, [viewOf(datasets, history)])
  return row?.exists === true ? history : null
})

const viewOf = ({ history }: Datasets, { view }: HistoryView) => `${identifier(history)}.${identifier(view)}`

export const historiesStatement = Statement.make({
  name: "list the histories",
  params: ["name"],
  columns: { name: "name" },
  text: `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = $1 and c.relkind = 'v' order by 1`
})

/** Names of resources that the warehouse has a history of. */
export const listHistories = ({ history }: Datasets): Sql.Query<ReadonlyArray<string>> =>
  Effect.map(Statement.run(historiesStatement, [history]), (rows) => rows.map(({ name }) => name))

interface VersionRow extends Omit<Version, "run" | "changes">, Omit<RunSummary, "id"> {
  readonly id: bigint | null
  readonly company: bigint
}

/** The versions of an explanation. Default: all of them. */
export interface VersionRange {
  /** The newest so many; `explain` needs the company with it. */
  readonly newest: number
  /** Only versions below this one. */
  readonly below: bigint | null
}

const readVersions = (view: string, id: string, company: bigint | null, range: VersionRange | null) =>
  Sql.rows<VersionRow>(
    `select h."_company_id" as company, h."_version" as version, ${asText(`h."_valid_from"`, "validFrom")}, ${asText(`h."_valid_to"`, "validTo")}, ` +
      `h."_op" as op, h."_origin" as origin, h."_run_id" as "runId", h."_source" as source, h."record"::text as record, ${runColumns} ` +
      // By the key of each table, so that only these versions are read.
      `from (select * from ${view} where "id" = $1::bigint and ` +
      (range === null
        ? `($2::bigint is null or "_company_id" = $2::bigint)`
        : `"_company_id" = $2::bigint and ($3::bigint is null or "_version" < $3::bigint) order by "_version" desc limit $4::bigint`) +
      `) h left join tributary.runs r on r.id = h."_run_id" order by 1, 2`,
    range === null ? [id, company] : [id, company, range.below, range.newest]
  )

/** Versions in their order, each with its changes against the one before. */
const versionsOf = (rows: ReadonlyArray<VersionRow>): ReadonlyArray<Version> =>
  rows.map(({ id, kind, lane, status, beganAt, endedAt, ...row }, index) => {
    const before = rows[index - 1]
    return {
      version: row.version,
      validFrom: utc(row.validFrom),
      validTo: utc(row.validTo),
      op: row.op,
      origin: row.origin,
      source: row.source,
      runId: row.runId,
      run: id === null ? null : inUtc({ id, kind, lane, status, beganAt, endedAt }),
      changes: before === undefined ? [] : changesBetween(membersOf(before.record), membersOf(row.record)),
      record: row.record
    }
  })

const readQuarantine = (resource: string, id: string, company: bigint | null) =>
  Query.run(
    control
      .selectFrom("tributary.quarantine")
      .select(["company_id as company", "field", "reason", "bytes", "source", "run_id as runId", "times"])
      .select((of) => [
        Query.instant(of.ref("first_seen_at")).as("firstSeenAt"),
        Query.instant(of.ref("last_seen_at")).as("lastSeenAt"),
        Query.instant(of.ref("resolved_at")).as("resolvedAt")
      ])
      .where((is) => is.and({ resource, record_id: id, ...Query.given({ company_id: company }) }))
      .orderBy("id")
  )
type QuarantineRow = Effect.Success<ReturnType<typeof readQuarantine>>[number]

const quarantineEntryOf = ({ company: _company, ...entry }: QuarantineRow): QuarantineEntry => ({
  ...entry,
  firstSeenAt: utc(entry.firstSeenAt),
  lastSeenAt: utc(entry.lastSeenAt),
  resolvedAt: utc(entry.resolvedAt)
})

export const refetchStatement = Statement.make({
  name: "read the refetch requests of a resource",
  params: ["text", "int8?", "text[]", "text[]"],
  columns: { company: "int8", field: "text", value: "text", askedAt: "text" },
  text: `select company_id as company, field, value, ${asText("requested_at", "askedAt")} from tributary.refetch_requests
          where resource = $1 and ($2::bigint is null or company_id = $2::bigint)
            and (field, value) in (select * from unnest($3::text[], $4::text[])) order by requested_at`
})
type RefetchRow = Statement.RowOf<typeof refetchStatement>

/** The values by which a refetch request may name the record, in any of its companies. */
const requestedValues = (id: string, versions: ReadonlyArray<VersionRow>) => {
  const last = new Map(versions.map(({ company, record }) => [company, record]))
  const pairs = [...last.values()].flatMap((record) =>
    [...membersOf(record)].flatMap(([field, value]) =>
      value === null || (typeof value === "object" && !(value instanceof NumberToken))
        ? []
        : [[field, typeof value === "string" ? value : print(value)] as const]
    )
  )
  return [["id", id] as const, ...pairs]
}

/** Whether a refetch request names the record, or a value that its last version has. */
const isRequested = ({ field, value }: RefetchRow, id: string, members: JsonObject): boolean => {
  if (field === "id") return value === id
  const member = members.get(field)
  return member !== undefined && member !== null && (member === value || print(member) === value)
}

export const lastFullScanStatement = Statement.make({
  name: "look for the last full scan",
  params: ["int8", "text", "timestamptz?"],
  columns: {
    id: "int8",
    kind: "text",
    lane: "text",
    status: "text",
    beganAt: "text",
    endedAt: "text?",
    confirmed: "bool"
  },
  text: `select ${runColumns}, coalesce(r.finished_at >= $3::timestamptz, false) as confirmed from tributary.runs r
          where r.company_id = $1 and r.resource = $2 and r.kind = 'full' and r.lane = 'live' and r.status in ('done', 'quarantined')
          order by r.id desc limit 1`
})

/** The last completed full scan, and whether it ended after this instant. */
const readLastFullScan = (companyId: bigint, resource: string, validFrom: string | null) =>
  Effect.map(Statement.run(lastFullScanStatement, [companyId, resource, validFrom]), ([scan]) =>
    scan === undefined ? null : inUtc(scan)
  )

export const checkpointsStatement = Statement.make({
  name: "read the checkpoints of a resource",
  params: ["int8", "text"],
  columns: { lane: "text", cursor: "text?", fullScanAt: "text?", scan: "text?", updatedAt: "text" },
  text: `select lane, cursor, ${asText("full_scan_at", "fullScanAt")}, s.kind as scan, ${asText("updated_at", "updatedAt")}
           from tributary.checkpoints left join tributary.scans s using (company_id, resource, lane)
          where company_id = $1 and resource = $2 order by lane desc`
})

const readCheckpoints = (companyId: bigint, resource: string) =>
  Effect.map(Statement.run(checkpointsStatement, [companyId, resource]), (checkpoints) =>
    checkpoints.map((row) => ({ ...row, fullScanAt: utc(row.fullScanAt), updatedAt: utc(row.updatedAt) }))
  )

/** Rows of one record in every company that has it. */
interface RecordRows {
  readonly versions: ReadonlyArray<VersionRow>
  readonly quarantine: ReadonlyArray<QuarantineRow>
  readonly requests: ReadonlyArray<RefetchRow>
}

const explainInCompany = Effect.fnUntraced(function* (
  companyId: bigint,
  resource: string,
  id: string,
  rows: RecordRows
): Effect.fn.Return<Explanation, DatabaseError, SqlClient.SqlClient> {
  const versions = versionsOf(rows.versions.filter(({ company }) => company === companyId))
  const last = versions.at(-1)
  const members = last === undefined ? noMembers : membersOf(last.record)
  return {
    companyId,
    resource,
    id,
    state: last === undefined ? "unknown" : last.op === "delete" ? "deleted" : "exists",
    versions,
    quarantine: rows.quarantine.filter(({ company }) => company === companyId).map(quarantineEntryOf),
    rereads: rows.requests
      .filter((request) => request.company === companyId && isRequested(request, id, members))
      .map(({ field, value, askedAt }) => ({ field, value, askedAt: utc(askedAt) })),
    fullScan: yield* readLastFullScan(companyId, resource, last?.validFrom ?? null),
    checkpoints: yield* readCheckpoints(companyId, resource)
  }
})

/** Explains a record in each company that has data about it, or in one. See {@link findHistory} for the resource. */
export const explain = Effect.fn("explain")(function* (
  datasets: Datasets,
  history: HistoryView,
  id: string,
  company: bigint | null,
  range: VersionRange | null = null
): Effect.fn.Return<ReadonlyArray<Explanation>, DatabaseError, SqlClient.SqlClient> {
  if (!idShape.test(id)) return []
  const { path } = history
  const versions = yield* readVersions(viewOf(datasets, history), id, company, range)
  const values = requestedValues(id, versions)
  const rows: RecordRows = {
    versions,
    quarantine: yield* readQuarantine(path, id, company),
    requests: yield* Statement.run(refetchStatement, [
      path,
      company,
      values.map(([field]) => field),
      values.map(([, value]) => value)
    ])
  }
  const companies = new Set(
    [
      ...rows.versions,
      ...rows.quarantine,
      ...rows.requests.filter(({ field, value }) => field === "id" && value === id)
    ].map((row) => row.company)
  )
  return yield* Effect.forEach(
    [...companies].toSorted((a, b) => (a < b ? -1 : 1)),
    (companyId) => explainInCompany(companyId, path, id, rows)
  )
})
