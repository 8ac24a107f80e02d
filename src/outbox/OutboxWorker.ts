/**
 * Writing what waits into the source.
 *
 * Promise: one process at a time works on the writes of a resource of a company, under a lock and a fence of its own;
 * what a predecessor left is brought to its end first. It works until nothing of what is meant waits, or it cannot go on
 * and says why. Whenever it ends, by itself or by force, the ledger holds everything that the next one needs. A push
 * never fails: how it went is in its outcome.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as ResourceLock from "../land/ResourceLock.ts"
import * as WriteSession from "../land/WriteSession.ts"
import { attributesOf, failureOf, type Failure, type Outcome } from "../sync/Outcome.ts"
import { Progress } from "../sync/Progress.ts"
import * as RunStore from "../sync/RunStore.ts"
import { newState, outcomeOf, retryFromCheckpoint } from "../sync/RunState.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as RequestStore from "./RequestStore.ts"
import * as ResolveUpdate from "./ResolveUpdate.ts"
import { type Validator, makeValidator } from "./Validate.ts"
import * as ResolveCreate from "./ResolveCreate.ts"
import * as PushPause from "./PushPause.ts"
import * as Deduplicate from "./Deduplicate.ts"
import * as Lane from "./PushSession.ts"
import * as OutboxStore from "./OutboxStore.ts"
import type { Operation, Problem } from "./Push.ts"
import type { Counts } from "./Push.ts"

export { type PushCompany, type PusherOptions, type PushSettings, type Scope, settingsDefault } from "./PushSession.ts"
export type { Counts } from "./Push.ts"

/** How a push went. */
export interface PushReport {
  /** `stopped`: rows wait, and the failure says why. */
  readonly status: "done" | "stopped"
  readonly counts: Counts
  readonly calls: { readonly sent: number; readonly batches: number }
  readonly failure: Failure | null
  readonly durationMs: number
}

/** Rows checked in one transaction. */
const checkedTogether = 1_000
const lookAgainMs = 1_000
/** So many looks in a row may find rows that wait and nothing to do. */
const idleMax = 3

/** Checks what nobody has checked. */
const check = Effect.fnUntraced(function* (lane: Lane.PushSession, through: bigint) {
  const checkers = new Map<Operation, Validator | Problem>()
  const checkerOf = (operation: Operation) => {
    const known = checkers.get(operation) ?? makeValidator(lane.table.resource, operation)
    checkers.set(operation, known)
    return known
  }
  for (;;) {
    const { rows, refused } = yield* lane.transaction((run) =>
      Effect.gen(function* () {
        const found = yield* OutboxStore.pendingValidation(run, lane.place(), through, checkedTogether)
        return {
          rows: found,
          refused: found.length === 0 ? [] : yield* OutboxStore.saveValidation(run, found, checkerOf)
        }
      })
    )
    lane.pushing.counts = OutboxStore.counted(lane.pushing.counts, refused)
    lane.pushing.settled += rows.length
    if (rows.length < checkedTogether) return
  }
})

/** Brings the calls that a predecessor left open to their end. */
const resume = Effect.fnUntraced(function* (lane: Lane.PushSession) {
  for (let after = -1n; !lane.isStopped();) {
    const call = yield* lane.transaction((run) => RequestStore.open(run, lane.place(), after))
    if (call === null) return
    after = call.id
    yield* call.operation === "create" || call.operation === "batch"
      ? ResolveCreate.complete(lane, call)
      : Effect.asVoid(ResolveUpdate.complete(lane, call))
  }
})

const stuck: Failure = {
  kind: "Stuck",
  message: "rows wait, and none of them can be sent",
  remedy: "this is a fault of the program, please report it with the rows of tributary.outbox that wait",
  stops: "resource",
  refused: false
}

