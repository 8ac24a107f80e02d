/** The page of one resource of one company: its state, the reasons, and its actions. */
import * as Effect from "effect/Effect"
import * as FieldFinding from "../../warehouse/FieldFinding.ts"
import { html, page, PageError, type Html, type PageRequest, type Route } from "../Page.ts"
import { ago, badge, count, duration, none, section, facts, problem } from "../../web/Components.ts"
import { actionLink, cursor, freshness, lastRun, nextRun, rows, healthBadges, problemOf } from "../Format.ts"
import { address, visible } from "../../web/Escape.ts"
import * as Resources from "../../status/Resources.ts"
import * as Runs from "../../status/Runs.ts"
import * as RunDetails from "../../status/RunDetails.ts"
import { findHistory } from "../../verify/Explain.ts"
import { fieldsPart, hoursPart, runChartsPart } from "./ResourceParts.ts"
import { changeTable } from "./RunParts.ts"
import { quarantinePart, runTable } from "./Runs.ts"

const runsShown = 50

/** The named resource, or why there is none. */
export const resourceNamed = Effect.fnUntraced(function* (
  { companies, now }: PageRequest,
  company: string | null,
  resource: string | null
) {
  const configured = companies.filter(({ name }) => name === company)
  const [state] = resource === null ? [] : yield* Resources.read(configured, now, resource)
  if (state !== undefined) return state
  return yield* new PageError({
    status: 404,
    message:
      configured.length === 0
        ? `No company ${visible(company ?? "without a name")} is configured here.`
        : `Company ${visible(company ?? "")} has no resource ${visible(resource ?? "without a name")}.`
  })
})

const rangeWords = (since: string | null, until: string | null): string =>
  since === null && until === null
    ? "everything"
    : `${since === null ? "the beginning" : visible(since)} to ${until === null ? "now" : visible(until)}`

/** Pauses and requests of people, and failures. */
const taskPart = ({ task }: Resources.ResourceState, now: Date): ReadonlyArray<readonly [string, Html | string]> => {
  if (task === null) return []
  const { pausedAt, pausedBy, askedAt, askedBy, askedFull, failures } = task
  const by = (name: string | null) => `by ${visible(name ?? "a person")}`
  return [
    ...(pausedAt === null ? [] : [["Paused", html`${ago(pausedAt, now)} ${by(pausedBy)}`] as const]),
    ...(askedAt === null
      ? []
      : [["Requested", html`${ago(askedAt, now)} ${by(askedBy)}${askedFull ? ", in full" : ""}`] as const]),
    ...(failures === 0 ? [] : [["Failures in a row", count(failures)] as const])
  ]
}

const backfillPart = (
  { backfill }: Resources.ResourceState,
  now: Date
): ReadonlyArray<readonly [string, Html | string]> => {
  if (backfill === null) return []
  const range = rangeWords(backfill.since, backfill.until)
  const state = backfill.isRunning
    ? html`${badge("busy", "running")} since ${ago(backfill.beganAt, now)}`
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
      fullWanted === null ? "when it is due" : html`by the next run<span class="detail">${visible(fullWanted)}</span>`
    ],
    ...(scanKind === null
      ? []
      : ([["Open scan", `${scanKind}, ${count(scanPages ?? 0)} pages so far; the next run resumes there`]] as const))
  ])
}

const explainForm = ({ company, resource }: Resources.ResourceState): Html =>
  html`<form method="get" action="/records" class="stack">
    <input type="hidden" name="company" value="${company}" /><input type="hidden" name="resource" value="${resource}" />
    <p>
      <label for="record">Number of a record</label>
      <input id="record" name="id" inputmode="numeric" required maxlength="40" />
      <button type="submit">Show its history</button>
    </p>
  </form>`

