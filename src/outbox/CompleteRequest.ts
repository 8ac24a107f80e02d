/**
 * A request from its first send to its end: send, resolve, commit.
 *
 * Promise: a request ends by a commit with the resolutions of its rows, or it stays open for the next session.
 */
import * as Effect from "effect/Effect"
import type { RequestResolution } from "./Commit.ts"
import { commitRows } from "./GroupCommit.ts"
import type { OutboxRow } from "./OutboxRow.ts"
import { type PushSession, type PushSessionError, stop, stopForSource } from "./PushSession.ts"
import type { PushRequest } from "./RequestStore.ts"
import { resolveCreate } from "./ResolveCreate.ts"
import { resolveUpdate } from "./ResolveUpdate.ts"
import type { ResolvedRow } from "./RowResolution.ts"
import { send } from "./Send.ts"

/** The session stops after this many consecutive requests at which the source failed. */
const consecutiveFailuresMax = 3

const countResult = (session: PushSession, { closed, source }: RequestResolution): void => {
  const { state } = session
  if (source === "works") state.consecutiveFailures = 0
  if (source !== "fails") return
  state.consecutiveFailures += 1
  if (state.consecutiveFailures < consecutiveFailuresMax) return
  stop(session, {
    kind: "FailsEveryWrite",
    message: `the source failed at ${state.consecutiveFailures} writes in a row: ${closed.result.reason}`,
    remedy: "report it to the operator of the source; the next run continues from here",
    disposition: "uncertain",
    stops: "resource"
  })
}

/** The row as it is after its resolution, if it is pending again. */
const pendingRow = ({ row, resolution }: ResolvedRow): ReadonlyArray<OutboxRow> =>
  resolution.state === "pending"
    ? [
        {
          ...row,
          requestIndex: null,
          attempts: row.attempts + (resolution.attempts ?? 0),
          conflictRetries: row.conflictRetries + (resolution.conflictRetries ?? 0)
        }
      ]
    : []

/** Completes a request and those that follow from it; returns its rows that are pending again. */
export const completeRequest = (
  session: PushSession,
  request: PushRequest
): Effect.Effect<ReadonlyArray<OutboxRow>, PushSessionError> =>
  Effect.gen(function* () {
    const result = yield* send(session, request)
    if (result._tag === "Stopped") return []
    const isCreate = request.operation === "create" || request.operation === "batch"
    const resolution = yield* (isCreate ? resolveCreate : resolveUpdate)(session, request, result)
    const next = yield* commitRows(session, resolution)
    countResult(session, resolution)
    yield* Effect.forEach(next, (following) => completeRequest(session, following), { discard: true })
    return resolution.rows.flatMap(pendingRow)
  }).pipe(
    Effect.catchTag("SourceError", (error) =>
      Effect.sync(() => {
        stopForSource(session, error)
        return []
      })
    )
  )
