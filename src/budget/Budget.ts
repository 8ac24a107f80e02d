/**
 * The rate budget of a token: every request to the source takes a permit first.
 *
 * Promise: no permit is given before a Retry-After has passed, as far as the caps in `PermitRule.ts` allow; after a capped
 * pause one request is the probe. All processes of one store together give no more permits than the limit in any minute.
 * Urgent requests go first, then live ones by their due time, then backfills; of every ten permits one is for a backfill
 * that waits. While the store does not answer, no permit is given; requests that wait fail after a while.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { BudgetError } from "./BudgetError.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as PermitDispatcher from "./PermitDispatcher.ts"
import type { PauseCause } from "./PermitRule.ts"
import { inMemory, type PermitStore } from "./PermitStore.ts"

export type Priority = PermitDispatcher.Priority

/** The priority of the requests of a fiber. */
export const Priority = Context.Reference<Priority>("tributary/budget/Priority", {
  defaultValue: () => ({ class: "live", dueAt: Number.POSITIVE_INFINITY })
})

export interface BudgetShape {
  /** Waits, by the fiber's {@link Priority}, until a request may be sent. The caller sends it at once. */
  readonly takePermit: Effect.Effect<void, BudgetError>
  /**
   * Begins a pause that an answer requested. `limit` after a 429: then another program uses the token, and the rate is
   * lowered for a while. The pause is in force for this process at once, even while the store does not answer.
   */
  readonly pause: (duration: Duration.Duration, reason?: "limit" | "fault", cause?: PauseCause) => Effect.Effect<void>
  /** Whether this process knows of a pause: it may have begun since a permit was acquired. */
  readonly isPaused: Effect.Effect<boolean>
  /**
   * Reports that an attempt ended without a request to wait: answered, or without an answer. `sentAt` is on the monotonic
   * clock. It costs nothing unless the attempt was the probe after a pause.
   */
  readonly reportAttempt: (request: string, sentAt: number, isAnswered: boolean) => Effect.Effect<void>
}

export interface BudgetOptions {
  /** A request that would wait longer than this for the end of a pause fails; default: none fails. */
  readonly pauseWaitMax?: Duration.Duration | undefined
  /** When the store does not answer for this long, the requests that wait fail; default 30 s. */
  readonly unavailableMax?: Duration.Duration | undefined
}

export class Budget extends Context.Service<Budget, BudgetShape>()("tributary/budget/Budget") {
  /** For sources that have no limit: only Retry-After is honoured. */
  static readonly layerUnlimited = Layer.effect(
    Budget,
    Effect.suspend(() => makeOwn(null))
  )
}

const unavailableMaxDefault = Duration.seconds(30)

/** A budget that a store counts. A pause that the store does not know is reported at the end of the scope. */
export const fromPermitStore = Effect.fnUntraced(function* (
  store: PermitStore,
  { pauseWaitMax = Duration.infinity, unavailableMax = unavailableMaxDefault }: BudgetOptions = {}
): Effect.fn.Return<BudgetShape, never, Scope.Scope> {
  const dispatcher = PermitDispatcher.makeDispatcher(store, yield* Clock.Clock, {
    pauseWaitMaxMs: Duration.toMillis(pauseWaitMax),
    unavailableMaxMs: Duration.toMillis(unavailableMax)
  })
  yield* Effect.addFinalizer(() => Effect.ignore(PermitDispatcher.reportPauses(dispatcher)))
  yield* Effect.forkScoped(PermitDispatcher.serve(dispatcher))
  return Budget.of({
    takePermit: Effect.flatMap(Priority, (priority) => PermitDispatcher.takePermit(dispatcher, priority)),
    pause: (duration, reason = "fault", cause) =>
      PermitDispatcher.pauseRequests(dispatcher, Duration.toMillis(duration), reason === "limit", cause),
    isPaused: Effect.sync(() => PermitDispatcher.isPaused(dispatcher)),
    reportAttempt: (request, sentAt, isAnswered) =>
      PermitDispatcher.reportAttempt(dispatcher, request, sentAt, isAnswered)
  })
})

/** A budget of this process alone; null for no limit but Retry-After. */
export const makeOwn = (perMinute: number | null, options: BudgetOptions = {}) =>
  Effect.flatMap(MonotonicClock.make, (now) => fromPermitStore(inMemory(now, perMinute), options))
