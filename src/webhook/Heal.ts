/**
 * Finding what was dropped, and reading it again.
 *
 * Promise: an event that the source dropped, or that the warehouse lost after it was acknowledged, leads to a read of its
 * resource that began after the loss, and until that read is complete the gap stands open and says why. Nothing more is
 * read than the resources concerned, and nothing where a scheduled run was there first. Several processes may check at
 * once, and be killed anywhere: what is found is written down first, and every step may be repeated.
 *
 * How a loss is found, with every look at the source (every few minutes):
 *
 * | what happened | how it shows | what is read again |
 * |---|---|---|
 * | attempts used up (DLV-07, DLV-08) | an abandoned entry of the log whose event is not in the inbox | its resource |
 * | acknowledged, then lost with the database | a delivered entry whose event is not in the inbox | its resource |
 * | disabled, paused (DLV-11) | the subscription says so | what it delivers, once it delivers again |
 * | cancelled, narrowed, sent elsewhere | no subscription at our address lists the event | what was missing, once it is there |
 * | the log holds more than is read in one look | its pages do not end | what the subscription delivers |
 * | nobody looked for days | the last look is older than the log remembers (DLV-15) | what the subscription delivers |
 *
 * How long no receiver was there does not matter by itself: what could not be delivered meanwhile stands in the log as
 * abandoned, or the subscription was disabled; only a log that was not read in time says nothing.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Priority } from "../budget/Budget.ts"
import { SourceError } from "../connector/SourceError.ts"
import type { Attempt, Subscriptions, TestResult } from "../connector/Subscriptions.ts"
import type { Table } from "../model/Table.ts"
import { execute } from "../postgres/Connection.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import type { Company } from "./Company.ts"
import * as Gaps from "./Gaps.ts"
import { refresh } from "./Refresh.ts"
import * as Seen from "./Seen.ts"

/** What a check did and met. */
export interface Checked {
  readonly _tag: "Checked"
  /** Subscriptions that deliver to us. */
  readonly subscriptions: number
  /** Gaps that were found. */
  readonly opened: number
  /** Gaps that were proved closed, by a run of this check or of anybody. */
  readonly closed: ReadonlyArray<Gaps.Closed>
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

export type Check =
  | Checked
  /** Another process is checking the company. */
  | { readonly _tag: "Busy" }
  /** The source has no webhooks. */
  | { readonly _tag: "NotOffered" }

export type CheckError = SourceError | SqlError | DatabaseError

/**
 * How far before the newest entry that was seen the log is read again: an attempt is written down when it has ended, and
 * where the log has one entry for an event, it changes until the last of three attempts, five minutes apart (DLV-08).
 */
const logMarginMs = 20 * 60_000
/** Delivered events leave the log after seven days (DLV-15); a day is left for clocks that disagree. */
const logRemembersMs = 6 * 24 * 60 * 60_000
/** Beyond so many pages reading the resources is cheaper than reading the log. */
const logPagesMax = 40
const repairConcurrency = 4
/** Length of a receiver's answer as it is shown. */
const shownMax = 200

// ------------------------------------------------------------------------------------------------- the delivery log

interface LogTold {
  /** Each event with its last word, those only that were settled. */
  readonly settled: ReadonlyArray<Attempt>
  readonly newest: string | null
  /** Whether it was read down to what was seen before. */
  readonly isWhole: boolean
}

/** Reads a log, newest first, down to a margin before what was seen of it. */
const readLog = Effect.fnUntraced(function* (
  { deliveries }: Subscriptions,
  id: string,
  seenTo: string | null
): Effect.fn.Return<LogTold, SourceError> {
  const seenMs = seenTo === null ? Number.NaN : Date.parse(seenTo)
  const settled = new Map<string, Attempt>()
  let newest: string | null = null
  let downTo = seenMs - logMarginMs
  for (let token: string | null = null, pages = 1; ; pages += 1) {
    const page: Effect.Success<ReturnType<typeof deliveries>> = yield* deliveries({ id, token })
    const [first] = page.attempts
    if (newest === null && first !== undefined) {
      newest = first.at
      // What is newest now is older than what was: the log lost entries, or its clock was set back. All of it is read.
      if (Date.parse(newest) < seenMs) downTo = Number.NaN
    }
    let isSeen = false
    for (const attempt of page.attempts) {
      // Never true of times that cannot be compared.
      if (Date.parse(attempt.at) < downTo) isSeen = true
      else if (attempt.delivered || (attempt.abandoned && settled.get(attempt.eventId)?.delivered !== true)) {
        settled.set(attempt.eventId, attempt)
      }
    }
    const isWhole = isSeen || page.next === null
    if (isWhole || pages >= logPagesMax) return { settled: [...settled.values()], newest, isWhole }
    token = page.next
  }
})

const count = (of: number, what: string) => `${of} ${what}${of === 1 ? "" : "s"}`

/** Looks through the log of a subscription; answers how many gaps it opened. */
const look = Effect.fnUntraced(function* (
  company: string,
  subscriptions: Subscriptions,
  row: Seen.Seen,
  wanted: ReadonlyMap<string, string>,
  isSynced: (resource: string) => boolean
) {
  const subscriptionId = row.id
  const at = yield* Seen.now
  const before = yield* Gaps.logRead(company, subscriptionId)
  if (before === null) return 0
  const { settled, newest, isWhole } = yield* readLog(subscriptions, subscriptionId, before.to)
  const asked = settled.filter(({ resource }) => resource !== null && isSynced(resource))
  const unknown = yield* Gaps.unknownAmong(
    company,
    asked.map(({ eventId }) => eventId)
  )
  const missed = new Map<string, { resource: string; cause: "abandoned" | "lost"; events: Array<string> }>()
  for (const { eventId, resource, delivered } of asked) {
    if (resource === null || !unknown.has(eventId)) continue
    const cause = delivered ? "lost" : "abandoned"
    const key = `${resource} ${cause}`
    const one = missed.get(key) ?? { resource, cause, events: [] }
    one.events.push(eventId)
    missed.set(key, one)
  }
  const found: Array<Gaps.Found> = [...missed.values()].map(({ resource, cause, events }) => ({
    subscriptionId,
    resource,
    cause,
    detail:
      cause === "abandoned"
        ? `the source gave up ${count(events.length, "event")}`
        : `${count(events.length, "event")} delivered and acknowledged, and not in the inbox`,
    beganAt: before.at,
    lasts: false,
    events
  }))
  const whole = (cause: "lost" | "down", detail: string) => {
    for (const resource of Gaps.resourcesOf(row.events, wanted)) {
      if (missed.has(`${resource} ${cause}`)) continue
      found.push({ subscriptionId, resource, cause, detail, beganAt: before.at, lasts: false, events: [] })
    }
  }
  if (!isWhole) whole("lost", `the delivery log has more than ${logPagesMax} pages since the last look`)
  if (before.ageMs > logRemembersMs) {
    whole("down", `nobody looked at the delivery log for ${Math.floor(before.ageMs / 86_400_000)} days, and it forgets`)
  }
  return yield* Gaps.logWasRead(company, subscriptionId, newest, at, found)
})

// ------------------------------------------------------------------------------------------------- reviving

const toldTest = ({ responseCode, responseBody }: TestResult): string =>
  responseCode === null
    ? "a test delivery got no answer: is a receiver running, and does the address lead to it?"
    : `a test delivery was answered ${responseCode}${responseBody === null || responseBody === "" ? "" : `: ${responseBody.slice(0, shownMax)}`}`

/** Enables a disabled subscription, if a delivery to it arrives; else answers why not. Null when it was enabled. */
const revive = Effect.fnUntraced(function* (
  company: string,
  subscriptions: Subscriptions,
  id: string
): Effect.fn.Return<string | null, SqlError, SqlClient.SqlClient> {
  const since = yield* Seen.now
  const tested = yield* Effect.result(subscriptions.test(id))
  if (tested._tag === "Failure") return `it cannot be tested: ${tested.failure.message}; ${tested.failure.remedy}`
  if (!tested.success.delivered) return toldTest(tested.success)
  if (!(yield* Gaps.arrived(company, tested.success.eventId, since))) {
    return "a test delivery was acknowledged, and did not arrive here: its address leads to somebody else"
  }
  const updated = yield* Effect.result(subscriptions.update(id, { enabled: true }))
  return updated._tag === "Success"
    ? null
    : `it cannot be enabled: ${updated.failure.message}; ${updated.failure.remedy}`
})

// ------------------------------------------------------------------------------------------------- repairing

/** Reads again what may have been missed, as far as nobody has done it. */
const repair = Effect.fnUntraced(function* (company: Company, tables: ReadonlyMap<string, Table>) {
  const nothing = { closed: [], repaired: [], notes: [] }
  const { name } = company
  const ended = yield* Gaps.unrepaired(name)
  if (ended.length === 0) return nothing
  const { companyId } = yield* company.connector.identify
  const closed = [...(yield* Gaps.closeProven(name, companyId))]
  const notes: Array<string> = []
  const done = yield* Effect.forEach(
    (yield* Gaps.unrepaired(name)).filter(({ isDue }) => isDue),
    Effect.fnUntraced(function* ({ resource }) {
      const table = tables.get(resource)
      if (table === undefined) {
        yield* Gaps.closeUnsynced(name, resource)
        return []
      }
      if (!(yield* Gaps.isLoaded(companyId, resource))) {
        yield* Gaps.notRepaired(name, resource, "it has not been loaded yet; the first sync closes the gap")
        return []
      }
      const outcome = yield* refresh({ company, companyId, tables, table, reads: "changes" })
      closed.push(...(yield* Gaps.closeProven(name, companyId)))
      const reason =
        outcome.failure === null
          ? `run ${outcome.runId} does not prove that nothing is missing (${outcome.status})`
          : `${outcome.failure.message}; ${outcome.failure.remedy}`
      if (yield* Gaps.notRepaired(name, resource, reason)) notes.push(`${resource}: ${reason}`)
      return [{ resource, runId: outcome.runId }]
    }),
    { concurrency: repairConcurrency }
  )
  return { closed, repaired: done.flat(), notes }
})

// ------------------------------------------------------------------------------------------------- checking

const checkLocked = Effect.fnUntraced(function* (company: Company, subscriptions: Subscriptions, url: string | null) {
  const { name, events } = company
  const tables = yield* company.tables
  const isSynced = (resource: string) => tables.has(resource)
  const wanted = Gaps.wantedOf(events, isSynced)
  const notes: Array<string> = []
  let at = yield* Seen.now
  let listed = yield* Seen.listed(name, subscriptions)
  let observed = yield* Gaps.observe({ company: name, url, events, wanted, subscriptions: listed, at })
  let { opened } = observed

  for (const row of observed.ours) {
    const told = yield* Effect.result(look(name, subscriptions, row, wanted, isSynced))
    if (told._tag === "Success") opened += told.success
    else if (told.failure._tag !== "SourceError") return yield* told.failure
    else notes.push(`the delivery log of subscription ${row.id} cannot be read: ${told.failure.message}`)
  }

  const revived: Array<string> = []
  for (const { id } of observed.ours.filter(({ state }) => state === "disabled")) {
    const isPaused = listed.some((one) => one.id === id && one.paused)
    if (isPaused || !(yield* Gaps.reviveDue(name, id))) continue
    const result = yield* revive(name, subscriptions, id)
    if (result !== null) {
      yield* Gaps.notRevived(name, id, result)
      notes.push(`subscription ${id} stays disabled: ${result}`)
      continue
    }
    revived.push(id)
    at = yield* Seen.now
    listed = yield* Seen.listed(name, subscriptions)
    observed = yield* Gaps.observe({ company: name, url, events, wanted, subscriptions: listed, at })
    opened += observed.opened
  }
  if (observed.ours.length === 0 && observed.isWanted && wanted.size > 0) {
    notes.push("no subscription delivers to us; make one with: tributary webhooks ensure")
  }
  for (const row of observed.ours.filter(({ state }) => state === "paused")) {
    notes.push(`subscription ${row.id} is paused; what fires meanwhile is read by scheduled runs only`)
  }

  const repairs = yield* repair(company, tables)
  const open = yield* Gaps.countOpen(name)
  return {
    _tag: "Checked",
    subscriptions: observed.ours.length,
    opened,
    closed: repairs.closed.toSorted((a, b) => (a.resource < b.resource ? -1 : 1)),
    open,
    revived,
    repaired: repairs.repaired,
    notes: [...notes, ...repairs.notes],
    isUneasy: open > 0 || opened > 0 || observed.ours.some(({ failCount }) => failCount !== null && failCount > 0n)
  } satisfies Checked
})

/**
 * Looks at the company's subscriptions and their logs, and mends what can be mended. `url` is where its deliveries are to
 * be sent; null, where nobody said, takes those for ours whose address ends in `/hooks/` and the company's name.
 */
export const check = Effect.fn("Heal.check")(function* (
  company: Company,
  url: string | null
): Effect.fn.Return<Check, CheckError, Database | SqlClient.SqlClient | Scope.Scope> {
  const { subscriptions } = company.connector
  if (subscriptions === undefined) return { _tag: "NotOffered" }
  const database = yield* Database
  // A courtesy: two at once would do the same twice.
  const client = yield* database.connect
  const { rows } = yield* execute<{ locked: boolean }>(
    client,
    "lock the check of webhooks",
    "select pg_try_advisory_lock(hashtextextended($1, 0)) as locked",
    [`tributary:heal:${company.name}`]
  )
  if (rows[0]?.locked !== true) return { _tag: "Busy" }
  const dueAt = yield* Clock.currentTimeMillis
  return yield* Effect.provideService(checkLocked(company, subscriptions, url), Priority, { class: "live", dueAt })
}, Effect.scoped)

export interface RunOptions {
  /** As for {@link check}. */
  readonly url: string | null
  readonly checkEveryMs: number
}

const toldFailure = (error: unknown): string => {
  if (error instanceof SourceError) return `${error.message}; ${error.remedy}`
  if (isSqlError(error)) return DatabaseError.from("check webhooks")(error).message
  return error instanceof Error ? error.message : String(error)
}

/** After a failure, or while something is uneasy. */
const soonMs = 30_000

/**
 * Checks the company for ever: at once, then each `checkEveryMs`, and sooner while something is uneasy. Never fails: what
 * is wrong is logged once, when it begins.
 */
export const run = Effect.fn("Heal.run")(function* (
  company: Company,
  { url, checkEveryMs }: RunOptions
): Effect.fn.Return<never, never, Database | SqlClient.SqlClient> {
  let told: ReadonlyArray<string> = []
  let soonNext = soonMs
  for (;;) {
    const exit = yield* Effect.exit(check(company, url))
    let notes: ReadonlyArray<string>
    let isUneasy = true
    if (exit._tag === "Failure") {
      notes = [`its webhooks cannot be checked: ${toldFailure(Cause.squash(exit.cause))}`]
    } else if (exit.value._tag === "NotOffered") {
      return yield* Effect.never
    } else if (exit.value._tag === "Busy") {
      notes = told
      isUneasy = false
    } else {
      ;({ notes, isUneasy } = exit.value)
      for (const { resource, cause, closedBy } of exit.value.closed) {
        yield* Effect.logInfo(`${company.name}: ${resource}: a gap (${cause}) was closed by ${closedBy}`)
      }
      for (const id of exit.value.revived) yield* Effect.logInfo(`${company.name}: subscription ${id} delivers again`)
    }
    for (const note of notes) if (!told.includes(note)) yield* Effect.logWarning(`${company.name}: ${note}`)
    told = notes
    // What stays uneasy is looked at less and less often, down to the usual.
    yield* Effect.sleep(Duration.millis(isUneasy ? Math.min(soonNext, checkEveryMs) : checkEveryMs))
    soonNext = isUneasy ? soonNext * 2 : soonMs
  }
})
