/**
 * The text of `tributary push`: dry runs, results, the state of the outbox, and remedies.
 *
 * Promise: every record that was rejected or that differs is counted. Every remedy is a command or a statement that runs
 * as it is written. Control characters of foreign text are escaped.
 */
import type { DryRunReport } from "../outbox/DryRun.ts"
import type { EnqueueResult, OpenDuplicates } from "../outbox/Enqueue.ts"
import {
  type Counts,
  type Operation,
  outcomes,
  type Problem,
  pushStateOf,
  type RejectedRow,
  type Rows
} from "../outbox/Push.ts"
import type { RehearsalReport, RehearsedRejection } from "../outbox/Rehearse.ts"
import type { DifferingRow, OpenRequest, OutboxState, PushStatus, RejectedBy, Status } from "../status/Outbox.ts"
import type { Failure } from "../sync/Outcome.ts"
import * as Output from "./Output.ts"
import { describeOutcomes, openCount, rate, resolvedCount } from "./PushProgress.ts"

/** Rejected and differing records that are named. */
export const namedMax = 10

export const participles: Readonly<Record<Operation, string>> = {
  create: "created",
  update: "updated",
  cancel: "cancelled"
}

const records = (count: number): string => Output.plural(count, "record")

/** The identity of a record, for a person. */
const describeRow = (row: Pick<RejectedRow, "line" | "externalid" | "recordId">): string => {
  const text = Output.list([
    row.line === null ? "" : `line ${row.line}`,
    row.externalid === null ? "" : `externalid ${Output.shown(row.externalid)}`,
    row.recordId === null ? "" : `id ${Output.shown(row.recordId)}`
  ])
  return text === "" ? "a record" : text
}

/** `line 17, amount: …`. */
export const problemLine = ({ line, field, message }: Problem): string =>
  Output.list(
    [
      Output.list([line === null ? "" : `line ${line}`, field === null ? "" : Output.shown(field)]),
      Output.shown(message)
    ],
    ": "
  )

/** A rejected record with every problem. */
const rejectedLines = (row: RehearsedRejection): ReadonlyArray<string> => {
  const reason = Output.shown(row.reason)
  return [
    Output.list([`  ${describeRow(row)}`, Output.list([row.code, row.field ?? ""].map(Output.shown)), reason], ": "),
    ...row.problems
      .map((problem) => problemLine({ line: null, ...problem }))
      .flatMap((text) => (reason.includes(text) ? [] : [`    ${text}`]))
  ]
}

const differenceLines = (row: DifferingRow): ReadonlyArray<string> =>
  row.differences.map(
    ({ field, given, current }) =>
      `  ${describeRow(row)}: ${Output.shown(field)}: given ${Output.shown(given ?? "nothing")}, ` +
      `the source holds ${Output.shown(current ?? "nothing")}`
  )

/** Rows as an argument of the command line. */
export const argument = (rows: Rows): string =>
  "push" in rows ? rows.push.toString() : `${rows.resource} --company ${rows.company}`

/** The remedy for rejected records. */
const rejectedRemedy = (rows: Rows): ReadonlyArray<string> => [
  `  what to do: tributary push export-rejected ${argument(rows)} --to rejected.ndjson`,
  "              correct the records in that file and push it; or, if the cause is fixed at the source:",
  `              tributary push retry ${argument(rows)} --rejected`
]

// ---------------------------------------------------------------------------------------------------------- the input

const size = (bytes: number): string =>
  bytes < 10_000 ? `${Output.count(bytes)} bytes` : `${Output.count(Math.round(bytes / 100) / 10)} kB`

/** `4 batches`, `3 calls`, `4 batches and 3 single calls`. */
const describeCalls = (batches: number, single: number): string =>
  batches === 0
    ? Output.plural(single, "call")
    : Output.list(
        [Output.plural(batches, "batch", "batches"), single === 0 ? "" : Output.plural(single, "single call")],
        " and "
      )

/** The requests of a push; `target` names the operation, the resource and the company. */
export const dryRunLines = ({ given, bytes, calls, first }: DryRunReport, target: string): ReadonlyArray<string> => [
  `${records(given)} would be ${target}: ${describeCalls(calls.batch, calls.single)}, ${size(bytes)}`,
  given > first.length ? `the first ${first.length}, as they would be sent:` : "as they would be sent:",
  ...first.map(({ externalid, recordId, text }) => {
    const identity = recordId === null ? `externalid ${externalid ?? ""}` : `id ${recordId}`
    return `  ${Output.shown(identity)}: ${Output.shown(text)}`
  })
]

