/** The parts of a run's page: its phases, the answers of the source, and samples of its changes. */
import type { Change } from "../../status/RunDetails.ts"
import type { Run } from "../../status/Runs.ts"
import { phaseNames, type RunPhases } from "../../sync/RunPhases.ts"
import { ago, badge, count, duration, none, section, table, type Tone } from "../../web/Components.ts"
import { visible } from "../../web/Escape.ts"
import { recordAddress, runAddress } from "../Addresses.ts"
import { html, type Html } from "../Page.ts"
import { phaseChart, phaseWords } from "../RunCharts.ts"

const failureWords: Readonly<Record<string, string>> = {
  Unreachable: "the connection failed",
  TimedOut: "no whole answer in time",
  RateLimited: "too many requests",
  ServerFault: "the service failed",
  Malformed: "the answer is none of this API",
  InProgress: "the first request with this key still runs",
  other: "further kinds"
}

/** `503: the service failed`, `200`; an unknown kind as it is stored. */
const answerWords = (answer: string): string => {
  const [kind = "", status = kind === "RateLimited" ? "429" : ""] = answer.split(" ")
  const words = failureWords[kind] ?? kind
  return visible(status === "" ? words : `${status}: ${words}`)
}

const share = (ms: number, ofMs: number): string => (ofMs === 0 ? "0 %" : `${Math.round((ms / ofMs) * 100)} %`)

const phaseTable = ({ phases, took_ms: tookMs }: RunPhases): Html =>
  table(
    "The phases as figures",
    "Phase, #Time, #Share of the run, #Times, #Longest",
    phaseNames.map((name) => {
      const { ms, times, longest_ms: longestMs } = phases[name]
      return [phaseWords[name], duration(ms), share(ms, tookMs), count(times), duration(longestMs)]
    })
  )

const answerTable = ({ answers }: RunPhases): Html =>
  answers.length === 0
    ? html`<p>The source was not asked.</p>`
    : table(
        "Answers by kind, with the retries that they caused",
        "Answer, #Requests, #Retries, #Wait before them",
        answers.map(({ answer, requests, retries, retry_ms: retryMs }) => [
          answerWords(answer),
          count(requests),
          count(retries),
          retries === 0 ? none("") : duration(retryMs)
        ])
      )

const withoutPhases = ({ status, quietRuns, kind, lane }: Run): string =>
  status === "running"
    ? "The phases are stored when the run ends."
    : quietRuns > 0
      ? "A run that found nothing stores no phases: it is one request."
      : `No phases are stored for this run: its process was killed, or an earlier release ran it (${lane} lane, ${kind}).`

/** The phases on a time axis, as figures, and the answers of the source. */
export const phasesPart = (run: Run, phases: RunPhases | null): Html =>
  phases === null
    ? section("phases", "Phases", html`<p class="hint">${withoutPhases(run)}</p>`)
    : html`${section(
        "phases",
        "Phases",
        html`<p class="hint">
            The run took ${duration(phases.took_ms)} with the wait for its resource, which has no column. The height of
            a column is the share of its time. Reading is ahead of landing, so that the phases overlap.
          </p>
          <figure>${phaseChart(phases)}</figure>
          ${phaseTable(phases)}`
      )}
      ${section("answers", "Answers of the source", answerTable(phases))}`

// ------------------------------------------------------------------------------------------------------------- changes

const tones: Readonly<Record<string, Tone>> = { insert: "good", update: "busy", delete: "bad" }
const fieldsMax = 6

const fieldsOf = (changed: ReadonlyArray<string> | null): Html => {
  if (changed === null || changed.length === 0) return none("")
  const further = changed.length - fieldsMax
  return html`${changed
    .slice(0, fieldsMax)
    .map((name, index) => html`${index === 0 ? "" : ", "}<code>${visible(name)}</code>`)}${
    further > 0 ? ` and ${count(further)} more` : ""
  }`
}

type Changes = ReadonlyArray<Change>

/** Changes as a table; those of one run do not name it. */
export const changeTable = (
  caption: string,
  changes: Changes,
  { company, resource, now }: { readonly company: string | null; readonly resource: string; readonly now: Date },
  isOfRun = false
): Html =>
  table(
    caption,
    `Record, Change, Fields, #Version, ${isOfRun ? "" : "Run, "}Landed`,
    changes.map(({ id, op, changed, version, runId, landedAt }) => [
      id === null
        ? none("all records")
        : company === null
          ? String(id)
          : html`<a href="${recordAddress(company, resource, String(id))}">${String(id)}</a>`,
      badge(tones[op] ?? "quiet", op),
      fieldsOf(changed),
      version === null ? none("") : count(version),
      ...(isOfRun ? [] : [runId === null ? none("") : html`<a href="${runAddress(runId)}">${String(runId)}</a>`]),
      ago(landedAt, now)
    ])
  )

/** Samples of the changes of a run. */
export const changesPart = (run: Run, changes: Changes, history: string | null, now: Date): Html => {
  const changed = run.inserted + run.updated + run.deleted
  if (changed === 0) return html``
  const names = { company: run.company, resource: run.resource, now }
  const sample =
    changed > changes.length
      ? `The first ${count(changes.length)} of ${count(changed)} changes`
      : "The changes of this run"
  return section(
    "changes",
    "Changes",
    html`${
      changes.length === 0
        ? html`<p class="hint">The change feed has no change of this run any more, or not yet.</p>`
        : changeTable(sample, changes, names, true)
    }
    ${
      history === null
        ? ""
        : html`<p class="hint">
            All versions that it landed: <code>select * from ${history} where "_run_id" = ${String(run.id)}</code>
          </p>`
    }`
  )
}
