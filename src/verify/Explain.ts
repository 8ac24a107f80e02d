/**
 * Where a record of the warehouse comes from.
 *
 * Promise: every version that the warehouse has of a record is listed, with the run and the request or event that brought
 * it and what it changed. Beside them stands what is no version: quarantine, refetch requests, the last full scan. Only
 * the warehouse is read, and of the resource only its name is needed.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { identifier, literal } from "../warehouse/Identifier.ts"
import type { Datasets } from "../warehouse/Table.ts"
import { instantOf } from "./Expected.ts"
import { canonical, isObject, type JsonObject, parse, print } from "../json/Json.ts"
import type { Explanation, FieldChange, QuarantineEntry, RunSummary, Version } from "./Explanation.ts"

/** A name that a table can have. */
const nameShape = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const idShape = /^-?\d{1,19}$/

/** In UTC whatever the session's time zone. */
const utc = (text: string | null): string | null => (text === null ? null : (instantOf(text)?.text ?? text))

const asText = (expression: string, name: string) => `to_json(${expression}) #>> '{}' as "${name}"`

const runColumns = (alias: string) =>
  `${alias}.id as run, ${alias}.kind, ${alias}.lane, ${alias}.status, ${asText(`${alias}.started_at`, "beganAt")}, ${asText(`${alias}.finished_at`, "endedAt")}`

interface RunRow {
  readonly run: bigint | null
  readonly kind: string
  readonly lane: string
  readonly status: string
  readonly beganAt: string | null
  readonly endedAt: string | null
}

const runSummaryOf = (row: RunRow): RunSummary | null =>
  row.run === null
    ? null
    : {
        id: row.run,
        kind: row.kind,
        lane: row.lane,
        status: row.status,
        beganAt: utc(row.beganAt),
        endedAt: utc(row.endedAt)
      }

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

/** The history of the resource with this path or table; null when the warehouse has none. */
export const findHistory = Effect.fnUntraced(function* (
  datasets: Datasets,
  name: string
): Effect.fn.Return<HistoryView | null, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [renamed] = yield* sql<{ path: string; view: string }>`
    select api_name as path, sql_name as view from tributary.sql_names
     where scope = '' and (api_name = ${name} or sql_name = ${name}) order by api_name = ${name} desc limit 1`
  const history = renamed ?? { path: name, view: name }
  if (!nameShape.test(history.view)) return null
  const [row] = yield* sql.unsafe<{ exists: boolean }>(
    `select to_regclass(${literal(viewOf(datasets, history))}) is not null as exists`
  )
  return row?.exists === true ? history : null
})

const viewOf = ({ history }: Datasets, { view }: HistoryView) => `${identifier(history)}.${identifier(view)}`

