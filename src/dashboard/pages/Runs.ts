/** `/runs`: the list of runs, and a page for each. */
import * as Effect from "effect/Effect"
import { html, page, PageError, type Html, type PageRequest, type Route } from "../Page.ts"
import {
  ago,
  count,
  duration,
  none,
  pager,
  partOf,
  section,
  select,
  table,
  bytes,
  facts,
  type Tone
} from "../../web/Components.ts"
import { actionLink, cursor, errorRequest, errorSentence, runKind, runState, withoutRequest } from "../Format.ts"
import { exactly, hourMs, minute } from "../../web/Times.ts"
import { stateHead } from "../../web/StateHead.ts"
import { address, plural, truncated, visible } from "../../web/Escape.ts"
import { companyAddress, recordAddress, resourceAddress, runAddress } from "../Addresses.ts"
import * as Quarantine from "../../status/Quarantine.ts"
import * as RunDetails from "../../status/RunDetails.ts"
import * as RunHours from "../../status/RunHours.ts"
import * as Runs from "../../status/Runs.ts"
import { findHistory } from "../../verify/Explain.ts"
import { identifier } from "../../warehouse/Identifier.ts"
import { changesPart, deadLetterProblem, eventsPart, hasEvents, phasesPart, readChangedLines } from "./RunParts.ts"
import { runsOfDay } from "./RunCharts.ts"
import { choiceOf, companyIdNamed, ofQuery } from "../Params.ts"
import { seriesMax } from "../../tasks/WriteActivity.ts"

const shownMax = 50
const entriesMax = 50
const errorMax = 160

/** The duration of a run; while it runs, the duration so far. */
const took = ({ beganAt, endedAt, status }: Runs.Run, now: Date): Html =>
  endedAt !== null
    ? html`${duration(endedAt.getTime() - beganAt.getTime())}`
    : status === "running"
      ? html`${duration(Math.max(0, now.getTime() - beganAt.getTime()))} so far`
      : none("not known")

/** `3 new, 1 changed`; of a failed run the error. */
const changes = ({ inserted, updated, deleted, quietRuns, error }: Runs.Run): Html => {
  if (error !== null) return html`<span class="failure">${truncated(withoutRequest(error), errorMax)}</span>`
  if (quietRuns > 1) return none(`${count(quietRuns)} runs without a change`)
  const some = Object.entries({ new: inserted, changed: updated, deleted })
    .filter(([, number]) => number > 0)
    .map(([word, number]) => `${count(number)} ${word}`)
  return some.length === 0 ? none("no change") : html`${some.join(", ")}`
}

const companyOf = (run: Runs.Run): string => (run.company === null ? `company ${run.companyId}` : visible(run.company))

/** Runs as a table; those of one resource do not name it. */
export const runTable = (caption: string, runs: ReadonlyArray<Runs.Run>, now: Date, isOfOne = false): Html =>
  html`<div class="runs">${runRows(caption, runs, now, isOfOne)}</div>`

const runRows = (caption: string, runs: ReadonlyArray<Runs.Run>, now: Date, isOfOne: boolean): Html =>
  table(
    caption,
    `#Run, Status, ${isOfOne ? "" : "Resource, "}Kind, Ended, #Took, #Requests, #Records, Changes`,
    runs.map((run) => [
      html`<a href="${runAddress(run.id)}">${String(run.id)}</a>`,
      runState(run),
      ...(isOfOne
        ? []
        : [
            html`${
                run.company === null
                  ? visible(run.resource)
                  : html`<a href="${resourceAddress(run.company, run.resource)}">${visible(run.resource)}</a>`
              } <span class="detail">${companyOf(run)}</span>`
          ]),
      html`${runKind(run)}${run.resumed ? ", resumed" : ""}`,
      run.endedAt === null ? none("running") : html`${run.quietRuns > 1 ? "last " : ""}${ago(run.endedAt, now)}`,
      html`${run.quietRuns > 1 ? "last " : ""}${took(run, now)}`,
      html`${count(run.requests)}${run.retries > 0 ? html` <span class="detail">retries: ${count(run.retries)}</span>` : ""}`,
      count(run.records),
      changes(run)
    ])
  )

// -------------------------------------------------------------------------------------------------------------- ledger

interface Filter extends Runs.RunFilter {
  readonly company: string | null
}

/** The hour of the address; null for any. */
const hourOf = (request: PageRequest): Effect.Effect<Date | null, PageError> => {
  const text = ofQuery(request, "hour")
  // Postgres has no year 0.
  const at = text === null || !/^(?!0000)\d{4}-\d\d-\d\dT\d\d:00Z$/.test(text) ? null : new Date(text)
  return text === null
    ? Effect.succeed(null)
    : at === null || Number.isNaN(at.getTime()) || !at.toISOString().startsWith(text.slice(0, -1))
      ? Effect.fail(new PageError({ status: 400, message: "That is no hour, such as 2026-11-28T09:00Z." }))
      : Effect.succeed(at)
}