/** One turn under the lock: from what the ledger holds until nothing waits. */
const turn = Effect.fnUntraced(function* (options: Lane.PusherOptions, pushing: Lane.PushProgress) {
  const { table, companyId, company, children } = options
  const { state } = pushing
  const resource = table.resource.path
  const lock = yield* ResourceLock.acquire({ table, connector: company.connector, companyId, lane: "push" })
  const lander = yield* WriteSession.open(lock, {
    run: { kind: "push" },
    origin: "push",
    authority: "newer",
    acceptDeletions: true,
    deletionsShareMax: company.engine.deletionsShareMax,
    children
  })
  state.runId = lander.runId
  state.began = { companyId, resource, kind: "push", resumed: false }
  yield* (yield* Progress).began(state.began)
  const held = PushPause.reasonOf(
    (yield* lander.transaction((run) =>
      run<PushPause.InstallationRow>("look for a hold on", PushPause.installationSql)
    )).rows[0]
  )
  if (held !== null) {
    pushing.failure ??= PushPause.failureOf(held)
    return
  }
  const lane = yield* Lane.make(options, lander, pushing)
  yield* resume(lane)
  let settledBefore = -1
  let idle = 0
  while (!lane.isStopped()) {
    yield* lane.recount
    const through = yield* lane.transaction((run) => OutboxStore.last(run, lane.place()))
    if (through === null) break
    if (pushing.settled === settledBefore) {
      const beside = yield* lane.transaction((run) => OutboxStore.blockers(run, lane.place()))
      const others = beside.filter((id) => !lane.beside.includes(id))
      lane.beside = [...lane.beside, ...others]
      // What others have changed between two looks is looked at once more.
      idle = others.length === 0 ? idle + 1 : 0
      if (idle >= idleMax) {
        lane.stop(stuck)
        break
      }
      if (idle > 0) yield* Effect.sleep(lookAgainMs)
    } else idle = 0
    settledBefore = pushing.settled
    yield* check(lane, through)
    yield* Deduplicate.findExisting(lane, through)
    if (!lane.isStopped()) yield* ResolveCreate.create(lane, through)
    if (!lane.isStopped()) yield* ResolveUpdate.change(lane, through)
  }
  yield* lane.transaction((run) => OutboxStore.finish(run, lane.place()))
  yield* lane.recount
}, Effect.scoped)

/** Tells how it stands while another process works on it. */
const watch = Effect.fnUntraced(function* (options: Lane.PusherOptions, pushing: Lane.PushProgress) {
  const sql = yield* SqlClient.SqlClient
  pushing.counts = yield* OutboxStore.countFrom(
    (text, values) => sql.unsafe(text, values),
    Lane.outboxScopeOf(options, [])
  ).pipe(Effect.mapError(DatabaseError.from("count the rows of a push")))
  yield* options.told?.(pushing.counts) ?? Effect.void
  yield* Effect.sleep(lookAgainMs)
})

/** Pushes until nothing of the scope waits, or it cannot go on. */
export const push = Effect.fn("push")(function* (
  options: Lane.PusherOptions
): Effect.fn.Return<PushReport, never, Database | SqlClient.SqlClient> {
  const { companyId, table } = options
  const clock = yield* Clock.Clock
  const beganAt = clock.monotonicTimeNanosUnsafe()
  const pushing: Lane.PushProgress = {
    state: newState(),
    counts: OutboxStore.noCounts,
    sent: 0,
    batches: 0,
    settled: 0,
    failure: null
  }
  for (;;) {
    const settledBefore = pushing.settled
    const result = yield* Effect.result(
      retryFromCheckpoint(
        table.resource.path,
        turn(options, pushing).pipe(
          // Another process has it: it is waited for, and what it leaves is gone on with.
          Effect.tapErrorTag("AlreadyRunning", () => watch(options, pushing)),
          Effect.retry({ while: (error) => error._tag === "AlreadyRunning" })
        )
      )
    )
    if (result._tag === "Success") break
    const error = result.failure
    const isRetryable = error instanceof DatabaseError && error.isRetryable
    // A database that comes and goes is borne with as long as there is headway.
    if (isRetryable && pushing.settled > settledBefore) continue
    pushing.failure = failureOf(error)
    break
  }
  const durationMs = Number((clock.monotonicTimeNanosUnsafe() - beganAt) / 1_000_000n)
  const { state, failure } = pushing
  const outcome: Outcome = {
    ...outcomeOf({ companyId, table, lane: "push" }, state, null, false, durationMs),
    ...(failure === null ? {} : { status: "failed", failure })
  }
  if (outcome.runId !== null) yield* RunStore.close(outcome.runId, outcome)
  yield* (yield* Progress).ended(outcome)
  yield* Effect.annotateCurrentSpan(attributesOf(outcome))
  return {
    status: failure === null ? "done" : "stopped",
    counts: pushing.counts,
    calls: { sent: pushing.sent, batches: pushing.batches },
    failure,
    durationMs
  }
})
