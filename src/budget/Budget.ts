/**
 * The one request budget of a token.
 *
 * Promise: each request to the API takes a permit first. No permit is given before a Retry-After has passed, as far as
 * `Rule.ts` believes it; a longer one is followed by a probe. All processes of the ledger together give no more permits
 * than the limit in any minute. Urgent work is served first, then live by what is due first, then backfills; of every
 * ten permits one is for a backfill that waits. Where the ledger cannot be reached no permit is given: who waits learns it after a while.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type PermitStore, type PermitStoreError, memory } from "./PermitStore.ts"
import {
  cappedPauseMs,
  classes,
  type PermitGrant,
  type PauseRequest,
  type PauseCause,
  type PauseReport,
  type PriorityClass,
  type SettledPermits
} from "./PermitPolicy.ts"

/** For whom a request is made. */
export interface Priority {
  /** urgent: somebody waits for it; live: follows the source; backfill: everything else. */
  readonly class: PriorityClass
  /** When the promised freshness is broken, in milliseconds since 1970; earlier ones go first within a class. */
  readonly dueAt: number
}

/** The priority of what a fiber asks for; whoever starts the work provides it. */
export const Priority = Context.Reference<Priority>("tributary/budget/Priority", {
  defaultValue: () => ({ class: "live", dueAt: Number.POSITIVE_INFINITY })
})

/** The ledger did not answer for a while, and without a permit nothing is sent. May be tried again. */
export class BudgetUnavailable extends Data.TaggedError("BudgetUnavailable")<{ readonly detail: string }> {
  override get message(): string {
    return `no permit to send, since the warehouse that keeps the request budget does not answer (${this.detail})`
  }
}

/** A pause is in force that is longer than the caller waits. */
export class BudgetPaused extends Data.TaggedError("BudgetPaused")<{
  readonly retryAfterMs: number
  readonly by: PauseReport | null
}> {
  override get message(): string {
    return `the source asked to wait, still for ${Math.ceil(this.retryAfterMs / 1000)} s`
  }
}

export type BudgetError = BudgetUnavailable | BudgetPaused

export interface BudgetShape {
  /** Waits, by the fiber's {@link Priority}, until a request may be sent; it is to be sent at once. */
  readonly take: Effect.Effect<void, BudgetError>
  /**
   * Nobody sends for this long: the source said so. `limit` when it did with a 429: then somebody else uses the token,
   * and the rate is lowered for a while. In force for this process at once, even where the ledger is away.
   */
  readonly hold: (durationMs: number, cause?: "limit" | "fault", by?: PauseCause) => Effect.Effect<void>
  /** Whether a pause is in force that this process knows of: it may have begun since a permit was taken. */
  readonly isHeld: Effect.Effect<boolean>
  /**
   * An attempt that was sent at `sentAt` (the monotonic clock) has ended without a request to wait: answered, or without
   * an answer. It costs nothing unless it was the probe after a pause.
   */
  readonly ended: (request: string, sentAt: number, isAnswered: boolean) => Effect.Effect<void>
}

export interface BudgetOptions {
  /** Whoever would have to wait longer than this for a hold to pass fails instead; default: nobody. */
  readonly heldMaxMs?: number | undefined
  /** How long the ledger may be away before those who wait are told; default 30 s. */
  readonly unavailableMaxMs?: number | undefined
}

export class Budget extends Context.Service<Budget, BudgetShape>()("tributary/budget/Budget") {
  /** For sources and tests that have no limit: only Retry-After is honoured. */
  static readonly layerUnlimited = Layer.effect(
    Budget,
    Effect.suspend(() => make(null))
  )

  /** At most `requestsPerMinute` permits in any sliding minute, in this process. */
  static readonly layerMemory = (requestsPerMinute: number) =>
    Layer.effect(
      Budget,
      Effect.suspend(() => make(requestsPerMinute))
    )
}

/** A budget for this process alone; `null` for no limit but Retry-After. */
export const make = Effect.fnUntraced(function* (requestsPerMinute: number | null, options: BudgetOptions = {}) {
  const { budget, serve } = dispatch(yield* memory({ perMinute: requestsPerMinute }), yield* Clock.Clock, options)
  // Nothing to give back at the end; idle it only waits to be woken.
  yield* Effect.forkDetach(serve)
  return Budget.of(budget)
})

/** A budget that is counted in a ledger; what it holds is given back with the scope. */
export const fromPermitStore = (
  ledger: PermitStore,
  options: BudgetOptions = {}
): Effect.Effect<BudgetShape, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { budget, serve, end } = dispatch(ledger, yield* Clock.Clock, options)
    yield* Effect.addFinalizer(() => end)
    yield* Effect.forkScoped(serve)
    return Budget.of(budget)
  })

