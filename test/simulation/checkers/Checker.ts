/**
 * The interface of checkers: what a checker sees and returns.
 *
 * Promise: a checker sees the warehouse as a second session sees it, and the source by the source's own history. It
 * sees no state of the pipeline. It returns null, or one sentence that names the first violation.
 */
import type { Subscription } from "../../../connectors/service-v2/reference-server/events/Subscription.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { Failure } from "../../../src/sync/Outcome.ts"
import type { ResourceReport } from "../../../src/verify/Report.ts"
import type { Attempt } from "../world/Network.ts"
import type { Answer } from "../world/Sender.ts"
import type { Source } from "../world/Source.ts"
import type { Plan } from "../Plan.ts"
import { type Canonical, nothing } from "./Canonical.ts"

/** A row of a resource's table. */
export interface Row {
  readonly id: string
  readonly version: number
  readonly op: string
  readonly deleted: boolean
  readonly runId: string | null
  readonly observedAt: string
  /** Without the members that ever have a privacy rule: what is compared at each commit. */
  readonly value: Canonical
  /** With all members, some of them as privacy rules keep them: what is compared after healing. */
  readonly kept: Canonical
}

/** A checkpoint, as SQL returns it. */
export interface Mark {
  readonly lane: string
  readonly fence: bigint
  readonly cursor: string | null
  /** Changes whenever a scan is completed. */
  readonly completedAt: string
  /** Why a full scan is needed; null when none is. */
  readonly fullScanReason: string | null
  readonly scanKind: string | null
  readonly scanPages: number | null
  /** The shape of a record, as the program stored it. */
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
  /** When the last run that found nothing began, in milliseconds by the warehouse; null for any other run. */
  readonly quietAt: number | null
}

/** An open record in quarantine. */
export interface QuarantinedRecord {
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
  readonly quarantine: ReadonlyArray<QuarantinedRecord>
}

/** What the change feed has shown of a table, and what the table has. */
export interface Fed {
  /** Of each live record, by id: its version and its JSON. */
  readonly rows: ReadonlyMap<string, string>
  readonly shown: ReadonlyMap<string, string>
  /** Whether every run so far wrote the feed, as the checkpoints say. */
  readonly isFed: boolean
  /** Whether the changes of a table whose view was dropped wait, and those after them. */
  readonly isBlocked: boolean
  /** How often the reader's position was lost, by a restore. */
  readonly restarts: number
}

/** After a COMMIT. */
export interface Moment {
  readonly now: number
  readonly subject: Subject
  /** The latest runs of the resource, newest first. */
  readonly runs: ReadonlyArray<Run>
  readonly fed: Fed
}

/** A version of a row, from the history. */
export interface RowVersion {
  readonly id: string
  readonly version: number
  readonly op: string
  readonly runId: string | null
  readonly validFrom: string
  readonly validTo: string | null
  readonly deleted: boolean
  readonly value: Canonical
}

/** The result of a resource, as a process reported it. */
export interface ResourceResult {
  readonly resource: string
  readonly company: number
  readonly status: string
  /** The failure, or the notes of a run that did not fail. */
  readonly reason: string | null
}

/** What an as-of query shows of a moment at which the warehouse was seen; a message where it fails. */
export interface Recollection {
  readonly company: number
  readonly resource: Resource
  /** The position of the feed, and the rows that the table had then. */
  readonly position: string
  readonly rows: ReadonlyMap<string, Row>
  readonly asOf: ReadonlyArray<Row> | string
  /** The warehouse's time of that moment, and the ids that a query of it shows. */
  readonly time: string
  readonly idsAtTime: ReadonlyArray<string> | string
}

/** After healing. */
export interface Final {
  /** Moments of the safety phase, as an as-of query shows them now. */
  readonly recollections: ReadonlyArray<Recollection>
  readonly subjects: ReadonlyArray<Subject>
  readonly runs: ReadonlyArray<Run>
  readonly history: (subject: Subject) => ReadonlyArray<RowVersion>
  readonly fed: (subject: Subject) => Fed
  readonly said: ReadonlyArray<ResourceResult>
  readonly attempts: ReadonlyArray<Attempt>
  /** Sessions in a transaction, sessions in use, rows of working tables. */
  readonly leftovers: Readonly<Record<string, number>>
  /** Ids that only a full scan can repair: removed, without a stamp, or late beyond the bound. */
  readonly excused: ReadonlySet<string>
  /** Ids whose value cannot be landed as it was sent. */
  readonly odd: ReadonlySet<string>
  /** Versions went back and no operator has accepted it. The runs that see it must not report done. */
  readonly isDisputed: boolean
  /** Whether a full scan was made after healing. */
  readonly full: boolean
  /** Cycles since healing. */
  readonly cycles: number
  /** Values that people wrote, each with a table that has it. Empty without privacy rules. */
  readonly written: ReadonlyArray<readonly [table: string, value: WrittenValue]>
}