/** Freshness and changes over time, the latest changes, and the fields. */
const detailsOf = Effect.fnUntraced(function* (
  { datasets, now }: PageRequest,
  { company, resource, health }: Resources.ResourceState,
  companyId: bigint
) {
  const of = { companyId, resource }
  const hours = yield* RunDetails.readHours(of)
  const changes = yield* RunDetails.newestChanges(of)
  const history = yield* findHistory(datasets, resource)
  const columns = history === null ? [] : yield* RunDetails.readColumns(datasets.current, history.view)
  const unknown = yield* RunDetails.readUnknownFields(of)
  return html`${hoursPart(hours, health.targetMs, now)}
  ${
    changes.length === 0
      ? ""
      : section(
          "changes",
          "Latest changes",
          changeTable(`The latest changes of ${visible(resource)}`, changes, { company, resource, now })
        )
  }
  ${fieldsPart(columns, unknown, now)}`
})

export const routes: ReadonlyArray<Route> = [
  {
    method: "GET",
    path: "/companies/:company/:resource",
    handle: Effect.fn("page.resource")(function* (request) {
      const { path, now } = request
      const state = yield* resourceNamed(request, path["company"] ?? null, path["resource"] ?? null)
      const { company, companyId, resource, task, health, quarantined } = state
      const query = { company, resource }
      const name = visible(resource)
      const trouble = problemOf(state, now)
      const note = state.lastRun?.note ?? null
      const about = `${name} of ${visible(company)}`
      const findings = (yield* FieldFinding.read).filter(
        (one) => one.companyId === companyId && one.resource === resource
      )
      const runs = companyId === null ? [] : yield* Runs.list({ ...Runs.anyRun, companyId, resource }, runsShown)
      const entries =
        companyId === null || quarantined === 0
          ? html``
          : yield* quarantinePart({ companyId, company, resource }, null, now)
      const details = companyId === null ? html`` : yield* detailsOf(request, state, companyId)
      return page({
        title: `${name} of ${visible(company)}`,
        section: "resources",
        body: html`<h1>${name}</h1>
          <p class="summary">${healthBadges(health)} company ${visible(company)}</p>
          <p class="buttons">
            ${actionLink("sync", query, "Sync now", about)}
            ${actionLink("full", query, "Read everything", `again: ${about}`)}
            ${actionLink("backfill", query, "Backfill", about)}
            ${
              health.isPaused
                ? actionLink("resume", query, "Resume", about)
                : actionLink("pause", query, "Pause", about)
            }
          </p>
          ${companyId === null ? html`<p class="hint">The number of this company at the source is not known yet, so that its runs and rows cannot be shown.</p>` : ""}
          ${trouble === null ? "" : problem(trouble.error, trouble.remedy)}
          ${findings.map((finding) => {
            const { found, remedy } = FieldFinding.partsOf(resource, finding)
            return problem(found, remedy)
          })}
          ${note === null ? "" : html`<p class="note">${visible(note)}</p>`}
          ${section(
            "now",
            "Status",
            facts([
              ["Freshness", freshness(state, now)],
              ["Rows", rows(state)],
              ["Deleted at the source", state.rows === null ? none("not counted") : count(state.rows.deleted)],
              [
                "Quarantine",
                quarantined === 0
                  ? "nothing"
                  : html`<a href="${address("/quarantine", query)}">${count(quarantined)}</a>`
              ],
              ["Last run", lastRun(state, now)],
              ["Schedule", task?.schedule ?? "only on request"],
              ["Next run", nextRun(state, now)],
              ...taskPart(state, now),
              ...backfillPart(state, now)
            ])
          )}
          ${details} ${section("checkpoint", "Checkpoint", checkpointPart(state, now))}
          ${section("one", "One record", explainForm(state))} ${entries}
          ${section(
            "runs",
            "Runs",
            html`${runChartsPart(runs, now)}
            ${runs.length === 0 ? html`<p>None yet.</p>` : runTable(`The last runs of ${name}`, runs, now, true)}
            ${runs.length < runsShown ? "" : html`<p><a href="${address("/runs", query)}">All of them</a></p>`}`
          )}`
      })
    })
  }
]
