/** The page of one resource of one company: its state, the reasons, and its actions. */
import * as Effect from "effect/Effect"
import * as FieldFinding from "../../warehouse/FieldFinding.ts"
import { html, page, PageError, pageRoute, type Html, type PageRequest, type Route } from "../Page.ts"
import { ago, badge, count, duration, type Fact, facts, fold, none, problem, section } from "../../web/Components.ts"
import { actionLink, cursor, freshness, healthBadges, lastRun, nextRun, rows } from "../Format.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { resourcesAddress } from "../Addresses.ts"
import { companyLink, detail } from "../Links.ts"
import * as PrivacyRules from "../../status/PrivacyRules.ts"
import * as Resources from "../../status/Resources.ts"
import * as Runs from "../../status/Runs.ts"
import * as RunDetails from "../../status/RunDetails.ts"
import { findHistory } from "../../verify/Explain.ts"
import { chartsPart, fieldsPart, privacyPart, reasonPart, runsShown } from "./ResourceParts.ts"
import { changeTable, readChangedLines } from "./RunParts.ts"
import { quarantinePart, readOpenEntries, runTable } from "./Runs.ts"

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

/** Rows, runs and fields of a resource whose company has a number. */
const loadRows = Effect.fnUntraced(function* (
  request: PageRequest,
  { company, resource, quarantined }: Resources.ResourceState,
  companyId: bigint
) {
  const { datasets } = request
  const of = { company, companyId, resource }
  const changes = yield* RunDetails.newestChanges(of)
  const history = yield* findHistory(datasets, resource)
  return {
    runs: yield* Runs.list({ ...Runs.anyRun, companyId, resource }, runsShown),
    hours: yield* RunDetails.readHours(of),
    entries: quarantined === 0 ? [] : yield* readOpenEntries(of),
    changes,
    changed: yield* readChangedLines(request, of, changes),
    columns: history === null ? [] : yield* RunDetails.readColumns(datasets.current, history.view),
    unknown: yield* RunDetails.readUnknownFields(of)
  }
})

/** A resource. `known` is null until the source has answered with the number of the company. */
export type Model = Effect.Success<ReturnType<typeof load>>

const load = Effect.fn("page.resource")(function* (request: PageRequest) {
  const { path, companies, now } = request
  const state = yield* resourceNamed(request, path["company"] ?? null, path["resource"] ?? null)
  const { company, companyId, resource } = state
  const catalogue = companies.find((one) => one.name === company)?.connector.catalogue
  const protection = catalogue?.resources.get(resource)?.protection ?? null
  return {
    state,
    findings: (yield* FieldFinding.read).filter((one) => one.companyId === companyId && one.resource === resource),
    protection,
    applied: protection === null ? null : yield* PrivacyRules.read(resource),
    known: companyId === null ? null : yield* loadRows(request, state, companyId),
    now
  }
})

const rangeWords = (since: string | null, until: string | null): string =>
  since === null && until === null
    ? "everything"
    : `${since === null ? "the beginning" : visible(since)} to ${until === null ? "now" : visible(until)}`

type Task = Resources.ResourceState["task"]

/** The next run; since when and by whom it is paused. */
const nextRunOf = (state: Resources.ResourceState, now: Date): Html => {
  const { task } = state
  return html`${nextRun(state, now)}
  ${
    task === null || task.pausedAt === null
      ? ""
      : detail(html`${ago(task.pausedAt, now)} by ${visible(task.pausedBy ?? "a person")}`)
  }`
}

const requestFact = (task: Task, now: Date): Fact | null =>
  task === null || task.askedAt === null
    ? null
    : [
        "Requested",
        html`${ago(task.askedAt, now)} by ${visible(task.askedBy ?? "a person")}${task.askedFull ? ", in full" : ""}`
      ]

const backfillState = ({ runningSince, askedAt, status, endedAt }: NonNullable<Task>, now: Date): Html =>
  runningSince !== null
    ? html`${badge("busy", "running")} since ${ago(runningSince, now)}`
    : askedAt !== null
      ? html`${badge("busy", "requested")} ${ago(askedAt, now)}`
      : html`${badge(status === "done" ? "good" : status === "failed" ? "bad" : "warn", status ?? "unknown")}
        ${ago(endedAt, now)}`

const backfillFact = (task: Task, now: Date): Fact | null =>
  task === null
    ? null
    : [
        "Backfill",
        html`${backfillState(task, now)}${detail(rangeWords(task.since, task.until))}${task.error === null ? "" : detail(visible(task.error))}`
      ]

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
    ["Next full scan", fullWanted === null ? "by its schedule" : html`by the next run${detail(visible(fullWanted))}`],
    scanKind === null
      ? null
      : ["Open scan", `${scanKind}, ${count(scanPages ?? 0)} pages so far; the next run resumes there`]
  ])
}

const changesPart = (
  { changes, changed }: NonNullable<Model["known"]>,
  { company, resource }: Resources.ResourceState,
  now: Date
): Html | string =>
  changes.length === 0
    ? ""
    : section(
        "changes",
        "Latest changes",
        fold(
          "latest-changes",
          plural(changes.length, "change"),
          changeTable(`The latest changes of ${visible(resource)}`, changes, { company, resource, changed, now })
        )
      )

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
    ["Next run", nextRunOf(state, now)],
    requestFact(state.task, now),
    backfillFact(state.backfill, now)
  ])

/** The newest runs, and the others of the charts. */
const runsPart = (runs: ReadonlyArray<Runs.Run>, { company, resource }: Resources.ResourceState, now: Date): Html => {
  const name = visible(resource)
  const listed = runs.slice(0, runsListed)
  const further = runs.slice(runsListed)
  return section(
    "runs",
    "Runs",
    html`${runs.length === 0 ? html`<p>None yet.</p>` : fold("last-runs", `The last ${plural(listed.length, "run")}`, runTable(`The last runs of ${name}`, listed, now, true))}
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

export const view = ({ state, findings, protection, applied, known, now }: Model) => {
  const { company, resource, health, freshAt, lastRun: run } = state
  const name = visible(resource)
  const runs = known?.runs ?? []
  return page({
    title: `${name} of ${visible(company)}`,
    section: "resources",
    body: html`<h1>${name}</h1>
      <p class="summary">
        ${healthBadges(health)} company ${companyLink(company)},
        ${freshAt === null ? "never read completely" : html`data of ${freshness(state, now)}`}
      </p>
      ${reasonPart(state, runs, now)}
      ${findings.map((finding) => {
        const { found, remedy } = FieldFinding.partsOf(resource, finding)
        return problem(visible(found), visible(remedy))
      })}
      ${run?.note === null || run === null ? "" : html`<p class="note">${visible(run.note)}</p>`}
      ${actions(state, `${name} of ${visible(company)}`)}
      ${known === null ? html`<p class="hint">The number of this company at the source is not known yet, so that its runs and rows cannot be shown.</p>` : ""}
      ${section("now", "Now", stateFacts(state, now))}
      ${known === null ? "" : chartsPart(state, known.hours, runs, now)} ${runsPart(runs, state, now)}
      ${known === null ? "" : html`${changesPart(known, state, now)} ${quarantinePart(known.entries, state, now)} ${fieldsPart(known.columns, known.unknown, now)}`}
      ${privacyPart(protection, applied, now)} ${section("checkpoint", "Checkpoint", checkpointPart(state, now))}`
  })
}

export const routes: ReadonlyArray<Route> = [pageRoute({ path: "/companies/:company/:resource", load, view })]
