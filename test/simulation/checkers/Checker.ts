/**
 * What a checker is given, and what it may say.
 *
 * Promise: a checker sees the warehouse as a second session sees it and the source as its own history tells it, and
 * nothing that the pipeline thinks of itself; it answers null, or one sentence that names the first thing that is wrong.
 */
import type { Subscription } from "../../../connectors/service-v2/reference-server/events/Subscription.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { Attempt } from "../world/Network.ts"
import type { Answer } from "../world/Sender.ts"
import type { Source } from "../world/Source.ts"
import type { Plan } from "../Plan.ts"
import type { Canonical } from "./Canonical.ts"

/** A row of a resource's table. */
export interface Row {
  readonly id: string
  readonly version: number
  readonly op: string
  readonly deleted: boolean
  readonly runId: string | null
  readonly observedAt: string
  readonly value: Canonical
}

/** A checkpoint, as SQL answers it. */
export interface Mark {
  readonly lane: string
  readonly fence: bigint
  readonly cursor: string | null
  /** Changes whenever a scan is completed. */
  readonly completedAt: string
  /** Why everything is to be read again; null when nothing wants it. */
  readonly fullWanted: string | null
  readonly scanKind: string | null
  readonly scanPages: number | null
  /** What shapes a record, as the program has stored it. */
  readonly shape: string | null
}

export interface Run {
  readonly id: string
  readonly company: number
  readonly resource: string
  readonly lane: string
  readonly kind: string
  readonly status: string
  readonly fence: bigint
  readonly pages: number
  readonly records: number
  readonly inserted: number
  readonly updated: number
  readonly unchanged: number
  readonly deleted: number
  readonly quarantined: number
  readonly error: string | null
}

/** A record in quarantine, open. */
export interface Held {
  readonly id: string | null
  readonly bytes: string
  readonly reason: string
}

/** One resource of one company, at one moment. */
export interface Subject {
  readonly company: number
  readonly resource: Resource
  readonly marks: ReadonlyArray<Mark>
  readonly rows: ReadonlyMap<string, Row>
  readonly held: ReadonlyArray<Held>
}

/** After a COMMIT. */
export interface Moment {
  readonly now: number
  readonly subject: Subject
  /** Runs of the resource, newest first, a handful. */
  readonly runs: ReadonlyArray<Run>
}

/** A version of a row, from the history. */
export interface Kept {
  readonly id: string
  readonly version: number
  readonly op: string
  readonly runId: string | null
  readonly validFrom: string
  readonly validTo: string | null
  readonly deleted: boolean
  readonly value: Canonical
}

/** What a process said that it did. */
export interface Said {
  readonly resource: string
  readonly company: number
  readonly status: string
  /** The failure, or the remarks of a run that did not fail. */
  readonly reason: string | null
}

/** After healing. */
export interface Final {
  readonly subjects: ReadonlyArray<Subject>
  readonly runs: ReadonlyArray<Run>
  readonly history: (subject: Subject) => ReadonlyArray<Kept>
  readonly said: ReadonlyArray<Said>
  readonly attempts: ReadonlyArray<Attempt>
  /** Sessions in a transaction, sessions lent, rows of working tables. */
  readonly leftovers: Readonly<Record<string, number>>
  /** Ids that only a full scan can mend: removed, without a stamp, late beyond the bound. */
  readonly excused: ReadonlySet<string>
  /** Ids whose value cannot be landed as it stands. */
  readonly odd: ReadonlySet<string>
  /** Versions went back, and nobody has said that this is right: the runs that see it are not green. */
  readonly isDisputed: boolean
  /** Whether a full scan was made after healing. */
  readonly full: boolean
  /** Cycles since healing. */
  readonly cycles: number
}

/** An event of the inbox, as SQL answers it. */
export interface Entry {
  readonly number: string
  readonly company: number
  readonly eventId: string
  readonly type: string
  readonly resource: string | null
  readonly recordId: string | null
  readonly state: string
  readonly reason: string | null
  /** The run that read what it asked for; null when none did. */
  readonly runId: string | null
  /** When it fired, in microseconds by the source's clock; null when it does not say. */
  readonly occurredAt: number | null
}

/** A receiver has just answered a delivery. */
export interface Answered {
  readonly answer: Answer
  /** What stands in the inbox under the event's number, in that very moment. */
  readonly entries: ReadonlyArray<Entry>
}

