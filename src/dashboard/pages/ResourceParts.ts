/** The parts of a resource's page: its state with the reason, freshness, changes and runs over time, and its fields. */
import type { FieldRule, Protection } from "../../catalogue/Protection.ts"
import type { AppliedRules } from "../../status/PrivacyRules.ts"
import * as RunDetails from "../../status/RunDetails.ts"
import type { ResourceState } from "../../status/Resources.ts"
import type { Run } from "../../status/Runs.ts"
import { barChart, type Slot } from "../../web/BarChart.ts"
import { figuresBelow, percent } from "../../web/Chart.ts"
import {
  ago,
  badge,
  buttonLink,
  count,
  decimal,
  duration,
  fold,
  none,
  problem,
  section,
  table
} from "../../web/Components.ts"
import { hourSlots, placesOf, sinceFirst } from "../../web/Hours.ts"
import { address, plural, visible } from "../../web/Escape.ts"
import { clock, minute } from "../../web/Times.ts"
import { runAddress } from "../Addresses.ts"
import { errorRequest, errorSentence, problemOf, runTones } from "../Format.ts"
import { code } from "../Links.ts"
import { html, type Html } from "../Page.ts"

// -------------------------------------------------------------------------------------------------------------- the state

/** The newest runs that the page reads. */
export const runsShown = 50

/** The runs that failed or were interrupted since the last complete one, newest first; and whether these are all. */
const failuresOf = (runs: ReadonlyArray<Run>) => {
  const ended = runs.filter(({ lane, status }) => lane === "live" && status !== "running")
  const good = ended.findIndex(({ status }) => status === "done" || status === "quarantined")
  return good === -1
    ? { failures: ended, areAll: runs.length < runsShown }
    : { failures: ended.slice(0, good), areAll: true }
}

const quarantineLink = ({ company, resource }: ResourceState, text: string): Html =>
  html`<a href="${address("/quarantine", { company, resource })}">${text}</a>`

const quarantineNote = (state: ResourceState): Html =>
  problem(
    html`${quarantineLink(state, plural(state.quarantined, "record"))} could not be landed and
    ${state.quarantined === 1 ? "is" : "are"} in quarantine.`,
    "correct the value at the source; the next scan lands the record.",
    null,
    "problem warn"
  )

/** The reason why it fails or is late, with the run and the next step; nothing where all is well. */
export const reasonPart = (state: ResourceState, runs: ReadonlyArray<Run>, now: Date): Html => {
  const found = problemOf(state, now)
  const { isFailing, isLate } = state.health
  if (found === null) return state.quarantined === 0 ? html`` : quarantineNote(state)
  const { failures, areAll } = failuresOf(runs)
  const failed = isFailing ? failures.find(({ status }) => status === "failed") : undefined
  const first = isFailing && failures.length > 1 ? failures.at(-1) : undefined
  return problem(
    html`${visible(errorSentence(found.error))}
    ${failed === undefined ? "" : html`It failed ${ago(failed.beganAt, now)}.`}
    ${isFailing || !isLate || state.quarantined === 0 ? "" : html`${quarantineLink(state, `Its quarantine: ${count(state.quarantined)}`)}.`}
    ${
      first === undefined
        ? ""
        : html`${areAll ? "" : "At least "}${count(failures.length)} runs in a row did not succeed,
            ${areAll ? "the first" : "one of them"} <a href="${runAddress(first.id)}">${ago(first.beganAt, now)}</a>.`
    }
    ${errorRequest(found.error)}`,
    visible(found.remedy ?? "look at the run"),
    failed === undefined ? null : buttonLink(runAddress(failed.id), `Open run ${failed.id}`)
  )
}

// --------------------------------------------------------------------------------------------------------------- charts

type Hour = RunDetails.ResourceHour

const hoursTable = (hours: ReadonlyArray<Hour>): Html =>
  table(
    "The last two days by hour, newest first",
    "Hour, #Highest age, #Share of the target, #Runs, #Rows, #New rows, #Changed rows, #Deleted rows, #Open gaps",
    hours
      .toReversed()
      .map(({ at, ageMs, lateness, runs, rows, inserted, updated, deleted, gaps }) => [
        minute(at),
        ageMs === null ? none("not known") : duration(ageMs),
        lateness === null ? none("no target") : percent(lateness),
        count(runs),
        rows === null ? none("not counted") : count(rows),
        count(inserted),
        count(updated),
        count(deleted),
        count(gaps)
      ])
  )

