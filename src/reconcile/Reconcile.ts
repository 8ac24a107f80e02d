/**
 * Finding what was dropped, and reading it again.
 *
 * Promise: an event that the source dropped, or that the warehouse lost after it was acknowledged, leads to a read of its
 * resource that began when what was lost had to be visible, and until that read is complete the gap stands open and says
 * why. Nothing more is read than the resources concerned, and nothing where a scheduled run was there first. Looking never
 * waits for reading. Several processes may check at once, and be killed anywhere: what is found is written down first, and
 * every step may be repeated.
 *
 * How a loss is found, with every look at the source (every few minutes):
 *
 * | what happened | how it shows | what is read again |
 * |---|---|---|
 * | attempts used up (DLV-07, DLV-08) | an abandoned entry of the log whose event is not in the inbox | its resource |
 * | acknowledged, then lost with the database | a delivered entry whose event is not in the inbox | its resource |
 * | disabled, paused (DLV-11) | the subscription says so | what it delivers, once it delivers again |
 * | disabled and enabled again between two looks | failures forgotten without a delivery, or a 410 in the log | what it delivers |
 * | paused between two looks while an event waited | the log never says how that event ended (DLV-05, DLV-09) | what it delivers |
 * | cancelled, narrowed, sent elsewhere | no subscription at our address lists the event | what was missing, once it is there |
 * | the token lost a scope (EVT-02) | the source tells its scopes | what needs it, once it is given back |
 * | more was delivered than a look goes through | the log's pages do not end | what the subscription delivers |
 * | nobody could look for long | the last look is old, or the log forgot (DLV-15) | what the subscription delivers |
 *
 * What was paused and resumed between two looks while nothing waited leaves no trace at the source: scheduled runs find
 * what fired then. A removal that leaves no record behind is shown by no cursor: there, every record is read.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Priority } from "../budget/Budget.ts"
import { SourceError } from "../connector/SourceError.ts"
import {
  describeAnswer,
  type Attempt,
  type Subscription,
  type Subscriptions,
  type TestResult
} from "../connector/Subscriptions.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { isOurs } from "../subscriptions/HookUrl.ts"
import type { Company } from "../sync/Company.ts"
import * as DeliveryGaps from "./DeliveryGaps.ts"
import { isComplete, refresh } from "../inbox/Refresh.ts"
import * as EventScopes from "../subscriptions/EventScopes.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"

/** What a check did and met. */
export interface ReconcileReport {
  readonly _tag: "Checked"
  /** Subscriptions that deliver to us. */
  readonly subscriptions: number
  /** Gaps that were found. */
  readonly opened: number
  /** Gaps that were proved closed, by a run of this check or of anybody. */
  readonly closed: ReadonlyArray<DeliveryGaps.ClosedGap>
  /** Gaps that are open still. */
  readonly open: number
  /** Subscriptions that were enabled again. */
  readonly revived: ReadonlyArray<string>
  /** Runs that were made, by resource. */
  readonly repaired: ReadonlyArray<{ readonly resource: string; readonly runId: bigint | null }>
  /** What is not as it should be, for people. */
  readonly notes: ReadonlyArray<string>
  /** Whether something may need the next look before its time: failed deliveries, or a gap. */
  readonly isUneasy: boolean
}

export type ReconcileMode =
  | ReconcileReport
  /** Another process is checking the company. */
  | { readonly _tag: "Busy" }
  /** The source has no webhooks. */
  | { readonly _tag: "NotOffered" }

export type ReconcileError = SourceError | SqlError | DatabaseError

/**
 * How far before the newest entry that was seen the log is read again, should that entry not be found: entries stand in
 * it in the order in which the attempts began, about.
 */
const logMarginMs = 60_000
/** Delivered events leave the log after seven days (DLV-15); a day is left for clocks that disagree. */
const logRemembersMs = 6 * 24 * 60 * 60_000
/** Beyond so many pages reading the resources is cheaper than reading the log. */
const logPagesMax = 200
/** A look that takes more than so many pages gives way to others. */
const logPagesPrompt = 5
/** An event that is not tried again for so long was dropped: attempts follow one another in five minutes (DLV-08). */
const attemptsMaxMs = 60 * 60_000
/** So many usual pauses without a look are a gap… */
const silentChecks = 3
/** … unless they are so short that it may be a restart. */
const silentMinMs = 10 * 60_000
/** Reading the whole of a resource for gaps takes at most this share of the time, and of the request budget. */
const wholeShare = 1 / 3
const repairConcurrency = 4
/** Length of a receiver's answer as it is shown. */
const shownMax = 200
/** The receiver is gone: the source disables the subscription at once (DLV-03). */
const goneStatus = 410

