/**
 * The validity of idempotency keys: their age, their scope and the fence.
 *
 * Promise: a key is sent only while the source surely remembers it, and only by the process that has the fence.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { fenceAgeMs, type PushSession, transaction, warehouseNow } from "./PushSession.ts"
import type { PushRequest } from "./RequestStore.ts"

/** The source may work on a request for this long after the process that sent it has ended. */
const inFlightMaxMs = 10 * 60_000

/** The fence is confirmed again when the last confirmation is older. */
const fenceAgeMaxMs = 2_000

/** Confirmations before a send. One of them proves nothing when the process slept before it read the answer. */
const fenceChecksMax = 3

/** Whether the source surely remembers the key: it is young enough, and its scope is ours. */
export const isKeyValid = (session: PushSession, { createdAt, keyScope }: PushRequest): boolean =>
  keyScope === session.keyScope && warehouseNow(session) - createdAt < Duration.toMillis(session.settings.keyAgeMax)

/** How long, in milliseconds, a request of another token may still be in flight; 0 when the token is ours. */
export const foreignKeyWaitMs = (session: PushSession, { createdAt, keyScope }: PushRequest): number =>
  keyScope === session.keyScope ? 0 : Math.max(0, createdAt + inFlightMaxMs - warehouseNow(session))

/**
 * Whether the request may be sent now. A transaction confirms the fence, and updates the warehouse's time in a process that
 * slept.
 */
export const mayBeSent = Effect.fnUntraced(function* (session: PushSession, request: PushRequest) {
  const isFenceFresh = () => fenceAgeMs(session) < fenceAgeMaxMs
  for (let checks = 0; checks < fenceChecksMax && !isFenceFresh(); checks += 1) {
    if (!(yield* Effect.isSuccess(transaction(session, () => Effect.void)))) return false
  }
  return isFenceFresh() && isKeyValid(session, request)
})