/** The result of a rehearsal: a line, then the records that were rejected. */
export const rehearsalLines = (report: RehearsalReport, target: string): ReadonlyArray<string> => {
  const { different, rejected, uncertain } = report
  const counts = Output.list([
    ...outcomes.map((outcome) => Output.counted(report.outcomes[outcome] ?? 0, outcome)),
    Output.counted(different, "with other values than were given"),
    Output.counted(rejected.length, "rejected"),
    Output.counted(uncertain.length, "not known")
  ])
  const listed = (rows: ReadonlyArray<RehearsedRejection>) => [
    ...rows.slice(0, namedMax).flatMap(rejectedLines),
    ...(rows.length > namedMax ? [`  and ${Output.count(rows.length - namedMax)} more; --json lists all`] : [])
  ]
  return [
    `rehearsal of ${target}: ${counts}`,
    ...listed(rejected),
    ...(uncertain.length > 0 ? ["not known, since the warehouse lacks a resource that they refer to:"] : []),
    ...listed(uncertain)
  ]
}

/** The enqueued records in one line. */
export const enqueuedLine = ({ pushId, given, known, resumed }: EnqueueResult, target: string): string =>
  resumed
    ? `push ${pushId} to ${target} continues where it stopped`
    : `push ${pushId} to ${target}: ${Output.list([records(given), Output.counted(known, "of them pushed before")])}`

// ---------------------------------------------------------------------------------------------------------- the result

/** How the push of rows ended. */
export interface PushResult {
  readonly rows: Rows
  readonly company: string
  readonly resource: string
  readonly status: "done" | "stopped"
  readonly counts: Counts
  /** Records that an earlier push has, with the same values. */
  readonly known: number
  /** Those of them that are not done. */
  readonly knownOpen: OpenDuplicates
  readonly calls: { readonly sent: number; readonly batches: number }
  readonly durationMs: number
  /** Records that this run resolved. */
  readonly resolvedNow: number
  readonly rejected: ReadonlyArray<RejectedRow>
  readonly different: ReadonlyArray<DifferingRow>
  readonly failure: Failure | null
}

export const summaryLine = (result: PushResult): string => {
  const { calls, company, counts, durationMs, known, resolvedNow, resource, rows, status } = result
  const open = openCount(counts)
  const target = `${"push" in rows ? `push ${rows.push} to ` : ""}${resource} of ${company}`
  const outcome = Output.list([
    describeOutcomes(counts),
    Output.counted(known, "pushed before"),
    Output.counted(open, open === 1 ? "waits" : "wait")
  ])
  const sent = calls.sent === 0 ? "no call" : describeCalls(calls.batches, calls.sent - calls.batches)
  const cost = Output.list([sent, Output.duration(durationMs), rate(resolvedNow, durationMs)], "; ")
  return `${target} is ${pushStateOf(status === "done", counts.rejected)}: ${outcome === "" ? "nothing to do" : outcome} (${cost})`
}

/** The state of records that an earlier push has. */
const duplicateLines = ({ sending, rejected, different, pushes }: OpenDuplicates): ReadonlyArray<string> => {
  const text = Output.list([
    Output.counted(rejected, "rejected"),
    Output.counted(different, "with other values at the source"),
    Output.counted(sending, "in requests whose outcome was not known")
  ])
  if (text === "") return []
  return [
    `tributary: of the records that were pushed before: ${text}`,
    `  what to do: tributary push status${pushes.length === 1 ? ` ${pushes[0]}` : ""} shows them and what to do`
  ]
}

/** The problems that a person resolves, for standard error. */
export const remarkLines = ({ counts, different, knownOpen, rejected, rows }: PushResult): ReadonlyArray<string> => {
  const more = (all: number, listed: number) => (all > listed ? [`  and ${records(all - listed)} more`] : [])
  return [
    ...(counts.rejected === 0
      ? []
      : [
          `tributary: ${Output.plural(counts.rejected, "record was", "records were")} rejected:`,
          ...rejected.flatMap(rejectedLines),
          ...more(counts.rejected, rejected.length),
          ...rejectedRemedy(rows)
        ]),
    ...(counts.different === 0
      ? []
      : [
          `tributary: ${Output.plural(counts.different, "record has", "records have")} other values at the source than were given:`,
          ...different.flatMap(differenceLines),
          ...more(counts.different, different.length),
          "  what to do: nothing if the source is right; else change them with tributary push --update"
        ]),
    ...duplicateLines(knownOpen)
  ]
}