// ------------------------------------------------------------------------------------------------- the delivery log

/** The last word on an event. */
interface Word {
  attempt: Attempt
  /** Whether the log shows a later attempt of another event. */
  readonly isPassed: boolean
}

interface LogTold {
  readonly words: ReadonlyArray<Word>
  readonly newest: DeliveryGaps.LogHead | null
  /** Whether a receiver said since the last look that it is gone. */
  readonly saidGone: boolean
  /** Whether it was read down to what was seen before. */
  readonly isWhole: boolean
}

/**
 * Reads a log, newest first, down to the newest entry that was seen before: what is older does not change, since nothing
 * is sent to a subscription while an event waits for its next attempt (DLV-05, DLV-09). That holds whether the log has an
 * entry for each attempt or one for each event (H-17). Tests go past the queue, and do not count.
 */
const readLog = Effect.fnUntraced(function* (
  { deliveries }: Subscriptions,
  id: string,
  seen: DeliveryGaps.LogRead
): Effect.fn.Return<LogTold, SourceError> {
  const seenMs = seen.to === null ? Number.NaN : Date.parse(seen.to)
  const urgent = yield* Priority
  const words = new Map<string, Word>()
  let newest: Pick<DeliveryGaps.LogHead, "at" | "event"> | null = null
  let saidGone = false
  // Nothing is true of times that cannot be compared.
  let newestMs = Number.NaN
  let downTo = seenMs - logMarginMs
  for (let token: string | null = null, pages = 1; ; pages += 1) {
    const page: Effect.Success<ReturnType<typeof deliveries>> = yield* Effect.provideService(
      deliveries({ id, token }),
      Priority,
      pages <= logPagesPrompt ? urgent : { class: "backfill", dueAt: urgent.dueAt }
    )
    let isSeen = false
    for (const attempt of page.attempts) {
      const { at, eventId } = attempt
      if (attempt.resource === null) continue
      const atMs = Date.parse(at)
      if (newest === null) {
        newest = { at, event: eventId }
        newestMs = atMs
        // What is newest now is older than what was: the log lost entries, or its clock was set back. All of it is read.
        if (atMs < seenMs) downTo = Number.NaN
      }
      if (atMs < downTo) {
        isSeen = true
        break
      }
      if (attempt.responseCode === goneStatus && !(atMs <= seenMs)) saidGone = true
      const word = words.get(eventId)
      if (word === undefined) words.set(eventId, { attempt, isPassed: eventId !== newest.event && atMs < newestMs })
      else if (attempt.delivered || (attempt.abandoned && !word.attempt.delivered)) word.attempt = attempt
      if (eventId === seen.event && atMs <= seenMs && !Number.isNaN(downTo)) {
        isSeen = true
        break
      }
    }
    const isWhole = isSeen || page.next === null
    if (isWhole || pages >= logPagesMax) {
      const last = newest === null ? undefined : words.get(newest.event)?.attempt
      const isWaiting = last !== undefined && !last.delivered && !last.abandoned
      return {
        words: [...words.values()],
        newest: newest === null ? null : { ...newest, isWaiting },
        saidGone,
        isWhole
      }
    }
    token = page.next
  }
})

const count = (of: number, what: string) => `${of} ${what}${of === 1 ? "" : "s"}`

/** What a check knows of the company. */
interface Known {
  readonly name: string
  readonly wanted: ReadonlyMap<string, string>
  readonly removing: ReadonlySet<string>
  readonly unreadable: ReadonlyMap<string, string>
  readonly isSynced: (resource: string) => boolean
  readonly overlapMs: number
  readonly silentMaxMs: number
}

/** Gaps of everything that a subscription delivers. */
const ofAll = (
  { wanted, removing, unreadable }: Known,
  row: SubscriptionStore.SubscriptionRow,
  gap: Pick<DeliveryGaps.NewGap, "cause" | "detail" | "beganAt" | "lasts" | "dueInMs"> & {
    readonly events?: ReadonlyArray<string>
  }
): ReadonlyArray<DeliveryGaps.NewGap> =>
  [
    ...DeliveryGaps.resourcesOf(
      row.events.filter((event) => !unreadable.has(event)),
      wanted
    )
  ].map((resource) => ({
    events: [],
    ...gap,
    subscriptionId: row.id,
    resource,
    needsFull: removing.has(resource)
  }))

