/** The state of one run across its attempts: totals, notes and outcome. */
import * as Effect from "effect/Effect"
import { type LandingResult, type MassDeleteBlocked, type ObservedPage, transferOf } from "../land/Landing.ts"
import type { Lane } from "../land/Checkpoint.ts"
import type { Table } from "../warehouse/Table.ts"
import { failureOf, noTotals, type Outcome, type RunTotals, sum } from "./Outcome.ts"
import { Progress, type RunBegan } from "./Progress.ts"
import * as RunPhases from "./RunPhases.ts"
import { plural } from "../text/Count.ts"

/** The state that the attempts of one run share. */
export interface RunState {
  runId: bigint | null
  /** Whether the run found nothing: its row is complete, and counts other such runs too. */
  isQuiet: boolean
  began: RunBegan | null
  totals: RunTotals
  cursor: string | null
  massDeleteBlocked: MassDeleteBlocked | null
  readonly notes: Set<string>
  phases: RunPhases.PhaseRecorder
}

/** The state of a run whose work begins at this time of the monotonic clock, in milliseconds. */
export const newState = (beganAt: number): RunState => ({
  runId: null,
  isQuiet: false,
  began: null,
  totals: noTotals,
  cursor: null,
  massDeleteBlocked: null,
  notes: new Set(),
  phases: RunPhases.make(beganAt)
})

/** Adds the result of a landing to the totals of the run. */
export const addTotals = Effect.fnUntraced(function* (
  state: RunState,
  landed: LandingResult,
  pages: ReadonlyArray<ObservedPage>
) {
  state.totals = sum(state.totals, {
    ...landed,
    pages: pages.length,
    ...transferOf(pages)
  })
  state.massDeleteBlocked = landed.massDeleteBlocked ?? state.massDeleteBlocked
  if (landed.drift !== null) state.notes.add(landed.drift)
  if (state.began !== null) yield* (yield* Progress).landed(state.began, state.totals)
})

const seconds = (milliseconds: number) => `${Math.round(milliseconds / 100) / 10} s`

/** Remarks for a person about the totals of a run. */
const notesOf = (state: RunState): ReadonlyArray<string> => {
  const { late, lateMs, staleVersions } = state.totals
  return [
    ...state.notes,
    ...(late === 0
      ? []
      : [
          `${plural(late, "row")} became visible up to ${seconds(lateMs)} after the cursor had passed; scans now begin earlier`
        ]),
    ...(staleVersions === 0
      ? []
      : [
          `${plural(staleVersions, "record was", "records were")} older than the warehouse's version, which was kept: a stale replica answered, ` +
            `or the source was restored; if it was restored, run tributary sync --accept-restored`
        ])
  ]
}

/** The resource and lane of an outcome's run. */
export interface RunScope {
  readonly companyId: bigint
  readonly table: Table
  readonly lane: Lane
}

/** The outcome of a run so far. */
export const outcomeOf = (
  { companyId, table, lane }: RunScope,
  state: RunState,
  error: Parameters<typeof failureOf>[0] | null,
  resumed: boolean,
  durationMs: number
): Outcome => {
  const failure = error === null ? null : failureOf(error)
  const incomplete = state.totals.quarantined > 0 || state.massDeleteBlocked !== null || state.totals.staleVersions > 0
  return {
    companyId,
    resource: table.resource.path,
    status: failure !== null ? "failed" : incomplete ? "quarantined" : "done",
    lane,
    kind: state.began?.kind ?? null,
    resumed,
    runId: state.runId,
    cursor: state.cursor,
    durationMs,
    totals: { ...state.totals, requests: state.totals.requests + (failure?.requests ?? 0) },
    massDeleteBlocked: state.massDeleteBlocked,
    notes: notesOf(state),
    failure
  }
}
