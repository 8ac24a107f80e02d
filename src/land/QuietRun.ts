/**
 * Runs that may find nothing: incremental scans.
 *
 * Promise: such a run has a row of its own in `tributary.runs` only when it landed something, or failed. Runs that find
 * nothing are counted in one row until another run of the lane has a row. That row is written in the transaction that
 * moves the checkpoint, so that a quiet run is recorded exactly when its cursor was.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { saveCheckpoint } from "./CheckpointStore.ts"
import { type Landing, type LandingResult, nothingLanded, transferOf } from "./Landing.ts"
import type { LandingError } from "./LandingError.ts"
import type { ResourceLock } from "./ResourceLock.ts"
import { quietStatement } from "./RunRow.ts"
import type { OpenOptions } from "./SessionContext.ts"
import { instantText } from "./WarehouseClock.ts"
import * as WriteSession from "./WriteSession.ts"

/** The ledger row of a run, and whether it stands for runs that found nothing. */
export interface RunEntry {
  readonly runId: bigint
  readonly isQuiet: boolean
}

/** A session whose run begins with its first landing of something. */
export interface LazySession extends WriteSession.WriteSession {
  /** Begins the run now, unless it has begun. */
  readonly open: Effect.Effect<void, DatabaseError>
}

/** Whether a landing only ends an incremental scan. */
const findsNothing = ({ pages, scan, complete }: Landing): boolean =>
  complete &&
  scan?.kind === "incremental" &&
  pages.every(({ page }) => page.records.length === 0 && page.rejected.length === 0)

/** Moves the checkpoint, and counts the run. Returns the row that counts it. */
const landNothing = (lock: ResourceLock, options: OpenOptions, { pages, scan }: Landing) =>
  lock.transaction(
    Effect.gen(function* () {
      yield* saveCheckpoint(
        {
          lock,
          runId: null,
          refetchGeneration: lock.refetchGeneration,
          state: { knownFullScanReason: lock.checkpoint.fullScanReason }
        },
        { scan: null, completed: scan, lateMs: 0 }
      )
      const { bytes, requests } = transferOf(pages)
      const { rows } = yield* lock.runStatement(quietStatement, [
        lock.companyId,
        lock.resource,
        lock.checkpoint.fence,
        instantText(lock.acquiredAt),
        options.run.cursorFrom ?? null,
        scan?.syncedThrough ?? null,
        pages.length,
        bytes,
        requests
      ])
      return rows[0]!.id
    })
  )

/** A session for an incremental scan of the live lane from its first page. `entered` is called when the run has a row. */
export const open = (
  lock: ResourceLock,
  options: OpenOptions,
  entered: (entry: RunEntry) => void
): Effect.Effect<LazySession> =>
  Effect.sync(() => {
    let session: WriteSession.OpenSession | null = null
    const opened = Effect.suspend(() =>
      session !== null
        ? Effect.succeed(session)
        : Effect.tap(WriteSession.open(lock, options), (begun) =>
            Effect.sync(() => {
              session = begun
              entered({ runId: begun.runId, isQuiet: false })
            })
          )
    )
    const land = (landing: Landing): Effect.Effect<LandingResult, LandingError> =>
      session === null && findsNothing(landing)
        ? Effect.map(landNothing(lock, options, landing), (runId) => {
            entered({ runId, isQuiet: true })
            return nothingLanded
          })
        : Effect.flatMap(opened, (begun) => begun.land(landing))
    return {
      checkpoint: lock.checkpoint,
      timeOf: lock.timeOf,
      land: (landing) => Effect.suspend(() => land(landing)),
      transaction: (body) => lock.transaction(Effect.suspend(() => body(lock.run))),
      restart: (reason) => Effect.flatMap(opened, (begun) => begun.restart(reason)),
      open: Effect.asVoid(opened)
    }
  })
