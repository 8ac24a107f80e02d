/**
 * What is to be written to the source and what became of it, for people.
 *
 * Promise: only what is not settled, was refused or is of the last day is counted, each by an index, so that it costs
 * little however much was pushed before.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Operation } from "../outbox/Push.ts"

/** A push, and what of it is open. */
export interface PushSummary {
  readonly push: bigint
  readonly company: string
  readonly resource: string
  readonly operation: Operation
  /** Where the records came from. */
  readonly source: string
  /** Records that were given; `known` of them belong to an earlier push. */
  readonly records: number
  readonly known: number
  readonly createdAt: Date
  readonly finishedAt: Date | null
  readonly waiting: number
  readonly sending: number
  readonly refused: number
}

/** Rows of a resource that were inserted by SQL. */
export interface InsertedSummary {
  readonly company: string
  readonly resource: string
  readonly waiting: number
  readonly sending: number
  readonly refused: number
  /** When the oldest was inserted that is not settled. */
  readonly oldestAt: Date | null
  /** Within a day. */
  readonly created: number
  readonly adopted: number
  readonly updated: number
  readonly cancelled: number
  readonly unchanged: number
}

/** A request whose outcome is not known yet. */
export interface RequestSummary {
  readonly company: string
  readonly resource: string
  readonly operation: string
  readonly items: number
  readonly formedAt: Date
  readonly failures: number
  readonly reason: string | null
}

/** The pushes that are unfinished or have refused records, and the newest of the others; newest first, so many at most. */
export const pushes = (atMost: number): Effect.Effect<ReadonlyArray<PushSummary>, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<PushSummary>(
      `with listed as (
         (select id, 0 as rank from tributary.pushes where finished_at is null order by id desc limit $1::int)
         union all
         (select distinct push_id, 1 from tributary.outbox
           where state = 'rejected' and push_id is not null order by push_id desc limit $1::int)
         union all
         (select id, 2 from tributary.pushes order by id desc limit $1::int)
       ), chosen as (select id from listed group by id order by min(rank), id desc limit $1::int)
       select p.id as push, p.company, p.resource, p.operation, p.source, p.record_count::float8 as records,
              p.duplicates::float8 as known, p.created_at as "createdAt", p.finished_at as "finishedAt", o.*
         from chosen join tributary.pushes p using (id)
         cross join lateral (
           select (count(*) filter (where state = 'pending'))::float8 as waiting,
                  (count(*) filter (where state = 'in_flight'))::float8 as sending,
                  (count(*) filter (where state = 'rejected'))::float8 as refused
             from tributary.outbox where push_id = p.id and state in ('pending', 'in_flight', 'rejected')) o
        order by p.id desc`,
      [atMost]
    )
  )

/** The rows of no push, by company and resource. */
export const inserted: Effect.Effect<ReadonlyArray<InsertedSummary>, SqlError, SqlClient.SqlClient> = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => {
    const outcome = (name: string) => `(count(*) filter (where outcome = '${name}'))::float8 as ${name}`
    return sql.unsafe<InsertedSummary>(
      `select company, resource, (count(*) filter (where state = 'pending'))::float8 as waiting,
              (count(*) filter (where state = 'in_flight'))::float8 as sending,
              (count(*) filter (where state = 'rejected'))::float8 as refused,
              min(created_at) filter (where state in ('pending', 'in_flight')) as "oldestAt",
              ${["created", "adopted", "updated", "cancelled", "unchanged"].map(outcome).join(", ")}
         from (select company, resource, state, created_at, null as outcome from tributary.outbox
                where state in ('pending', 'in_flight') and push_id is null
               union all
               select company, resource, state, created_at, null from tributary.outbox
                where state = 'rejected' and push_id is null
               union all
               select company, resource, state, created_at, outcome from tributary.outbox
                where state = 'done' and push_id is null
                  and resolved_at > (select tributary.now() - interval '1 day')) o
        group by company, resource order by company, resource`
    )
  }
)

/** The oldest requests whose outcome is not known yet, so many at most. */
export const openRequests = (
  atMost: number
): Effect.Effect<ReadonlyArray<RequestSummary>, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<RequestSummary>(
      `select company, resource, operation, record_count as items, created_at as "formedAt", failed_attempts as failures, reason
         from tributary.push_requests where state = 'open' order by id limit $1::int`,
      [atMost]
    )
  )

/** What a push is about; null when there is none of this number. */
export const aboutOf = (
  push: bigint
): Effect.Effect<{ readonly company: string; readonly resource: string } | null, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ company: string; resource: string }>`select company, resource from tributary.pushes where id = ${push}`,
      ([row]) => row ?? null
    )
  )