const isLateHour = ({ lateness }: Hour): boolean => lateness !== null && lateness > 1

const latenessWords = (hours: ReadonlyArray<Hour>, { isPaused, targetMs }: ResourceState["health"]): string => {
  const known = hours.filter(({ lateness }) => lateness !== null)
  const late = known.filter(isLateHour)
  const oldest = `at most ${duration(Math.max(0, ...hours.map(({ ageMs }) => ageMs ?? 0)))} old`
  if (known.length === 0) {
    return `${oldest} in two days, ${isPaused ? "paused: not measured as late" : targetMs === null ? "without a target" : "not measured as late"}.`
  }
  return late.length === 0
    ? `never late in two days, ${oldest}.`
    : `late in ${count(late.length)} of ${plural(known.length, "hour")} in two days, ${oldest}.`
}

/** The number of rows now, and how it changed since the first hour with a count. */
const rowWords = (hours: ReadonlyArray<Hour>, now: ResourceState["rows"]): string => {
  const counted = hours.filter(({ rows }) => rows !== null)
  const [first, last] = [counted[0]?.rows, counted.at(-1)?.rows]
  const present = now?.rows ?? last
  if (present === undefined || present === null) return "not counted yet."
  const more = present - (first ?? present)
  return `${now?.isExact === false ? "about " : ""}${count(present)} now, ${more === 0 ? "as many as" : `${count(Math.abs(more))} ${more > 0 ? "more" : "fewer"} than`} ${counted[0] === undefined ? "before" : `at ${minute(counted[0].at)}`}.`
}

/** The highest age, the number of rows, and the changes of each hour. */
const hourCharts = (hours: ReadonlyArray<Hour>, { health, rows }: ResourceState, now: Date): Html => {
  const places = sinceFirst(placesOf(hours, now, RunDetails.hoursShown))
  const slots = (slotOf: (hour: Hour) => Omit<Slot, "words">) =>
    hourSlots(
      places,
      (hour) => ({ note: hour.gaps > 0 ? `${plural(hour.gaps, "delivery gap")} open` : null, ...slotOf(hour) }),
      minute
    )
  const sum = (of: (hour: Hour) => number) => hours.reduce((total, hour) => total + of(hour), 0)
  const changed = [
    sum(({ inserted }) => inserted),
    sum(({ updated }) => updated),
    sum(({ deleted }) => deleted)
  ] as const
  const shared = { noteWord: "delivery gap open", heading: null }
  const hasLate = hours.some(isLateHour)
  return html`${barChart({
    ...shared,
    id: "ages",
    title: "Freshness",
    unit: "highest age by hour",
    summary: latenessWords(hours, health),
    quantity: "duration",
    series: [
      ["good", "old at most"],
      ["warn", "old at most: late"]
    ],
    ...slots((hour) => ({
      values: hour.ageMs === null ? null : isLateHour(hour) ? [0, hour.ageMs] : [hour.ageMs, 0],
      ...(isLateHour(hour) ? { sign: "!" } : {})
    })),
    least: 1_000,
    target: health.targetMs === null ? null : { value: health.targetMs, word: `target ${duration(health.targetMs)}` },
    keys: hasLate ? [["sign late", "late"]] : [],
    empty: "no age is recorded for the last two days. tributary serve records it once a minute while it runs."
  })}
  ${barChart({
    ...shared,
    id: "rows",
    title: "Rows",
    unit: "rows at the end of each hour",
    summary: rowWords(hours, rows),
    quantity: "count",
    series: [["quiet", "rows"]],
    ...slots(({ rows: counted }) => ({ values: counted === null ? null : [counted] })),
    least: 4,
    empty: rowWords(hours, rows)
  })}
  ${barChart({
    ...shared,
    id: "changed",
    title: "Changes",
    unit: "rows an hour",
    summary: `${count(changed[0])} new, ${count(changed[1])} changed, ${count(changed[2])} deleted in two days.`,
    quantity: "count",
    series: [
      ["good", "new"],
      ["busy", "changed"],
      ["bad", "deleted"]
    ],
    ...slots(({ inserted, updated, deleted }) => ({ values: [inserted, updated, deleted] })),
    least: 4,
    empty: hours.length === 0 ? "nothing is recorded for the last two days." : "no row changed in the last two days."
  })}`
}

