/**
 * The store of push requests.
 *
 * Promise: a request has its key and its exact bytes, and its rows are marked, in a transaction that is committed before
 * the request is sent for the first time. A key stands for these bytes only. A request that is not `open` is never sent
 * again.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { WriteRequest } from "../connector/Connector.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { type ExpectedValues, type OutboxRow, type OutboxScope, rowsOf, type RunSql } from "./OutboxRow.ts"
import { rowsOfRequestStatement, stateIs } from "./OutboxStore.ts"
import { sanitizeStrings } from "./RowResolution.ts"

/** One HTTP request of a push. */
export interface PushRequest {
  readonly id: bigint
  readonly operation: WriteRequest["operation"]
  /** The record's number, for an update or cancel. */
  readonly recordId: string | null
  readonly ifMatch: string | null
  readonly key: string
  /** The token for which the source knows the key; null where the key does not depend on it. */
  readonly keyScope: string | null
  /** Null for a cancel. */
  readonly body: string | null
  /** Not after its first send: milliseconds since 1970 by the warehouse's clock. */
  readonly createdAt: number
  readonly failedAttempts: number
  /** In the order of the body. */
  readonly rows: ReadonlyArray<OutboxRow>
}

/** A request to be stored. */
export interface NewRequest extends Pick<PushRequest, "operation" | "recordId" | "ifMatch" | "body" | "rows"> {
  /** Added to the attempts of its rows. */
  readonly attempts?: number
  /** The request that its rows are in; absent or null when they are pending. */
  readonly from?: bigint | null
  /** Saved with its rows unless they have some. */
  readonly expectedValues?: ExpectedValues
}

/** How a request ended: the source answered it, rejected it as a whole, or its outcome stayed unknown. */
export interface RequestResult {
  readonly state: "completed" | "rejected" | "abandoned"
  readonly status: number | null
  readonly reason: string | null
  readonly source: string | null
}

export interface ClosedRequest {
  readonly id: bigint
  readonly result: RequestResult
}

/** A UUID of version 4. */
const newKey = Effect.map(
  Effect.all(Array.from({ length: 4 }, () => Random.nextIntBetween(0, 0xffff_ffff))),
  (drawn) => {
    const hex = drawn.map((part) => part.toString(16).padStart(8, "0")).join("")
    const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
    return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, `$1-$2-4$3-${variant}$4-$5`)
  }
)

/** The request that creates these records: one alone, or many at once. */
export const createRequestOf = (rows: ReadonlyArray<OutboxRow>): NewRequest => ({
  operation: rows.length === 1 ? "create" : "batch",
  recordId: null,
  ifMatch: null,
  body: rows.length === 1 ? rows[0]!.text : `[${rows.map(({ text }) => text).join(",")}]`,
  rows
})

export const storeStatement = Statement.make({
  name: "store requests of",
  params: ["text", "text", "text?", "text"],
  columns: { id: "int8", key: "text", createdAt: "float8", marked: "int4" },
  text: `with given as (
       select * from json_to_recordset($4::text::json) as g(operation text, record_id text, if_match text, key text, body text,
         from_id bigint, expected_values text, attempts integer, rows bigint[])
     ), request as (
       insert into tributary.push_requests
         (company, resource, operation, record_id, if_match, idempotency_key, idempotency_key_scope, body, record_count)
       select $1, $2, operation, record_id, if_match, key, $3, body, cardinality(rows)
         from given returning id, idempotency_key as key, created_at
     ), marked as (
       update tributary.outbox o set state = 'in_flight', request_id = c.id, request_index = v.number - 1,
              expected_values = coalesce(o.expected_values, g.expected_values::json), attempts = o.attempts + g.attempts
         from given g join request c on c.key = g.key cross join lateral unnest(g.rows) with ordinality as v(id, number)
        where o.id = v.id and o.request_id is not distinct from g.from_id
          and ${stateIs("case when g.from_id is null then 'pending' else 'in_flight' end")}
       returning c.id
     )
     select c.id, c.key, ${Sql.epochMs("c.created_at")} as "createdAt",
            (select count(*)::int from marked m where m.id = c.id) as marked from request c`
})

