/**
 * Refetch requests: a changed parent asks for its children to be read again.
 *
 * Promise: a request is deleted in the transaction that lands its answer. A request that was made again meanwhile has
 * another generation (`asks`) and stays.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { ResourceLock } from "./ResourceLock.ts"
import { instantText } from "./WarehouseClock.ts"

/** A row of `tributary.rereads` as it was read. */
export interface RefetchRequest {
  readonly field: string
  readonly value: string
  readonly generation: bigint
}

/** The oldest requests of a resource. */
export const pendingRequests = (
  { run, companyId, resource }: ResourceLock,
  atMost: number
): Effect.Effect<ReadonlyArray<RefetchRequest>, DatabaseError> =>
  run<{ field: string; value: string; generation: bigint }>(
    "look for questions about",
    `select field, value, asks as generation from tributary.rereads where company_id = $1 and resource = $2
      order by asked_at, field, value limit $3`,
    [companyId, resource, atMost]
  ).pipe(Effect.map(({ rows }) => rows))

export const deleteFulfilled = Effect.fnUntraced(function* (
  { run, companyId, resource }: ResourceLock,
  requests: ReadonlyArray<RefetchRequest>
) {
  for (const { field, value, generation } of requests) {
    yield* run(
      "forget an answered question of",
      `delete from tributary.rereads where company_id = $1 and resource = $2 and field = $3 and value = $4 and asks = $5`,
      [companyId, resource, field, value, generation]
    )
  }
})

/** Deletes the requests that a completed full scan fulfils. */
export const deleteOlderThanScan = ({ run, companyId, resource }: ResourceLock, scanBeganAt: number) =>
  run(
    "forget answered questions of",
    // A time in the future was written before the warehouse's clock was set back. A run notices a step of a minute.
    `delete from tributary.rereads where company_id = $1 and resource = $2
        and (asked_at < $3 or (asked_at > tributary.now() + interval '1 minute' and $3 <= tributary.now()))`,
    [companyId, resource, instantText(scanBeganAt)]
  )
