/**
 * The checks of the companies for missed events, by the worker of a process of serve.
 *
 * Promise: a company is checked at its interval, and earlier while deliveries fail or a gap lasts. The first checks of
 * thousands are spread. A failure is logged once, and the next check is early.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as CompanyLog from "../log/CompanyLog.ts"
import { bucketCount, bucketOf } from "../processes/Ownership.ts"
import * as EventChecks from "../reconcile/EventChecks.ts"
import * as Reconcile from "../reconcile/Reconcile.ts"
import {
  begin,
  type CompanyState,
  monotonicMs,
  taskKey,
  type TaskWorkerOptions,
  type WorkerState
} from "./WorkerState.ts"

/** What a process knows about the checks of a company. */
export interface CheckState {
  readonly memory: EventChecks.Memory
  /** When the next check begins, on the process's monotonic clock. */
  nextMs: number
  /** The next pause before an early check: it doubles, up to the interval. */
  earlyMs: number
  /** The notes that were logged last, so that each is logged once. */
  notes: ReadonlyArray<string>
}

const earlyMinMs = 30_000
/** The first checks of many companies are spread over this time for each. */
const spreadMs = 200
/** Companies that are checked at the same time; more would wait for connections. */
const checksAtOnce = 32
/** A scope that the token lost is noticed after this. */
const identityMaxMs = 3_600_000

type Checks = NonNullable<TaskWorkerOptions["checks"]>

/** The state before the first check. */
const initial = (worker: WorkerState, { company }: CompanyState, { interval }: Checks): CheckState => {
  const spread = Math.min(Duration.toMillis(interval), (worker.companies.size - 1) * spreadMs)
  const hasWebhooks = company.connector.subscriptions !== undefined
  return {
    memory: EventChecks.makeMemory(),
    nextMs: hasWebhooks
      ? monotonicMs(worker) + (spread * bucketOf(company.name)) / bucketCount
      : Number.POSITIVE_INFINITY,
    earlyMs: earlyMinMs,
    notes: []
  }
}

const describe = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error)
  return error instanceof Error && "remedy" in error ? `${message}; ${String(error.remedy)}` : message
}

/** Checks a company, and decides when the next check is. */
const run = Effect.fnUntraced(function* (
  worker: WorkerState,
  { breaker, company }: CompanyState,
  state: CheckState,
  { interval, urlOf }: Checks
) {
  const { name } = company
  const identify = breaker.identifiedWithin(identityMaxMs)
  const check = Reconcile.check(company, { url: urlOf(name), checkInterval: interval, identify }, state.memory)
  const exit = yield* Effect.exit(check)
  const notes =
    exit._tag === "Success"
      ? exit.value.notes
      : [`its webhooks cannot be checked: ${describe(Cause.squash(exit.cause))}`]
  if (exit._tag === "Success") {
    for (const id of exit.value.reenabled) yield* Effect.logInfo(`${name}: subscription ${id} delivers again`)
  }
  for (const note of notes) if (!state.notes.includes(note)) yield* Effect.logWarning(`${name}: ${note}`)
  state.notes = notes
  const isEarly = exit._tag === "Failure" || exit.value.needsEarlyCheck
  const intervalMs = Duration.toMillis(interval)
  state.nextMs = monotonicMs(worker) + (isEarly ? Math.min(state.earlyMs, intervalMs) : intervalMs)
  state.earlyMs = isEarly ? state.earlyMs * 2 : earlyMinMs
})

/** Begins due checks. */
export const beginDue = Effect.fnUntraced(function* (worker: WorkerState) {
  const { checks } = worker.options
  if (checks === undefined) return
  const { running } = worker.groups.checks
  const keyOf = ({ company }: CompanyState) => ({ company: company.name, resource: "", kind: "check" }) as const
  const due = [...worker.companies.values()].flatMap((company) => {
    const state = (company.check ??= initial(worker, company, checks))
    return state.nextMs <= monotonicMs(worker) && !running.has(taskKey(keyOf(company))) ? [{ company, state }] : []
  })
  const first = due.toSorted((one, other) => one.state.nextMs - other.state.nextMs)
  for (const { company, state } of first.slice(0, Math.max(0, checksAtOnce - running.size))) {
    const check = CompanyLog.about(company.company.name)(run(worker, company, state, checks))
    yield* begin(worker, "checks", keyOf(company), check)
  }
})
