/**
 * What is said of pushes to people: how one ended, how things stand, and what to do next.
 *
 * Promise: every record that was refused or that differs is counted, and what is said of it leads to a command or to a
 * statement that can be run as it stands. What others have written is shown with its control characters escaped.
 */
import type { DryRunReport } from "../outbox/DryRun.ts"
import type { ExistingRow, EnqueueResult } from "../outbox/Enqueue.ts"
import type { Counts, Operation, Problem, RejectedRow } from "../outbox/Push.ts"
import type { DifferingRow, OpenRequest, PushStatus, RejectedBy, OutboxState, Status } from "../status/Outbox.ts"
import * as Output from "./Output.ts"
import { describeOutcomes, rate, resolvedCount } from "./PushProgress.ts"

/** Refused and differing records that are named. */
export const namedMax = 10

export const done: Readonly<Record<Operation, string>> = { create: "created", update: "updated", cancel: "cancelled" }

const records = (count: number): string => `${Output.count(count)} ${count === 1 ? "record" : "records"}`

/** How a person finds a record again. */
const whichOf = (row: Pick<RejectedRow, "line" | "externalid" | "recordId">): string => {
  const parts = [
    row.line === null ? "" : `line ${row.line}`,
    row.externalid === null ? "" : `externalid ${Output.shown(row.externalid)}`,
    row.recordId === null ? "" : `id ${Output.shown(row.recordId)}`
  ].filter((part) => part !== "")
  return parts.length === 0 ? "a record" : parts.join(", ")
}

/** `line 17, amount: …`. */
export const problemLine = ({ line, field, message }: Problem): string => {
  const where = [line === null ? "" : `line ${line}`, field === null ? "" : Output.shown(field)]
    .filter((part) => part !== "")
    .join(", ")
  return where === "" ? Output.shown(message) : `${where}: ${Output.shown(message)}`
}

/** A record that was refused, with every problem that is known of it. */
export const rejectedLines = (refusal: RejectedRow): ReadonlyArray<string> => {
  const { code, field, reason, problems } = refusal
  const first = `  ${whichOf(refusal)}: ${[code, field ?? ""]
    .filter((part) => part !== "")
    .map(Output.shown)
    .join(", ")}`
  const told = problems.map((one) => problemLine({ line: null, ...one }))
  return [
    reason === "" ? first : `${first}: ${Output.shown(reason)}`,
    ...told.filter((text) => !Output.shown(reason).includes(text)).map((text) => `    ${text}`)
  ]
}

export const differenceLines = (one: DifferingRow): ReadonlyArray<string> =>
  one.differences.map(
    ({ field, given, held }) =>
      `  ${whichOf(one)}: ${Output.shown(field)}: given ${Output.shown(given ?? "nothing")}, ` +
      `the source holds ${Output.shown(held ?? "nothing")}`
  )

const codesTold = (codes: ReadonlyArray<RejectedBy>): string =>
  codes.map(({ code, records: count }) => `${Output.count(count)} ${Output.shown(code)}`).join(", ")

/** How a push, or the rows of none, is named on the command line. */
export type Named = { readonly push: bigint } | { readonly resource: string; readonly company: string | null }

export const argument = (named: Named): string =>
  "push" in named
    ? named.push.toString()
    : `${named.resource}${named.company === null ? "" : ` --company ${named.company}`}`

/** What helps against refused records. */
export const refusedHelp = (named: Named): ReadonlyArray<string> => [
  `  what to do: npx tributary push export-refused ${argument(named)} --to refused.ndjson`,
  "              correct the records in that file and push it; or, if the cause was mended at the source:",
  `              npx tributary push retry ${argument(named)} --refused`
]

// ------------------------------------------------------------------------------------------------------ the beginning

const size = (bytes: number): string =>
  bytes < 10_000 ? `${Output.count(bytes)} bytes` : `${Output.count(Math.round(bytes / 100) / 10)} kB`

/** `4 batches`, `3 calls`, `4 batches and 3 single calls`. */
const callsTold = (batches: number, single: number): string => {
  const many = `${Output.count(batches)} ${batches === 1 ? "batch" : "batches"}`
  const one = (kind: string) => `${Output.count(single)} ${kind}${single === 1 ? "" : "s"}`
  return batches === 0 ? one("call") : single === 0 ? many : `${many} and ${one("single call")}`
}

