/** The ledger of runs, and a page for each. */
import * as Effect from "effect/Effect"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { html, page, PageError, type Html, type PageRequest, type Route } from "../Page.ts"
import { ago, count, duration, table } from "../Components.ts"
import * as Runs from "../../status/Runs.ts"
import { bytes, cursor, facts, problem, runBadge } from "../Format.ts"
import { address, truncated, recordAddress, resourceAddress, runAddress, visible } from "../Escape.ts"

const shownMax = 50
const entriesMax = 50
const errorMax = 160

const idOf = (text: string | null): bigint | null => (text !== null && /^\d{1,18}$/.test(text) ? BigInt(text) : null)

/** How long it took, or takes. */
const took = ({ beganAt, endedAt, status }: Runs.Run, now: Date): Html =>
  endedAt !== null
    ? html`${duration(endedAt.getTime() - beganAt.getTime())}`
    : status === "running"
      ? html`${duration(Math.max(0, now.getTime() - beganAt.getTime()))} so far`
      : html`<span class="none">not known</span>`

/** `3 new, 1 changed`; nothing where there is nothing. */
const changes = ({ inserted, updated, deleted }: Runs.Run): Html => {
  const told = [
    [inserted, "new"],
    [updated, "changed"],
    [deleted, "deleted"]
  ] as const
  const some = told.filter(([number]) => number > 0).map(([number, word]) => `${count(number)} ${word}`)
  return some.length === 0 ? html`<span class="none">no change</span>` : html`${some.join(", ")}`
}

const companyOf = (run: Runs.Run): string => (run.company === null ? `company ${run.companyId}` : visible(run.company))

const columns = [
  { heading: "Run", isNumber: true },
  { heading: "Status" },
  { heading: "Company" },
  { heading: "Resource" },
  { heading: "Lane" },
  { heading: "Kind" },
  { heading: "Began" },
  { heading: "Took", isNumber: true },
  { heading: "Requests", isNumber: true },
  { heading: "Records", isNumber: true },
  { heading: "Changes" }
]

/** Runs as a table; `isOf` leaves out what they all have in common. */
export const runTable = (caption: string, runs: ReadonlyArray<Runs.Run>, now: Date, isOf?: "resource"): Html => {
  const keep = (index: number) => isOf === undefined || (index !== 2 && index !== 3)
  return table(
    caption,
    columns.filter((_, index) => keep(index)),
    runs.map((run) =>
      [
        html`<a href="${runAddress(run.id)}">${String(run.id)}</a>`,
        html`${runBadge(run.status)}${run.error === null ? "" : html`<span class="detail">${truncated(run.error, errorMax)}</span>`}`,
        companyOf(run),
        run.company === null
          ? visible(run.resource)
          : html`<a href="${resourceAddress(run.company, run.resource)}">${visible(run.resource)}</a>`,
        run.lane,
        html`${run.kind}${run.resumed ? html`<span class="detail">went on</span>` : ""}`,
        ago(run.beganAt, now),
        took(run, now),
        html`${count(run.requests)}${run.retries > 0 ? html`<span class="detail">${count(run.retries)} again</span>` : ""}`,
        count(run.records),
        changes(run)
      ].filter((_, index) => keep(index))
    )
  )
}

// -------------------------------------------------------------------------------------------------------------- ledger

interface Wish extends Runs.RunFilter {
  readonly company: string | null
}

const oneOf = <A extends string>(all: ReadonlyArray<A>, text: string | null): A | null =>
  all.find((one) => one === text) ?? null

const wishOf = Effect.fnUntraced(function* ({ query }: PageRequest) {
  const given = (name: string) => {
    const value = query.get(name)?.trim() ?? ""
    return value === "" ? null : value
  }
  const [company, status, lane, before] = [given("company"), given("status"), given("lane"), given("before")]
  const companyId = company === null ? null : ((yield* TaskQueue.companyIds).get(company) ?? null)
  if (company !== null && companyId === null) {
    return yield* new PageError({ status: 404, message: `No runs of a company ${visible(company)} are known.` })
  }
  const wish: Wish = {
    company,
    companyId,
    resource: given("resource"),
    status: oneOf(Runs.statuses, status),
    lane: oneOf(Runs.lanes, lane),
    before: idOf(before)
  }
  if (
    (status !== null && wish.status === null) ||
    (lane !== null && wish.lane === null) ||
    (before !== null && wish.before === null)
  ) {
    return yield* new PageError({
      status: 400,
      message: "There is no such status, lane or number."
    })
  }
  return wish
})

const here = ({ company, resource, status, lane, before }: Wish): string =>
  address("/runs", { company, resource, status, lane, before: before?.toString() ?? null })

const choice = (name: string, label: string, values: ReadonlyArray<string>, chosen: string | null): Html =>
  html`<p>
    <label for="${name}">${label}</label>
    <select id="${name}" name="${name}">
      <option value="">any</option>
      ${values.map(
        (value) => html`<option value="${value}" ${value === chosen ? html` selected` : ""}>${visible(value)}</option>`
      )}
    </select>
  </p>`