/** The place of the address; null for the beginning. */
const placeIn = (request: PageRequest): Effect.Effect<Runs.RunPlace | null, PageError> => {
  const text = ofQuery(request, "before")
  const [, at, id] = /^(\d{1,16}|running)-(\d{1,18})$/.exec(text ?? "") ?? []
  return text === null
    ? Effect.succeed(null)
    : at === undefined || id === undefined
      ? Effect.fail(new PageError({ status: 400, message: "That is no place in the list of runs." }))
      : Effect.succeed(`${at === "running" ? at : BigInt(at)}-${BigInt(id)}` as const)
}

const filterOf = Effect.fnUntraced(function* (request: PageRequest) {
  const company = ofQuery(request, "company")
  return {
    company,
    companyId: yield* companyIdNamed(request, company),
    resource: ofQuery(request, "resource"),
    status: yield* choiceOf(request, "status", Runs.statuses),
    lane: yield* choiceOf(request, "lane", Runs.lanes),
    hour: yield* hourOf(request),
    before: yield* placeIn(request)
  } satisfies Filter
})

const here = ({ company, resource, status, lane, hour, before }: Filter): string => {
  const from = hour === null ? null : hour.toISOString().replace(":00.000Z", "Z")
  return address("/runs", { company, resource, status, lane, hour: from, before })
}

/** Runs by hour are not stored for each resource and company where there are many. */
const unrecorded = ({ company, resource }: Filter): string =>
  company === null && resource === null
    ? "No run is recorded in the last day."
    : `No such run is recorded in the last day. Of more than ${count(seriesMax.hour)} resources, runs by hour are stored for each company only, and of more than ${count(seriesMax.hour)} companies for all together.`

/** The state of the runs of the last day. */
const head = (read: RunHours.RunHours, filter: Filter, now: Date): Html => {
  const sum = (hours: ReadonlyArray<RunHours.RunHour>, of: (hour: RunHours.RunHour) => number) =>
    hours.reduce((total, hour) => total + of(hour), 0)
  const all = sum(read.all, ({ runs }) => runs)
  const failed = sum(read.all, RunHours.failuresOf)
  const quarantined = sum(read.all, (hour) => hour.quarantined)
  // An abandoned run is no failure: its process stopped, and another run repeats it.
  const recent = read.all.filter(({ at }) => at.getTime() > now.getTime() - 2 * hourMs)
  const [tone, word]: readonly [Tone, string] =
    sum(recent, (hour) => hour.failed) > 0
      ? ["bad", "runs fail"]
      : sum(recent, ({ abandoned }) => abandoned) > 0
        ? ["warn", "runs abandoned"]
        : [
            quarantined > 0 ? "warn" : all === 0 ? "quiet" : "good",
            all === 0 ? "no run" : failed > 0 ? "runs succeed again" : "runs succeed"
          ]
  const [worst] = read.resources
  const shared = { title: "Runs", about: "A run that found nothing shares a row with those before it.", actions: null }
  if (read.all.length === 0) {
    return stateHead({ ...shared, tone: "quiet", word: "not recorded", sentence: unrecorded(filter), trend: null })
  }
  return stateHead({
    ...shared,
    tone,
    word,
    sentence: html`${plural(all, "run")} in the last
    day${failed === 0 ? "" : `, ${count(failed)} failed or abandoned`}${quarantined === 0 ? "" : `, ${count(quarantined)} with records in quarantine`}.
    ${
      worst === undefined || sum(worst.hours, RunHours.failuresOf) === 0
        ? ""
        : html`The most: <a href="${resourceAddress(worst.company, worst.resource)}">${visible(worst.resource)}</a> of
            company ${visible(worst.company)}, ${plural(sum(worst.hours, RunHours.failuresOf), "run")}.`
    }`,
    trend: null
  })
}