/** What a push would send; `what` says to what. */
export const dryRunLines = ({ given, bytes, calls, first }: DryRunReport, what: string): ReadonlyArray<string> => [
  `${records(given)} would be ${what}: ${callsTold(calls.batch, calls.single)}, ${size(bytes)}`,
  given > first.length ? `the first ${first.length}, as they would be sent:` : "as they would be sent:",
  ...first.map((one) => {
    const which = one.recordId === null ? `externalid ${one.externalid ?? ""}` : `id ${one.recordId}`
    return `  ${Output.shown(which)}: ${Output.shown(one.text)}`
  })
]

/** What was taken into the outbox. */
export const enqueuedLine = ({ pushId, given, known, resumed }: EnqueueResult, what: string): string =>
  resumed
    ? `push ${pushId} to ${what} goes on where it stopped`
    : `push ${pushId} to ${what}: ${records(given)}${known === 0 ? "" : `, ${Output.count(known)} of them pushed before`}`

// ---------------------------------------------------------------------------------------------------------- the end

/** How the pushing of rows ended. */
export interface PushSummary {
  readonly named: Named
  readonly company: string
  readonly resource: string
  readonly status: "done" | "stopped"
  readonly counts: Counts
  /** Records that an earlier push has, with the same values. */
  readonly known: number
  /** What stands of them that are not simply done. */
  readonly knownOpen: ExistingRow
  readonly calls: { readonly sent: number; readonly batches: number }
  readonly durationMs: number
  /** Records that were settled by this run. */
  readonly settledNow: number
  readonly refused: ReadonlyArray<RejectedRow>
  readonly different: ReadonlyArray<DifferingRow>
}

export const summaryLines = (ended: PushSummary): ReadonlyArray<string> => {
  const { named, counts, known, calls, durationMs } = ended
  const what =
    "push" in named
      ? `push ${named.push} to ${ended.resource} of ${ended.company}`
      : `${ended.resource} of ${ended.company}`
  const open = counts.waiting + counts.sending
  const told = [
    describeOutcomes(counts),
    known === 0 ? "" : `${Output.count(known)} pushed before`,
    open === 0 ? "" : `${Output.count(open)} ${open === 1 ? "waits" : "wait"}`
  ].filter((part) => part !== "")
  const asked = calls.sent === 0 ? "no call" : callsTold(calls.batches, calls.sent - calls.batches)
  const speed = rate(ended.settledNow, durationMs)
  return [
    `${what} ${ended.status === "done" ? "is done" : "has stopped"}: ${told.length === 0 ? "nothing to do" : told.join(", ")} ` +
      `(${[asked, Output.duration(durationMs), speed].filter((part) => part !== "").join("; ")})`
  ]
}

/** What became of records that an earlier push has. */
const knownLines = ({ sending, refused, different, pushes }: ExistingRow): ReadonlyArray<string> => {
  const told = [
    refused === 0 ? "" : `${Output.count(refused)} refused`,
    different === 0 ? "" : `${Output.count(different)} with other values at the source`,
    sending === 0 ? "" : `${Output.count(sending)} in requests whose outcome was not known`
  ].filter((part) => part !== "")
  if (told.length === 0) return []
  return [
    `tributary: of the records that were pushed before: ${told.join(", ")}`,
    `  what to do: npx tributary push status${pushes.length === 1 ? ` ${pushes[0]}` : ""} tells of them and what to do`
  ]
}

/** What a person must know beside: for standard error. */
export const remarkLines = (ended: PushSummary): ReadonlyArray<string> => {
  const { counts, refused, different, named, knownOpen } = ended
  const more = (all: number, listed: number) => (all > listed ? [`  and ${records(all - listed)} more`] : [])
  return [
    ...(counts.refused === 0
      ? []
      : [
          `tributary: ${records(counts.refused)} ${counts.refused === 1 ? "was" : "were"} refused:`,
          ...refused.flatMap(rejectedLines),
          ...more(counts.refused, refused.length),
          ...refusedHelp(named)
        ]),
    ...(counts.different === 0
      ? []
      : [
          `tributary: ${records(counts.different)} ${counts.different === 1 ? "has" : "have"} other values at the source than were given:`,
          ...different.flatMap(differenceLines),
          ...more(counts.different, different.length),
          "  what to do: nothing if the source is right; else change them with tributary push --update"
        ]),
    ...knownLines(knownOpen)
  ]
}