/** Looks through the log of a subscription; answers how many gaps it opened. */
const look = Effect.fnUntraced(function* (
  known: Known,
  subscriptions: Subscriptions,
  row: SubscriptionStore.SubscriptionRow
) {
  const { name, isSynced, overlapMs, silentMaxMs } = known
  const subscriptionId = row.id
  const at = yield* SubscriptionStore.now
  const before = yield* DeliveryGaps.logRead(name, subscriptionId)
  if (before === null) return 0
  const { words, newest, saidGone, isWhole } = yield* readLog(subscriptions, subscriptionId, before)
  const standing = yield* DeliveryGaps.eventStatus(
    name,
    words.map(({ attempt }) => attempt.eventId)
  )
  interface Missed {
    readonly resource: string
    readonly cause: "abandoned" | "lost"
    readonly events: Array<string>
    needsFull: boolean
  }
  const missed = new Map<string, Missed>()
  const dropped: Array<string> = []
  const isStuck = newest?.at === before.to && newest?.event === before.event && (before.waitsMs ?? 0) > attemptsMaxMs
  for (const { attempt, isPassed } of words) {
    const { eventId, eventType, resource, delivered, abandoned } = attempt
    const { isStored, isTold } = standing.get(eventId) ?? { isStored: false, isTold: false }
    if (isTold) continue
    if (!delivered && !abandoned) {
      // Also one that is stored: what waited behind it was dropped with it.
      if (isPassed || (isStuck && eventId === newest?.event)) dropped.push(eventId)
      continue
    }
    if (resource === null || isStored || !isSynced(resource)) continue
    const cause = delivered ? "lost" : "abandoned"
    const key = `${resource} ${cause}`
    const one = missed.get(key) ?? { resource, cause, events: [], needsFull: false }
    one.events.push(eventId)
    one.needsFull ||= subscriptions.mayRemove(eventType)
    missed.set(key, one)
  }
  const found: Array<DeliveryGaps.NewGap> = [...missed.values()].map(({ resource, cause, events, needsFull }) => ({
    subscriptionId,
    resource,
    cause,
    detail:
      cause === "abandoned"
        ? `the source gave up ${count(events.length, "event")}`
        : `${count(events.length, "event")} delivered and acknowledged, and not in the inbox`,
    // The events fired before their last attempt, and nobody knows when.
    beganAt: null,
    lasts: false,
    events,
    needsFull
  }))
  const ended = { beganAt: before.at, lasts: false }
  if (dropped.length > 0) {
    const detail = `the source dropped ${count(dropped.length, "event")} before the attempts were used up, and what waited behind`
    found.push(...ofAll(known, row, { ...ended, cause: "dropped", detail, events: dropped }))
  } else if (saidGone && row.state !== "disabled") {
    const detail = "a receiver answered 410, at which the source disables the subscription; it was enabled again since"
    found.push(...ofAll(known, row, { ...ended, cause: "dropped", detail }))
  }
  if (!isWhole) {
    const detail = `more was delivered since the last look than is looked through (${logPagesMax} pages)`
    found.push(...ofAll(known, row, { ...ended, cause: "overflow", detail, dueInMs: overlapMs }))
  }
  if (before.ageMs > silentMaxMs) {
    const detail =
      before.ageMs > logRemembersMs
        ? `nobody looked at the delivery log for ${Math.floor(before.ageMs / 86_400_000)} days, and it forgets`
        : `nobody could look at the source for ${Math.floor(before.ageMs / 60_000)} min, and what was undone meanwhile does not show`
    // What else was due reads it meanwhile.
    found.push(...ofAll(known, row, { ...ended, cause: "down", detail, dueInMs: overlapMs }))
  }
  return yield* DeliveryGaps.advanceLogCursor(name, subscriptionId, newest, at, found)
})