/** Names of resources that the warehouse has a history of. */
export const listHistories = Effect.fnUntraced(function* (
  datasets: Datasets
): Effect.fn.Return<ReadonlyArray<string>, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string }>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = ${datasets.history} and c.relkind = 'v' order by 1`
  return rows.map(({ name }) => name)
})

/** A record of one company, or of each that has it. */
interface RecordKey {
  readonly resource: string
  readonly id: string
  readonly company: bigint | null
}

interface VersionRow extends RunRow {
  readonly company: bigint
  readonly version: bigint
  readonly validFrom: string | null
  readonly validTo: string | null
  readonly op: string
  readonly origin: string
  readonly runId: bigint | null
  readonly source: string | null
  readonly record: string
}

const readVersions = (sql: SqlClient.SqlClient, view: string, { id, company }: RecordKey) =>
  sql.unsafe<VersionRow>(
    `select h."_company_id" as company, h."_version" as version, ${asText(`h."_valid_from"`, "validFrom")}, ${asText(`h."_valid_to"`, "validTo")}, ` +
      `h."_op" as op, h."_origin" as origin, h."_run_id" as "runId", h."_source" as source, h."record"::text as record, ${runColumns("r")} ` +
      `from ${view} h left join tributary.runs r on r.id = h."_run_id" ` +
      `where h."id" = $1::bigint and ($2::bigint is null or h."_company_id" = $2::bigint) order by 1, 2`,
    [id, company]
  )

/** Versions in their order, each with its changes against the one before. */
const versionsOf = (rows: ReadonlyArray<VersionRow>): ReadonlyArray<Version> =>
  rows.map((row, index) => {
    const before = rows[index - 1]
    return {
      version: row.version,
      validFrom: utc(row.validFrom),
      validTo: utc(row.validTo),
      op: row.op,
      origin: row.origin,
      source: row.source,
      runId: row.runId,
      run: runSummaryOf(row),
      changes: before === undefined ? [] : changesBetween(membersOf(before.record), membersOf(row.record)),
      record: row.record
    }
  })

type QuarantineRow = QuarantineEntry & { readonly company: bigint }

const readQuarantine = (sql: SqlClient.SqlClient, { resource, id, company }: RecordKey) =>
  sql.unsafe<QuarantineRow>(
    `select company_id as company, field, reason, bytes, source, run_id as "runId", times, ${asText("first_seen_at", "firstSeenAt")}, ` +
      `${asText("last_seen_at", "lastSeenAt")}, ${asText("resolved_at", "resolvedAt")} from tributary.quarantine ` +
      `where resource = $1 and record_id = $2 and ($3::bigint is null or company_id = $3::bigint) order by tributary.quarantine.id`,
    [resource, id, company]
  )

const quarantineEntryOf = ({ company: _company, ...entry }: QuarantineRow): QuarantineEntry => ({
  ...entry,
  firstSeenAt: utc(entry.firstSeenAt),
  lastSeenAt: utc(entry.lastSeenAt),
  resolvedAt: utc(entry.resolvedAt)
})

interface RefetchRow {
  readonly company: bigint
  readonly field: string
  readonly value: string
  readonly askedAt: string | null
}

const readRefetchRequests = (sql: SqlClient.SqlClient, { resource, company }: RecordKey) =>
  sql.unsafe<RefetchRow>(
    `select company_id as company, field, value, ${asText("requested_at", "askedAt")} from tributary.refetch_requests ` +
      `where resource = $1 and ($2::bigint is null or company_id = $2::bigint) order by requested_at`,
    [resource, company]
  )

/** Whether a refetch request names the record, or a value that its last version has. */
const isRequested = ({ field, value }: RefetchRow, id: string, members: JsonObject): boolean => {
  if (field === "id") return value === id
  const member = members.get(field)
  return member !== undefined && member !== null && (member === value || print(member) === value)
}

/** The last completed full scan, and whether it ended after this instant. */
const readLastFullScan = Effect.fnUntraced(function* (companyId: bigint, resource: string, validFrom: string | null) {
  const sql = yield* SqlClient.SqlClient
  const [scan] = yield* sql.unsafe<RunRow & { confirmed: boolean }>(
    `select ${runColumns("r")}, coalesce(r.finished_at >= $3::timestamptz, false) as confirmed from tributary.runs r ` +
      `where r.company_id = $1 and r.resource = $2 and r.kind = 'full' and r.lane = 'live' and r.status in ('done', 'quarantined') ` +
      `order by r.id desc limit 1`,
    [companyId, resource, validFrom]
  )
  const run = scan === undefined ? null : runSummaryOf(scan)
  return run === null ? null : { ...run, confirmed: scan?.confirmed === true }
})

const readCheckpoints = Effect.fnUntraced(function* (companyId: bigint, resource: string) {
  const sql = yield* SqlClient.SqlClient
  const checkpoints = yield* sql.unsafe<Explanation["checkpoints"][number]>(
    `select lane, cursor, ${asText("full_scan_at", "fullScanAt")}, scan_kind as scan, ${asText("updated_at", "updatedAt")} ` +
      `from tributary.checkpoints where company_id = $1 and resource = $2 order by lane desc`,
    [companyId, resource]
  )
  return checkpoints.map((row) => ({ ...row, fullScanAt: utc(row.fullScanAt), updatedAt: utc(row.updatedAt) }))
})

/** Rows of one record in every company that has it. */
interface RecordRows {
  readonly versions: ReadonlyArray<VersionRow>
  readonly quarantine: ReadonlyArray<QuarantineRow>
  readonly requests: ReadonlyArray<RefetchRow>
}

const explainInCompany = Effect.fnUntraced(function* (
  companyId: bigint,
  { resource, id }: RecordKey,
  rows: RecordRows
): Effect.fn.Return<Explanation, SqlError, SqlClient.SqlClient> {
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

/** Explains a record in each company that knows of it, or in one. See {@link findHistory} for the resource. */
export const explain = Effect.fn("explain")(function* (
  datasets: Datasets,
  history: HistoryView,
  id: string,
  company: bigint | null
): Effect.fn.Return<ReadonlyArray<Explanation>, SqlError, SqlClient.SqlClient> {
  if (!idShape.test(id)) return []
  const sql = yield* SqlClient.SqlClient
  const key: RecordKey = { resource: history.path, id, company }
  const rows: RecordRows = {
    versions: yield* readVersions(sql, viewOf(datasets, history), key),
    quarantine: yield* readQuarantine(sql, key),
    requests: yield* readRefetchRequests(sql, key)
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
    (companyId) => explainInCompany(companyId, key, rows)
  )
})