/** A value that no other record has, and that is recognized wherever it is stored. */
export interface WrittenValue {
  readonly text: string
  readonly resource: Resource
  /** The names of the member that has it, and of those that this member is in. */
  readonly names: ReadonlyArray<string>
}

/** An event of the inbox, as SQL returns it. */
export interface Entry {
  readonly number: string
  readonly company: number
  readonly eventId: string
  readonly type: string
  readonly resource: string | null
  readonly recordId: string | null
  readonly state: string
  readonly reason: string | null
  /** The run that read the event's record; null when none did. */
  readonly runId: string | null
  /** When it fired, in microseconds by the source's clock; null when the event has no time. */
  readonly occurredAt: number | null
}

/** The moment after a receiver answered a delivery. */
export interface AnswerMoment {
  readonly answer: Answer
  /** The inbox rows with the event's id at that moment. */
  readonly entries: ReadonlyArray<Entry>
}

/** The inbox after a commit. */
export interface InboxMoment {
  readonly now: number
  readonly entries: ReadonlyArray<Entry>
  /** The resources whose events the commit resolved. */
  readonly subjects: ReadonlyArray<Subject>
}

/** A process, not a person, has enabled a subscription that the source had disabled. */
export interface ReenabledSubscription {
  readonly company: number
  /** When it was disabled. If that was after the process requested its test delivery: when it was disabled before. */
  readonly disabledAt: number
}

/** A process creates a subscription although the warehouse knows an existing one. */
export interface SecondSubscription {
  readonly company: number
  readonly by: string
}

/** After healing, when all deliveries have arrived, and before any sync. */
export interface DrainMoment {
  readonly subjects: ReadonlyArray<Subject>
  readonly entries: ReadonlyArray<Entry>
  readonly gaps: ReadonlyArray<string>
  readonly excused: ReadonlySet<string>
  readonly odd: ReadonlySet<string>
  /** Ids that can be listed but never read. */
  readonly poison: ReadonlySet<string>
  /** The subscriptions at the source. */
  readonly subscriptions: ReadonlyArray<Subscription>
  /** Whether only webhooks have moved data since the first sync. */
  readonly alone: boolean
}

/** The warehouse claims that events prove a resource fresh. */
export interface ProofMoment {
  /** In microseconds. */
  readonly provenAt: number
  readonly subject: Subject
  /** The records whose events are in the inbox and not processed; null is an event of the whole resource. */
  readonly waiting: ReadonlySet<string | null>
  /** Ids whose only event was lost. */
  readonly unheard: ReadonlySet<string>
  /** Times in which a subscription dropped events, and that no check could see. */
  readonly hiddenSpans: ReadonlyArray<readonly [from: number, to: number]>
}

/** A process has ended a sync. */
export interface SyncMoment {
  readonly results: ReadonlyArray<{
    readonly resource: string
    readonly company: number
    readonly status: string
    readonly failure: Pick<Failure, "kind" | "message" | "stops"> | null
  }>
  /** The requests of this process. */
  readonly attempts: ReadonlyArray<Attempt>
}

/** `tributary verify` has compared every company. */
export interface VerifyMoment {
  readonly reports: ReadonlyArray<Pick<ResourceReport, "companyId" | "resource" | "status" | "findings" | "failure">>
  /** What the checkers see as different, by {@link keyOf}. */
  readonly differences: ReadonlyMap<string, string>
}

/** The versions of rows, by {@link keyOf}. */
export type Versions = ReadonlyMap<string, number>

/** A decision was attempted on a session of the reader. */
export interface DecisionMoment {
  /** Whether the snapshot is older than the decision's mark. */
  readonly isBehind: boolean
  /** Why the session was refused; null when it was not. */
  readonly refusal: string | null
  /** The committed rows at the mark, and now. */
  readonly committed: Versions
  readonly current: Versions
  /** What the decision saw; null when it was refused. */
  readonly shown: Versions | null
}

export interface Checker {
  readonly name: string
  /** The promise, with its number. */
  readonly holds: string
  readonly landed?: (moment: Moment) => string | null
  readonly healed?: (final: Final) => string | null
  /** At the end, where companies have equal numbers at the source. */
  readonly verified?: (moment: VerifyMoment) => string | null
  /** For a restored source: after a full scan, before an operator accepts it. */
  readonly disputed?: (final: Final) => string | null
  /** At the end of each sync. */
  readonly reported?: (moment: SyncMoment) => string | null
  /** After each attempt to decide something on a session of the reader. */
  readonly decided?: (moment: DecisionMoment) => string | null
  /** For webhooks: each answer, each commit, and the end. */
  readonly answered?: (moment: AnswerMoment) => string | null
  readonly stored?: (moment: InboxMoment) => string | null
  readonly reenabled?: (subscription: ReenabledSubscription) => string | null
  readonly doubled?: (subscription: SecondSubscription) => string | null
  readonly drained?: (moment: DrainMoment) => string | null
  readonly proved?: (moment: ProofMoment) => string | null
}