const ledger = Effect.fn("page.runs")(function* (request: PageRequest) {
  const filter = yield* filterOf(request)
  const read = yield* Runs.list(filter, shownMax + 1)
  const shown = read.slice(0, shownMax)
  const lastShown = shown.at(-1)
  const next = read.length > shownMax && lastShown !== undefined ? Runs.placeOf(lastShown) : null
  const { now, companies } = request
  const day = yield* RunHours.read(filter)
  return page({
    title: "Runs",
    section: "runs",
    body: html`${head(day, filter, now)}
      ${filter.before === null && filter.hour === null ? runsOfDay(day, filter, now, companies.length > 1 && filter.company === null) : ""}
      <form method="get" action="/runs" class="controls">
        ${select(
          "company",
          "Company",
          "any",
          companies.map(({ name }) => name),
          filter.company
        )}
        <p>
          <label for="resource">Resource</label>
          <input type="search" id="resource" name="resource" value="${filter.resource ?? ""}" maxlength="200" />
        </p>
        ${select("status", "Status", "any", Runs.statuses, filter.status)}
        ${select("lane", "Lane", "any", Runs.lanes, filter.lane)}
        <p><button type="submit">Show</button> <a href="/runs">Show all</a></p>
      </form>
      ${filter.hour === null ? "" : html`<p>Runs that ended in the hour from ${minute(filter.hour)}. A row that stands for several runs is in the hour of the last of them. <a href="${here({ ...filter, hour: null, before: null })}">Any hour</a></p>`}
      ${shown.length === 0 ? html`<p>There is no ${filter.hour === null ? "such run" : "row of such a run"}.</p>` : runTable("Runs, the last to end first", shown, now)}
      ${pager("Further runs", ["Newest", "Older"], { after: filter.before, next }, (before) => here({ ...filter, before }))}`
  })
})

// ------------------------------------------------------------------------------------------------------------- one run

const entryTable = (
  entries: ReadonlyArray<Quarantine.ListedEntry>,
  company: string | null,
  resource: string,
  now: Date
): Html =>
  table(
    "Records in quarantine",
    "#Entry, Record, Field, Reason, Last seen",
    entries.map((entry) => [
      html`<a href="/quarantine/${String(entry.id)}">${String(entry.id)}</a>`,
      entry.recordId === null
        ? none("not known")
        : company === null
          ? visible(entry.recordId)
          : html`<a href="${recordAddress(company, resource, entry.recordId)}">${visible(entry.recordId)}</a>`,
      entry.field === null ? none("none") : visible(entry.field),
      truncated(entry.reason, errorMax),
      ago(entry.lastSeenAt, now)
    ])
  )

/** Open entries of a resource, or of a run. */
export const readOpenEntries = (
  { companyId, resource }: Pick<Runs.Run, "companyId" | "resource">,
  runId: bigint | null = null
) => Quarantine.list({ companyId, resource, runId, state: "open" }, null, entriesMax + 1)

/** These entries; nothing where there is none. */
export const quarantinePart = (
  entries: ReadonlyArray<Quarantine.ListedEntry>,
  { company, resource }: Pick<Runs.Run, "company" | "resource">,
  now: Date
): Html | string => {
  if (entries.length === 0) return ""
  const { shown, next } = partOf(entries, entriesMax)
  return section(
    "quarantine",
    "Quarantine",
    html`${entryTable(shown, company, resource, now)}
    ${next === null ? "" : html`<p><a href="${address("/quarantine", { company, resource })}">All of them</a></p>`}`
  )
}

/** Where the run is among those of its resource. */
const neighbours = ({ company, resource }: Runs.Run, before: bigint | null, after: bigint | null): Html =>
  html`<nav class="pages" aria-label="Runs of the same resource">
    ${before === null ? "" : html`<a href="${runAddress(before)}" rel="prev">← Run ${String(before)}</a>`}
    ${after === null ? "" : html`<a href="${runAddress(after)}" rel="next">Run ${String(after)} →</a>`}
    <a href="${address("/runs", { company, resource })}">All runs of ${visible(resource)}</a>
    ${company === null ? "" : actionLink("sync", { company, resource }, "Sync now", `${visible(resource)} of ${visible(company)}`)}
  </nav>`

const perPage = ({ pages, records, quarantined }: Runs.Run): string =>
  pages === 0
    ? "0"
    : `${plural(pages, "page")}, ${plural(Math.round((records + quarantined) / pages), "record")}${pages === 1 ? "" : " each"}`

/** The records of the answers: `26: 25 landed, 1 in quarantine`. */
const received = ({ records, quarantined }: Runs.Run): string =>
  quarantined === 0
    ? count(records)
    : `${count(records + quarantined)}: ${count(records)} landed, ${count(quarantined)} in quarantine`

/** The counts that are not zero. */
const countsOf = (run: Runs.Run): ReadonlyArray<readonly [string, string]> =>
  (
    [
      ["Requests", `${count(run.requests)}${run.retries === 0 ? "" : ` (${plural(run.retries, "retry", "retries")})`}`],
      ["Pages", perPage(run)],
      ["Size", run.bytes === 0 ? "0" : bytes(run.bytes)],
      ["Records", received(run)],
      ["New rows", count(run.inserted)],
      ["Changed rows", count(run.updated)],
      ["Unchanged", count(run.unchanged)],
      ["Deleted rows", count(run.deleted)],
      ["Late records", run.late === 0 ? "0" : `${count(run.late)}, by ${duration(run.lateMs)} at most`],
      ["Older versions ignored", count(run.staleVersions)]
    ] as const
  ).filter(([, text]) => text !== "0")