/** Nobody can look at these subscriptions, and says why: where that takes long, it is a gap. Answers how many it opened. */
const lookFailed = Effect.fnUntraced(function* (
  known: Known,
  rows: ReadonlyArray<SubscriptionStore.SubscriptionRow>,
  error: SourceError
) {
  const { name, silentMaxMs } = known
  let opened = 0
  for (const row of rows) {
    yield* SubscriptionStore.recordFailure(name, row.id, error)
    const read = yield* DeliveryGaps.logRead(name, row.id)
    if (row.state !== "active" || read === null || read.ageMs <= silentMaxMs) continue
    const detail = `nobody can look at subscription ${row.id}: ${error.message}`
    opened += yield* DeliveryGaps.open(
      name,
      ofAll(known, row, { cause: "down", detail, beganAt: read.at, lasts: true })
    )
  }
  return opened
})

// ------------------------------------------------------------------------------------------------- reviving

const toldTest = (result: TestResult): string => {
  const { responseCode, responseBody, isSilent } = result
  if (isSilent) return "a test delivery got no answer: is a receiver running, and does the address lead to it?"
  const body = responseBody === null || responseBody === "" ? "" : `: ${responseBody.slice(0, shownMax)}`
  if (responseCode === null) return `a test delivery was not acknowledged: ${describeAnswer(result)}`
  const remedy =
    responseCode === 401 ? "; npx tributary webhooks ensure makes another secret where that does not fit" : ""
  return `a test delivery was answered ${responseCode}${body}${remedy}`
}

/** Enables a disabled subscription, if a delivery to it arrives; else answers why not. Null when it was enabled. */
const revive = Effect.fnUntraced(function* (
  company: string,
  subscriptions: Subscriptions,
  id: string
): Effect.fn.Return<string | null, SqlError, SqlClient.SqlClient> {
  const since = yield* SubscriptionStore.now
  const tested = yield* Effect.result(subscriptions.test(id))
  if (tested._tag === "Failure") return `it cannot be tested: ${tested.failure.message}; ${tested.failure.remedy}`
  const { eventId, delivered } = tested.success
  // That the event is here is the proof, however the source's answer is to be read (H-14).
  const isProved = (eventId !== null || delivered) && (yield* DeliveryGaps.hasEvent(company, eventId, since))
  if (!isProved) {
    return delivered
      ? "a test delivery was acknowledged, and did not arrive here: its address leads to somebody else"
      : toldTest(tested.success)
  }
  const updated = yield* Effect.result(subscriptions.update(id, { enabled: true }))
  return updated._tag === "Success"
    ? null
    : `it cannot be enabled: ${updated.failure.message}; ${updated.failure.remedy}`
})

// ------------------------------------------------------------------------------------------------- repairing

interface Repairs {
  readonly closed: ReadonlyArray<DeliveryGaps.ClosedGap>
  readonly repaired: ReconcileReport["repaired"]
  readonly notes: ReadonlyArray<string>
  /** When something is to be tried again at the earliest; null when nothing is. */
  readonly dueInMs: number | null
}

/** Whoever reads a resource again because of gaps has its lock. */
const claim = (company: string, resource: string) =>
  Effect.flatMap(Database, ({ locks }) => locks.tryLock(`tributary:heal:${company}:${resource}`))

const unrepairedOf = (company: string, resource: string) =>
  Effect.map(DeliveryGaps.openGaps(company), (all) => all.find((one) => one.resource === resource))

/** Which resources are read again: what a cursor brings, what takes reading all of it, or both. */
type Share = "cursor" | "whole" | "all"

/**
 * Reads again what may have been missed, as far as nobody has done it. Where it is a share of the work, reading the whole
 * of a resource leaves the others their time and their budget.
 */
