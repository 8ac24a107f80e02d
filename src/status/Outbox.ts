/**
 * How things stand with what is to be written to the source, for people: pushes, rows of the outbox, open calls, and
 * what was refused.
 *
 * Promise: nothing is asked of the source and nothing is changed, so that it can be told at any time, also while a push
 * is at work; every age is by the warehouse's clock.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type Counts,
  type Difference,
  type Operation,
  type Outcome,
  outcomes,
  type RejectedRow,
  type Rows,
  whereOf
} from "../outbox/Push.ts"

export { type Counts, outcomes, type RejectedRow, type Rows } from "../outbox/Push.ts"

/** How many records were refused with a code. */
export interface RejectedBy {
  readonly code: string
  readonly records: number
}

/** Rows that belong together: those of a push, or those of a resource that were inserted by SQL. */
export interface OutboxState {
  readonly company: string
  readonly resource: string
  readonly counts: Counts
  /** How long the oldest row that is not settled has waited; null when there is none. */
  readonly oldestMs: number | null
  readonly refusedBy: ReadonlyArray<RejectedBy>
}

export interface PushStatus extends OutboxState {
  readonly push: bigint
  readonly operation: Operation
  /** Where the records came from, for people. */
  readonly source: string
  readonly state: "finished" | "unfinished"
  /** Records that were given; `known` of them belong to an earlier push. */
  readonly records: number
  readonly known: number
  readonly ageMs: number
  readonly finishedAt: string | null
}

/** A request whose outcome is not known yet. */
export interface OpenRequest {
  readonly company: string
  readonly resource: string
  readonly operation: string
  readonly items: number
  readonly ageMs: number
  /** How often all retries ended with an answer that settles nothing. */
  readonly failures: number
  readonly reason: string | null
}

export interface Status {
  /** Newest first. */
  readonly pushes: ReadonlyArray<PushStatus>
  /** Pushes that are not listed; all of them are finished. */
  readonly older: number
  /** Rows of no push. */
  readonly outbox: ReadonlyArray<OutboxState>
  readonly calls: ReadonlyArray<OpenRequest>
}

/** A record of which the source holds other values than those that were given. */
export interface DifferingRow {
  readonly line: number | null
  readonly externalid: string | null
  readonly recordId: string | null
  readonly outcome: Outcome
  readonly differences: ReadonlyArray<Difference>
}

/** Finished pushes that are listed unless one is asked for. */
const finishedShown = 20

const ms = (column: string) => `(extract(epoch from tributary.now() - ${column}) * 1000)::float8`

/** `differences` and outcomes stand on settled rows only. */
const counted = [
  ["waiting", "state = 'pending'"] as const,
  ["sending", "state = 'in_flight'"] as const,
  ["refused", "state = 'rejected'"] as const,
  ["different", "differences is not null"] as const,
  ...outcomes.map((outcome) => [outcome, `outcome = '${outcome}'`] as const)
]
  .map(([name, where]) => `(count(*) filter (where ${where}))::float8 as ${name}`)
  .concat(`max(${ms("created_at")}) filter (where state in ('pending', 'in_flight')) as "oldestMs"`)
  .join(", ")

type CountsRow = Counts & Pick<OutboxState, "oldestMs">

const countsOf = ({
  waiting,
  sending,
  refused,
  different,
  created,
  adopted,
  updated,
  cancelled,
  unchanged
}: Counts) => ({
  waiting,
  sending,
  created,
  adopted,
  updated,
  cancelled,
  unchanged,
  refused,
  different
})

/** Codes of refused rows; `of` names the rows that belong together. */
const refusedBy = Effect.fnUntraced(function* (where: string, parameters: ReadonlyArray<unknown>) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.unsafe<RejectedBy & { push: bigint | null; company: string; resource: string }>(
    `select push_id as push, company, resource, coalesce(code, 'unknown') as code, count(*)::float8 as records
       from tributary.outbox where state = 'rejected' and ${where}
      group by 1, 2, 3, 4 order by records desc, code`,
    parameters
  )
})

const codesOf = (rows: ReadonlyArray<RejectedBy>): ReadonlyArray<RejectedBy> =>
  rows.map(({ code, records }) => ({ code, records }))

/**
 * The pushes of these numbers, newest first; when there are none, all that are unfinished or have refused records, and
 * the newest of the others.
 */
export const pushes = Effect.fn("push.Status.pushes")(function* (numbers: ReadonlyArray<bigint> = []) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe<
    CountsRow & {
      push: bigint
      company: string
      resource: string
      operation: Operation
      source: string
      records: number
      known: number
      ageMs: number
      finishedAt: string | null
    }
  >(
    `select p.id as push, p.company, p.resource, p.operation, p.source, p.record_count::float8 as records,
            p.duplicates::float8 as known, ${ms("p.created_at")} as "ageMs", to_json(p.finished_at) #>> '{}' as "finishedAt", o.*
       from tributary.pushes p
       left join lateral (select ${counted} from tributary.outbox where push_id = p.id) o on true
      where case when cardinality($1::bigint[]) > 0 then p.id = any($1::bigint[])
                 else p.finished_at is null
                   or p.id in (select push_id from tributary.outbox where state = 'rejected' and push_id is not null)
                   or p.id in (select id from tributary.pushes where finished_at is not null
                                order by id desc limit ${finishedShown})
            end
      order by p.id desc`,
    [numbers.map(String)]
  )
  const codes = yield* refusedBy("push_id = any($1::bigint[])", [rows.map(({ push }) => push.toString())])
  return rows.map((row): PushStatus => ({
    push: row.push,
    company: row.company,
    resource: row.resource,
    operation: row.operation,
    source: row.source,
    state: row.finishedAt === null ? "unfinished" : "finished",
    records: row.records,
    known: row.known,
    ageMs: row.ageMs,
    finishedAt: row.finishedAt,
    counts: countsOf(row),
    oldestMs: row.oldestMs,
    refusedBy: codesOf(codes.filter(({ push }) => push === row.push))
  }))
})

