/** The page of one resource of one company: its state, the reasons, and its actions. */
import * as Effect from "effect/Effect"
import * as FieldFinding from "../../warehouse/FieldFinding.ts"
import { html, page, PageError, type Html, type PageRequest, type Route } from "../Page.ts"
import { ago, badge, count, duration, facts, none, problem, section } from "../../web/Components.ts"
import { actionLink, cursor, freshness, healthBadges, lastRun, nextRun, rows } from "../Format.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { companyAddress, resourcesAddress } from "../Addresses.ts"
import * as PrivacyRules from "../../status/PrivacyRules.ts"
import * as Resources from "../../status/Resources.ts"
import * as Runs from "../../status/Runs.ts"
import * as RunDetails from "../../status/RunDetails.ts"
import { findHistory } from "../../verify/Explain.ts"
import { chartsPart, fieldsPart, privacyPart, reasonPart, runsShown } from "./ResourceParts.ts"
import { changeTable, readChangedLines } from "./RunParts.ts"
import { quarantinePart, runTable } from "./Runs.ts"

/** Runs that are listed at once. */
const runsListed = 5

/** The named resource, or why there is none. */
export const resourceNamed = Effect.fnUntraced(function* (
  { companies }: PageRequest,
  company: string | null,
  resource: string | null
) {
  const configured = companies.filter(({ name }) => name === company)
  const [state] = resource === null ? [] : yield* Resources.read(configured, resource)
  if (state !== undefined) return state
  return yield* new PageError({
    status: 404,
    message:
      configured.length === 0
        ? `No company ${visible(company ?? "without a name")} is configured here.`
        : `Company ${visible(company ?? "")} has no resource ${visible(resource ?? "without a name")}.`,
    above: configured.length === 0 ? "/" : resourcesAddress({ company })
  })
})

const rangeWords = (since: string | null, until: string | null): string =>
  since === null && until === null
    ? "everything"
    : `${since === null ? "the beginning" : visible(since)} to ${until === null ? "now" : visible(until)}`

/** Since when and by whom it is paused. */
const pausedDetail = ({ task }: Resources.ResourceState, now: Date): Html | string =>
  task === null || task.pausedAt === null
    ? ""
    : html`<span class="detail">${ago(task.pausedAt, now)} by ${visible(task.pausedBy ?? "a person")}</span>`

/** Requests of people. */
const taskPart = ({ task }: Resources.ResourceState, now: Date): ReadonlyArray<readonly [string, Html | string]> => {
  if (task === null || task.askedAt === null) return []
  const by = visible(task.askedBy ?? "a person")
  return [["Requested", html`${ago(task.askedAt, now)} by ${by}${task.askedFull ? ", in full" : ""}`]]
}

const backfillPart = (
  { backfill }: Resources.ResourceState,
  now: Date
): ReadonlyArray<readonly [string, Html | string]> => {
  if (backfill === null) return []
  const range = rangeWords(backfill.since, backfill.until)
  const { runningSince } = backfill
  const state =
    runningSince !== null
      ? html`${badge("busy", "running")} since ${ago(runningSince, now)}`
      : backfill.askedAt !== null
        ? html`${badge("busy", "requested")} ${ago(backfill.askedAt, now)}`
        : html`${badge(backfill.status === "done" ? "good" : backfill.status === "failed" ? "bad" : "warn", backfill.status ?? "unknown")}
          ${ago(backfill.endedAt, now)}`
  return [
    [
      "Backfill",
      html`${state}<span class="detail">${range}</span
        >${backfill.error === null ? "" : html`<span class="detail">${visible(backfill.error)}</span>`}`
    ]
  ]
}

const checkpointPart = ({ checkpoint }: Resources.ResourceState, now: Date): Html => {
  if (checkpoint === null) return html`<p>There is none yet: nothing was read.</p>`
  const { overlapMs, lateMs, fullScanAt, fullWanted, scanKind, scanPages } = checkpoint
  return facts([
    ["Cursor", cursor(checkpoint.cursor)],
    [
      "Overlap",
      overlapMs === 0
        ? "as configured"
        : `${duration(overlapMs)}, learned from late records; halved for each week without one`
    ],
    ["Maximum lateness of a record", lateMs === 0 ? none("never late") : duration(lateMs)],
    ["Last full scan", ago(fullScanAt, now)],
    [
      "Next full scan",
      fullWanted === null ? "by its schedule" : html`by the next run<span class="detail">${visible(fullWanted)}</span>`
    ],
    ...(scanKind === null
      ? []
      : ([["Open scan", `${scanKind}, ${count(scanPages ?? 0)} pages so far; the next run resumes there`]] as const))
  ])
}