const repair = Effect.fnUntraced(function* (company: Company, companyId: bigint, share: Share) {
  const { name } = company
  const { overlapMs } = company.engine
  const nothing: Repairs = { closed: [], repaired: [], notes: [], dueInMs: null }
  if ((yield* DeliveryGaps.openGaps(name)).length === 0) return nothing
  const closed = [...(yield* DeliveryGaps.closeCovered(name, companyId, overlapMs))]
  const notes: Array<string> = []
  const tables = yield* company.tables
  const isOurs = ({ resource, needsFull }: DeliveryGaps.OpenGap) => {
    const isWhole = needsFull || tables.get(resource)?.resource.modifiedSince === false
    return share === "all" || isWhole === (share === "whole")
  }
  const due = (yield* DeliveryGaps.openGaps(name)).filter((one) => isOurs(one) && one.dueInMs === 0)
  const held = yield* Effect.filter(due, ({ resource }) => claim(name, resource))

  const readAgain = Effect.fnUntraced(function* ({ resource, isFullDue }: DeliveryGaps.OpenGap) {
    const table = tables.get(resource)
    if (table === undefined) {
      yield* DeliveryGaps.closeUnsynced(name, resource)
      return []
    }
    if (!(yield* DeliveryGaps.isLoaded(companyId, resource))) {
      yield* DeliveryGaps.recordRepairFailure(
        name,
        resource,
        "it has not been loaded yet; the first sync closes the gap"
      )
      return []
    }
    const { modifiedSince } = table.resource
    let isEverything = isFullDue
    if (share !== "all" && (isFullDue || !modifiedSince)) {
      const waitMs = yield* DeliveryGaps.fullScanDelay(
        companyId,
        resource,
        wholeShare,
        company.requestsPerMinute ?? null
      )
      if (waitMs > 0) {
        // What a cursor shows need not wait.
        yield* DeliveryGaps.postpone(name, resource, waitMs, modifiedSince)
        if ((yield* unrepairedOf(name, resource))?.dueInMs !== 0) return []
        isEverything = false
      }
    }
    const isWhole = isEverything || !modifiedSince
    const read = refresh({ company, companyId, tables, table, reads: isEverything ? "everything" : "changes" })
    // What takes long gives way to what follows the source.
    const outcome = yield* isWhole
      ? Effect.provideService(read, Priority, { class: "live", dueAt: Number.POSITIVE_INFINITY })
      : read
    if (isComplete(outcome)) yield* DeliveryGaps.markRead(name, resource, outcome.runId, overlapMs)
    closed.push(...(yield* DeliveryGaps.closeCovered(name, companyId, overlapMs)))
    const reason =
      outcome.failure === null
        ? `run ${outcome.runId} does not prove that nothing is missing (${outcome.status})`
        : `${outcome.failure.message}; ${outcome.failure.remedy}`
    if (yield* DeliveryGaps.recordRepairFailure(name, resource, reason)) notes.push(`${resource}: ${reason}`)
    return [{ resource, runId: outcome.runId }]
  })

  const done = yield* Effect.forEach(
    held,
    Effect.fnUntraced(function* ({ resource }) {
      // Whoever had it until now may have done it.
      const now = yield* unrepairedOf(name, resource)
      return now?.dueInMs === 0 ? yield* readAgain(now) : []
    }),
    { concurrency: repairConcurrency }
  )
  const left = (yield* DeliveryGaps.openGaps(name)).filter(isOurs).map(({ dueInMs }) => dueInMs)
  const dueInMs = left.length === 0 ? null : Math.min(...left)
  return { closed, repaired: done.flat(), notes, dueInMs } satisfies Repairs
}, Effect.scoped)

// ------------------------------------------------------------------------------------------------- looking

/** What a look at the source did and met. */
interface Looked extends Pick<ReconcileReport, "subscriptions" | "opened" | "revived" | "notes"> {
  readonly _tag: "Looked"
  readonly companyId: bigint
  /** Whether a delivery has failed lately. */
  readonly isFailing: boolean
}

