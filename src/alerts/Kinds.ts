/** The kinds of alert conditions as data: consequence, levels, severity, and the times before a start. */
import * as Duration from "effect/Duration"
import * as Record from "effect/Record"

/** From the mildest on. */
export const severities = ["warning", "critical"] as const
export type Severity = (typeof severities)[number]

export interface KindTraits {
  /** The title of a message. */
  readonly title: string
  /** What follows from the condition, as a sentence without its full stop. */
  readonly consequence: string
  /** The condition is critical from this level on. */
  readonly criticalFrom: number
  /** How long it must be observed before it starts. */
  readonly startAfter: Duration.Duration
}

export const kindTraits = {
  late: {
    title: "Data is late",
    consequence: "queries on the resource answer with older data than its freshness target allows",
    criticalFrom: 2,
    startAfter: Duration.minutes(5)
  },
  failing: {
    title: "Sync fails",
    consequence: "the resource is not updated until a run succeeds",
    criticalFrom: 1,
    startAfter: Duration.minutes(5)
  },
  installation: {
    title: "Installation does not answer",
    consequence: "nothing of its companies is synced or pushed until it answers",
    criticalFrom: 1,
    startAfter: Duration.minutes(5)
  },
  token: {
    title: "Token is refused",
    consequence: "nothing of the company is synced or pushed",
    criticalFrom: 0,
    startAfter: Duration.zero
  },
  quarantine: {
    title: "Records are in quarantine",
    consequence: "the warehouse lacks these records, or has an older version of them",
    criticalFrom: 2,
    startAfter: Duration.zero
  },
  gap: {
    title: "Delivery gap is open",
    consequence: "changes of that time may be missing until a run has read the resource after it",
    criticalFrom: 1,
    startAfter: Duration.minutes(10)
  },
  endpoint: {
    title: "Endpoint is dead",
    consequence: "the receiver at the endpoint gets no changes",
    criticalFrom: 0,
    startAfter: Duration.zero
  },
  budget: {
    title: "Requests are paused",
    consequence: "nothing of the company is synced or pushed until the pause ends",
    criticalFrom: 1,
    startAfter: Duration.minutes(2)
  },
  disk: {
    title: "Disk is nearly full",
    consequence: "a full disk stops Postgres, and with it every sync and every webhook",
    criticalFrom: 1,
    startAfter: Duration.zero
  },
  restore: {
    title: "Warehouse may have been restored",
    consequence: "pushes are paused, since records that were sent before may be sent again",
    criticalFrom: 0,
    startAfter: Duration.zero
  },
  invariant: {
    title: "Invariant is violated",
    consequence: "figures that are computed from these records may be wrong",
    criticalFrom: 1,
    startAfter: Duration.minutes(5)
  }
} as const satisfies Readonly<Record<string, KindTraits>>

export type Kind = keyof typeof kindTraits
export const kinds = Record.keys(kindTraits)

export const severityOf = (kind: Kind, level: number): Severity =>
  level >= kindTraits[kind].criticalFrom ? "critical" : "warning"

/** How long a condition must be absent before it ends. */
export const endAfterDefault = Duration.minutes(2)
