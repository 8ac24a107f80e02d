/**
 * The kinds of problems that need a person, as data. The rows of a kind are those of `tributary.problems`
 * (migrations/0010_problems.sql); overview, menu, status, doctor, alerts, metrics and assistants add nothing to them.
 *
 * The order is that of lists: the worst first.
 */
import * as Duration from "effect/Duration"
import * as Record from "effect/Record"

/** From the mildest on. */
export const severities = ["warning", "critical"] as const
export type Severity = (typeof severities)[number]

export interface KindTraits {
  /** What holds, in a word or two beside the subject. */
  readonly word: string
  /** The title of a message about it. */
  readonly title: string
  /** What follows from it, as a sentence without its full stop. */
  readonly consequence: string
  /** What is counted where problems of the kind are counted. */
  readonly unit: readonly [one: string, several: string]
  /** Whether that is the sum of their sizes; otherwise it is the number of the problems. */
  readonly isSized: boolean
  /** It is critical from this level on. */
  readonly criticalFrom: number
  /** How long it must be observed before an alert starts; null: there is no alert about it. */
  readonly startAfter: Duration.Duration | null
  /** The page that shows more: `:company` and `:subject` stand for its own, and a parameter without a value is left out. */
  readonly page: string
  /** The entry of the menu that counts it; null where none does. */
  readonly section: string | null
}