/** The latest loss of a table: dropped, truncated or created anew; or the warehouse was restored. */
export interface Loss {
  readonly at: number
  /** Number of losses of the table, including this one. */
  readonly count: number
  /** Number of losses that removed rows. A restore of the control plane alone removes none. */
  readonly ofRows: number
  /** Whether a loss removed rows and left their history. A restore resets both to one moment. */
  readonly isTorn: boolean
  /** The latest run in the ledger at the loss; after a restore of the ledger, the latest that is left. */
  readonly lastRun: bigint
  /** Whether a run that began, or landed, after the loss has succeeded. Then every row must be restored. */
  readonly isRepaired: boolean
}

/** The losses (class T1) and restores (T2) of the warehouse. */
export interface LossLedger {
  /** Null when the table was never lost. */
  readonly latest: (company: number, resource: string) => Loss | null
  /** Whether versions of a resource were lost or restored without its rows, or the rows without their versions. */
  readonly hasHoles: (company: number, resource: string) => boolean
  /** Rows that a person has deleted, by {@link keyOf}. Only a full scan is expected to find them. */
  readonly deletedByHand: ReadonlySet<string>
  /** Number of restores of the ledger of runs and the checkpoints. */
  readonly ledgers: number
  /** The latest run in the ledger before its restore. Ids up to it may be used twice. */
  readonly lastRunBefore: bigint
}

export const noLosses: LossLedger = {
  latest: () => null,
  hasHoles: () => false,
  deletedByHand: new Set(),
  ledgers: 0,
  lastRunBefore: 0n
}

export interface Setting {
  readonly source: Source
  readonly plan: Plan
  readonly canonical: (company: number, resource: Resource, text: string) => Canonical
  /** As {@link Setting.canonical}, to be compared with {@link Row.kept}. */
  readonly kept: (company: number, resource: Resource, text: string) => Canonical
  /** Ids that became visible later than any overlap reaches. */
  readonly overBound: ReadonlySet<string>
  /** Ids that no event and no cursor reports, as {@link Final.excused}. */
  readonly excused: ReadonlySet<string>
  readonly losses: LossLedger
  /** Whether an operator has accepted the restore of the source. */
  readonly isRestoreAccepted: () => boolean
  /** The earliest time that the warehouse's clock, which may be set, may have shown as this time, in microseconds. */
  readonly earliestOf: (shown: number) => number
}

export type CheckerOf = (setting: Setting) => Checker

/** The microseconds since 1970 of a time in the warehouse's format. */
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

/** The key of an id across resources. */
export const keyOf = (company: number, resource: string, id: string): string => `${company}/${resource}/${id}`

/**
 * Whether a version has a later stamp than another one. Where the source committed it earlier, the source contradicts itself
 * (S18), and the version with the later stamp wins.
 */
export const isStampedLater = (
  version: { readonly stamp: number | null } | undefined,
  other: { readonly stamp: number | null } | undefined
): boolean => (version?.stamp ?? null) !== null && (other?.stamp ?? null) !== null && version!.stamp! > other!.stamp!

/** A version of a row, and the begin of the read that brought it. */
interface ReadVersion {
  readonly deleted: boolean
  readonly value: Canonical
  readonly beganAt: string
}

/**
 * Whether the read of `version` wins over the read of `before` although the source had replaced it by `next`. The later
 * begin wins where one of the two is a tombstone, or where they show the same time of change, or none. Of two reads that
 * overlap, the winner may have been answered earlier: it shows the record as it was when the read began. Where the clock
 * is set, the begins are not compared.
 */
export const mayPrecede = (
  { plan, earliestOf }: Pick<Setting, "plan" | "earliestOf">,
  resource: Resource,
  before: ReadVersion | undefined,
  version: ReadVersion,
  next: { readonly at: number } | undefined
): boolean => {
  if (before === undefined || next === undefined) return false
  const place = resource.fields.findIndex(({ name }) => name === resource.roles.modifiedAt)
  const [kept, sent] = [before.value.fields[place] ?? nothing, version.value.fields[place] ?? nothing]
  const isByBegin = before.deleted || version.deleted || kept === nothing || sent === nothing || kept === sent
  const began = microsOf(version.beganAt)
  const isLater = plan.later.clockStep !== 0 || began >= microsOf(before.beganAt)
  return isByBegin && isLater && next.at >= earliestOf(began)
}
