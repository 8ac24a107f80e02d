/** The parts of a run's page: its phases, the answers of the source, and samples of its changes. */
import * as Effect from "effect/Effect"
import { readLines } from "../../status/RecordRelations.ts"
import { findTables, type RecordLine } from "../../status/RecordTables.ts"
import { type Change, eventsShown, type RunEvent } from "../../status/RunDetails.ts"
import type { Run } from "../../status/Runs.ts"
import { type PhaseName, phaseNames, type RunPhases } from "../../sync/RunPhases.ts"
import { chart, elapsedTicks, laneOf, percent, type Stretch } from "../../web/Chart.ts"
import { ago, badge, count, duration, none, section, table, type Tone } from "../../web/Components.ts"
import { plural, visible } from "../../web/Escape.ts"
import { type Table, tableOf } from "../../warehouse/Table.ts"
import { isObject, type JsonObject, parse } from "../../json/Json.ts"
import { eventAddress, recordAddress, runAddress } from "../Addresses.ts"
import { html, type Html, type PageRequest } from "../Page.ts"
import { lineDetail, shortValue } from "./RecordFields.ts"

const failureWords: Readonly<Record<string, string>> = {
  Unreachable: "the connection failed",
  TimedOut: "no whole answer in time",
  RateLimited: "too many requests",
  ServerFault: "the service failed",
  Malformed: "the answer is none of this API",
  InProgress: "the first request with this key still runs",
  SourcePaused: "the source is paused",
  Unauthorized: "the token is not accepted",
  Forbidden: "the token may not do this",
  NotFound: "there is no such record",
  Refused: "the source refused the request",
  PageTokenRefused: "the page token is not accepted",
  PageDrift: "the pages do not fit each other",
  NotImplemented: "the source does not offer this",
  TooLarge: "the answer is too large",
  Redirected: "the source answers at another address",
  PagingBroken: "the pages do not end",
  SendCancelled: "the request was not sent",
  SourceChanged: "another source answers",
  other: "further kinds"
}

/** `503: the service failed`, `200`; an unknown kind as it is stored. */
const answerWords = (answer: string): string => {
  const [kind = "", status = kind === "RateLimited" ? "429" : ""] = answer.split(" ")
  const words = failureWords[kind] ?? kind
  return visible(status === "" ? words : `${status}: ${words}`)
}

const share = (ms: number, ofMs: number): string => (ofMs === 0 ? "0 %" : `${Math.round((ms / ofMs) * 100)} %`)

const phases: Readonly<Record<PhaseName, readonly [tone: Tone, words: string]>> = {
  budget: ["warn", "Waiting for the rate budget"],
  request: ["busy", "Requests in flight"],
  retry: ["bad", "Waiting before a retry"],
  landing: ["good", "Landing"]
}

const waitWords = "Waiting for the resource"

/** Why requests were sent again, the most frequent reason first: `500: the service failed, 2 retries`. */
const retryReasons = ({ answers }: RunPhases): string =>
  answers
    .filter(({ retries }) => retries > 0)
    .toSorted((a, b) => b.retries - a.retries)
    .map(({ answer, retries }) => `${answerWords(answer)}, ${plural(retries, "retry", "retries")}`)
    .join("; ")

const lengthOf = ({ took_ms: tookMs }: RunPhases): number => Math.max(tookMs, 1)

/** The times in which a phase was active; neighbours with the same share are one. */
const stretchesOf = (name: PhaseName, of: RunPhases): ReadonlyArray<Stretch> => {
  const slotMs = of.slot_ms
  const lengthMs = lengthOf(of)
  const reasons = name === "retry" ? retryReasons(of) : ""
  const why = reasons === "" ? "" : ` (${reasons})`
  const found: Array<{ fromMs: number; toMs: number; shown: string; strength: number }> = []
  for (const [index, ms] of of.phases[name].slots.entries()) {
    if (ms <= 0) continue
    const [fromMs, toMs] = [index * slotMs, Math.min(lengthMs, (index + 1) * slotMs)]
    const shown = percent(Math.max(0.01, ms / slotMs))
    const last = found.at(-1)
    if (last !== undefined && last.toMs === fromMs && last.shown === shown) last.toMs = toMs
    else found.push({ fromMs, toMs, shown, strength: ms / slotMs })
  }
  return found.map(({ fromMs, toMs, shown, strength }) => ({
    from: Math.min(1, fromMs / lengthMs),
    to: Math.min(1, toMs / lengthMs),
    kind: phases[name][0],
    strength,
    text: `${duration(fromMs)} to ${duration(toMs)} after the start: ${phases[name][1].toLowerCase()}, ${shown} of the time${why}`
  }))
}

/** The time from the start of the work until its row in the ledger: the wait for the resource, and the plan. */
const waitOf = ({ beganAt, endedAt }: Run, { took_ms: tookMs }: RunPhases): number =>
  endedAt === null ? 0 : Math.max(0, tookMs - (endedAt.getTime() - beganAt.getTime()))

