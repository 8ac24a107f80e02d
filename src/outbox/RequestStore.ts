/**
 * The requests that write, as they are stored before they are sent.
 *
 * Promise: a call has its key and its exact bytes, and its rows are marked, in a transaction that was committed before it
 * is sent for the first time. A key stands for these bytes only. What is not `open` any more is never sent again.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { QueryResultRow } from "pg"
import type { WriteRequest } from "../connector/Connector.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as OutboxStore from "./OutboxStore.ts"

export interface PushRequest {
  readonly id: bigint
  readonly operation: WriteRequest["operation"]
  /** The record's number, for an update or cancel. */
  readonly recordId: string | null
  readonly ifMatch: string | null
  readonly key: string
  /** By whom the source knows the key; null where that does not matter. */
  readonly keyScope: string | null
  /** Null for a cancel. */
  readonly body: string | null
  /** Not after its first send: milliseconds since 1970 by the warehouse's clock. */
  readonly formedAt: number
  readonly failures: number
  /** In their places. */
  readonly rows: ReadonlyArray<OutboxStore.Row>
}

/** What a call is made of. */
export interface NewRequest extends Pick<PushRequest, "operation" | "recordId" | "ifMatch" | "body" | "rows"> {
  /** Attempts that its rows have behind them, more than before. */
  readonly attempts?: number
}

/** How a call ended. */
export interface RequestResult {
  readonly state: "answered" | "refused" | "settled"
  readonly status: number | null
  readonly reason: string | null
  readonly source: string | null
}

/** A UUID of version 4. */
const newKey = Effect.map(
  Effect.all(Array.from({ length: 4 }, () => Random.nextIntBetween(0, 0xffff_ffff))),
  (drawn) => {
    const hex = drawn.map((part) => part.toString(16).padStart(8, "0")).join("")
    const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
    return [
      hex.slice(0, 8),
      hex.slice(8, 12),
      `4${hex.slice(13, 16)}`,
      `${variant}${hex.slice(17, 20)}`,
      hex.slice(20)
    ].join("-")
  }
)

/** The call that creates these records: one alone, or many at once (EP-06, EP-07). */
export const ofCreates = (rows: ReadonlyArray<OutboxStore.Row>): NewRequest => ({
  operation: rows.length === 1 ? "create" : "batch",
  recordId: null,
  ifMatch: null,
  body: rows.length === 1 ? rows[0]!.text : `[${rows.map(({ text }) => text).join(",")}]`,
  rows
})

/** The bytes of a call's body, about. */
export const bytesMax = 4_000_000

/** A call to be stored. */
export interface RequestLimits {
  readonly draft: NewRequest
  /** The call that its rows were in; absent or null when they waited. */
  readonly from?: bigint | null
  /** Kept with its rows unless they have one. */
  readonly base?: OutboxStore.Base | null
}