/** In a chart, colours differ by status. */
const tones = { ...runTones, abandoned: "quiet" } as const
const isFailed = ({ status }: Run): boolean => status === "failed" || status === "abandoned"

/** `34 runs, in 12 rows`: runs without a change share one. */
const runWords = (runs: ReadonlyArray<Run>): string => {
  const all = runs.reduce((sum, run) => sum + membersOf(run), 0)
  return all === runs.length ? plural(all, "run") : `${plural(all, "run")}, in ${plural(runs.length, "row")}`
}

/** The runs that a row stands for. */
const membersOf = ({ quietRuns }: Run): number => Math.max(1, quietRuns)

/** Duration and requests of runs, oldest first; each bar links to its run. A bar is one run, also of those that share a row. */
const runCharts = (runs: ReadonlyArray<Run>, now: Date): Html => {
  const shown = runs.toReversed()
  const [first] = shown
  const last = shown.at(-1)
  if (first === undefined || last === undefined) return html``
  const statuses = (["done", "quarantined", "running", "abandoned", "failed"] as const).filter((status) =>
    shown.some((run) => run.status === status)
  )
  const slots = (valueOf: (run: Run) => number | null, ofShared: string) =>
    shown.map((run): Slot => {
      const value = valueOf(run)
      return {
        words: `${run.quietRuns > 1 ? `${ofShared} ${count(run.quietRuns)} runs without a change, run` : "Run"} ${run.id}, ${minute(run.beganAt)}`,
        to: runAddress(run.id),
        values: value === null ? null : statuses.map((status) => (status === run.status ? value : 0)),
        ...(isFailed(run) ? { sign: "✕" } : {})
      }
    })
  const shared = {
    ticks: [
      { share: 0, label: clock(first.beganAt) },
      { share: 1, label: clock(last.beganAt) }
    ],
    keys: shown.some(isFailed) ? [["sign failed", "failed or abandoned"] as const] : [],
    heading: null,
    empty: "no run has a figure."
  }
  const longest = Math.max(...shown.map((run) => tookOf(run, now) ?? 0))
  const sum = shown.reduce((all, run) => all + run.requests, 0)
  const requestsOf = (run: Run) => run.requests / membersOf(run)
  const most = Math.max(...shown.map(requestsOf))
  const hasShared = shown.some(({ quietRuns }) => quietRuns > 1)
  return html`${barChart({
    ...shared,
    series: statuses.map((status) => [tones[status], status]),
    id: "durations",
    title: "Duration",
    unit: `of a run${hasShared ? "; of runs that share a row, the last one" : ""}`,
    summary: `at most ${duration(longest)} in the last ${runWords(shown)}, since ${minute(first.beganAt)}.`,
    quantity: "duration",
    slots: slots((run) => tookOf(run, now), "The last of"),
    least: 100
  })}
  ${barChart({
    ...shared,
    series: statuses.map((status) => [tones[status], `sent, ${status}`]),
    id: "requests",
    title: "Requests",
    unit: `of a run${hasShared ? "; of runs that share a row, the mean" : ""}`,
    summary: `${plural(sum, "request")} in the last ${runWords(shown)}, since ${minute(first.beganAt)}; at most ${decimal(most)} in a run.`,
    quantity: "count",
    hasTotals: !hasShared,
    slots: slots(requestsOf, "The mean of"),
    least: 4
  })}`
}

/** The duration of a run, or so far; null where its process was lost. */
const tookOf = ({ beganAt, endedAt, status }: Run, now: Date): number | null =>
  endedAt === null && status !== "running" ? null : Math.max(0, (endedAt ?? now).getTime() - beganAt.getTime())

