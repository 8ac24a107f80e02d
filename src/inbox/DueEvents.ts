/** The due events of a resource that need a read, and the records and parents that they name. */
import * as Effect from "effect/Effect"
import { isEvent } from "../connector/Delivery.ts"
import * as CompareWithRow from "./CompareWithRow.ts"
import * as InboxStore from "./InboxStore.ts"
import type { InboxWorker, ResourceTarget } from "./InboxWorker.ts"
import type { FetchRequest } from "./ResolveFetches.ts"
import type { SyncPosition } from "./SyncPosition.ts"

export interface DueEvents {
  /** The events that need a read. */
  readonly unanswered: ReadonlyArray<InboxStore.ClaimedEvent>
  readonly rows: ReadonlyMap<bigint, CompareWithRow.RowState>
  /** How many events were due, with those that were resolved without a read. */
  readonly count: number
}

/** Events fetched together. */
const fetchMax = 500

/** Fetches due events, and resolves those that need no read. */
export const fetchDueEvents = Effect.fnUntraced(function* (
  worker: InboxWorker,
  { path, companyId, table }: ResourceTarget,
  inFlight: ReadonlySet<string>
) {
  const due = yield* InboxStore.fetchDue({
    company: worker.company.name,
    resource: path,
    inFlight,
    countMax: fetchMax
  })
  const foreign = due.flatMap((event) => foreignEvent(worker, event))
  const foreignIds = new Set(foreign.map(({ id }) => id))
  const own = due.filter(({ id }) => !foreignIds.has(id))
  const rows = yield* CompareWithRow.compareWithRow(table, companyId, own)
  const answered = own.flatMap((event) => answeredByRow(event, rows.get(event.id)))
  yield* InboxStore.resolve([...foreign, ...answered])
  const answeredIds = new Set(answered.map(({ id }) => id))
  const events: DueEvents = { unanswered: own.filter(({ id }) => !answeredIds.has(id)), rows, count: due.length }
  return events
})

/** The resolution of an event of another company; none for the company's own. */
const foreignEvent = (
  { reader, identity: { sourceNumber } }: InboxWorker,
  { id, body }: InboxStore.ClaimedEvent
): ReadonlyArray<InboxStore.Resolution> => {
  const event = reader.read(body)
  if (!isEvent(event) || event.companyId === null || event.companyId === sourceNumber) return []
  const reason =
    `the event is of company ${event.companyId}, and the token of company ${sourceNumber}: ` +
    `the subscription that sends here belongs to another token; delete it, or give its address to the right company`
  return [{ id, state: "dead_letter", reason }]
}

/** The resolution of an event that the warehouse answers already; none where a read is needed. */
const answeredByRow = (
  { id, recordId }: InboxStore.PendingEvent,
  row: CompareWithRow.RowState | undefined
): ReadonlyArray<InboxStore.Resolution> => {
  if (row === undefined) return []
  if (recordId === null) {
    return row.isCovered
      ? [{ id, state: "done", reason: "a scan that began after the event had come has read the resource" }]
      : []
  }
  return row.skipReason === null ? [] : [{ id, state: "done", reason: row.skipReason }]
}

/** One fetch request for each record that the events name. */
export const fetchRequestsOf = (events: ReadonlyArray<InboxStore.ClaimedEvent>): ReadonlyArray<FetchRequest> =>
  [...Map.groupBy(events, ({ recordId }) => recordId)].flatMap(([recordId, group]) =>
    recordId === null ? [] : [{ recordId, events: group.map(InboxStore.withoutBody) }]
  )

/** The parents of events by event, for events that a list of the parent's children answers. */
export const parentsOf = (
  { reader }: InboxWorker,
  { table }: ResourceTarget,
  { fullMsAgo }: SyncPosition,
  events: ReadonlyArray<InboxStore.ClaimedEvent>
): ReadonlyMap<bigint, string> => {
  const { parent, modifiedSince } = table.resource
  const byEvent = new Map<bigint, string>()
  // Before its first full scan a resource is not read in parts.
  if (parent === null || modifiedSince || fullMsAgo === null) return byEvent
  for (const { id, recordId, body } of events) {
    if (recordId === null) continue
    const event = reader.read(body)
    const value = isEvent(event) ? event.value(parent.field) : null
    if (value !== null && InboxStore.isNumber(value)) byEvent.set(id, value)
  }
  return byEvent
}
