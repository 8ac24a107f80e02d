/**
 * Where a record of the warehouse comes from.
 *
 * Promise: every version the warehouse ever held is told, with the run and the request or event that brought it and
 * what it changed; and beside them whatever is known of the record that is no version: quarantine, re-reads that are
 * asked for, the last full scan. Only the warehouse is read, and of the resource only its name is needed.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { identifier, literal } from "../warehouse/Identifier.ts"
import type { Datasets } from "../warehouse/Table.ts"
import { instantOf } from "./Expected.ts"
import { canonical, isObject, type JsonObject, parse, print } from "../json/Json.ts"

export interface RunSummary {
  readonly id: bigint
  readonly kind: string
  readonly lane: string
  readonly status: string
  readonly beganAt: string | null
  readonly endedAt: string | null
}

/** A field that a version changed, as JSON text; null where the version has no such field. */
export interface Change {
  readonly field: string
  readonly from: string | null
  readonly to: string | null
}

export interface Version {
  readonly version: bigint
  readonly validFrom: string | null
  readonly validTo: string | null
  readonly op: string
  readonly origin: string
  /** The request or event that brought it. */
  readonly source: string | null
  readonly runId: bigint | null
  /** Null when the run is no longer in the ledger. */
  readonly run: RunSummary | null
  /** Against the version before; empty for the first one. */
  readonly changes: ReadonlyArray<Change>
  /** The record as JSON text, every digit kept. */
  readonly record: string
}

export interface QuarantineEntry {
  readonly field: string | null
  readonly reason: string
  readonly bytes: string
  readonly source: string
  readonly runId: bigint
  readonly times: bigint
  readonly firstSeenAt: string | null
  readonly lastSeenAt: string | null
  /** Null while it is open. */
  readonly resolvedAt: string | null
}

export interface Explanation {
  readonly companyId: bigint
  readonly resource: string
  readonly id: string
  /** `unknown`: there is no version of it. */
  readonly state: "exists" | "deleted" | "unknown"
  /** From the first to the current one. */
  readonly versions: ReadonlyArray<Version>
  readonly quarantine: ReadonlyArray<QuarantineEntry>
  /** Why it is to be read again: the record itself (field id) or all records that share a value. */
  readonly rereads: ReadonlyArray<{ readonly field: string; readonly value: string; readonly askedAt: string | null }>
  /** The last full scan that was completed, and whether it ended after this version came and so confirmed it. */
  readonly fullScan: (RunSummary & { readonly confirmed: boolean }) | null
  readonly checkpoints: ReadonlyArray<{
    readonly lane: string
    readonly cursor: string | null
    readonly fullScanAt: string | null
    /** The scan in progress. */
    readonly scan: string | null
    readonly updatedAt: string | null
  }>
}

/** A name that a table can have. */
const nameShape = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const idShape = /^-?\d{1,19}$/

/** In UTC whatever the session's time zone. */
const utc = (text: string | null): string | null => (text === null ? null : (instantOf(text)?.text ?? text))

const at = (expression: string, name: string) => `to_json(${expression}) #>> '{}' as "${name}"`

const runOf = (alias: string) =>
  `${alias}.id as run, ${alias}.kind, ${alias}.lane, ${alias}.status, ${at(`${alias}.began_at`, "beganAt")}, ${at(`${alias}.ended_at`, "endedAt")}`

interface RunRow {
  readonly run: bigint | null
  readonly kind: string
  readonly lane: string
  readonly status: string
  readonly beganAt: string | null
  readonly endedAt: string | null
}

const runTold = (row: RunRow): RunSummary | null =>
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

const changesBetween = (before: JsonObject, after: JsonObject): ReadonlyArray<Change> =>
  [...new Set([...after.keys(), ...before.keys()])].flatMap((field) => {
    const [from, to] = [before.get(field), after.get(field)]
    const same = from === to || (from !== undefined && to !== undefined && canonical(from) === canonical(to))
    if (same) return []
    return [{ field, from: from === undefined ? null : print(from), to: to === undefined ? null : print(to) }]
  })

/** A resource by the names that it has in the API and in the database. */
export interface RecordReference {
  readonly path: string
  /** Of its view of all versions, unquoted. */
  readonly view: string
}

/** The resource with this path or table; null when the warehouse has no history of it. */
export const find = Effect.fnUntraced(function* (
  datasets: Datasets,
  name: string
): Effect.fn.Return<RecordReference | null, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [given] = yield* sql<{ path: string; view: string }>`
    select api_name as path, sql_name as view from tributary.names
     where scope = '' and (api_name = ${name} or sql_name = ${name}) order by api_name = ${name} desc limit 1`
  const named = given ?? { path: name, view: name }
  if (!nameShape.test(named.view)) return null
  const [row] = yield* sql.unsafe<{ known: boolean }>(
    `select to_regclass(${literal(`${identifier(datasets.history)}.${identifier(named.view)}`)}) is not null as known`
  )
  return row?.known === true ? named : null
})

