/** Metrics of the receiver and the inbox of this process. */
import type { InboxStats } from "../inbox/InboxWriter.ts"
import type { IngestStats } from "../ingest/Ingest.ts"
import { isBounded } from "./FleetMetrics.ts"
import { counter, gauge, type Metric } from "./Metrics.ts"

const inboxUp = (isUp: boolean): Metric =>
  gauge("tributary_webhook_inbox_up", "1 while events can be stored, 0 while they cannot.", [{ value: isUp ? 1 : 0 }])

/** The metrics while the warehouse is unavailable. */
export const unavailable: ReadonlyArray<Metric> = [inboxUp(false)]

export const make = (receiver: IngestStats, inbox: InboxStats): ReadonlyArray<Metric> => [
  counter(
    "tributary_webhook_deliveries_total",
    "Deliveries by outcome; busy also counts connections that were not accepted.",
    Object.entries(receiver.outcomes).map(([outcome, value]) => ({ labels: { outcome }, value }))
  ),
  gauge(
    "tributary_webhook_last_accepted_timestamp_seconds",
    "When the last event of a company was stored; of many companies together, the last of any.",
    isBounded(receiver.acceptedAt.size)
      ? [{ value: [...receiver.acceptedAt.values()].reduce((last, at) => Math.max(last, at), 0) / 1000 }]
      : [...receiver.acceptedAt].map(([company, at]) => ({ labels: { company }, value: at / 1000 }))
  ),
  gauge(
    "tributary_webhook_stale_age_seconds",
    "The age of the last delivery that was refused as stale; negative for the future.",
    receiver.staleAgeSeconds === null ? [] : [{ value: receiver.staleAgeSeconds }]
  ),
  gauge("tributary_webhook_inbox_queue_events", "Events that wait to be stored.", [{ value: inbox.waiting }]),
  gauge("tributary_webhook_inbox_queue_bytes", "Bytes of events that wait to be stored.", [
    { value: inbox.waitingBytes }
  ]),
  counter("tributary_webhook_inbox_commits_total", "Statements that stored events and committed.", [
    { value: inbox.batches }
  ]),
  inboxUp(inbox.failing === null && inbox.writersUp > 0)
]