/** Freshness, changes and runs over time; the tables have the same figures. */
export const chartsPart = (
  state: ResourceState,
  hours: ReadonlyArray<Hour>,
  runs: ReadonlyArray<Run>,
  now: Date
): Html =>
  section(
    "over-time",
    "Over time",
    fold(
      "charts",
      "Charts of freshness, rows, changes and runs",
      html`<div class="charts">${hourCharts(hours, state, now)} ${runCharts(runs, now)}</div>
        ${hours.length === 0 ? "" : figuresBelow("hours", "freshness and changes by hour", hoursTable(hours))}`
    )
  )

// -------------------------------------------------------------------------------------------------------------- fields

type Column = RunDetails.ResourceColumn
type UnknownField = RunDetails.UnknownField

const unusedBadge = ({ nullShare }: Column): Html =>
  nullShare === null
    ? none("no statistics yet")
    : nullShare === 1
      ? badge("quiet", "unused")
      : html`${(100 - nullShare * 100).toFixed(nullShare > 0 && nullShare < 0.01 ? 1 : 0)} % have a value`

const unknownTable = (unknown: ReadonlyArray<UnknownField>, now: Date): Html =>
  table(
    "New fields: the source sends them, and the catalogue does not have them",
    "Field, State, Types, #Records, First seen, Last seen",
    unknown.map(({ field, types, times, firstSeenAt, lastSeenAt, promotedAt }) => [
      code(field),
      promotedAt === null ? badge("busy", "new") : html`${badge("good", "has a column")} ${ago(promotedAt, now)}`,
      visible(types.join(", ")),
      count(times),
      ago(firstSeenAt, now),
      ago(lastSeenAt, now)
    ])
  )

const keptWords: Readonly<Record<FieldRule["kind"], string>> = {
  exclude: "left out",
  hash: "hashed",
  mask: "masked"
}

/** The privacy rules of the resource, and since when what is stored follows them; nothing without rules. */
export const privacyPart = (protection: Protection | null, applied: AppliedRules | null, now: Date): Html => {
  if (protection === null) return html``
  const named = (names: ReadonlyArray<string>) =>
    names.length === 0 ? none("none that the catalogue states") : code(names.join(", "))
  const kinds = ["exclude", "hash", "mask"] as const
  const rows = kinds.flatMap((kind) => {
    const patterns = protection.rules.flatMap((one) => (one.rule.kind === kind ? [one.pattern] : []))
    const fields = protection.sent.fields.flatMap(({ name }) => (protection.ruleOf(name)?.kind === kind ? [name] : []))
    return patterns.length === 0 ? [] : [[html`${keptWords[kind]}`, named(fields), named(patterns)]]
  })
  return section(
    "privacy",
    "Privacy rules",
    html`<p>
        ${
          applied?.statement === protection.statement
            ? html`What is stored follows them; they were applied ${ago(applied.appliedAt, now)}.`
            : html`They are not applied yet: <code>tributary sync</code> does it before it reads.`
        }
      </p>
      ${table("What is kept of fields", "Values, Fields, Rules", rows)}`
  )
}

/** The columns with the unused ones, and the fields that the catalogue does not have. */
export const fieldsPart = (columns: ReadonlyArray<Column>, unknown: ReadonlyArray<UnknownField>, now: Date): Html => {
  if (columns.length === 0 && unknown.length === 0) return html``
  const unused = columns.filter(({ nullShare }) => nullShare === 1)
  const fresh = unknown.filter(({ promotedAt }) => promotedAt === null)
  return section(
    "fields",
    "Fields",
    html`<p>
        ${plural(columns.length, "column")}, ${count(unused.length)} of them unused: without a value in any row of any
        company, by the statistics of Postgres.
        ${fresh.length === 0 ? "No new field is known." : html`${plural(fresh.length, "new field")}: <code>tributary schema apply</code> makes columns of them.`}
      </p>
      ${unknown.length === 0 ? "" : unknownTable(unknown, now)}
      <details id="columns">
        <summary>All columns</summary>
        ${table(
          "Columns of the table",
          "Column, Type, Values",
          columns.map((column) => [code(column.name), code(column.type), unusedBadge(column)])
        )}
      </details>`
  )
}