/** The inbox after a commit. */
export interface Stored {
  readonly now: number
  readonly entries: ReadonlyArray<Entry>
  /** Of the resources whose events were settled by it. */
  readonly subjects: ReadonlyArray<Subject>
}

/** A process that nobody watches enables a subscription that the source had given up. */
export interface Revived {
  readonly company: number
  readonly disabledAt: number
}

/** A process makes a subscription although the warehouse knows of one that stands. */
export interface Doubled {
  readonly company: number
  readonly by: string
}

/** After healing, when everything has come that will come, and before any sync. */
export interface Drained {
  readonly subjects: ReadonlyArray<Subject>
  readonly entries: ReadonlyArray<Entry>
  readonly gaps: ReadonlyArray<string>
  readonly excused: ReadonlySet<string>
  readonly odd: ReadonlySet<string>
  /** Ids that can be listed and never read. */
  readonly poison: ReadonlySet<string>
  /** What the source thinks of its subscriptions. */
  readonly subscriptions: ReadonlyArray<Subscription>
  /** Whether nothing but webhooks has moved data since the first sync. */
  readonly alone: boolean
}

export interface Checker {
  readonly name: string
  /** What must hold, with the number by which it is spoken of. */
  readonly holds: string
  readonly landed?: (moment: Moment) => string | null
  readonly healed?: (final: Final) => string | null
  /** Of a source that was restored: after a full scan, before an operator accepts it. */
  readonly disputed?: (final: Final) => string | null
  /** Of webhooks: each answer, each commit, and the end. */
  readonly answered?: (given: Answered) => string | null
  readonly stored?: (given: Stored) => string | null
  readonly revived?: (given: Revived) => string | null
  readonly doubled?: (given: Doubled) => string | null
  readonly drained?: (given: Drained) => string | null
}

/** The latest loss of a table: dropped, truncated or made anew; or the warehouse was restored. */
export interface Loss {
  readonly at: number
  /** How many losses of the table there were, with this one. */
  readonly count: number
  /** How many of them took rows: a restore of the control plane alone takes none. */
  readonly ofRows: number
  /** Whether a loss took rows and left their history: a restore takes both back to one moment. */
  readonly isTorn: boolean
  /** The latest run in the ledger at the loss; after a restore of the ledger, the latest that is left. */
  readonly lastRun: bigint
  /** Whether a run that began, or landed, after the loss has ended with success: then every row must be back. */
  readonly isMended: boolean
}

/** What was lost in the warehouse (class T1), or restored (T2). */
export interface LossLedger {
  /** Null where the table was never lost. */
  readonly latest: (company: number, resource: string) => Loss | null
  /** Rows that a person has deleted, by {@link keyOf}: only a full scan is expected to find that. */
  readonly deletedByHand: ReadonlySet<string>
  /** How often the ledger of runs and the checkpoints were restored. */
  readonly ledgers: number
  /** The latest run that was in the ledger before it was restored: ids up to it may be given twice. */
  readonly lastRunBefore: bigint
}

export const noLosses: LossLedger = { latest: () => null, deletedByHand: new Set(), ledgers: 0, lastRunBefore: 0n }

export interface Setting {
  readonly source: Source
  readonly plan: Plan
  readonly canonical: (company: number, resource: Resource, text: string) => Canonical
  /** Ids that became visible later than any overlap reaches. */
  readonly overBound: ReadonlySet<string>
  /** Ids that nothing announces and no cursor brings, as {@link Final.excused}. */
  readonly excused: ReadonlySet<string>
  readonly losses: LossLedger
  /** Whether an operator has accepted that the source was restored. */
  readonly isRestoreAccepted: () => boolean
}

export type CheckerOf = (setting: Setting) => Checker

/** Microseconds since 1970 of a time as the warehouse tells it. */
export const microsOf = (text: string): number => {
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? ""
  const seconds = Date.parse(
    text
      .replace(/\.\d+/, "")
      .replace(" ", "T")
      .replace(/([+-]\d\d)$/, "$1:00")
  )
  return seconds * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6))
}

/** How an id is named across resources. */
export const keyOf = (company: number, resource: string, id: string): string => `${company}/${resource}/${id}`

/**
 * Whether a version has a later stamp than another one. Where the source committed it earlier, the source contradicts itself
 * (S18), and the version with the later stamp wins.
 */
export const isStampedLater = (
  version: { readonly stamp: number | null } | undefined,
  other: { readonly stamp: number | null } | undefined
): boolean => (version?.stamp ?? null) !== null && (other?.stamp ?? null) !== null && version!.stamp! > other!.stamp!
