/**
 * Refetch requests: records, or the children of a changed parent, that are to be read again.
 *
 * Promise: a request is deleted in the transaction that lands its answer. A request that was repeated meanwhile has
 * another generation and stays.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { LandingConnection } from "./LandingConnection.ts"
import { instantText } from "./WarehouseClock.ts"

/** The resource whose requests are read or deleted. */
interface RefetchScope extends Pick<LandingConnection, "run"> {
  readonly companyId: bigint
  readonly resource: string
}

/** A row of `tributary.refetch_requests` as it was read. */
export interface RefetchRequest {
  readonly field: string
  readonly value: string
  readonly generation: bigint
}

/** Inserts the selected requests (company_id, resource, field, value, requested_at), or repeats them. */
export const requestSql = (select: string): string =>
  `insert into tributary.refetch_requests as r (company_id, resource, field, value, requested_at) ${select}
   on conflict (company_id, resource, field, value)
   do update set generation = r.generation + 1, requested_at = excluded.requested_at`

/** The oldest requests of a resource. */
export const pendingRequests = (
  { run, companyId, resource }: RefetchScope,
  atMost: number
): Effect.Effect<ReadonlyArray<RefetchRequest>, DatabaseError> =>
  run<{ field: string; value: string; generation: bigint }>(
    "read the refetch requests of",
    `select field, value, generation from tributary.refetch_requests where company_id = $1 and resource = $2
      order by requested_at, field, value limit $3`,
    [companyId, resource, atMost]
  ).pipe(Effect.map(({ rows }) => rows))

export const deleteFulfilled = Effect.fnUntraced(function* (
  { run, companyId, resource }: RefetchScope,
  requests: ReadonlyArray<RefetchRequest>
) {
  for (const { field, value, generation } of requests) {
    yield* run(
      "delete a fulfilled refetch request of",
      `delete from tributary.refetch_requests where company_id = $1 and resource = $2 and field = $3 and value = $4 and generation = $5`,
      [companyId, resource, field, value, generation]
    )
  }
})

/** Deletes the requests that a completed full scan fulfils. */
export const deleteOlderThanScan = ({ run, companyId, resource }: RefetchScope, scanBeganAt: number) =>
  run(
    "delete fulfilled refetch requests of",
    // A time in the future was written before the warehouse's clock was set back. A run notices a step of a minute.
    `delete from tributary.refetch_requests where company_id = $1 and resource = $2
        and (requested_at < $3 or (requested_at > tributary.now() + interval '1 minute' and $3 <= tributary.now()))`,
    [companyId, resource, instantText(scanBeganAt)]
  )
