/**
 * One run of a lane, around any work: scans, single records, events and pushes.
 *
 * Promise: `tributary.runs` has how the run ended, also when it was interrupted; when the process is killed, the next run
 * of the lane closes it. After a database error the work begins again at its checkpoint, never from memory. A run never
 * fails: its outcome has the failure and the remarks.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as SqlClient from "effect/sql/SqlClient"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import { attributesOf, type failureOf, type Outcome } from "./Outcome.ts"
import { Progress } from "./Progress.ts"
import * as RunPhases from "./RunPhases.ts"
import { newState, outcomeOf, type RunScope, type RunState } from "./RunState.ts"
import * as RunStore from "./RunStore.ts"

/** Attempts of a run whose database fails, before the run fails too. */
const databaseAttemptsMax = 6

/** A run that is under way. */
export interface Run {
  readonly state: RunState
  /** Does the work, and begins it again after a retryable database error. */
  readonly attempt: <A, E extends { readonly _tag: string }, R>(
    work: Effect.Effect<A, E | DatabaseError, R>
  ) => Effect.Effect<A, E | DatabaseError, R>
  /** The outcome so far. */
  readonly outcome: (error: Parameters<typeof failureOf>[0] | null, resumed?: boolean) => Outcome
  /** Closes the run's row, and begins another one within the same outcome. */
  readonly closePart: (ended: Outcome) => Effect.Effect<void, never, SqlClient.SqlClient>
}

/** The outcome of work that is begun again after a retryable database error. */
export const attemptWith = <E extends Parameters<typeof failureOf>[0], R>(
  run: Run,
  work: Effect.Effect<void, E, R>
): Effect.Effect<Outcome, never, R> =>
  Effect.match(run.attempt(work), { onFailure: run.outcome, onSuccess: () => run.outcome(null) })

/** Runs the work, which returns its outcome; closes the run. */
export const withRun = Effect.fnUntraced(function* <O extends Outcome, R>(
  scope: RunScope,
  work: (run: Run) => Effect.Effect<O, never, R>
): Effect.fn.Return<O, never, R | SqlClient.SqlClient> {
  const { companyId, lane, table } = scope
  const resource = table.resource.path
  const progress = yield* Progress
  const clock = yield* Clock.Clock
  const now = () => MonotonicClock.nowMs(clock)
  const beganAt = now()
  const state = newState(beganAt)
  const phases = () => state.phases.read(now())
  /** Updates the row of the run; a run that found nothing has a complete one. */
  const ofRow = <R>(update: (runId: bigint) => Effect.Effect<void, never, R>) =>
    Effect.suspend(() => (state.runId === null || state.isQuiet ? Effect.void : update(state.runId)))
  const close = (ended: Outcome) => ofRow((runId) => RunStore.close(runId, ended, phases()))
  const run: Run = {
    state,
    attempt: (attempted) =>
      RunPhases.observed(() => state.phases, attempted).pipe(
        Effect.tapError((error) =>
          error instanceof DatabaseError && error.isRetryable
            ? progress.note(`${resource}: ${error.message}; retrying from the checkpoint`)
            : Effect.void
        ),
        Effect.retry({
          while: (error) => error instanceof DatabaseError && error.isRetryable,
          times: databaseAttemptsMax - 1,
          schedule: Schedule.exponential("250 millis").pipe(Schedule.jittered)
        })
      ),
    outcome: (error, resumed = false) => outcomeOf(scope, state, error, resumed, Math.floor(now() - beganAt)),
    closePart: (ended) =>
      Effect.tap(close(ended), () =>
        Effect.sync(() => {
          state.phases = RunPhases.make(now())
        })
      )
  }
  const ended = yield* Effect.onInterrupt(Effect.tap(work(run), close), () =>
    ofRow((runId) => RunStore.abandon(runId, { companyId, resource, lane }, phases()))
  )
  yield* progress.ended(ended)
  yield* Effect.annotateCurrentSpan(attributesOf(ended))
  return ended
})
