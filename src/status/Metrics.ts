/**
 * What `/metrics` says, in the text form of Prometheus.
 *
 * Promise: names and help are those of this file and its callers; a label's value never breaks a line.
 */
import type { Metric } from "./CachedMetrics.ts"
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

/** What receiver and inbox count. */
export const ofReceiving = (receiver: IngestStats, inbox: InboxStats): ReadonlyArray<Metric> => [
  {
    name: "tributary_webhook_deliveries_total",
    help: "Deliveries by what became of them; busy: also connections that were not taken.",
    type: "counter",
    samples: Object.entries(receiver.outcomes).map(([outcome, value]) => ({ labels: { outcome }, value }))
  },
  {
    name: "tributary_webhook_last_accepted_timestamp_seconds",
    help: "When the last event of a company was stored.",
    type: "gauge",
    samples: [...receiver.acceptedAt].map(([company, at]) => ({ labels: { company }, value: at / 1000 }))
  },
  {
    name: "tributary_webhook_stale_age_seconds",
    help: "The age of the last delivery that was refused as stale; negative for the future.",
    type: "gauge",
    samples: receiver.staleAgeSeconds === null ? [] : [{ value: receiver.staleAgeSeconds }]
  },
  {
    name: "tributary_webhook_inbox_queue_events",
    help: "Events that wait to be stored.",
    type: "gauge",
    samples: [{ value: inbox.waiting }]
  },
  {
    name: "tributary_webhook_inbox_queue_bytes",
    help: "Bytes of events that wait to be stored.",
    type: "gauge",
    samples: [{ value: inbox.waitingBytes }]
  },
  {
    name: "tributary_webhook_inbox_commits_total",
    help: "Statements that stored events and committed.",
    type: "counter",
    samples: [{ value: inbox.batches }]
  },
  {
    name: "tributary_webhook_inbox_up",
    help: "1 while events can be stored, 0 while they cannot.",
    type: "gauge",
    samples: [{ value: inbox.failing === null && inbox.writersUp > 0 ? 1 : 0 }]
  }
]