/** What the run spent the most time on; the lanes have the figures. */
const longestPhase = (waitMs: number, of: RunPhases): string => {
  const all = [
    [waitMs, waitWords] as const,
    ...phaseNames.map((name) => [of.phases[name].ms, phases[name][1]] as const)
  ].filter(([ms]) => ms > 0)
  const [longest] = all.toSorted(([a], [b]) => b - a)
  return longest === undefined ? "No phase took a millisecond." : `The longest phase: ${longest[1].toLowerCase()}.`
}

/** The phases of a run, one lane each, on the time since its start. */
const phaseChart = (run: Run, of: RunPhases): Html => {
  const waitMs = waitOf(run, of)
  const lane = (name: string, ms: number, stretches: ReadonlyArray<Stretch>, why = "") =>
    laneOf(
      html`${name}
        <span class="figure">${duration(ms)}</span>${why === "" ? "" : html`<span class="detail">${why}</span>`}`,
      `${name}: ${duration(ms)}${why === "" ? "" : `, ${why}`}`,
      stretches
    )
  const wait = {
    from: 0,
    to: waitMs / lengthOf(of),
    kind: "quiet",
    strength: 1,
    text: `${waitWords}: ${duration(waitMs)}`
  }
  return chart({
    id: "phase",
    title: `Phases of ${duration(of.took_ms)}`,
    unit: "Time since the start of the work. Height: share of the time slot. Pages are requested while earlier pages land, so that phases overlap.",
    summary: longestPhase(waitMs, of),
    ticks: elapsedTicks(lengthOf(of)),
    figures: ["the phases", phaseTable(waitMs, of)],
    plots: [
      lane(waitWords, waitMs, waitMs === 0 ? [] : [wait]),
      ...phaseNames.map((name) =>
        lane(phases[name][1], of.phases[name].ms, stretchesOf(name, of), name === "retry" ? retryReasons(of) : "")
      )
    ]
  })
}

const phaseTable = (waitMs: number, { phases: of, took_ms: tookMs }: RunPhases): Html =>
  table("The phases as figures", "Phase, #Time, #Share of the time, #Times, #Longest", [
    ...phaseNames.map((name) => {
      const { ms, times, longest_ms: longestMs } = of[name]
      return [phases[name][1], duration(ms), share(ms, tookMs), count(times), duration(longestMs)]
    }),
    [waitWords, duration(waitMs), share(waitMs, tookMs), none(""), none("")]
  ])

const answerTable = ({ answers }: RunPhases): Html =>
  answers.length === 0
    ? html`<p>The run sent no request.</p>`
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
export const phasesPart = (run: Run, of: RunPhases | null): Html =>
  of === null
    ? section("phases", "Phases", html`<p class="hint">${withoutPhases(run)}</p>`)
    : html`${phaseChart(run, of)} ${section("answers", "Answers of the source", answerTable(of))}`

// -------------------------------------------------------------------------------------------------------------- events

/** Whether events can name the run: one by number, of changed parents, or one whose failure resolved them. */
export const hasEvents = ({ kind, status }: Run): boolean =>
  kind === "fetch" || kind === "children" || status === "failed"

const eventState = ({ state }: RunEvent): Html =>
  badge(state === "dead_letter" ? "bad" : state === "done" ? "good" : "quiet", state.replaceAll("_", " "))

/** The events that name the run; for one by number also that there is none. */
export const eventsPart = (run: Run, found: ReadonlyArray<RunEvent>): Html => {
  if (!hasEvents(run) || (found.length === 0 && run.kind !== "fetch")) return html``
  const { company } = run
  const shown = found.slice(0, eventsShown)
  return section(
    "events",
    "Events",
    shown.length === 0
      ? html`<p class="hint">
          No stored event names this run. A person requested its records, another run answered their events, or the
          events were removed.
        </p>`
      : table(
          found.length > shown.length ? `Events of the run, the newest ${shown.length}` : "Events of the run",
          "Event, Record, State",
          shown.map((one) => [
            company === null
              ? visible(one.eventType)
              : html`<a href="${eventAddress(company, one.eventId)}"
                  >${visible(one.eventType)}<span class="visually-hidden"> ${visible(one.eventId)}</span></a
                >`,
            one.recordId === null
              ? none("the whole resource")
              : company === null || one.resource === null
                ? visible(one.recordId)
                : html`<a href="${recordAddress(company, one.resource, one.recordId)}">${visible(one.recordId)}</a>`,
            eventState(one)
          ])
        )
  )
}