// ----------------------------------------------------------------------------------------------------------- the state

const describeState = ({ counts, oldestMs }: OutboxState): string =>
  Output.list([
    Output.counted(counts.waiting, counts.waiting === 1 ? "waits" : "wait"),
    Output.counted(counts.sending, "being sent"),
    oldestMs === null ? "" : `the oldest for ${Output.elapsed(oldestMs)}`,
    describeOutcomes(counts),
    Output.counted(counts.different, "with other values at the source")
  ])

const codesLine = (codes: ReadonlyArray<RejectedBy>): ReadonlyArray<string> =>
  codes.length === 0
    ? []
    : [
        `    rejected: ${Output.list(codes.map(({ code, records: count }) => Output.counted(count, Output.shown(code))))}`
      ]

const indented = (lines: ReadonlyArray<string>): ReadonlyArray<string> => lines.map((line) => `  ${line}`)

/** Characters of a source that are shown: a query may be long. */
const sourceMax = 60

const describeSource = (source: string): string => {
  const text = Output.shown(source)
  return text.length <= sourceMax ? text : `${text.slice(0, sourceMax)}…`
}

const pushLines = (push: PushStatus): ReadonlyArray<string> => {
  const { counts, known } = push
  const state = describeState(push)
  const open = openCount(counts)
  // An open or rejected record that was given again with other values belongs to the later push.
  const moved = Math.max(0, push.records - known - open - resolvedCount(counts))
  return [
    `  push ${push.push}: ${push.operation} ${push.resource} of ${push.company} from ${describeSource(push.source)}, ` +
      `begun ${Output.elapsed(push.ageMs)} ago, ${push.state}`,
    `    ${records(push.records)}: ${Output.list([
      state === "" ? "nothing to do" : state,
      Output.counted(known, "pushed before"),
      Output.counted(moved, "given again in a later push")
    ])}`,
    ...codesLine(push.rejectedBy),
    ...(open === 0 ? [] : [`    what to do: tributary push retry ${push.push} continues it`]),
    ...(counts.rejected === 0 ? [] : indented(rejectedRemedy({ push: push.push })))
  ]
}

const outboxLines = (state: OutboxState, companies: ReadonlyArray<string>): ReadonlyArray<string> => {
  const { company, counts, rejectedBy, resource } = state
  const remedy = companies.includes(company)
    ? `    what to do: nothing while tributary serve runs; without it: tributary push retry ${argument(state)}`
    : `    no company of that name is configured, so no process sends them; there is ${companies.join(", ") || "none"}`
  return [
    `  ${resource} of ${company}: ${describeState(state)}`,
    ...codesLine(rejectedBy),
    ...(openCount(counts) === 0 ? [] : [remedy]),
    ...(counts.rejected === 0 ? [] : indented(rejectedRemedy(state)))
  ]
}

const requestLine = ({ ageMs, company, failures, items, operation, reason, resource }: OpenRequest): string =>
  `  ${operation} of ${records(items)}, ${resource} of ${company}: open for ${Output.elapsed(ageMs)}` +
  (failures === 0
    ? ""
    : `, failed ${Output.plural(failures, "time")}${reason === null ? "" : `: ${Output.shown(reason)}`}`)

/** A heading and its lines; nothing without lines. */
const section = (heading: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length === 0 ? [] : [heading, ...lines]

/** `companies` are those of the configuration. */
export const statusLines = (
  { pushes, older, outbox, calls }: Status,
  companies: ReadonlyArray<string>
): ReadonlyArray<string> => {
  if (pushes.length === 0 && outbox.length === 0) {
    return ["Nothing has been pushed yet. See: tributary push --help"]
  }
  return [
    ...section("Pushes", pushes.flatMap(pushLines)),
    ...(older === 0 ? [] : [`  and ${Output.count(older)} older ones: tributary push status PUSH`]),
    ...section(
      "Rows of tributary.outbox that belong to no push",
      outbox.flatMap((one) => outboxLines(one, companies))
    ),
    ...section("Requests whose outcome is not known yet", calls.map(requestLine))
  ]
}
