/**
 * One row of the outbox with its push and its last request.
 *
 * Promise: of a request only the columns are read that the reader may see (`src/warehouse/Grants.ts`): no key, no body.
 */
import type * as Effect from "effect/Effect"
import type { Difference, Operation, RejectedRow } from "../outbox/Push.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"

/** Characters of a record that are read. */
export const recordMax = 20_000
/** How many of the newest rows are searched for those that are done. */
export const searchLimit = 2_000

export type RowState = "pending" | "in_flight" | "done" | "rejected"

/** A row of the outbox; null when there is none. */
export const read = (id: bigint) =>
  Query.first(
    control
      .selectFrom("tributary.outbox as o")
      .leftJoin("tributary.pushes as p", "p.id", "o.push_id")
      .leftJoin("tributary.push_requests as r", "r.id", "o.request_id")
      .select(["o.id", "o.company", "o.resource", "o.operation", "o.externalid", "o.record_id as recordId", "o.state"])
      .select(["o.push_id as push", "p.source as pushSource", "o.outcome", "o.validated", "o.attempts"])
      .select(["o.absence_confirmed_at as absenceConfirmedAt", "o.conflict_retries as conflictRetries", "o.code"])
      .select(["o.field", "o.reason", "o.created_at as createdAt", "o.resolved_at as resolvedAt"])
      .select(["o.request_id as requestId", "o.request_index as requestIndex", "r.operation as requestOperation"])
      .select(["r.record_count as requestRecords", "r.state as requestState", "r.created_at as requestCreatedAt"])
      .select(["r.failed_attempts as requestFailures", "r.status", "r.reason as answerReason"])
      .select((of) => {
        const record = of.cast<string>("o.record", "text")
        return [
          of.fn<string>("left", [record, of.lit(recordMax)]).as("record"),
          of.fn<number>("length", [record]).as("recordCharacters"),
          of.cast<number | null>("o.line", "float8").as("line"),
          // Whether the record was read before the change.
          of("o.expected_values", "is not", null).as("isRead"),
          of.ref("o.problems").$castTo<RejectedRow["problems"] | null>().as("problems"),
          of.ref("o.differences").$castTo<ReadonlyArray<Difference> | null>().as("differences")
        ]
      })
      .where("o.id", "=", id)
  )
export type OutboxRowFlow = NonNullable<Effect.Success<ReturnType<typeof read>>>

const listed = {
  id: "int8",
  ...Statement.columns("text", "company", "resource"),
  operation: Statement.as<Operation>("text"),
  ...Statement.columns("text?", "externalid", "recordId"),
  push: "int8?",
  state: Statement.as<RowState>("text"),
  ...Statement.columns("text?", "outcome", "code", "field", "reason"),
  createdAt: "timestamptz",
  resolvedAt: "timestamptz?",
  resolvedMs: "float8?"
} as const
const isOf = `($1::text is null or company = $1) and ($2::text is null or resource = $2) and ($3::int8 is null or id < $3)`

const listParams = ["text?", "text?", "int8?", "int4"] as const

/** The newest rows of a company ($1) and resource ($2) below an id ($3), among those that `from` selects. */
const listSql = (from: string): string =>
  `select o.id, o.company, o.resource, o.operation, o.externalid, o.record_id as "recordId", o.push_id as push, o.state,
         o.outcome, o.code, o.field, o.reason, o.created_at as "createdAt", o.resolved_at as "resolvedAt",
         (extract(epoch from o.resolved_at - o.created_at) * 1000)::float8 as "resolvedMs"
    from (${from}) f join tributary.outbox o using (id) order by o.id desc`

const newestRows = `(select * from tributary.outbox where id < coalesce($3::int8, ${2n ** 63n - 1n}) order by id desc limit ${searchLimit})`

/**
 * Rows of one state, however old they are. The newest rows of all states are searched first, by their numbers. Only where
 * they are too few, every row of an index is read, without its table. The addition keeps that search from reading all rows
 * by their numbers.
 */
const byIndex = (state: string, indexed = `state = '${state}'`): string =>
  listSql(
    `with near as materialized (
       select id from ${newestRows} n where state = '${state}' and ${isOf} order by id desc limit $4::int
     ), far as (
       select id from tributary.outbox
        where (select count(*) from near) < $4::int and ${indexed} and ${isOf} order by id + 0 desc limit $4::int
     ) select id from (select id from near union select id from far) found order by id desc limit $4::int`
  )

export const newestStatement = Statement.make({
  name: "read the newest rows of the outbox",
  params: [...listParams, "text?"],
  columns: listed,
  text: listSql(
    `select id from ${newestRows} n where ${isOf} and ($5::text is null or state = $5) order by id desc limit $4::int`
  )
})
export const pendingStatement = Statement.make({
  name: "read the pending rows of the outbox",
  params: listParams,
  columns: listed,
  // The index has the rows in both states; those in flight are few.
  text: byIndex(
    "pending",
    `state in ('pending', 'in_flight') and id <> all (array(select id from tributary.outbox where state = 'in_flight'))`
  )
})
export const inFlightStatement = Statement.make({
  name: "read the rows of the outbox in flight",
  params: listParams,
  columns: listed,
  text: byIndex("in_flight")
})
export const rejectedStatement = Statement.make({
  name: "read the rejected rows of the outbox",
  params: listParams,
  columns: listed,
  text: byIndex("rejected")
})
export type ListedRow = Statement.RowOf<typeof newestStatement>

/** The rows to list; null is any. */
export interface RowFilter {
  readonly company: string | null
  readonly resource: string | null
  readonly state: RowState | null
}

/**
 * The newest rows below an id. Open and rejected rows are found however old they are; the others among the newest
 * {@link searchLimit} below the id.
 */
export const newest = ({ company, resource, state }: RowFilter, before: bigint | null, rowsMax: number) => {
  const search = [company, resource, before, rowsMax] as const
  switch (state) {
    case "pending":
      return Statement.run(pendingStatement, search)
    case "in_flight":
      return Statement.run(inFlightStatement, search)
    case "rejected":
      return Statement.run(rejectedStatement, search)
    default:
      return Statement.run(newestStatement, [...search, state])
  }
}
