/**
 * Delivery gaps that the state of the subscriptions shows.
 *
 * Promise: one transaction stores a snapshot and its gaps. Lasting gaps open or stay open. Gaps whose cause is over end. A
 * repair between two snapshots leaves a gap that has ended.
 */
import * as Effect from "effect/Effect"
import type { Subscription } from "../connector/Subscriptions.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import * as HookUrl from "../subscriptions/HookUrl.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"
import * as DeliveryGaps from "./DeliveryGaps.ts"
import { resourcesOf } from "./WantedEvents.ts"

type Row = SubscriptionStore.SubscriptionRow

/** A snapshot of a company's subscriptions. */
export interface Snapshot {
  readonly company: string
  /** The address for the company's deliveries; null accepts any address that ends in `/hooks/` and its name. */
  readonly url: string | null
  /** Every wanted event. */
  readonly events: ReadonlyArray<string>
  /** From `WantedEvents.wantedOf`. */
  readonly wanted: ReadonlyMap<string, string>
  /** The resources with events of removals that no cursor shows; default none. */
  readonly removing?: ReadonlySet<string>
  /** Wanted events that the source does not deliver, by the scope that the token lacks. */
  readonly unreadable?: ReadonlyMap<string, string>
  /** The source's whole list. */
  readonly subscriptions: ReadonlyArray<Subscription>
  /** From `SubscriptionStore.now`, read before the source. */
  readonly at: string
}

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

type SnapshotGap = Pick<DeliveryGaps.NewGap, "resource" | "subscriptionId" | "detail" | "beganAt"> & {
  readonly cause: "disabled" | "paused" | "missing"
}

const causes: Readonly<Record<SnapshotGap["cause"], string>> = {
  disabled: "disabled by the source",
  paused: "paused, so that the source drops its events",
  missing: "no subscription delivers its events"
}

const keyOf = ({ resource, cause, subscriptionId }: SnapshotGap) => `${resource} ${cause} ${subscriptionId}`

const latestHealthyAt = (rows: ReadonlyArray<Row>) =>
  rows.reduce<string | null>(
    (latest, { healthyAt }) => (healthyAt !== null && (latest === null || healthyAt > latest) ? healthyAt : latest),
    null
  )

/** Gaps that last: wanted events that no active subscription delivers. */
const lastingGaps = (snapshot: Snapshot, { ever, ours, healthyAt }: Current): ReadonlyArray<SnapshotGap> =>
  [...(snapshot.url !== null || ever.length > 0 ? snapshot.wanted : [])].flatMap(
    ([event, resource]): ReadonlyArray<SnapshotGap> => {
      const missing = { resource, cause: "missing", subscriptionId: null, beganAt: healthyAt } as const
      const scope = snapshot.unreadable?.get(event)
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
        return [{ ...missing, detail: causes.missing }]
      const { id, state, disabledAt } = idle
      const since = state === "disabled" && disabledAt !== null ? ` since ${disabledAt}` : ""
      const detail = `subscription ${id}: ${causes[state]}${since}`
      return [{ resource, cause: state, subscriptionId: id, detail, beganAt: idle.healthyAt }]
    }
  )

/** Ended gaps: events that active subscriptions did not deliver for a while. Also the subscriptions that caused them. */
const endedGaps = (
  { wanted, unreadable }: Snapshot,
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
    const delivered = resourcesOf(
      row.events.filter((event) => !steady.has(event) && unreadable?.has(event) !== true),
      wanted
    )
    const add = (gap: Omit<SnapshotGap, "resource">) => {
      for (const resource of delivered) gaps.push({ resource, ...gap })
    }
    const previous = previousById.get(row.id)
    if (previous?.isEvaluated !== true) {
      const detail = `subscription ${row.id} began to deliver; nothing before it was delivered`
      const beganAt = healthyAt === row.healthyAt ? null : healthyAt
      add({ cause: "missing", subscriptionId: null, detail, beganAt })
      repaired.push(row)
    } else if (row.unhealthyReason === "paused" || row.unhealthyReason === "disabled") {
      const detail = `subscription ${row.id} was ${row.unhealthyReason} for a while`
      add({ cause: row.unhealthyReason, subscriptionId: row.id, detail, beganAt: row.healthyAt })
      repaired.push(row)
    } else if (row.unhealthyReason === "missing") {
      // Gaps of the last snapshots are stored. A snapshot that was not evaluated may have missed any event.
      const detail = `subscription ${row.id} did not deliver everything for a while`
      if (!previous.isUpToDate) add({ cause: "missing", subscriptionId: null, detail, beganAt: row.healthyAt })
      if (SubscriptionStore.isHealthy(row)) repaired.push(row)
    }
  }
  return { gaps, repaired }
}

export const evaluatedStatement = Statement.make({
  name: "mark the gaps of a company as evaluated",
  params: ["text"],
  text: "update tributary.subscriptions set gaps_evaluated_at = checked_at where company = $1 and gaps_evaluated_at is distinct from checked_at"
})

const evaluate = Effect.fnUntraced(function* (snapshot: Snapshot) {
  const { company, at } = snapshot
  const previous = yield* Statement.run(SubscriptionStore.lockStatement, [company])
  const rows = yield* SubscriptionStore.saveSnapshot(company, snapshot.subscriptions, snapshot.url, snapshot.events, at)
  // Without a configured address, earlier snapshots may have stored the subscriptions of other receivers.
  const ever = rows.filter((row) => snapshot.url !== null || HookUrl.isOurs(company, null, row.url))
  const ours = ever.filter(({ state }) => state !== "deleted")
  const active = ours.filter(({ state }) => state === "active")
  const current: Current = { ever, ours, active, healthyAt: latestHealthyAt(ever) }
  const ended = endedGaps(snapshot, previous, current)
  const last = new Map(lastingGaps(snapshot, current).map((gap) => [keyOf(gap), gap]))
  const over = new Map(ended.gaps.filter((gap) => !last.has(keyOf(gap))).map((gap) => [keyOf(gap), gap]))
  const complete = (gap: SnapshotGap, lasts: boolean): DeliveryGaps.NewGap => ({
    ...gap,
    lasts,
    events: [],
    requiresFullScan: snapshot.removing?.has(gap.resource) === true
  })
  const lasting = [...last.values()].map((gap) => complete(gap, true))
  const gaps = [...[...over.values()].map((gap) => complete(gap, false)), ...lasting]
  const opened = yield* DeliveryGaps.insertGaps(company, gaps)
  yield* DeliveryGaps.endOthers(
    company,
    lasting,
    ours.map(({ id }) => id)
  )
  for (const row of ended.repaired) {
    if (SubscriptionStore.isHealthy(row)) yield* Statement.run(SubscriptionStore.markHealthy, [company, row.id, at])
    else yield* Statement.run(SubscriptionStore.markMissing, [company, row.id])
  }
  yield* Statement.run(evaluatedStatement, [company])
  return { ours, isWanted: snapshot.url !== null || ever.length > 0, opened } satisfies SnapshotResult
})

/** Stores a snapshot with the gaps that it shows. */
export const saveSnapshot = (snapshot: Snapshot): Sql.Query<SnapshotResult> =>
  DeliveryGaps.serialized(snapshot.company, evaluate(snapshot))