const lookLocked = Effect.fnUntraced(function* (
  company: Company,
  subscriptions: Subscriptions,
  { url, checkEveryMs }: ReconcileOptions
) {
  const { name, events, connector } = company
  const tables = yield* company.tables
  const isSynced = (resource: string) => tables.has(resource)
  const wanted = DeliveryGaps.wantedOf(events, isSynced)
  const silentMaxMs =
    checkEveryMs === undefined
      ? logRemembersMs
      : Math.min(logRemembersMs, Math.max(silentMinMs, silentChecks * checkEveryMs))
  const removing = new Set([...wanted].flatMap(([event, of]) => (subscriptions.mayRemove(event) ? [of] : [])))
  const asked = { name, wanted, removing, isSynced, overlapMs: company.engine.overlapMs, silentMaxMs }
  const notes: Array<string> = []
  let at = yield* SubscriptionStore.now
  const first = yield* Effect.result(Effect.all([connector.identify, SubscriptionStore.listed(name, subscriptions)]))
  if (first._tag === "Failure") {
    if (first.failure._tag === "SourceError") {
      const rows = (yield* SubscriptionStore.read(name, events)).filter(
        (row) => row.state !== "gone" && isOurs(name, url, row.url)
      )
      yield* lookFailed({ ...asked, unreadable: new Map() }, rows, first.failure)
    }
    return yield* first.failure
  }
  const [{ companyId, scopes }] = first.success
  const unreadable = EventScopes.undeliverableEvents(connector.catalogue, scopes, events)
  const known: Known = { ...asked, unreadable }
  const observe = (listed: ReadonlyArray<Subscription>, seenAt: string) =>
    DeliveryGaps.saveSnapshot({
      company: name,
      url,
      events,
      wanted,
      removing,
      unreadable,
      subscriptions: listed,
      at: seenAt
    })
  let observed = yield* observe(first.success[1], at)
  let { opened } = observed

  for (const row of observed.ours) {
    const told = yield* Effect.result(look(known, subscriptions, row))
    if (told._tag === "Success") opened += told.success
    else if (told.failure._tag !== "SourceError") return yield* told.failure
    else {
      const { message, remedy } = told.failure
      opened += yield* lookFailed(known, [row], told.failure)
      notes.push(`the delivery log of subscription ${row.id} cannot be read: ${message}; ${remedy}`)
    }
  }

  const revived: Array<string> = []
  for (const { id, paused } of observed.ours.filter(({ state }) => state === "disabled")) {
    if (paused || !(yield* DeliveryGaps.reenableDue(name, id))) continue
    const result = yield* revive(name, subscriptions, id)
    if (result !== null) {
      yield* DeliveryGaps.recordReenableFailure(name, id, result)
      notes.push(`subscription ${id} stays disabled: ${result}`)
      continue
    }
    revived.push(id)
    at = yield* SubscriptionStore.now
    observed = yield* observe(yield* SubscriptionStore.listed(name, subscriptions), at)
    opened += observed.opened
  }
  if (observed.ours.length === 0 && observed.isWanted && wanted.size > 0) {
    notes.push("no subscription delivers to us; make one with: tributary webhooks ensure")
  }
  for (const { id } of observed.ours.filter(({ paused }) => paused)) {
    notes.push(
      `subscription ${id} is paused; what fires meanwhile is read by scheduled runs only: tributary webhooks resume ${id}`
    )
  }
  for (const [event, scope] of unreadable) {
    if (wanted.has(event)) notes.push(`${event} is never delivered: the token lacks the scope ${scope}`)
  }
  return {
    _tag: "Looked",
    companyId,
    subscriptions: observed.ours.length,
    opened,
    revived,
    notes,
    isFailing: observed.ours.some(({ failCount }) => failCount !== null && failCount > 0n)
  } satisfies Looked
})

export interface ReconcileOptions {
  /**
   * Where the company's deliveries are to be sent; null, where nobody said, takes those for ours whose address ends in
   * `/hooks/` and the company's name.
   */
  readonly url: string | null
  /** How often somebody looks: longer without a look is a gap. Absent, only what the log forgets meanwhile is. */
  readonly checkEveryMs?: number
}

type Unlooked = Exclude<ReconcileMode, ReconcileReport>

/** One process at a time looks at the company's subscriptions and their logs, and enables what was disabled. */
const lookAt = Effect.fnUntraced(function* (
  company: Company,
  options: ReconcileOptions
): Effect.fn.Return<Looked | Unlooked, ReconcileError, Database | SqlClient.SqlClient | Scope.Scope> {
  const { subscriptions } = company.connector
  if (subscriptions === undefined) return { _tag: "NotOffered" }
  // A courtesy: two at once would do the same twice.
  const isLocked = yield* (yield* Database).locks.tryLock(`tributary:heal:${company.name}`)
  if (!isLocked) return { _tag: "Busy" }
  return yield* promptly(lookLocked(company, subscriptions, options))
}, Effect.scoped)

/** As something that follows the source, due now. */
const promptly = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Clock.currentTimeMillis, (dueAt) => Effect.provideService(work, Priority, { class: "live", dueAt }))

/** Looks at the company's subscriptions and their logs, and mends what can be mended, once. */
export const reconcile = Effect.fn("Heal.check")(function* (
  company: Company,
  options: ReconcileOptions
): Effect.fn.Return<ReconcileMode, ReconcileError, Database | SqlClient.SqlClient> {
  const looked = yield* Effect.scoped(lookAt(company, options))
  if (looked._tag !== "Looked") return looked
  const { subscriptions, opened, revived, notes, isFailing, companyId } = looked
  const repairs = yield* promptly(repair(company, companyId, "all"))
  const { open } = yield* DeliveryGaps.countOpen(company.name)
  return {
    _tag: "Checked",
    subscriptions,
    opened,
    closed: repairs.closed.toSorted((a, b) => (a.resource < b.resource ? -1 : 1)),
    open,
    revived,
    repaired: repairs.repaired,
    notes: [...notes, ...repairs.notes],
    isUneasy: open > 0 || opened > 0 || isFailing
  } satisfies ReconcileReport
})

