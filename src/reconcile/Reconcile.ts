/**
 * Reconcile: finds events that were dropped, and reads their resources again.
 *
 * Promise: an event that the source dropped, or that the warehouse lost after it was acknowledged, leads to a run that
 * began when the event's change had to be visible. Until that run is complete, the gap stays open with its reason. Only the
 * resources concerned are read, and only if no scheduled run covers them: a gap that has ended wants a run, which the worker
 * of the tasks makes (`GapReads.ts`). Checks never wait for reads. Several processes may check at once, and may be killed at
 * any time: gaps are stored first, and every step may be repeated.
 *
 * How each check finds a loss:
 *
 * | what happened | how it shows | what is read again |
 * |---|---|---|
 * | attempts used up | an abandoned entry of the log whose event is not in the inbox | its resource |
 * | acknowledged, then lost with the database | a delivered entry whose event is not in the inbox | its resource |
 * | disabled, paused | the state of the subscription | what it delivers, once it delivers again |
 * | disabled and enabled again between two checks | a failure count that fell without a delivery, or an answer in the log that disables | what it delivers |
 * | paused between two checks while an event waited | the log never says how that event ended | what it delivers |
 * | cancelled, narrowed, sent elsewhere | no subscription at our address lists the event | what was missing, once it is there |
 * | the token lost a scope | the source's list of scopes | what needs it, once it is given back |
 * | more was delivered than a check reads | the log's pages do not end | what the subscription delivers |
 * | no check for a long time | the last check is old, or the log forgot | what the subscription delivers |
 *
 * A pause between two checks while no event waited leaves no trace at the source: scheduled runs find its changes. No
 * cursor shows a removal that leaves no record behind: its gap takes a full scan.
 */
import { readInstant } from "../postgres/Now.ts"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { Priority } from "../budget/Budget.ts"
import type { Identity } from "../connector/Connector.ts"
import type { Subscriptions } from "../connector/Subscriptions.ts"
import type { Database } from "../postgres/Database.ts"
import * as Statement from "../postgres/Statement.ts"
import { changeTo, isOurs, undeliverableEvents } from "../subscriptions/DesiredState.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"
import type { Unidentified } from "../sync/CircuitBreaker.ts"
import type { Company } from "../sync/Company.ts"
import * as DeliveryGaps from "./DeliveryGaps.ts"
import * as DeliveryLog from "./DeliveryLog.ts"
import * as EventChecks from "./EventChecks.ts"
import * as Reenable from "./Reenable.ts"
import * as GapReads from "./GapReads.ts"
import { type CheckedCompany, saveSnapshot, type SnapshotResult } from "./SubscriptionGaps.ts"

/** The result of one check. */
export interface ReconcileReport extends GapReads.GapReads {
  readonly _tag: "Checked"
  /** Subscriptions that deliver to this company's address. */
  readonly subscriptions: number
  /** New gaps. */
  readonly opened: number
  /** Gaps that are still open. */
  readonly open: number
  /** Subscriptions that were enabled again. */
  readonly reenabled: ReadonlyArray<string>
  /** Whether the next check should come early: deliveries fail, or a gap is open. */
  readonly needsEarlyCheck: boolean
}

/** The source has no webhooks. */
interface NotOffered {
  readonly _tag: "NotOffered"
}

export type ReconcileResult = ReconcileReport | NotOffered

export type ReconcileError = Unidentified

export interface ReconcileOptions {
  /** The address for the company's deliveries; null accepts any address that ends in `/hooks/` and its name. */
  readonly url: string | null
  /** The interval of checks. A longer time without a check is a gap. Absent: only the log's retention limits it. */
  readonly checkInterval?: Duration.Duration
  /** Default: the source is asked. */
  readonly identify?: Effect.Effect<Identity, Unidentified>
}

/** The result of a check of the source. */
interface Checked extends Pick<ReconcileReport, "subscriptions" | "opened" | "reenabled" | "notes"> {
  readonly _tag: "SourceChecked"
  readonly companyId: bigint
  /** Whether a delivery has failed lately. */
  readonly isFailing: boolean
}

