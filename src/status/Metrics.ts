/**
 * The body of `/metrics`, in the text format of Prometheus.
 *
 * Promise: names and help are those of this file and its callers; a label's value never breaks a line.
 */
import { counter, gauge, type Metric } from "./CachedMetrics.ts"
import type { InboxStats } from "../inbox/InboxWriter.ts"
import type { IngestStats } from "../ingest/Ingest.ts"

export type { Metric }

const escaped = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

const labelled = (labels: Readonly<Record<string, string>>): string => {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`
}

export const render = (metrics: ReadonlyArray<Metric>): string =>
  metrics
    .map(({ name, help, type, samples }) =>
      [
        `# HELP ${name} ${help.replaceAll("\n", " ")}`,
        `# TYPE ${name} ${type}`,
        ...samples.map(({ labels, value }) => `${name}${labelled(labels ?? {})} ${value}`)
      ].join("\n")
    )
    .join("\n") + "\n"

/** The metrics of the receiver and the inbox of this process. */
export const ofReceiving = (receiver: IngestStats, inbox: InboxStats): ReadonlyArray<Metric> => [
  counter(
    "tributary_webhook_deliveries_total",
    "Deliveries by outcome; busy also counts connections that were not accepted.",
    Object.entries(receiver.outcomes).map(([outcome, value]) => ({ labels: { outcome }, value }))
  ),
  gauge(
    "tributary_webhook_last_accepted_timestamp_seconds",
    "When the last event of a company was stored.",
    [...receiver.acceptedAt].map(([company, at]) => ({ labels: { company }, value: at / 1000 }))
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
  gauge("tributary_webhook_inbox_up", "1 while events can be stored, 0 while they cannot.", [
    { value: inbox.failing === null && inbox.writersUp > 0 ? 1 : 0 }
  ])
]