export const kindTraits = {
  installation: {
    word: "no answer",
    title: "Installation does not answer",
    consequence: "nothing of its companies is synced or pushed until it answers",
    unit: ["installation without an answer", "installations without an answer"],
    isSized: false,
    criticalFrom: 1,
    startAfter: Duration.minutes(5),
    page: "/resources?state=failing",
    section: "resources"
  },
  token: {
    word: "token refused",
    title: "Token is refused",
    consequence: "nothing of the company is synced or pushed",
    unit: ["refused token", "refused tokens"],
    isSized: false,
    criticalFrom: 0,
    startAfter: Duration.zero,
    page: "/companies/:company",
    section: "resources"
  },
  failing: {
    word: "failing",
    title: "Sync fails",
    consequence: "the resource is not updated until a run succeeds",
    unit: ["failing resource", "failing resources"],
    isSized: false,
    criticalFrom: 1,
    startAfter: Duration.minutes(5),
    page: "/companies/:company/:subject",
    section: "resources"
  },
  restore: {
    word: "pushes paused",
    title: "Warehouse may have been restored",
    consequence: "pushes are paused, since records that were sent before may be sent again",
    unit: ["pause of all pushes", "pauses of all pushes"],
    isSized: false,
    criticalFrom: 0,
    startAfter: Duration.zero,
    page: "/outbox",
    section: "outbox"
  },
  disk: {
    word: "disk nearly full",
    title: "Disk is nearly full",
    consequence: "a full disk stops Postgres, and with it every sync and every webhook",
    unit: ["nearly full disk", "nearly full disks"],
    isSized: false,
    criticalFrom: 1,
    startAfter: Duration.zero,
    page: "/processes",
    section: "processes"
  },
  receiver: {
    word: "not receiving",
    title: "Events are not received",
    consequence: "changes arrive with the next scheduled run only, and the source may disable the subscription",
    unit: ["company without a receiver", "companies without a receiver"],
    isSized: false,
    criticalFrom: 0,
    startAfter: Duration.minutes(5),
    page: "/webhooks?company=:company",
    section: "webhooks"
  },
  dead_letters: {
    word: "dead letters",
    title: "Events are dead letters",
    consequence: "the changes of these events arrive with the next scheduled run only",
    unit: ["dead letter", "dead letters"],
    isSized: true,
    criticalFrom: 0,
    startAfter: Duration.zero,
    page: "/webhooks/events?company=:company&state=dead_letter",
    section: "webhooks"
  },
  rejected: {
    word: "rejected",
    title: "Pushed records are rejected",
    consequence: "the source does not have these records",
    unit: ["rejected record", "rejected records"],
    isSized: true,
    criticalFrom: 0,
    startAfter: Duration.zero,
    page: "/outbox/rows?company=:company&resource=:subject&state=rejected",
    section: "outbox"
  },
  endpoint: {
    word: "not delivered",
    title: "Endpoint is dead",
    consequence: "the receiver at the endpoint gets no changes",
    unit: ["dead endpoint", "dead endpoints"],
    isSized: false,
    criticalFrom: 0,
    startAfter: Duration.zero,
    page: "/endpoints?endpoint=:subject",
    section: "endpoints"
  },
  undelivered: {
    word: "not delivered",
    title: "Deliveries are dead letters",
    consequence: "the receiver at the endpoint lacks them",
    unit: ["delivery that was not accepted", "deliveries that were not accepted"],
    isSized: true,
    criticalFrom: 0,
    startAfter: Duration.minutes(5),
    page: "/endpoints?endpoint=:subject",
    section: "endpoints"
  },
  invariant: {
    word: "violated",
    title: "Invariant is violated",
    consequence: "figures that are computed from these records may be wrong",
    unit: ["violation", "violations"],
    isSized: true,
    criticalFrom: 1,
    startAfter: Duration.minutes(5),
    page: "/invariants?invariant=:subject",
    section: "invariants"
  },
  late: {
    word: "late",
    title: "Data is late",
    consequence: "queries on the resource answer with older data than its freshness target allows",
    unit: ["late resource", "late resources"],
    isSized: false,
    criticalFrom: 2,
    startAfter: Duration.minutes(5),
    page: "/companies/:company/:subject",
    section: "resources"
  },
  budget: {
    word: "requests paused",
    title: "Requests are paused",
    consequence: "nothing of the company is synced or pushed until the pause ends",
    unit: ["company with paused requests", "companies with paused requests"],
    isSized: false,
    criticalFrom: 1,
    startAfter: Duration.minutes(2),
    page: "/budget?company=:company",
    section: "budget"
  },
  unresolved: {
    word: "unresolved",
    title: "Pushes have no known outcome",
    consequence: "it is not known whether the source has these records",
    unit: ["unresolved push request", "unresolved push requests"],
    isSized: true,
    criticalFrom: 1,
    startAfter: Duration.minutes(5),
    page: "/outbox#calls",
    section: "outbox"
  },
  process: {
    word: "lost process",
    title: "Process is lost",
    consequence: "another process takes over its companies; without one, nothing is synced or received",
    unit: ["lost process", "lost processes"],
    isSized: false,
    criticalFrom: 1,
    startAfter: Duration.minutes(5),
    page: "/processes",
    section: "processes"
  },
  gap: {
    word: "gap lasts",
    title: "Delivery gap is open",
    consequence: "changes of that time may be missing until a run has read the resource after it",
    unit: ["delivery gap", "delivery gaps"],
    isSized: true,
    criticalFrom: 1,
    startAfter: Duration.minutes(10),
    page: "/webhooks?company=:company",
    section: "webhooks"
  },
  subscription: {
    word: "not delivering",
    title: "Subscription does not deliver",
    consequence: "changes arrive with the next scheduled run only",
    unit: ["subscription without deliveries", "subscriptions without deliveries"],
    isSized: true,
    criticalFrom: 1,
    startAfter: Duration.minutes(10),
    page: "/webhooks?company=:company",
    section: "webhooks"
  },
  quarantine: {
    word: "quarantine",
    title: "Records are in quarantine",
    consequence: "the warehouse lacks these records, or has an older version of them",
    unit: ["record in quarantine", "records in quarantine"],
    isSized: true,
    criticalFrom: 2,
    startAfter: Duration.zero,
    page: "/quarantine?company=:company&resource=:subject",
    section: "quarantine"
  },
  unevaluated: {
    word: "not evaluated",
    title: "Invariant cannot be evaluated",
    consequence: "it is not known whether records violate it",
    unit: ["invariant that cannot be evaluated", "invariants that cannot be evaluated"],
    isSized: false,
    criticalFrom: 1,
    startAfter: Duration.minutes(5),
    page: "/invariants?invariant=:subject",
    section: "invariants"
  },
  blocked: {
    word: "blocked",
    title: "Token may not read a resource",
    consequence: "the warehouse lacks its records",
    unit: ["blocked resource", "blocked resources"],
    isSized: false,
    criticalFrom: 1,
    startAfter: null,
    page: "/companies/:company/:subject",
    section: "resources"
  }
} as const satisfies Readonly<Record<string, KindTraits>>

export type Kind = keyof typeof kindTraits
/** The worst first. */
export const kinds = Record.keys(kindTraits)

export const severityOf = (kind: Kind, level: number): Severity =>
  level >= kindTraits[kind].criticalFrom ? "critical" : "warning"

/** The kinds that have alerts. */
export const alertKinds = kinds.filter((kind) => kindTraits[kind].startAfter !== null)
export const startAfterOf = (kind: Kind): Duration.Duration => kindTraits[kind].startAfter ?? Duration.infinity

/** How long a condition must be absent before it ends. */
export const endAfterDefault = Duration.minutes(2)