export interface RunOptions extends ReconcileOptions {
  readonly checkEveryMs: number
}

const toldFailure = (error: unknown): string => {
  if (error instanceof SourceError) return `${error.message}; ${error.remedy}`
  if (isSqlError(error)) return DatabaseError.from("check webhooks")(error).message
  return error instanceof Error ? error.message : String(error)
}

/** After a failure, or while something is uneasy. */
const soonMs = 30_000
/** What another process is at is looked at again after so long. */
const repairAgainMs = 5_000

/** Tells what is wrong once, when it begins. */
const teller = (company: string) => {
  let told: ReadonlyArray<string> = []
  return Effect.fnUntraced(function* (notes: ReadonlyArray<string>) {
    for (const note of notes) if (!told.includes(note)) yield* Effect.logWarning(`${company}: ${note}`)
    told = notes
  })
}

/**
 * Checks the company for ever: at once, then each `checkEveryMs`, and sooner while something is uneasy. What is found is
 * read again beside that: however long a scan takes, the next look comes in its time. Never fails: what is wrong is
 * logged once, when it begins.
 */
export const run = Effect.fn("Heal.run")(function* (
  company: Company,
  options: RunOptions
): Effect.fn.Return<never, never, Database | SqlClient.SqlClient> {
  const { name } = company
  const { checkEveryMs } = options
  let companyId: bigint | null = null
  const shares = (["cursor", "whole"] as const).map((share) => ({ share, found: Latch.makeUnsafe(false) }))

  const repairs = Effect.fnUntraced(function* ({ share, found }: (typeof shares)[number]) {
    const tell = teller(name)
    for (;;) {
      yield* found.close
      let waitMs: number | null = soonMs
      if (companyId !== null) {
        const exit = yield* Effect.exit(promptly(repair(company, companyId, share)))
        if (exit._tag === "Failure") {
          yield* tell([`gaps cannot be closed now: ${toldFailure(Cause.squash(exit.cause))}`])
        } else {
          const { closed, notes, dueInMs } = exit.value
          for (const { resource, cause, closedBy } of closed) {
            yield* Effect.logInfo(`${name}: ${resource}: a gap (${cause}) was closed by ${closedBy}`)
          }
          yield* tell(notes)
          waitMs = dueInMs === null ? null : Math.max(repairAgainMs, dueInMs)
        }
      }
      yield* waitMs === null ? found.await : Effect.timeoutOption(found.await, Duration.millis(Math.ceil(waitMs)))
    }
  })

  const looks = Effect.gen(function* () {
    const tell = teller(name)
    let soonNext = soonMs
    for (;;) {
      const exit = yield* Effect.exit(Effect.scoped(lookAt(company, options)))
      let isUneasy = true
      if (exit._tag === "Failure") {
        yield* tell([`its webhooks cannot be checked: ${toldFailure(Cause.squash(exit.cause))}`])
      } else if (exit.value._tag === "NotOffered") {
        return yield* Effect.never
      } else if (exit.value._tag === "Busy") {
        isUneasy = false
      } else {
        const { opened, isFailing, revived, notes } = exit.value
        companyId = exit.value.companyId
        for (const { found } of shares) yield* found.open
        const standing = yield* Effect.exit(DeliveryGaps.countOpen(name))
        isUneasy = opened > 0 || isFailing || standing._tag === "Failure" || standing.value.lasting > 0
        for (const id of revived) yield* Effect.logInfo(`${name}: subscription ${id} delivers again`)
        yield* tell(notes)
      }
      // What stays uneasy is looked at less and less often, down to the usual.
      yield* Effect.sleep(Duration.millis(isUneasy ? Math.min(soonNext, checkEveryMs) : checkEveryMs))
      soonNext = isUneasy ? soonNext * 2 : soonMs
    }
  })

  yield* Effect.all([looks, ...shares.map(repairs)], { concurrency: "unbounded" })
  return yield* Effect.never
})