// ------------------------------------------------------------------------------------------------------ how it stands

const standingTold = ({ counts, oldestMs }: Pick<OutboxState, "counts" | "oldestMs">): string =>
  [
    counts.waiting === 0 ? "" : `${Output.count(counts.waiting)} ${counts.waiting === 1 ? "waits" : "wait"}`,
    counts.sending === 0 ? "" : `${Output.count(counts.sending)} being sent`,
    oldestMs === null ? "" : `the oldest for ${Output.elapsed(oldestMs)}`,
    describeOutcomes(counts),
    counts.different === 0 ? "" : `${Output.count(counts.different)} with other values at the source`
  ]
    .filter((part) => part !== "")
    .join(", ")

const refusedLine = (codes: ReadonlyArray<RejectedBy>): ReadonlyArray<string> =>
  codes.length === 0 ? [] : [`    refused: ${codesTold(codes)}`]

/** Characters of a source that are shown: a query may be long. */
const sourceMax = 60

const sourceTold = (source: string): string => {
  const text = Output.shown(source)
  return text.length <= sourceMax ? text : `${text.slice(0, sourceMax)}…`
}

const pushLines = (push: PushStatus): ReadonlyArray<string> => {
  const told = standingTold(push)
  const known = push.known === 0 ? "" : `, ${Output.count(push.known)} pushed before`
  const open = push.counts.waiting + push.counts.sending
  // A record that was refused or waited, and was given anew with other values, belongs to the later push.
  const anew = push.records - push.known - open - resolvedCount(push.counts)
  return [
    `  push ${push.push}: ${push.operation} ${push.resource} of ${push.company} from ${sourceTold(push.source)}, ` +
      `begun ${Output.elapsed(push.ageMs)} ago, ${push.state}`,
    `    ${records(push.records)}: ${told === "" ? "nothing to do" : told}${known}` +
      (anew <= 0 ? "" : `, ${Output.count(anew)} given anew in a later push`),
    ...refusedLine(push.refusedBy),
    ...(open === 0 ? [] : [`    what to do: npx tributary push retry ${push.push} goes on where it stopped`]),
    ...(push.counts.refused === 0 ? [] : refusedHelp({ push: push.push }).map((line) => `  ${line}`))
  ]
}

const outboxLines = (standing: OutboxState, companies: ReadonlyArray<string>): ReadonlyArray<string> => [
  `  ${standing.resource} of ${standing.company}: ${standingTold(standing)}`,
  ...refusedLine(standing.refusedBy),
  ...(standing.counts.waiting + standing.counts.sending === 0
    ? []
    : !companies.includes(standing.company)
      ? [
          `    no company of that name is configured, so that nobody sends them; there is ${companies.join(", ") || "none"}`
        ]
      : [
          `    what to do: nothing while npx tributary serve runs; without it: npx tributary push retry ` +
            argument({ resource: standing.resource, company: standing.company })
        ]),
  ...(standing.counts.refused === 0
    ? []
    : refusedHelp({ resource: standing.resource, company: standing.company }).map((line) => `  ${line}`))
]

const callLine = (call: OpenRequest): string =>
  `  ${call.operation} of ${records(call.items)}, ${call.resource} of ${call.company}: open for ${Output.elapsed(call.ageMs)}` +
  (call.failures === 0
    ? ""
    : `, failed ${call.failures} times${call.reason === null ? "" : `: ${Output.shown(call.reason)}`}`)

/** `companies` are those that the configuration names. */
export const statusLines = (
  { pushes, older, outbox, calls }: Status,
  companies: ReadonlyArray<string>
): ReadonlyArray<string> => {
  if (pushes.length === 0 && outbox.length === 0) {
    return ["Nothing has been pushed yet. See: npx tributary push --help"]
  }
  return [
    ...(pushes.length === 0 ? [] : ["Pushes", ...pushes.flatMap(pushLines)]),
    ...(older === 0 ? [] : [`  and ${Output.count(older)} older ones: npx tributary push status PUSH`]),
    ...(outbox.length === 0
      ? []
      : ["Rows of tributary.outbox that belong to no push", ...outbox.flatMap((one) => outboxLines(one, companies))]),
    ...(calls.length === 0 ? [] : ["Requests of which the outcome is not known yet", ...calls.map(callLine)])
  ]
}