/** Reads the company's identity and its list of subscriptions. */
const readSource = Effect.fnUntraced(function* (
  checked: CheckedCompany,
  identify: Effect.Effect<Identity, Unidentified>
) {
  const { name, source, url, events } = checked
  const read = Effect.all([identify, SubscriptionStore.listed(name, source)])
  return yield* Effect.tapError(read, (error) =>
    error._tag !== "DatabaseError"
      ? Effect.flatMap(SubscriptionStore.read(name, events), (rows) =>
          DeliveryLog.recordFailure(
            checked,
            rows.filter((row) => row.state !== "deleted" && isOurs(name, url, row.url)),
            error
          )
        )
      : Effect.void
  )
})

const describeSubscriptions = (
  { ours, isWanted }: SnapshotResult,
  { wanted, unreadable }: CheckedCompany
): ReadonlyArray<string> => [
  ...(ours.length === 0 && isWanted && wanted.size > 0
    ? ["no subscription delivers here; create one with: tributary webhooks ensure"]
    : []),
  ...ours
    .filter(({ paused }) => paused)
    .map(
      ({ id }) =>
        `subscription ${id} is paused; until it is resumed, only scheduled runs read its changes; to resume it, run tributary webhooks resume ${id}`
    ),
  ...[...unreadable]
    .filter(([event]) => wanted.has(event))
    .map(([event, scope]) => `${event} is never delivered: the token lacks the scope ${scope}`)
]

/** Checks the subscriptions and their delivery logs, and re-enables disabled subscriptions. */
const checkSubscriptions = Effect.fnUntraced(function* (
  company: Company,
  source: Subscriptions,
  { url, checkInterval, identify = company.connector.identify }: ReconcileOptions,
  memory: EventChecks.Memory
) {
  const { name, events, connector } = company
  const tables = yield* company.tables
  const isSynced = (resource: string) => tables.has(resource)
  const wanted = new Map(
    events.flatMap((event) => {
      const resource = source.resourceOf(event) ?? ""
      return isSynced(resource) ? [[event, resource] as const] : []
    })
  )
  const removing = new Set([...wanted].flatMap(([event, of]) => (source.mayRemove(event) ? [of] : [])))
  const readable: CheckedCompany = {
    name,
    source,
    url,
    events,
    wanted,
    removing,
    unreadable: new Map(),
    isSynced,
    overlapMs: Duration.toMillis(company.engine.overlap),
    unobservedMax: DeliveryLog.unobservedMax(source, checkInterval ?? null)
  }
  const notes: Array<string> = []
  const at = yield* readInstant
  const isRecent = EventChecks.isRecent(memory, Date.parse(at))
  const [{ companyId, scopes }, list] = yield* readSource(readable, identify)
  const unreadable = undeliverableEvents(connector.catalogue, source, scopes, events)
  const checked: CheckedCompany = { ...readable, unreadable }
  yield* DeliveryGaps.closeUnsynced(name, tables.keys())
  let snapshot = yield* saveSnapshot(checked, list, at)
  let { opened } = snapshot

  let areLogsKnown = true
  for (const row of snapshot.ours) {
    const isKnown = isRecent && EventChecks.isLogKnown(memory, row)
    if (isKnown && (yield* DeliveryLog.confirm(checked, row, at))) continue
    const log = yield* Effect.result(DeliveryLog.check(checked, row))
    if (log._tag === "Success") {
      opened += log.success.opened
      EventChecks.rememberLog(memory, row, log.success.newestAt)
    } else if (log.failure._tag !== "SourceError") return yield* log.failure
    else {
      areLogsKnown = false
      const { message, remedy } = log.failure
      opened += yield* DeliveryLog.recordFailure(checked, [row], log.failure)
      notes.push(`the delivery log of subscription ${row.id} cannot be read: ${message}; ${remedy}`)
    }
  }

  const reenabled: Array<string> = []
  const ours = new Set(snapshot.ours.map(({ id }) => id))
  for (const { id, ...one } of list.filter((listed) => ours.has(listed.id))) {
    const change = changeTo(one)
    // The pause of a person stays.
    if (change?.enabled !== true || change.paused !== undefined || !(yield* Reenable.isDue(name, id))) continue
    const reason = yield* Reenable.reenable(name, source, id, change)
    if (reason !== null) {
      yield* Statement.run(Reenable.recordFailure, [name, id, reason])
      notes.push(`subscription ${id} stays disabled: ${reason}`)
      continue
    }
    reenabled.push(id)
    const seenAt = yield* readInstant
    snapshot = yield* saveSnapshot(checked, yield* SubscriptionStore.listed(name, source), seenAt)
    opened += snapshot.opened
  }
  if (checkInterval !== undefined) {
    yield* EventChecks.save(checked, at, snapshot.ours, areLogsKnown, checkInterval)
  }
  if (!isRecent && areLogsKnown) memory.readAtMs = Date.parse(at)
  return {
    _tag: "SourceChecked",
    companyId,
    subscriptions: snapshot.ours.length,
    opened,
    reenabled,
    notes: [...notes, ...describeSubscriptions(snapshot, checked)],
    isFailing: snapshot.ours.some(({ failCount }) => failCount !== null && failCount > 0n)
  } satisfies Checked
})