// ------------------------------------------------------------------------------------------------------- who is served

const unavailableMaxMsDefault = 30_000
const retryMinMs = 250
const retryMaxMs = 5_000
/** A lease is for those who wait, at once; this is for an answer that takes its time. */
const validMinMs = 1_000
const validMaxMs = 15_000
/** Takers of so short a time before are expected again: where limits are high, their permits are leased ahead. */
const aheadMs = 100
/** Leased ahead is at most what a minute's limit allows in a tenth of a second. */
const aheadShare = 600
/** How long it takes at most until a pause that a person ended is over for this process. */
const recheckMs = 5_000

interface Waiter {
  readonly dueAt: number
  readonly resume: (effect: Effect.Effect<void, BudgetError>) => void
}

/** Permits at hand. */
interface Held {
  readonly leaseId: bigint | null
  left: number
  used: number
  usedAt: number
  /** Beyond this the permits must not be used. */
  readonly until: number
}

const reportOf = (
  { agoMs, at, origin, request, statedMs, status }: PauseReport & { readonly at: number },
  now: number
) => ({
  origin,
  status,
  request,
  statedMs,
  agoMs: agoMs + Math.max(0, now - at)
})

const dispatch = (ledger: PermitStore, clock: Clock.Clock, options: BudgetOptions) => {
  const heldMaxMs = options.heldMaxMs ?? Number.POSITIVE_INFINITY
  const unavailableMaxMs = options.unavailableMaxMs ?? unavailableMaxMsDefault
  const aheadMax = ledger.perMinute === null ? 0 : Math.floor(ledger.perMinute / aheadShare)
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

  const waiting: Record<PriorityClass, Array<Waiter>> = { urgent: [], live: [], backfill: [] }
  /** Not before this is it worth asking for the class again. */
  const askAt: Record<PriorityClass, number> = { urgent: 0, live: 0, backfill: 0 }
  let held: Held = { leaseId: null, left: 0, used: 0, usedAt: 0, until: 0 }
  let holdUntil = 0
  /** A hold that the ledger does not know yet. */
  let untold: (PauseRequest & { readonly at: number }) | null = null
  /** The answer that requested the pause, and when by this process' clock. */
  let heldBy: (PauseReport & { readonly at: number }) | null = null
  let releases: number | null = null
  let checkedAt = 0
  /** When the probe was handed out that this process has to report. */
  let probedAt: number | null = null
  let validMs = validMinMs
  let askedAt = Number.NEGATIVE_INFINITY
  let takenSince = 0
  let failingSince: number | null = null
  let failures = 0
  let isWoken = false
  let wakeUp: (() => void) | null = null

  const wake = () => {
    isWoken = true
    wakeUp?.()
  }
  /** Until somebody comes, or the time is over. */
  const pause = (ms: number) => {
    const woken = Effect.callback<void>((resume) => {
      if (isWoken) return resume(Effect.void)
      wakeUp = () => resume(Effect.void)
      return Effect.sync(() => {
        wakeUp = null
      })
    })
    const over = ms === Number.POSITIVE_INFINITY ? woken : Effect.timeoutOption(woken, Duration.millis(Math.ceil(ms)))
    return Effect.ensuring(
      over,
      Effect.sync(() => {
        wakeUp = null
        isWoken = false
      })
    )
  }

  const someWait = () => waiting.urgent.length + waiting.live.length + waiting.backfill.length > 0
  const consume = (at: number) => {
    held.left -= 1
    held.used += 1
    held.usedAt = at
    takenSince += 1
  }
  const isAtHand = (at: number) => held.left > 0 && at < held.until && at >= holdUntil
  const handOut = () => {
    const at = now()
    while (isAtHand(at)) {
      const next = waiting.urgent.shift() ?? waiting.live.shift() ?? waiting.backfill.shift()
      if (next === undefined) return
      consume(at)
      next.resume(Effect.void)
    }
  }
  const failAll = (error: BudgetError) => {
    for (const one of classes) for (const waiter of waiting[one].splice(0)) waiter.resume(Effect.fail(error))
  }

  const take = Effect.flatMap(Priority, (priority) =>
    Effect.callback<void, BudgetError>((resume) => {
      const at = now()
      if (!someWait() && isAtHand(at)) {
        consume(at)
        return resume(Effect.void)
      }
      const queue = waiting[priority.class]
      const waiter: Waiter = { dueAt: priority.dueAt, resume }
      let place = queue.length
      while (place > 0 && queue[place - 1]!.dueAt > waiter.dueAt) place -= 1
      queue.splice(place, 0, waiter)
      wake()
      return Effect.sync(() => {
        const index = queue.indexOf(waiter)
        if (index >= 0) queue.splice(index, 1)
      })
    })
  )

  /** Tells the ledger of a hold that it does not know; how long it is believed is the ledger's word. */
  const tell: Effect.Effect<void, PermitStoreError> = Effect.suspend(() => {
    const telling = untold
    if (telling === null) return Effect.void
    const { at, ...asked } = telling
    return Effect.flatMap(ledger.hold({ ...asked, statedMs: Math.max(0, asked.statedMs - (now() - at)) }), (heldMs) =>
      Effect.sync(() => {
        if (untold !== telling) return
        untold = null
        holdUntil = now() + heldMs
      })
    )
  })

  const hold: BudgetShape["hold"] = (durationMs, cause = "fault", by) =>
    Effect.suspend(() => {
      const at = now()
      const limited = cause === "limit"
      const asked: PauseRequest = {
        origin: by?.origin ?? "source",
        status: by?.status ?? (limited ? 429 : 503),
        request: by?.request ?? null,
        statedMs: durationMs,
        limited
      }
      const endOf = (one: PauseRequest, from: number) => from + Math.min(one.statedMs, cappedPauseMs(one, 0))
      const until = endOf(asked, at)
      // What the ledger was not told yet goes with it: the longer one, and whether one of them was a 429.
      const before = untold
      untold =
        before !== null && endOf(before, before.at) > until
          ? { ...before, limited: before.limited || limited }
          : { ...asked, at, limited: limited || before?.limited === true }
      // After a pause that is cut comes a probe: no permit from before it is used then.
      if (until < at + durationMs) held = { ...held, left: 0 }
      if (until > holdUntil) {
        holdUntil = until
        heldBy = {
          origin: asked.origin,
          status: asked.status,
          request: asked.request,
          statedMs: durationMs,
          agoMs: 0,
          at
        }
      }
      checkedAt = at
      probedAt = null
      wake()
      // Where the ledger is away, it is told before anything is asked of it.
      return Effect.ignore(tell)
    })

  const ended: BudgetShape["ended"] = (request, sentAt, isAnswered) =>
    Effect.suspend(() => {
      if (probedAt === null || sentAt < probedAt) return Effect.void
      probedAt = null
      for (const one of classes) askAt[one] = 0
      // If it fails, another probe is sent after a while.
      return Effect.andThen(Effect.ignore(ledger.endProbe(request, isAnswered)), Effect.sync(wake))
    })

  const settled = (): SettledPermits | null =>
    held.leaseId === null ? null : { id: held.leaseId, used: held.used, ageMs: Math.max(0, now() - held.usedAt) }

  /** What was answered, at hand; a stale answer is none: its permits are given back with the next question. */
  const accept = (grant: PermitGrant, at: number, askedValidMs: number) => {
    const permits = grant.granted.urgent + grant.granted.live + grant.granted.backfill
    const arrived = now()
    validMs = Math.min(validMaxMs, Math.max(validMinMs, 4 * (arrived - at)))
    if (releases !== null && grant.releases !== releases) holdUntil = 0
    releases = grant.releases
    holdUntil = Math.max(holdUntil, grant.heldMs > 0 ? arrived + grant.heldMs : 0)
    if (grant.heldBy !== null) heldBy = { ...grant.heldBy, at: arrived }
    if (grant.isProbe) probedAt = arrived
    const isOpen = ledger.perMinute === null && grant.heldMs <= 0 && grant.waitMs === 0
    const isStale = arrived >= at + (isOpen ? ledger.reliedUponMs : askedValidMs)
    if (isOpen) {
      held = { leaseId: null, left: Number.POSITIVE_INFINITY, used: 0, usedAt: 0, until: at + ledger.reliedUponMs }
    } else {
      const until = isStale ? 0 : at + Math.min(askedValidMs, ledger.reliedUponMs)
      held = { leaseId: grant.leaseId, left: permits, used: 0, usedAt: arrived, until }
    }
    // Those who waited are served even where the answer took longer than anything is relied upon.
    if (arrived < at + askedValidMs && arrived >= holdUntil) {
      const kept = isOpen ? [] : waiting.backfill.splice(0, grant.granted.backfill)
      const othersMax = isOpen ? Number.POSITIVE_INFINITY : permits - kept.length
      const others: Array<Waiter> = []
      while (others.length < othersMax) {
        const next = waiting.urgent.shift() ?? waiting.live.shift() ?? waiting.backfill.shift()
        if (next === undefined) break
        others.push(next)
      }
      for (const waiter of [...others, ...kept]) {
        consume(arrived)
        waiter.resume(Effect.void)
      }
    }
  }

  const ask = Effect.gen(function* () {
    yield* tell
    const at = now()
    const top = classes.find((one) => waiting[one].length > 0)
    const ahead = aheadMax < 2 || at - askedAt > aheadMs ? 0 : Math.min(aheadMax, 2 * takenSince)
    const wanted = {
      urgent: waiting.urgent.length + (top === "urgent" ? ahead : 0),
      live: waiting.live.length + (top === "live" ? ahead : 0),
      backfill: waiting.backfill.length + (top === "backfill" ? ahead : 0)
    }
    askedAt = at
    takenSince = 0
    const grant = yield* ledger.lease({ wanted, validMs, settled: settled() })
    failingSince = null
    failures = 0
    accept(grant, at, validMs)
    if (grant.isProbe && held.used === 0) {
      // The probe was not taken, or it came too late: another one may be sent.
      probedAt = null
      held = { ...held, left: 0 }
      yield* ledger.endProbe("", false)
    }
    if (grant.heldMs > 0) return
    let isRefused = false
    for (const one of classes) {
      isRefused ||= wanted[one] > 0 && grant.granted[one] < wanted[one]
      if (isRefused) askAt[one] = now() + grant.waitMs
    }
  })

  const askOrWait = Effect.catchTag(ask, "PermitStoreError", (error) =>
    Effect.gen(function* () {
      failures += 1
      if (failingSince === null) {
        failingSince = now()
        yield* Effect.logWarning(
          `The request budget cannot be asked (${error.detail}); nothing is sent until it answers again`
        )
      }
      if (now() - failingSince >= unavailableMaxMs) failAll(new BudgetUnavailable({ detail: error.detail }))
      const again = now() + Math.min(retryMaxMs, retryMinMs * 2 ** Math.min(failures - 1, 10))
      for (const one of classes) askAt[one] = again
    })
  )

  const giveBack = Effect.suspend(() => {
    const giving = settled()
    held = { leaseId: null, left: 0, used: 0, usedAt: 0, until: 0 }
    if (giving === null) return Effect.void
    // If it fails, the permits count until their time is over.
    return Effect.ignore(ledger.lease({ wanted: { urgent: 0, live: 0, backfill: 0 }, validMs, settled: giving }))
  })

  /** Asks for nothing, to learn whether the pause still is. */
  const recheck = Effect.suspend(() => {
    const at = now()
    const wanted = { urgent: 0, live: 0, backfill: 0 }
    return Effect.andThen(
      tell,
      Effect.map(ledger.lease({ wanted, validMs, settled: settled() }), (grant) => accept(grant, at, validMs))
    )
  }).pipe(Effect.ignore)

  const serve = Effect.gen(function* () {
    for (;;) {
      handOut()
      if (!someWait()) {
        if (held.leaseId === null || held.left <= 0) yield* pause(Number.POSITIVE_INFINITY)
        else if (now() < held.until) yield* pause(held.until - now())
        else yield* giveBack
        continue
      }
      const holdMs = holdUntil - now()
      if (holdMs > 0) {
        // A person may have ended the pause meanwhile; a ledger of this process alone knows of none.
        const isShared = ledger.reliedUponMs < Number.POSITIVE_INFINITY
        if (isShared && now() >= checkedAt + recheckMs) {
          checkedAt = now()
          yield* recheck
        } else if (holdMs > heldMaxMs) {
          const by = heldBy === null ? null : reportOf(heldBy, now())
          failAll(new BudgetPaused({ retryAfterMs: holdMs, by }))
        } else yield* pause(isShared ? Math.min(holdMs, Math.max(1, checkedAt + recheckMs - now())) : holdMs)
        continue
      }
      const soonest = Math.min(...classes.map((one) => (waiting[one].length > 0 ? askAt[one] : Infinity)))
      if (soonest > now()) yield* pause(soonest - now())
      else yield* askOrWait
    }
  })

  /** What is left of it is given back, and a hold that nobody else knows is told. */
  const end = Effect.suspend(() =>
    Effect.andThen(Effect.ignore(tell), held.left > 0 && held.leaseId !== null ? giveBack : Effect.void)
  )

  const isHeld = Effect.sync(() => now() < holdUntil)

  return { budget: { take, hold, isHeld, ended }, serve, end }
}
