/**
 * Delivery gaps that the state of the subscriptions shows.
 *
 * Promise: one transaction stores a snapshot and its gaps. Lasting gaps open or stay open. Gaps whose cause is over end. A
 * repair between two snapshots leaves a gap that has ended.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Subscription, Subscriptions } from "../connector/Subscriptions.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import { control } from "../postgres/Tables.ts"
import { isOurs } from "../subscriptions/DesiredState.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"
import * as DeliveryGaps from "./DeliveryGaps.ts"

type Row = SubscriptionStore.SubscriptionRow

/** A company during a check: which events it wants, and what they are about. */
export interface CheckedCompany {
  readonly name: string
  readonly source: Subscriptions
  /** The address for its deliveries; null accepts any address that ends in `/hooks/` and its name. */
  readonly url: string | null
  /** Every wanted event. */
  readonly events: ReadonlyArray<string>
  /** The synced resource of each wanted event. An event of an unsynced resource cannot leave a gap. */
  readonly wanted: ReadonlyMap<string, string>
  /** The resources with events of removals that no cursor shows. */
  readonly removing: ReadonlySet<string>
  /** Wanted events that the source does not deliver, by the scope that the token lacks. */
  readonly unreadable: ReadonlyMap<string, string>
  readonly isSynced: (resource: string) => boolean
  readonly overlapMs: number
  readonly unobservedMax: Duration.Duration
}

/** The resources of those events that are wanted and delivered. */
export const deliveredResources = (
  { wanted, unreadable }: CheckedCompany,
  events: ReadonlyArray<string>
): ReadonlySet<string> => new Set(events.flatMap((event) => (unreadable.has(event) ? [] : (wanted.get(event) ?? []))))

export interface SnapshotResult {
  /** Those that deliver to us and are not gone. */
  readonly ours: ReadonlyArray<Row>
  /** Whether a subscription is wanted. False when no address is configured, and no subscription ever delivered here. */
  readonly isWanted: boolean
  readonly opened: number
}

/** The rows after a snapshot. */
interface Current {
  /** Those that deliver to us or did. */
  readonly ever: ReadonlyArray<Row>
  /** Those that are not gone. */
  readonly ours: ReadonlyArray<Row>
  readonly active: ReadonlyArray<Row>
  /** When any of them was last healthy. */
  readonly healthyAt: string | null
}

type SnapshotGap = Pick<DeliveryGaps.NewGap, "resource" | "subscriptionId" | "detail" | "beganAt">

const keyOf = ({ resource, subscriptionId }: SnapshotGap) => `${resource} ${subscriptionId}`

const latestHealthyAt = (rows: ReadonlyArray<Row>) =>
  rows.reduce<string | null>(
    (latest, { healthyAt }) => (healthyAt !== null && (latest === null || healthyAt > latest) ? healthyAt : latest),
    null
  )

/** Gaps that last: wanted events that no active subscription delivers. */
const lastingGaps = (
  { url, wanted, unreadable }: CheckedCompany,
  { ever, ours, healthyAt }: Current
): ReadonlyArray<SnapshotGap> =>
  [...(url !== null || ever.length > 0 ? wanted : [])].flatMap(([event, resource]): ReadonlyArray<SnapshotGap> => {
    const missing = { resource, subscriptionId: null, beganAt: healthyAt }
    const scope = unreadable.get(event)
    if (scope !== undefined) {
      const detail = `the token lacks the scope ${scope}, so that the source does not deliver the event`
      return [{ ...missing, detail }]
    }
    const listing = ours.filter(({ events }) => events.includes(event))
    if (listing.some(({ state }) => state === "active")) return []
    // The source does not know the event.
    if (ours.some(({ events, missingEvents }) => !events.includes(event) && !missingEvents.includes(event))) return []
    const [idle] = listing
    if (idle === undefined || (idle.state !== "disabled" && idle.state !== "paused"))
      return [{ ...missing, detail: "no subscription delivers its events" }]
    const { id, state, disabledAt } = idle
    const since = disabledAt === null ? "" : ` since ${disabledAt}`
    const why = state === "paused" ? "paused, so that the source drops its events" : `disabled by the source${since}`
    return [{ resource, subscriptionId: id, detail: `subscription ${id}: ${why}`, beganAt: idle.healthyAt }]
  })