/** With the priority of a live run that is due now. */
const withLivePriority = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Clock.currentTimeMillis, (dueAt) => Effect.provideService(work, Priority, { class: "live", dueAt }))

/** {@link checkSubscriptions}, where the source has webhooks. */
const checkSource = Effect.fnUntraced(function* (
  company: Company,
  options: ReconcileOptions,
  memory: EventChecks.Memory
): Effect.fn.Return<Checked | NotOffered, ReconcileError, Database | SqlClient.SqlClient> {
  const { subscriptions } = company.connector
  if (subscriptions === undefined) return { _tag: "NotOffered" }
  return yield* withLivePriority(checkSubscriptions(company, subscriptions, options, memory))
})

/** Checks the company's subscriptions and their logs once, and repairs gaps. */
export const reconcile = Effect.fn("Reconcile.reconcile")(function* (
  company: Company,
  options: ReconcileOptions
): Effect.fn.Return<ReconcileResult, ReconcileError, Database | SqlClient.SqlClient> {
  const checked = yield* checkSource(company, options, EventChecks.makeMemory())
  if (checked._tag !== "SourceChecked") return checked
  const { subscriptions, opened, reenabled, notes, isFailing, companyId } = checked
  const repairs = yield* withLivePriority(GapReads.readNow(company, companyId))
  const { open } = yield* DeliveryGaps.countOpen(company.name)
  return {
    _tag: "Checked",
    subscriptions,
    opened,
    closed: repairs.closed.toSorted((a, b) => (a.resource < b.resource ? -1 : 1)),
    open,
    reenabled,
    repaired: repairs.repaired,
    notes: [...notes, ...repairs.notes],
    needsEarlyCheck: open > 0 || opened > 0 || isFailing
  } satisfies ReconcileReport
})

/** Where the worker checks a company: {@link checkSource}, and the closing of gaps that other runs have covered. */
export const check = Effect.fn("Reconcile.check")(function* (
  company: Company,
  options: ReconcileOptions,
  memory: EventChecks.Memory
): Effect.fn.Return<
  Pick<ReconcileReport, "reenabled" | "notes" | "needsEarlyCheck">,
  ReconcileError,
  Database | SqlClient.SqlClient
> {
  const checked = yield* checkSource(company, options, memory)
  if (checked._tag !== "SourceChecked") return { reenabled: [], notes: [], needsEarlyCheck: false }
  const { companyId, isFailing, notes, opened, reenabled } = checked
  const { lasting, open } = yield* DeliveryGaps.countOpen(company.name)
  if (open > lasting) yield* GapReads.closeCovered(company, companyId)
  return { reenabled, notes, needsEarlyCheck: opened > 0 || isFailing || lasting > 0 }
})