/** Names of resources that the warehouse has a history of. */
export const known = Effect.fnUntraced(function* (
  datasets: Datasets
): Effect.fn.Return<ReadonlyArray<string>, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string }>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = ${datasets.history} and c.relkind = 'v' order by 1`
  return rows.map(({ name }) => name)
})

/** Explains a record in each company that knows of it, or in one. See {@link find} for the resource. */
export const explain = Effect.fn("explain")(function* (
  datasets: Datasets,
  named: RecordReference,
  id: string,
  company: bigint | null
): Effect.fn.Return<ReadonlyArray<Explanation>, SqlError, SqlClient.SqlClient> {
  if (!idShape.test(id)) return []
  const sql = yield* SqlClient.SqlClient
  const { path: resource } = named
  const view = `${identifier(datasets.history)}.${identifier(named.view)}`
  const versions = yield* sql.unsafe<
    RunRow & {
      company: bigint
      version: bigint
      validFrom: string | null
      validTo: string | null
      op: string
      origin: string
      runId: bigint | null
      source: string | null
      record: string
    }
  >(
    `select h."_company_id" as company, h."_version" as version, ${at(`h."_valid_from"`, "validFrom")}, ${at(`h."_valid_to"`, "validTo")}, ` +
      `h."_op" as op, h."_origin" as origin, h."_run_id" as "runId", h."_source" as source, h."record"::text as record, ${runOf("r")} ` +
      `from ${view} h left join tributary.runs r on r.id = h."_run_id" ` +
      `where h."id" = $1::bigint and ($2::bigint is null or h."_company_id" = $2::bigint) order by 1, 2`,
    [id, company]
  )
  const quarantine = yield* sql.unsafe<{
    company: bigint
    field: string | null
    reason: string
    bytes: string
    source: string
    runId: bigint
    times: bigint
    firstSeenAt: string | null
    lastSeenAt: string | null
    resolvedAt: string | null
  }>(
    `select company_id as company, field, reason, bytes, source, run_id as "runId", times, ${at("first_seen_at", "firstSeenAt")}, ` +
      `${at("last_seen_at", "lastSeenAt")}, ${at("resolved_at", "resolvedAt")} from tributary.quarantine ` +
      `where resource = $1 and record_id = $2 and ($3::bigint is null or company_id = $3::bigint) order by tributary.quarantine.id`,
    [resource, id, company]
  )
  const asks = yield* sql.unsafe<{ company: bigint; field: string; value: string; askedAt: string | null }>(
    `select company_id as company, field, value, ${at("asked_at", "askedAt")} from tributary.rereads ` +
      `where resource = $1 and ($2::bigint is null or company_id = $2::bigint) order by asked_at`,
    [resource, company]
  )
  const companies = new Set([
    ...versions.map((row) => row.company),
    ...quarantine.map((row) => row.company),
    ...asks.filter(({ field, value }) => field === "id" && value === id).map((row) => row.company)
  ])
  const explainIn = Effect.fnUntraced(function* (companyId: bigint) {
    const own = versions.filter((row) => row.company === companyId)
    const told: Array<Version> = []
    let before: JsonObject | null = null
    for (const row of own) {
      const members = membersOf(row.record)
      told.push({
        version: row.version,
        validFrom: utc(row.validFrom),
        validTo: utc(row.validTo),
        op: row.op,
        origin: row.origin,
        source: row.source,
        runId: row.runId,
        run: runTold(row),
        changes: before === null ? [] : changesBetween(before, members),
        record: row.record
      })
      before = members
    }
    const last = told.at(-1)
    const members: JsonObject = before ?? noMembers
    const isAsked = ({ field, value }: { readonly field: string; readonly value: string }) => {
      if (field === "id") return value === id
      const held = members.get(field)
      return held !== undefined && held !== null && (held === value || print(held) === value)
    }
    const [scan] = yield* sql.unsafe<RunRow & { confirmed: boolean }>(
      `select ${runOf("r")}, coalesce(r.ended_at >= $3::timestamptz, false) as confirmed from tributary.runs r ` +
        `where r.company_id = $1 and r.resource = $2 and r.kind = 'full' and r.lane = 'live' and r.status in ('done', 'quarantined') ` +
        `order by r.id desc limit 1`,
      [companyId, resource, last?.validFrom ?? null]
    )
    const checkpoints = yield* sql.unsafe<{
      lane: string
      cursor: string | null
      fullScanAt: string | null
      scan: string | null
      updatedAt: string | null
    }>(
      `select lane, cursor, ${at("full_scan_at", "fullScanAt")}, scan_kind as scan, ${at("updated_at", "updatedAt")} ` +
        `from tributary.checkpoints where company_id = $1 and resource = $2 order by lane desc`,
      [companyId, resource]
    )
    const run = scan === undefined ? null : runTold(scan)
    return {
      companyId,
      resource,
      id,
      state: last === undefined ? "unknown" : last.op === "delete" ? "deleted" : "exists",
      versions: told,
      quarantine: quarantine
        .filter((row) => row.company === companyId)
        .map(({ field, reason, bytes, source, runId, times, firstSeenAt, lastSeenAt, resolvedAt }) => ({
          field,
          reason,
          bytes,
          source,
          runId,
          times,
          firstSeenAt: utc(firstSeenAt),
          lastSeenAt: utc(lastSeenAt),
          resolvedAt: utc(resolvedAt)
        })),
      rereads: asks
        .filter((row) => row.company === companyId && isAsked(row))
        .map(({ field, value, askedAt }) => ({ field, value, askedAt: utc(askedAt) })),
      fullScan: run === null ? null : { ...run, confirmed: scan?.confirmed === true },
      checkpoints: checkpoints.map((row) => ({
        lane: row.lane,
        cursor: row.cursor,
        fullScanAt: utc(row.fullScanAt),
        scan: row.scan,
        updatedAt: utc(row.updatedAt)
      }))
    } satisfies Explanation
  })
  return yield* Effect.forEach(
    [...companies].toSorted((a, b) => (a < b ? -1 : 1)),
    explainIn
  )
})