/** Stores requests and marks their rows, which must be locked. */
export const storeRequests = Effect.fnUntraced(function* (
  run: RunSql,
  { company, resource }: OutboxScope,
  keyScope: string | null,
  requests: ReadonlyArray<NewRequest>
): Effect.fn.Return<ReadonlyArray<PushRequest>, DatabaseError> {
  if (requests.length === 0) return []
  const keyed = yield* Effect.forEach(requests, (request) => Effect.map(newKey, (key) => ({ ...request, key })))
  const given = keyed.map(({ operation, recordId, ifMatch, key, body, from, expectedValues, attempts, rows }) => ({
    operation,
    record_id: recordId,
    if_match: ifMatch,
    key,
    body,
    from_id: from?.toString(),
    // A text within the JSON: a value of the source may hold what only an escape can say.
    expected_values: expectedValues && JSON.stringify(expectedValues),
    attempts: attempts ?? 0,
    rows: rows.map(({ id }) => String(id))
  }))
  const stored = yield* rowsOf(run, storeStatement, [company, resource, keyScope, JSON.stringify(given)])
  const byKey = new Map(stored.map((row) => [row.key, row]))
  return keyed.map((request): PushRequest => {
    const { id, createdAt, marked } = byKey.get(request.key)!
    const { attempts = 0, expectedValues = null, from: _, rows, ...same } = request
    if (marked !== rows.length) throw new Error(`${marked} of ${rows.length} rows were marked as sent by a request`)
    return {
      ...same,
      id,
      keyScope,
      createdAt,
      failedAttempts: 0,
      rows: rows.map((row, index) => ({
        ...row,
        requestIndex: index,
        attempts: row.attempts + attempts,
        expectedValues: row.expectedValues ?? expectedValues
      }))
    }
  })
})

export const nextOpenStatement = Statement.make({
  name: "find open requests of",
  params: ["text", "text", "int8"],
  columns: {
    id: "int8",
    operation: Statement.as<PushRequest["operation"]>("text"),
    ...Statement.columns("text?", "recordId", "ifMatch"),
    key: "text",
    ...Statement.columns("text?", "keyScope", "body"),
    createdAt: "float8",
    failedAttempts: "int4"
  },
  text: `select id, operation, record_id as "recordId", if_match as "ifMatch", idempotency_key as key,
         idempotency_key_scope as "keyScope", body, ${Sql.epochMs("created_at")} as "createdAt",
         failed_attempts as "failedAttempts"
    from tributary.push_requests where company = $1 and resource = $2 and state = 'open' and id > $3 order by id limit 1`
})

/** The first open request after the one with this number; null when there is none. */
export const nextOpenRequest = Effect.fnUntraced(function* (run: RunSql, scope: OutboxScope, after: bigint) {
  const { company, resource, push } = scope
  const [row] = yield* rowsOf(run, nextOpenStatement, [company, resource, after])
  if (row === undefined) return null
  const rows = yield* rowsOf(run, rowsOfRequestStatement, [company, resource, push, row.id])
  return { ...row, rows } satisfies PushRequest
})

export const addFailureStatement = Statement.make({
  name: "count a failed attempt of",
  params: ["int8", "text"],
  columns: { failedAttempts: "int4" },
  text: `update tributary.push_requests set failed_attempts = failed_attempts + 1, reason = left($2, 1000)
   where id = $1 and state = 'open' returning failed_attempts as "failedAttempts"`
})

/** Counts an attempt at which the source failed. */
export const addFailedAttempt = (run: RunSql, request: PushRequest, reason: string) =>
  Effect.map(rowsOf(run, addFailureStatement, [request.id, reason]), ([row]): PushRequest => ({
    ...request,
    failedAttempts: row?.failedAttempts ?? request.failedAttempts + 1
  }))

export const closeStatement = Statement.make({
  name: "close requests of",
  params: ["text"],
  text: `update tributary.push_requests r set state = v.state, status = v.status, reason = left(v.reason, 1000),
         source = v.source, body = null, closed_at = tributary.now()
    from jsonb_to_recordset($1::text::jsonb) as v(id bigint, state text, status integer, reason text, source text)
   where r.id = v.id and r.state || '' = 'open'`
})

/** Closes requests; their bodies are deleted. */
export const closeRequests = (run: RunSql, requests: ReadonlyArray<ClosedRequest>) => {
  const closed = requests.map(({ id, result }) => ({ ...result, id: String(id) }))
  return requests.length === 0 ? Effect.void : rowsOf(run, closeStatement, [JSON.stringify(closed, sanitizeStrings)])
}
