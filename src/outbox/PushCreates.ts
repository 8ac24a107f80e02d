/**
 * Pushing of creates.
 *
 * Promise: requests are stored while others are in flight. A create is in one request at a time.
 */
import * as Effect from "effect/Effect"
import type { SelectRequests } from "./Commit.ts"
import { completeRequest } from "./CompleteRequest.ts"
import { storeNextRequest } from "./GroupCommit.ts"
import { isStopped, type PushSession, type PushSessionError, scopeOf } from "./PushSession.ts"
import { createRequestOf } from "./RequestStore.ts"
import { selectCreates } from "./SelectCreates.ts"

/** The size of a request's body, about. */
const bytesMax = 4_000_000

/** Pushes the creates up to this row. */
export const pushCreates = Effect.fnUntraced(function* (
  session: PushSession,
  through: bigint
): Effect.fn.Return<void, PushSessionError> {
  let after = -1n
  const select: SelectRequests = (run, limit) =>
    Effect.gen(function* () {
      const { recordsMax, useBatch } = session.state
      const limits = { recordsMax: useBatch ? recordsMax : 1, bytesMax, requestsMax: limit }
      const selected = yield* selectCreates(run, scopeOf(session), { after, through }, limits)
      after = selected.after
      return selected.requests.map(createRequestOf)
    })
  const worker = Effect.gen(function* () {
    while (!isStopped(session)) {
      const request = yield* storeNextRequest(session, select)
      if (request === null) return
      yield* completeRequest(session, request)
    }
  })
  yield* Effect.all(
    // As many requests are stored and resolved as are in flight.
    Array.from({ length: 2 * session.settings.concurrency }, () => worker),
    { concurrency: "unbounded", discard: true }
  )
})