/** That a run which ended well did not read the record of an event, and what to do. */
export const deadLetterProblem = ({ company, deadLetters }: Run, found: ReadonlyArray<RunEvent>): Html => {
  const [first] = found.filter(({ state }) => state === "dead_letter")
  const events = plural(deadLetters, "event")
  const isOne = deadLetters === 1
  const to = isOne && company !== null && first !== undefined ? eventAddress(company, first.eventId) : "#events"
  return html`<div class="problem">
    <p>
      The run did not read the ${isOne ? "record" : "records"} of <a href="${to}">${events}</a>:
      ${isOne ? "it is a dead letter" : "they are dead letters"}.
    </p>
    <p><strong>What to do:</strong> open the event, remove the cause, then replay it.</p>
  </div>`
}

// ------------------------------------------------------------------------------------------------------------- changes

const tones: Readonly<Record<string, Tone>> = { insert: "good", update: "busy", delete: "bad" }
const fieldsMax = 4

const membersOf = (text: string | null): JsonObject => {
  const value = text === null ? null : parse(text)
  return isObject(value) ? value : new Map()
}

/** `creditlimit: 10,000 → 15,000` of each changed field, without the time of the change. */
const fieldsOf = ({ before, after, changed }: Change, table: Table | undefined): Html => {
  const modifiedAt = table?.resource.roles.modifiedAt ?? null
  const names = (changed ?? []).filter((name) => name !== modifiedAt)
  const [from, to] = [membersOf(before), membersOf(after)]
  const further = names.length - fieldsMax
  return html`${names.slice(0, fieldsMax).map((name) => {
    const field = table?.resource.field.get(name)
    return html`<span class="line"
      ><code>${visible(name)}</code>: ${shortValue(field, from.get(name))} → ${shortValue(field, to.get(name))}</span
    >`
  })}${further > 0 ? html`<span class="line">and ${count(further)} more</span>` : ""}`
}

type Changes = ReadonlyArray<Change>
type Lines = ReadonlyMap<string, RecordLine>

/** The lines of changed records, and their table. */
interface Changed {
  readonly lines: Lines
  /** Undefined where the catalogue has none. */
  readonly table: Table | undefined
}

/** What identifies the records of changes for people. */
export const readChangedLines = Effect.fnUntraced(function* (
  { companies, datasets }: PageRequest,
  {
    company,
    companyId,
    resource
  }: { readonly company: string | null; readonly companyId: bigint; readonly resource: string },
  changes: Changes
) {
  const of = companies.find(({ name }) => name === company)
  const stated = of?.connector.catalogue.resources.get(resource)
  if (of === undefined || stated === undefined || changes.length === 0) {
    return { lines: new Map(), table: undefined } satisfies Changed
  }
  const table = (yield* of.tables).get(resource) ?? tableOf(stated, datasets)
  const tables = yield* findTables([table])
  const ids = new Set(changes.flatMap(({ id }) => (id === null ? [] : [String(id)])))
  const lines = yield* readLines(
    tables,
    companyId,
    [...ids].map((id) => ({ resource, id }))
  )
  return { lines, table } satisfies Changed
})

const changedRecord = (company: string | null, resource: string, id: bigint | null, lines: Lines): Html => {
  if (id === null) return none("all records")
  const line = lines.get(`${resource} ${id}`)
  const name = `${id}${(line?.key ?? null) === null ? "" : ` · ${visible(line!.key!)}`}`
  return html`${company === null ? name : html`<a href="${recordAddress(company, resource, String(id))}">${name}</a>`}${
    line === undefined || line.detail === "" ? "" : html`<span class="detail">${lineDetail(line.detail)}</span>`
  }`
}

const hasFields = (changes: Changes): boolean => changes.some(({ changed }) => (changed?.length ?? 0) > 0)

/** Changes as a table; those of one run do not name it. */
export const changeTable = (
  caption: string,
  changes: Changes,
  {
    company,
    resource,
    changed: { lines, table: of },
    now
  }: { readonly company: string | null; readonly resource: string; readonly changed: Changed; readonly now: Date },
  isOfRun = false
): Html =>
  table(
    caption,
    `Record, Change, ${hasFields(changes) ? "Values, " : ""}#Version, ${isOfRun ? "" : "Run, "}Landed`,
    changes.map((change) => {
      const { id, op, version, runId, landedAt } = change
      return [
        changedRecord(company, resource, id, lines),
        badge(tones[op] ?? "quiet", op),
        ...(hasFields(changes) ? [op === "update" ? fieldsOf(change, of) : html``] : []),
        version === null ? none("") : count(version),
        ...(isOfRun ? [] : [runId === null ? none("") : html`<a href="${runAddress(runId)}">${String(runId)}</a>`]),
        ago(landedAt, now)
      ]
    })
  )

/** Samples of the changes of a run. */
export const changesPart = (run: Run, changes: Changes, of: Changed, history: string | null, now: Date): Html => {
  const sum = run.inserted + run.updated + run.deleted
  if (sum === 0) return html``
  const names = { company: run.company, resource: run.resource, changed: of, now }
  const sample =
    sum > changes.length ? `The first ${count(changes.length)} of ${count(sum)} changes` : "The changes of this run"
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