/** The rows that belong to no push, by company and resource. */
export const outbox: Effect.Effect<ReadonlyArray<OutboxState>, SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql.unsafe<CountsRow & { company: string; resource: string }>(
      `select company, resource, ${counted} from tributary.outbox where push_id is null group by 1, 2 order by 1, 2`
    )
    const codes = yield* refusedBy("push_id is null", [])
    return rows.map(({ company, resource, ...row }): OutboxState => ({
      company,
      resource,
      counts: countsOf(row),
      oldestMs: row.oldestMs,
      refusedBy: codesOf(codes.filter((one) => one.company === company && one.resource === resource))
    }))
  }
)

const calls: Effect.Effect<ReadonlyArray<OpenRequest>, SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    sql.unsafe<OpenRequest>(
      `select company, resource, operation, record_count as items, ${ms("created_at")} as "ageMs", failed_attempts as failures, reason
         from tributary.push_requests where state = 'open' order by id`
    )
)

/** Everything, or a push alone with the calls of its resource. */
export const read = Effect.fn("push.Status.read")(function* (push: bigint | null) {
  const sql = yield* SqlClient.SqlClient
  const listed = yield* pushes(push === null ? [] : [push])
  const open = yield* calls
  if (push !== null) {
    const mine = open.filter(({ company, resource }) =>
      listed.some((one) => one.company === company && one.resource === resource)
    )
    return { pushes: listed, older: 0, outbox: [], calls: mine } satisfies Status
  }
  const [all] = yield* sql<{ pushes: number }>`select count(*)::float8 as pushes from tributary.pushes`
  return { pushes: listed, older: all!.pushes - listed.length, outbox: yield* outbox, calls: open } satisfies Status
})

const refused = `select id, line::float8 as line, operation, externalid, record_id as "recordId",
       coalesce(code, 'unknown') as code, field, coalesce(reason, '') as reason, coalesce(problems, '[]') as problems,
       record::text as record
  from tributary.outbox where state = 'rejected'`

/** Refused rows after the one of this number, in the order of their numbers, at most so many. */
export const rejectedRows = Effect.fn("push.Status.refusals")(function* (rows: Rows, after: bigint, atMost: number) {
  const sql = yield* SqlClient.SqlClient
  const [where, parameters] = whereOf(rows)
  return yield* sql.unsafe<RejectedRow>(
    `${refused} and ${where} and id > $${parameters.length + 1}::bigint order by id limit $${parameters.length + 2}::bigint`,
    [...parameters, after.toString(), atMost]
  )
})

/** The rows that were refused last. */
export const latestRejectedRows = Effect.fn("push.Status.lastRefusals")(function* (rows: Rows, atMost: number) {
  const sql = yield* SqlClient.SqlClient
  const [where, parameters] = whereOf(rows)
  return yield* sql.unsafe<RejectedRow>(
    `${refused} and ${where} order by resolved_at desc nulls last, id limit $${parameters.length + 1}::bigint`,
    [...parameters, atMost]
  )
})

/** The first records of which the source holds other values. */
export const differingRows = Effect.fn("push.Status.different")(function* (rows: Rows, atMost: number) {
  const sql = yield* SqlClient.SqlClient
  const [where, parameters] = whereOf(rows)
  return yield* sql.unsafe<DifferingRow>(
    `select line::float8 as line, externalid, record_id as "recordId", outcome, differences from tributary.outbox
      where state = 'done' and differences is not null and ${where} order by id limit $${parameters.length + 1}::bigint`,
    [...parameters, atMost]
  )
})

/** What of the outbox is not settled or was refused, by company. */
export interface OutboxStatus {
  readonly company: string
  readonly waiting: number
  readonly sending: number
  readonly refused: number
  readonly oldestMs: number | null
}

/** The companies of which something waits or was refused; cheap however much was pushed before. */
export const open: Effect.Effect<ReadonlyArray<OutboxStatus>, SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    sql.unsafe<OutboxStatus>(
      `select company, (count(*) filter (where state = 'pending'))::float8 as waiting,
              (count(*) filter (where state = 'in_flight'))::float8 as sending,
              (count(*) filter (where state = 'rejected'))::float8 as refused,
              max(${ms("created_at")}) filter (where state <> 'rejected') as "oldestMs"
         from (select company, state, created_at from tributary.outbox where state in ('pending', 'in_flight')
               union all select company, state, created_at from tributary.outbox where state = 'rejected') o
        group by company order by company`
    )
)
