/**
 * Refetch requests: records, or the children of a changed parent, that are to be read again.
 *
 * Promise: a request is deleted in the transaction that lands its answer. A request that was repeated meanwhile has
 * a higher generation and stays. Generations come from one sequence, since the warehouse's clock may be set back.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import type { LandingConnection } from "./LandingConnection.ts"

/** The resource whose requests are read or deleted. */
interface RefetchScope extends Pick<LandingConnection, "runStatement"> {
  readonly companyId: bigint
  readonly resource: string
}

/** Inserts the selected requests (company_id, resource, field, value, requested_at), or repeats them. */
export const requestSql = (select: string): string =>
  `insert into tributary.refetch_requests as r (company_id, resource, field, value, requested_at) ${select}
   on conflict (company_id, resource, field, value)
   do update set generation = excluded.generation, requested_at = excluded.requested_at`

/** The highest generation that any request has had. */
export const generationSql =
  "coalesce(pg_sequence_last_value(pg_get_serial_sequence('tributary.refetch_requests', 'generation')::regclass), 0)"

export const pendingStatement = Statement.make({
  name: "read the refetch requests of",
  params: ["int8", "text", "int8"],
  columns: { field: "text", value: "text", generation: "int8" },
  text: `select field, value, generation from tributary.refetch_requests where company_id = $1 and resource = $2
      order by requested_at, field, value limit $3`
})

/** A row of `tributary.refetch_requests` as it was read. */
export type RefetchRequest = Statement.RowOf<typeof pendingStatement>

/** The oldest requests of a resource. */
export const pendingRequests = (
  { runStatement, companyId, resource }: RefetchScope,
  atMost: number
): Effect.Effect<ReadonlyArray<RefetchRequest>, DatabaseError> =>
  Effect.map(runStatement(pendingStatement, [companyId, resource, atMost]), ({ rows }) => rows)

export const fulfilledStatement = Statement.make({
  name: "delete a fulfilled refetch request of",
  params: ["int8", "text", "text", "text", "int8"],
  text: `delete from tributary.refetch_requests
      where company_id = $1 and resource = $2 and field = $3 and value = $4 and generation = $5`
})

export const deleteFulfilled = Effect.fnUntraced(function* (
  { runStatement, companyId, resource }: RefetchScope,
  requests: ReadonlyArray<RefetchRequest>
) {
  for (const { field, value, generation } of requests)
    yield* runStatement(fulfilledStatement, [companyId, resource, field, value, generation])
})

/** Deletes the requests that a completed full scan fulfils: those that were there when it began. */
export const upToStatement = Statement.make({
  name: "delete fulfilled refetch requests of",
  params: ["int8", "text", "int8"],
  text: "delete from tributary.refetch_requests where company_id = $1 and resource = $2 and generation <= $3"
})