/** Stores calls and marks their rows, which must be locked. */
export const create = Effect.fnUntraced(function* (
  run: OutboxStore.Run,
  { company, resource }: OutboxStore.OutboxScope,
  keyScope: string | null,
  forming: ReadonlyArray<RequestLimits>
): Effect.fn.Return<ReadonlyArray<PushRequest>, DatabaseError> {
  if (forming.length === 0) return []
  const keyed = yield* Effect.forEach(forming, (one) => Effect.map(newKey, (key) => ({ ...one, key })))
  const { rows: formed } = yield* run<{ id: bigint; key: string; formed_ms: number; taken: number }>(
    "store calls of",
    `with given as (
       select * from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::integer[], $9::bigint[], $10::text[], $11::integer[])
         as g(operation, record_id, if_match, key, body, items, from_id, base, attempts)
     ), call as (
       insert into tributary.push_calls (company, resource, operation, record_id, if_match, key, key_scope, body, items)
       select $1, $2, operation, record_id, if_match, key, $15, body, items from given returning id, key, formed_at
     ), taken as (
       update tributary.outbox o set state = 'sending', call_id = c.id, position = v.position,
              base = coalesce(o.base, g.base::json), attempts = o.attempts + g.attempts
         from unnest($12::bigint[], $13::text[], $14::integer[]) as v(id, key, position)
         join given g on g.key = v.key join call c on c.key = v.key
        where o.id = v.id and o.call_id is not distinct from g.from_id
          and ${OutboxStore.stateIs("case when g.from_id is null then 'waiting' else 'sending' end")}
       returning c.id
     )
     select c.id, c.key, (extract(epoch from c.formed_at) * 1000)::float8 as formed_ms,
            (select count(*)::int from taken t where t.id = c.id) as taken from call c`,
    [
      company,
      resource,
      keyed.map(({ draft }) => draft.operation),
      keyed.map(({ draft }) => draft.recordId),
      keyed.map(({ draft }) => draft.ifMatch),
      keyed.map(({ key }) => key),
      keyed.map(({ draft }) => draft.body),
      keyed.map(({ draft }) => draft.rows.length),
      keyed.map(({ from }) => from ?? null),
      keyed.map(({ base }) => (base === undefined || base === null ? null : JSON.stringify(base))),
      keyed.map(({ draft }) => draft.attempts ?? 0),
      keyed.flatMap(({ draft }) => draft.rows.map(({ id }) => id)),
      keyed.flatMap(({ draft, key }) => draft.rows.map(() => key)),
      keyed.flatMap(({ draft }) => draft.rows.map((_, position) => position)),
      keyScope
    ]
  )
  const byKey = new Map(formed.map((row) => [row.key, row]))
  return keyed.map(({ draft, key, base = null }): PushRequest => {
    const { id, formed_ms: formedAt, taken } = byKey.get(key)!
    const { attempts = 0, rows, ...same } = draft
    if (taken !== rows.length) throw new Error(`${taken} of ${rows.length} rows were taken into a call`)
    return {
      ...same,
      id,
      keyScope,
      key,
      formedAt,
      failures: 0,
      rows: rows.map((row, position) => ({
        ...row,
        position,
        attempts: row.attempts + attempts,
        base: row.base ?? base
      }))
    }
  })
})

interface OpenRow extends QueryResultRow {
  readonly id: bigint
  readonly operation: PushRequest["operation"]
  readonly record_id: string | null
  readonly if_match: string | null
  readonly key: string
  readonly key_scope: string | null
  readonly body: string | null
  readonly formed_ms: number
  readonly failures: number
}

/** The first of the calls that a predecessor left open, after the one with this number. */
export const open = Effect.fnUntraced(function* (run: OutboxStore.Run, place: OutboxStore.OutboxScope, after: bigint) {
  const { rows } = yield* run<OpenRow>(
    "look for open calls of",
    `select id, operation, record_id, if_match, key, key_scope, body, (extract(epoch from formed_at) * 1000)::float8 as formed_ms, failures
       from tributary.push_calls where company = $1 and resource = $2 and state = 'open' and id > $3 order by id limit 1`,
    [place.company, place.resource, after]
  )
  const [row] = rows
  if (row === undefined) return null
  const call: PushRequest = {
    id: row.id,
    operation: row.operation,
    recordId: row.record_id,
    ifMatch: row.if_match,
    key: row.key,
    keyScope: row.key_scope,
    body: row.body,
    formedAt: row.formed_ms,
    failures: row.failures,
    rows: yield* OutboxStore.ofCall(run, place, row.id)
  }
  return call
})

/** Writes down that all retries ended without an answer that settles anything. */
export const failed = (run: OutboxStore.Run, call: PushRequest, reason: string) =>
  Effect.map(
    run<{ failures: number }>(
      "keep the failure of a call of",
      `update tributary.push_calls set failures = failures + 1, reason = left($2, 1000)
        where id = $1 and state = 'open' returning failures`,
      [call.id, reason]
    ),
    ({ rows }): PushRequest => ({ ...call, failures: rows[0]?.failures ?? call.failures + 1 })
  )

/** Closes calls. */
export const close = (
  run: OutboxStore.Run,
  calls: ReadonlyArray<{ readonly id: bigint; readonly closing: RequestResult }>
) =>
  calls.length === 0
    ? Effect.void
    : run(
        "close calls of",
        `update tributary.push_calls c set state = v.state, status = v.status, reason = left(v.reason, 1000), source = v.source,
                body = null, settled_at = tributary.now()
           from jsonb_to_recordset($1::text::jsonb) as v(id bigint, state text, status integer, reason text, source text)
          where c.id = v.id and c.state || '' = 'open'`,
        [
          JSON.stringify(
            calls.map(({ id, closing }) => ({ ...closing, id: String(id) })),
            OutboxStore.plain
          )
        ]
      )
