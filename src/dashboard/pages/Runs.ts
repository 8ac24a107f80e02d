/** `/runs`: the list of runs, and a page for each. */
import * as Effect from "effect/Effect"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
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
  problem
} from "../../web/Components.ts"
import { cursor, runBadge } from "../Format.ts"
import { address, truncated, visible } from "../../web/Escape.ts"
import { exactly } from "../../web/Times.ts"
import { recordAddress, resourceAddress, runAddress } from "../Addresses.ts"
import * as Quarantine from "../../status/Quarantine.ts"
import * as RunDetails from "../../status/RunDetails.ts"
import * as Runs from "../../status/Runs.ts"
import { findHistory } from "../../verify/Explain.ts"
import { identifier } from "../../warehouse/Identifier.ts"
import { changesPart, phasesPart } from "./RunParts.ts"
import { choiceOf, ofQuery, positionOf } from "../Params.ts"

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

/** `3 new, 1 changed`. */
const changes = ({ inserted, updated, deleted, quietRuns }: Runs.Run): Html => {
  if (quietRuns > 1) return none(`no change in ${count(quietRuns)} runs`)
  const some = Object.entries({ new: inserted, changed: updated, deleted })
    .filter(([, number]) => number > 0)
    .map(([word, number]) => `${count(number)} ${word}`)
  return some.length === 0 ? none("no change") : html`${some.join(", ")}`
}

const companyOf = (run: Runs.Run): string => (run.company === null ? `company ${run.companyId}` : visible(run.company))

const ofResource = "Company, Resource, "
const headings = `#Run, Status, ${ofResource}Lane, Kind, Began, #Took, #Requests, #Records, Changes`

/** Runs as a table; those of one resource do not name it. */
export const runTable = (caption: string, runs: ReadonlyArray<Runs.Run>, now: Date, isOfOne = false): Html =>
  table(
    caption,
    isOfOne ? headings.replace(ofResource, "") : headings,
    runs.map((run) => [
      html`<a href="${runAddress(run.id)}">${String(run.id)}</a>`,
      html`${runBadge(run.status)}${run.error === null ? "" : html`<span class="detail">${truncated(run.error, errorMax)}</span>`}`,
      ...(isOfOne
        ? []
        : [
            companyOf(run),
            run.company === null
              ? visible(run.resource)
              : html`<a href="${resourceAddress(run.company, run.resource)}">${visible(run.resource)}</a>`
          ]),
      run.lane,
      html`${run.kind}${run.resumed ? html`<span class="detail">resumed</span>` : ""}`,
      ago(run.beganAt, now),
      took(run, now),
      html`${count(run.requests)}${run.retries > 0 ? html`<span class="detail">retries: ${count(run.retries)}</span>` : ""}`,
      count(run.records),
      changes(run)
    ])
  )

// -------------------------------------------------------------------------------------------------------------- ledger

interface Filter extends Runs.RunFilter {
  readonly company: string | null
}

const filterOf = Effect.fnUntraced(function* (request: PageRequest) {
  const company = ofQuery(request, "company")
  const companyId = company === null ? null : yield* TaskQueue.companyIdOf(company)
  if (company !== null && companyId === null) {
    return yield* new PageError({ status: 404, message: `No runs of a company ${visible(company)} are known.` })
  }
  return {
    company,
    companyId,
    resource: ofQuery(request, "resource"),
    status: yield* choiceOf(request, "status", Runs.statuses),
    lane: yield* choiceOf(request, "lane", Runs.lanes),
    before: yield* positionOf(request, "before", "a run")
  } satisfies Filter
})

const here = ({ company, resource, status, lane, before }: Filter): string =>
  address("/runs", { company, resource, status, lane, before: before?.toString() ?? null })

const ledger = Effect.fn("page.runs")(function* (request: PageRequest) {
  const filter = yield* filterOf(request)
  const { shown, next } = partOf(yield* Runs.list(filter, shownMax + 1), shownMax)
  const { now, companies } = request
  return page({
    title: "Runs",
    section: "runs",
    body: html`<h1>Runs</h1>
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
      ${shown.length === 0 ? html`<p>There is no such run.</p>` : runTable("Runs, newest first", shown, now)}
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

/** Open entries of a resource, those of a run, or nothing. */
export const quarantinePart = Effect.fnUntraced(function* (
  { companyId, company, resource }: Pick<Runs.Run, "companyId" | "company" | "resource">,
  runId: bigint | null,
  now: Date
) {
  const entries = yield* Quarantine.list({ companyId, resource, runId, state: "open" }, null, entriesMax + 1)
  if (entries.length === 0) return html``
  const { shown, next } = partOf(entries, entriesMax)
  return section(
    "quarantine",
    "Quarantine",
    html`${entryTable(shown, company, resource, now)}
    ${next === null ? "" : html`<p><a href="${address("/quarantine", { company, resource })}">All of them</a></p>`}`
  )
})

const single = Effect.fn("page.run")(function* ({ path, now, datasets }: PageRequest) {
  const id = /^\d{1,18}$/.test(path["id"] ?? "") ? BigInt(path["id"]!) : null
  const run = id === null ? null : yield* Runs.one(id)
  if (run === null) {
    return yield* new PageError({
      status: 404,
      message: "There is no run with this number; old runs are removed."
    })
  }
  const name = visible(run.resource)
  const entries = yield* quarantinePart(run, run.id, now)
  const phases = yield* RunDetails.readPhases(run.id)
  const hasChanges = run.inserted + run.updated + run.deleted > 0
  const history = hasChanges ? yield* findHistory(datasets, run.resource) : null
  const changed = hasChanges ? yield* RunDetails.changesOfRun(run, now) : []
  const view = history === null ? null : `${identifier(datasets.history)}.${identifier(history.view)}`
  const figures = [
    ["Requests", count(run.requests)],
    ["Retries", count(run.retries)],
    ["Pages", count(run.pages)],
    ["Received", bytes(run.bytes)],
    ["Records", count(run.records)],
    ["New rows", count(run.inserted)],
    ["Changed rows", count(run.updated)],
    ["Unchanged", count(run.unchanged)],
    ["Deleted rows", count(run.deleted)],
    ["Quarantined", count(run.quarantined)],
    ["Late records", run.late === 0 ? "0" : `${count(run.late)}, by ${duration(run.lateMs)} at most`],
    ["Older versions ignored", count(run.staleVersions)]
  ] as const
  return page({
    title: `Run ${run.id}: ${name}`,
    section: "runs",
    body: html`<h1>
        Run ${String(run.id)}:
        ${run.company === null ? name : html`<a href="${resourceAddress(run.company, run.resource)}">${name}</a>`}
      </h1>
      <p class="summary">
        ${runBadge(run.status)} ${companyOf(run)}, ${run.lane} lane,
        ${run.kind}${run.resumed ? ", resumed where an earlier run was interrupted" : ""}
      </p>
      ${run.error === null ? "" : problem(run.errorKind === null ? run.error : `${run.error} (${run.errorKind})`, run.remedy)}
      ${run.note === null ? "" : html`<p class="note">${visible(run.note)}</p>`}
      ${facts([
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
        ["Cursor from", cursor(run.cursorFrom)],
        ["Cursor to", cursor(run.cursorTo)]
      ])}
      ${phasesPart(run, phases)} ${section("figures", "Counts", facts(figures))} ${changesPart(run, changed, view, now)}
      ${entries}`
  })
})

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/runs", handle: ledger },
  { method: "GET", path: "/runs/:id", handle: single }
]