/** A run that was not complete leaves the cursor where it is. */
const movedCursor = ({ cursorFrom, cursorTo, status }: Runs.Run): Html =>
  cursorTo === null
    ? html`${cursor(cursorFrom)}${status === "running" ? "" : ", not moved"}`
    : html`${cursor(cursorFrom)} → ${cursor(cursorTo)}`

const times = (run: Runs.Run, now: Date): Html =>
  facts([
    ["Began", html`${ago(run.beganAt, now)}<span class="detail">${exactly(run.beganAt)}</span>`],
    [
      "Ended",
      run.endedAt === null
        ? none(run.status === "running" ? "still running" : "not known")
        : html`${ago(run.endedAt, now)}<span class="detail">${exactly(run.endedAt)}</span>`
    ],
    ["Took", took(run, now)],
    ...(run.quietSince === null || run.quietRuns < 2
      ? []
      : [
          [
            "Found nothing",
            html`${count(run.quietRuns)} runs in a row since ${ago(run.quietSince, now)}; this row stands for all of
              them<span class="detail">${exactly(run.quietSince)}</span>`
          ] as const
        ]),
    ...(run.cursorFrom === null && run.cursorTo === null ? [] : [["Cursor", movedCursor(run)] as const]),
    ...countsOf(run)
  ])

/** Why the run is not complete, and what to do; nothing where it is. */
const outcome = (run: Runs.Run, events: ReadonlyArray<RunDetails.RunEvent>): Html => {
  const { company, error, quarantined, remedy, resource } = run
  if (error !== null) {
    return html`<div class="problem">
      <p>${visible(errorSentence(error))} ${errorRequest(error)}</p>
      ${remedy === null ? "" : html`<p><strong>What to do:</strong> ${visible(remedy)}</p>`}
    </div>`
  }
  if (run.deadLetters > 0) return deadLetterProblem(run, events)
  return quarantined === 0
    ? html``
    : html`<div class="problem warn">
        <p>
          <a href="${address("/quarantine", { company, resource })}">${plural(quarantined, "record")}</a> could not be
          landed and ${quarantined === 1 ? "is" : "are"} in quarantine.
        </p>
        <p><strong>What to do:</strong> correct the value at the source; the next scan lands the record.</p>
      </div>`
}

const single = Effect.fn("page.run")(function* (request: PageRequest) {
  const { path, now, datasets } = request
  const id = /^\d{1,18}$/.test(path["id"] ?? "") ? BigInt(path["id"]!) : null
  const run = id === null ? null : yield* Runs.one(id)
  if (run === null) {
    return yield* new PageError({
      status: 404,
      message: "There is no run with this number; old runs are removed."
    })
  }
  const name = visible(run.resource)
  const entries = quarantinePart(yield* readOpenEntries(run, run.id), run, now)
  const phases = yield* RunDetails.readPhases(run.id)
  const { before, after } = yield* RunDetails.readNeighbours(run)
  const events = hasEvents(run) ? yield* RunDetails.readEvents(run, now, RunDetails.eventsShown + 1) : []
  const hasChanges = run.inserted + run.updated + run.deleted > 0
  const history = hasChanges ? yield* findHistory(datasets, run.resource) : null
  const changed = hasChanges ? yield* RunDetails.changesOfRun(run, now) : []
  const lines = yield* readChangedLines(request, run, changed)
  const view = history === null ? null : `${identifier(datasets.history)}.${identifier(history.view)}`
  return page({
    title: `Run ${run.id}: ${name}`,
    section: "runs",
    body: html`<h1>
        Run ${String(run.id)}:
        ${run.company === null ? name : html`<a href="${resourceAddress(run.company, run.resource)}">${name}</a>`}
      </h1>
      <p class="summary">
        ${runState(run)} company
        ${run.company === null ? String(run.companyId) : html`<a href="${companyAddress(run.company)}">${visible(run.company)}</a>`},
        ${runKind(run)}${run.resumed ? ", resumed where an earlier run was interrupted" : ""}
      </p>
      ${outcome(run, events)} ${run.note === null ? "" : html`<p class="note">${visible(run.note)}</p>`}
      ${neighbours(run, before, after)} ${times(run, now)} ${phasesPart(run, phases)} ${eventsPart(run, events)}
      ${changesPart(run, changed, lines, view, now)} ${entries}`
  })
})

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/runs", handle: ledger },
  { method: "GET", path: "/runs/:id", handle: single }
]