/** The latest changes, and the fields. */
const detailsOf = Effect.fnUntraced(function* (
  request: PageRequest,
  { company, resource }: Resources.ResourceState,
  companyId: bigint
) {
  const { datasets, now } = request
  const of = { companyId, resource }
  const changes = yield* RunDetails.newestChanges(of)
  const changedLines = yield* readChangedLines(request, { company, companyId, resource }, changes)
  const history = yield* findHistory(datasets, resource)
  const columns = history === null ? [] : yield* RunDetails.readColumns(datasets.current, history.view)
  const unknown = yield* RunDetails.readUnknownFields(of)
  const changed =
    changes.length === 0
      ? html``
      : section(
          "changes",
          "Latest changes",
          changeTable(`The latest changes of ${visible(resource)}`, changes, {
            company,
            resource,
            changed: changedLines,
            now
          })
        )
  return { changed, fields: fieldsPart(columns, unknown, now) }
})

/** What a person can do, of the resource as it is. */
const actions = ({ company, resource, health }: Resources.ResourceState, about: string): Html => {
  const query = { company, resource }
  return html`<p class="buttons">
    ${actionLink("sync", query, "Sync now", about)} ${actionLink("full", query, "Full scan", `again: ${about}`)}
    ${actionLink("backfill", query, "Backfill", about)}
    ${health.isPaused ? actionLink("resume", query, "Resume", about) : actionLink("pause", query, "Pause", about)}
  </p>`
}

const stateFacts = (state: Resources.ResourceState, now: Date): Html =>
  facts([
    ["Rows", rows(state)],
    ["Deleted at the source", state.rows === null ? none("not counted") : count(state.rows.deleted)],
    [
      "Quarantine",
      state.quarantined === 0
        ? "nothing"
        : html`<a href="${address("/quarantine", { company: state.company, resource: state.resource })}"
            >${count(state.quarantined)}</a
          >`
    ],
    ["Last run", lastRun(state, now)],
    ["Schedule", state.task?.schedule ?? "only on request"],
    ["Next run", html`${nextRun(state, now)} ${pausedDetail(state, now)}`],
    ...taskPart(state, now),
    ...backfillPart(state, now)
  ])

/** The newest runs, and the others of the charts. */
const runsPart = (runs: ReadonlyArray<Runs.Run>, { company, resource }: Resources.ResourceState, now: Date): Html => {
  const name = visible(resource)
  const further = runs.slice(runsListed)
  return section(
    "runs",
    "Runs",
    html`${runs.length === 0 ? html`<p>None yet.</p>` : runTable(`The last runs of ${name}`, runs.slice(0, runsListed), now, true)}
      ${
        further.length === 0
          ? ""
          : html`<details id="further-runs">
              <summary>The ${plural(further.length, "run")} before them</summary>
              ${runTable(`Earlier runs of ${name}`, further, now, true)}
            </details>`
      }
      <p><a href="${address("/runs", { company, resource })}">All runs of ${name}</a></p>`
  )
}

export const routes: ReadonlyArray<Route> = [
  {
    method: "GET",
    path: "/companies/:company/:resource",
    handle: Effect.fn("page.resource")(function* (request) {
      const { path, now } = request
      const state = yield* resourceNamed(request, path["company"] ?? null, path["resource"] ?? null)
      const { company, companyId, resource, health, quarantined } = state
      const name = visible(resource)
      const note = state.lastRun?.note ?? null
      const findings = (yield* FieldFinding.read).filter(
        (one) => one.companyId === companyId && one.resource === resource
      )
      const runs = companyId === null ? [] : yield* Runs.list({ ...Runs.anyRun, companyId, resource }, runsShown)
      const hours = companyId === null ? [] : yield* RunDetails.readHours({ company, resource })
      const entries =
        companyId === null || quarantined === 0
          ? html``
          : yield* quarantinePart({ companyId, company, resource }, null, now)
      const catalogue = request.companies.find((one) => one.name === company)?.connector.catalogue
      const protection = catalogue?.resources.get(resource)?.protection ?? null
      const applied = protection === null ? null : yield* PrivacyRules.read(resource)
      const { changed, fields } =
        companyId === null ? { changed: "", fields: "" } : yield* detailsOf(request, state, companyId)
      return page({
        title: `${name} of ${visible(company)}`,
        section: "resources",
        body: html`<h1>${name}</h1>
          <p class="summary">
            ${healthBadges(health)} company <a href="${companyAddress(company)}">${visible(company)}</a>,
            ${state.freshAt === null ? "never read completely" : html`data of ${freshness(state, now)}`}
          </p>
          ${reasonPart(state, runs, now)}
          ${findings.map((finding) => {
            const { found, remedy } = FieldFinding.partsOf(resource, finding)
            return problem(found, remedy)
          })}
          ${note === null ? "" : html`<p class="note">${visible(note)}</p>`}
          ${actions(state, `${name} of ${visible(company)}`)}
          ${companyId === null ? html`<p class="hint">The number of this company at the source is not known yet, so that its runs and rows cannot be shown.</p>` : ""}
          ${section("now", "Now", stateFacts(state, now))}
          ${companyId === null ? "" : chartsPart(state, hours, runs, now)} ${runsPart(runs, state, now)} ${changed}
          ${entries} ${fields} ${privacyPart(protection, applied, now)}
          ${section("checkpoint", "Checkpoint", checkpointPart(state, now))}`
      })
    })
  }
]