const ledger = Effect.fn("page.runs")(function* (request: PageRequest) {
  const wish = yield* wishOf(request)
  const found = yield* Runs.list(wish, shownMax + 1)
  const shown = found.slice(0, shownMax)
  const last = shown.at(-1)
  const { now, companies } = request
  const more =
    found.length > shownMax && last !== undefined
      ? html`<a href="${here({ ...wish, before: last.id })}" rel="next">Older</a>`
      : ""
  return page({
    title: "Runs",
    section: "runs",
    body: html`<h1>Runs</h1>
      <form method="get" action="/runs" class="controls">
        ${choice(
          "company",
          "Company",
          companies.map(({ name }) => name),
          wish.company
        )}
        <p>
          <label for="resource">Resource</label>
          <input type="search" id="resource" name="resource" value="${wish.resource ?? ""}" maxlength="200" />
        </p>
        ${choice("status", "Status", Runs.statuses, wish.status)} ${choice("lane", "Lane", Runs.lanes, wish.lane)}
        <p><button type="submit">Show</button> <a href="/runs">Show all</a></p>
      </form>
      ${shown.length === 0 ? html`<p>There is no such run.</p>` : runTable("Runs, newest first", shown, now)}
      <nav class="pages" aria-label="Further runs">
        ${wish.before === null ? "" : html`<a href="${here({ ...wish, before: null })}">Newest</a> `}${more}
      </nav>`
  })
})

// ------------------------------------------------------------------------------------------------------------- one run

const entryTable = (
  entries: ReadonlyArray<Runs.QuarantinedRecord>,
  company: string | null,
  resource: string,
  now: Date
): Html =>
  table(
    "Records in quarantine",
    [
      { heading: "Entry", isNumber: true },
      { heading: "Record" },
      { heading: "Field" },
      { heading: "Reason" },
      { heading: "Last seen" }
    ],
    entries.map((entry) => [
      html`<a href="/quarantine/${String(entry.id)}">${String(entry.id)}</a>`,
      entry.recordId === null
        ? html`<span class="none">not known</span>`
        : company === null
          ? visible(entry.recordId)
          : html`<a href="${recordAddress(company, resource, entry.recordId)}">${visible(entry.recordId)}</a>`,
      entry.field === null ? html`<span class="none">none</span>` : visible(entry.field),
      truncated(entry.reason, errorMax),
      ago(entry.lastSeenAt, now)
    ])
  )

/** Open entries of a resource, those of a run, or nothing. */
export const quarantinePart = Effect.fnUntraced(function* (
  of: { readonly companyId: bigint; readonly company: string | null; readonly resource: string },
  runId: bigint | null,
  now: Date
) {
  const entries = yield* Runs.quarantine(of.companyId, of.resource, runId, entriesMax + 1)
  if (entries.length === 0) return html``
  return html`<section aria-labelledby="quarantine">
    <h2 id="quarantine">Quarantine</h2>
    ${entryTable(entries.slice(0, entriesMax), of.company, of.resource, now)}
    ${entries.length > entriesMax ? html`<p><a href="${address("/quarantine", { company: of.company, resource: of.resource })}">All of them</a></p>` : ""}
  </section>`
})

const single = Effect.fn("page.run")(function* ({ path, now }: PageRequest) {
  const id = idOf(path["id"] ?? null)
  const run = id === null ? null : yield* Runs.one(id)
  if (run === null) {
    return yield* new PageError({
      status: 404,
      message: "There is no run of this number; old runs are removed."
    })
  }
  const name = visible(run.resource)
  const entries = yield* quarantinePart(run, run.id, now)
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
        ${run.kind}${run.resumed ? ", went on where an earlier one was interrupted" : ""}
      </p>
      ${run.error === null ? "" : problem(run.errorKind === null ? run.error : `${run.error} (${run.errorKind})`, run.remedy)}
      ${run.note === null ? "" : html`<p class="note">${visible(run.note)}</p>`}
      ${facts([
        ["Began", html`${ago(run.beganAt, now)}<span class="detail">${run.beganAt.toISOString()}</span>`],
        [
          "Ended",
          run.endedAt === null
            ? html`<span class="none">${run.status === "running" ? "still running" : "not known"}</span>`
            : html`${ago(run.endedAt, now)}<span class="detail">${run.endedAt.toISOString()}</span>`
        ],
        ["Took", took(run, now)],
        ["Cursor from", cursor(run.cursorFrom)],
        ["Cursor to", cursor(run.cursorTo)]
      ])}
      <section aria-labelledby="figures">
        <h2 id="figures">What it did</h2>
        ${facts(figures)}
      </section>
      ${entries}`
  })
})

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/runs", handle: ledger },
  { method: "GET", path: "/runs/:id", handle: single }
]
