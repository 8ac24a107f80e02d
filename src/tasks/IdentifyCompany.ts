/** Identification of a company by its token; until the source accepts the token, no task of the company runs. */
import * as Effect from "effect/Effect"
import { Priority } from "../budget/Budget.ts"
import * as CompanyLog from "../log/CompanyLog.ts"
import { failureOf } from "../sync/Outcome.ts"
import * as SourceGuard from "../sync/SourceGuard.ts"
import * as DueTasks from "./DueTasks.ts"
import { backoffMs, type CompanyState, monotonicMs, wake, type WorkerState } from "./WorkerState.ts"

/** Runs no task of the company until the source accepts its token again. */
export const blockCompany = Effect.fnUntraced(function* (
  worker: WorkerState,
  state: CompanyState,
  failure: DueTasks.CompanyFailure
) {
  state.consecutiveFailures += 1
  const { message, remedy } = failure
  const delayMs = backoffMs(state.consecutiveFailures)
  state.identity = null
  state.blockedUntilMs = monotonicMs(worker) + delayMs
  if (state.loggedError !== message) {
    state.loggedError = message
    yield* Effect.logWarning(
      `company ${state.company.name}: nothing is synced: ${message}; ${remedy}; next attempt in ${delayMs / 1000} s, then less often`
    ).pipe(CompanyLog.about(state.company.name))
  }
  yield* Effect.ignore(DueTasks.blockCompany(state.company.name, failure))
})

export const identifyCompany = Effect.fnUntraced(function* (worker: WorkerState, state: CompanyState) {
  const { name } = state.company
  // All work of the company waits for it.
  const identified = yield* Effect.result(
    Effect.provideService(SourceGuard.identify(state.company), Priority, { class: "urgent", dueAt: 0 })
  )
  if (identified._tag === "Failure") {
    // A failed repetition of the question proves nothing: the known identity stays.
    if (state.identity !== null && identified.failure.isRetryable) return
    return yield* blockCompany(worker, state, failureOf(identified.failure))
  }
  if (state.loggedError !== null) yield* Effect.logInfo(`company ${name}: the source answers again`)
  state.identity = identified.success
  state.identifiedAtMs = monotonicMs(worker)
  state.consecutiveFailures = 0
  state.loggedError = null
})

/** Identifies the company concurrently with the polls, and wakes the worker. */
export const identifyInBackground = (worker: WorkerState, state: CompanyState) =>
  identifyCompany(worker, state).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        state.isIdentifying = false
        for (const group of ["tasks", "events"] as const) wake(worker, group)
      })
    )
  )
