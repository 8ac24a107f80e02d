/**
 * Runs that may find nothing: incremental scans.
 *
 * Promise: such a run has a row of its own in `tributary.runs` only when it landed something, or failed. Runs that find
 * nothing are counted in one row until another run of the lane has a row. One statement writes that row and moves the
 * checkpoint, so that a quiet run is recorded exactly when its cursor was.
 */
import * as Effect from "effect/Effect"
import { namedBy } from "../connector/Connector.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { OpenScan } from "./Checkpoint.ts"
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
  complete && scan?.kind === "incremental" && pages.every(({ page }) => namedBy(page).length === 0)

/** Moves the checkpoint, and counts the run. Returns the row that counts it; undefined where nothing may be written. */
const landNothing = (lock: ResourceLock, { run }: OpenOptions, pages: Landing["pages"], scan: OpenScan) => {
  const { bytes, requests } = transferOf(pages)
  const { companyId, resource, checkpoint, acquiredAt } = lock
  return Effect.map(
    lock.runAtomic(quietStatement, ([clockFrom, clockUntil]) => [
      quietStatement.values({
        company: companyId,
        resource,
        fence: checkpoint.fence,
        startedAt: instantText(acquiredAt),
        cursorFrom: run.cursorFrom ?? null,
        cursorTo: scan.syncedThrough,
        pages: pages.length,
        bytes,
        requests,
        readAt: instantText(scan.beganAt),
        table: lock.table.current,
        history: lock.table.superseded,
        identity: lock.tableIdentity,
        clockFrom,
        clockUntil
      })
    ]),
    (rows) => rows[0]?.id
  )
}

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
    const land = Effect.fnUntraced(function* (landing: Landing): Effect.fn.Return<LandingResult, LandingError> {
      const { pages, scan } = landing
      if (session === null && scan !== null && findsNothing(landing)) {
        const runId = yield* landNothing(lock, options, pages, scan)
        if (runId !== undefined) {
          entered({ runId, isQuiet: true })
          return nothingLanded
        }
      }
      // Also where the run may not write: the landing fails with the reason.
      return yield* (yield* opened).land(landing)
    })
    return {
      checkpoint: lock.checkpoint,
      timeOf: lock.timeOf,
      land,
      transaction: (body) => lock.transaction(Effect.suspend(() => body(lock.run))),
      restart: (reason) => Effect.flatMap(opened, (begun) => begun.restart(reason)),
      open: Effect.asVoid(opened)
    }
  })