/** Ended gaps: events that active subscriptions did not deliver for a while. Also the subscriptions that caused them. */
const endedGaps = (
  company: CheckedCompany,
  previousRows: ReadonlyArray<SubscriptionStore.LockedRow>,
  { active, healthyAt }: Current
): { readonly gaps: ReadonlyArray<SnapshotGap>; readonly repaired: ReadonlyArray<Row> } => {
  const previousById = new Map(previousRows.map((row) => [row.id, row]))
  /** Events that a subscription delivered all the time. */
  const steady = new Set(
    previousRows
      .filter((row) => row.isEvaluated && row.state === "active" && row.unhealthyReason === null)
      .filter((row) => active.some(({ id, unhealthyReason }) => id === row.id && unhealthyReason === null))
      .flatMap(({ events }) => events)
  )
  const gaps: Array<SnapshotGap> = []
  const repaired: Array<Row> = []
  for (const row of active) {
    const delivered = deliveredResources(
      company,
      row.events.filter((event) => !steady.has(event))
    )
    const add = (gap: Omit<SnapshotGap, "resource">) => {
      for (const resource of delivered) gaps.push({ resource, ...gap })
    }
    const previous = previousById.get(row.id)
    if (previous?.isEvaluated !== true) {
      const detail = `subscription ${row.id} began to deliver; nothing before it was delivered`
      const beganAt = healthyAt === row.healthyAt ? null : healthyAt
      add({ subscriptionId: null, detail, beganAt })
      repaired.push(row)
    } else if (row.unhealthyReason === "paused" || row.unhealthyReason === "disabled") {
      const detail = `subscription ${row.id} was ${row.unhealthyReason} for a while`
      add({ subscriptionId: row.id, detail, beganAt: row.healthyAt })
      repaired.push(row)
    } else if (row.unhealthyReason === "missing") {
      // Gaps of the last snapshots are stored. A snapshot that was not evaluated may have missed any event.
      const detail = `subscription ${row.id} did not deliver everything for a while`
      if (!previous.isUpToDate) add({ subscriptionId: null, detail, beganAt: row.healthyAt })
      if (SubscriptionStore.isHealthy(row)) repaired.push(row)
    }
  }
  return { gaps, repaired }
}

const evaluate = Effect.fnUntraced(function* (
  company: CheckedCompany,
  subscriptions: ReadonlyArray<Subscription>,
  at: string
) {
  const { name, url, events, removing } = company
  const previous = yield* Query.run(SubscriptionStore.lock(name))
  const rows = yield* SubscriptionStore.saveSnapshot(name, subscriptions, url, events, at)
  // Without a configured address, earlier snapshots may have stored the subscriptions of other receivers.
  const ever = rows.filter((row) => url !== null || isOurs(name, null, row.url))
  const ours = ever.filter(({ state }) => state !== "deleted")
  const active = ours.filter(({ state }) => state === "active")
  const current: Current = { ever, ours, active, healthyAt: latestHealthyAt(ever) }
  const ended = endedGaps(company, previous, current)
  const last = new Map(lastingGaps(company, current).map((gap) => [keyOf(gap), gap]))
  const over = new Map(ended.gaps.filter((gap) => !last.has(keyOf(gap))).map((gap) => [keyOf(gap), gap]))
  const complete = (gap: SnapshotGap, lasts: boolean): DeliveryGaps.NewGap => ({
    ...gap,
    cause: "subscription_inactive",
    lasts,
    events: [],
    requiresFullScan: removing.has(gap.resource)
  })
  const lasting = [...last.values()].map((gap) => complete(gap, true))
  const gaps = [...[...over.values()].map((gap) => complete(gap, false)), ...lasting]
  const opened = yield* DeliveryGaps.insertGaps(name, gaps)
  yield* DeliveryGaps.endOthers(
    name,
    lasting,
    ours.map(({ id }) => id)
  )
  for (const row of ended.repaired) {
    if (SubscriptionStore.isHealthy(row)) yield* SubscriptionStore.markHealthy(name, row.id, at)
    else yield* SubscriptionStore.markMissing(name, row.id)
  }
  yield* Query.run(
    control
      .updateTable("tributary.subscriptions")
      .set((of) => ({ gaps_evaluated_at: of.ref("checked_at") }))
      .where("company", "=", name)
      .where((is) => is("gaps_evaluated_at", "is distinct from", is.ref("checked_at")))
  )
  return { ours, isWanted: url !== null || ever.length > 0, opened } satisfies SnapshotResult
})

/** Stores a snapshot of the source's whole list with the gaps that it shows. `at` is the time from before it was read. */
export const saveSnapshot = (
  company: CheckedCompany,
  subscriptions: ReadonlyArray<Subscription>,
  at: string
): Sql.Query<SnapshotResult> => DeliveryGaps.serialized(company.name, evaluate(company, subscriptions, at))
