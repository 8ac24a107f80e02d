/** States, runs and numbers as HTML. */
import { html, type Html } from "./Page.ts"
import { ago, badge, count, duration, type Tone } from "../web/Components.ts"
import { address, plural, truncated, visible } from "../web/Escape.ts"
import * as Times from "../web/Times.ts"
import type { State } from "../tasks/CountCompanies.ts"
import { requestsOf, withoutRequest } from "../status/Problems.ts"
import { runAddress } from "./Addresses.ts"
import { code, copied, detail } from "./Links.ts"
import type { Health, ResourceState, RunStatus, HealthState } from "../status/Resources.ts"

export const runTones: Readonly<Record<RunStatus, Tone>> = {
  running: "busy",
  done: "good",
  quarantined: "warn",
  failed: "bad",
  abandoned: "warn"
}

export const runBadge = (status: RunStatus): Html => badge(runTones[status], status)

/** The state of a run; one that ended well and left an event unread is not a success. */
export const runState = ({ status, deadLetters }: { readonly status: RunStatus; readonly deadLetters: number }): Html =>
  status === "done" && deadLetters > 0 ? badge("bad", plural(deadLetters, "dead letter")) : runBadge(status)

/** The tone and the word of a state of a resource or a company. */
export const stateWords: Readonly<Record<HealthState | State, readonly [tone: Tone, word: string]>> = {
  failing: ["bad", "failing"],
  late: ["warn", "late"],
  attention: ["warn", "attention"],
  "never-synced": ["quiet", "never synced"],
  quarantine: ["warn", "quarantine"],
  blocked: ["warn", "blocked"],
  paused: ["quiet", "paused"],
  fresh: ["good", "fresh"]
}

/** The health as badges. */
export const healthBadges = ({ state, isLate, isPaused, isRunning }: Health): Html => {
  const [tone, word] = stateWords[state]
  return html`${badge(tone, word)}${isLate && state !== "late" ? html` ${badge("warn", "late")}` : ""}${
    isPaused && state !== "paused" ? html` ${badge("quiet", "paused")}` : ""
  }${isRunning ? html` ${badge("busy", "running")}` : ""}`
}

/** The age, and the target. */
export const freshness = (
  { freshAt, isProven, health: { ageMs, targetMs, isBlocked } }: ResourceState,
  now: Date
): Html => {
  const promised = targetMs === null || isBlocked ? null : duration(targetMs)
  const lateBy = targetMs !== null && ageMs !== null && ageMs > targetMs ? duration(ageMs - targetMs) : null
  return html`${ago(freshAt, now)}${isProven ? html` <span class="whole">by events</span>` : ""}${
    promised === null
      ? ""
      : html`<span class="detail"
          >${lateBy === null ? "" : html`<span class="whole">late by ${lateBy},</span> `}<span class="whole"
            >target ${promised}</span
          ></span
        >`
  }`
}

/** Whether the resource is within its target now and will be late before this run. */
const isLateBefore = ({ freshAt, isProven, health: { targetMs, isLate, isBlocked } }: ResourceState, nextAt: Date) =>
  !isLate &&
  !isBlocked &&
  !isProven &&
  freshAt !== null &&
  targetMs !== null &&
  nextAt.getTime() - freshAt.getTime() > targetMs

/** The next run, or why there is none. */
export const nextRun = (state: ResourceState, now: Date): Html => {
  const { task } = state
  if (state.health.isRunning)
    return html`running now${task === null || task.askedAt === null ? "" : ", and requested once more"}`
  if (task === null) return html`<span class="none">no schedule</span>`
  if (task.askedAt !== null) return html`requested ${ago(task.askedAt, now)}`
  if (task.pausedAt !== null) return html`<span class="none">paused</span>`
  if (task.nextAt === null) return html`<span class="none">${task.schedule === null ? "on request" : "off"}</span>`
  if (task.nextAt.getTime() <= now.getTime()) return html`due`
  const why =
    task.failures > 0
      ? "retry"
      : task.deferredFrom !== null
        ? "deferred while events prove freshness"
        : isLateBefore(state, task.nextAt)
          ? "after its target"
          : null
  return html`${ago(task.nextAt, now)}${why === null ? "" : html` <span class="detail">${why}</span>`}`
}

/** The row count, marked where it is an estimate. */
export const rows = ({ rows: counted }: ResourceState): Html =>
  counted === null
    ? html`<span class="none whole">not counted</span>`
    : html`${counted.isExact ? "" : "about "}${count(counted.rows)}`

export const lastRun = ({ lastRun: run }: ResourceState, now: Date): Html =>
  run === null
    ? html`<span class="none">none</span>`
    : html`<a href="${runAddress(run.id)}">${runBadge(run.status)}</a>
        <span class="detail">${ago(run.beganAt, now)}</span>`

/** A cursor; an instant without its T, so that it breaks into two lines. */
export const cursor = (text: string | null): Html =>
  text === null
    ? html`<span class="none">none</span>`
    : html`<span class="cursor"
        >${visible(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) ? text.replace("T", " ").replace(/(\.\d+)?Z$/, "") : text)}</span
      >`

/** A link to the confirmation of an action; `about` names its target for screen readers. */
export const actionLink = (
  what: string,
  query: Readonly<Record<string, string | null>>,
  text: string,
  about: string
): Html =>
  html`<a class="button" href="${address(`/confirm/${what}`, query)}"
    >${text}<span class="visually-hidden"> ${about}</span></a
  >`

interface Problem {
  readonly error: string
  readonly remedy: string | null
}

export { withoutRequest }

/** An error as a sentence. */
export const errorSentence = (error: string): string => {
  const text = withoutRequest(error).replace(/\.$/, "")
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

/** The request of an error, and its id to be copied; nothing where the error has none. */
export const errorRequest = (error: string): Html => {
  const parts = requestsOf(error).map((part) => ("id" in part ? html`request ${copied(part.id)}` : code(part.request)))
  return parts.length === 0 ? html`` : detail(html`${parts.map((part) => html`${part} `)}`)
}

/** What happened, and what to do about it where the text has that too. */
export const partsOf = (reason: string): readonly [error: string, remedy: string] => {
  const at = reason.indexOf("; ")
  return at < 0 ? [reason, ""] : [reason.slice(0, at), reason.slice(at + 2)]
}

/** The reason of an event as a sentence, with what to do and the request muted. */
export const reason = (text: string, charactersMax: number): Html => {
  const [error, remedy] = partsOf(text)
  return html`${truncated(errorSentence(error), charactersMax)}${
    remedy === "" ? "" : html`<span class="detail">${truncated(errorSentence(remedy), charactersMax)}</span>`
  }${errorRequest(text)}`
}

const kindWords: Readonly<Record<string, string>> = {
  full: "full scan",
  incremental: "incremental scan",
  children: "children of changed parents",
  fetch: "by number, after an event",
  push: "push"
}

/** What a run reads, with its lane where the kind does not imply it. */
export const runKind = ({ kind, lane }: { readonly kind: string; readonly lane: string }): string =>
  `${kindWords[kind] ?? kind}${lane === "live" || kind === "fetch" || kind === "push" ? "" : `, ${lane}`}`

/** The same beside the name of the resource. */
export const withoutName = (error: string, resource: string): string => {
  const brief = withoutRequest(error)
  return brief.startsWith(`${resource}: `) ? brief.slice(resource.length + 2) : brief
}

/** Why a resource that is not failing is late. */
const lateReason = ({ task, lastRun: run, freshAt }: ResourceState, now: Date): Problem => {
  if (run?.status === "running") {
    return { error: "Its run has not ended yet.", remedy: "see how far the run is" }
  }
  if (run?.status === "quarantined") {
    return {
      error: "The last run left records in quarantine, so that the resource misses its freshness target.",
      remedy: "look at its quarantine; the resource is fresh again after a run without quarantine"
    }
  }
  const isDue = task !== null && (task.askedAt !== null || (task.nextAt !== null && task.nextAt <= now))
  if (isDue) {
    return {
      error: "It is due, and no process has begun its run yet.",
      remedy: "check that tributary serve runs, and that its rate budget is not used up"
    }
  }
  if (task === null || task.nextAt === null) {
    return { error: "Not scheduled.", remedy: "sync it now, or give it a schedule in the configuration" }
  }
  if (run?.status === "done" && freshAt !== null && run.beganAt.getTime() === freshAt.getTime()) {
    return {
      error: `Its schedule (${task.schedule ?? "none"}) runs it less often than its freshness target requires.`,
      remedy: "sync it now; then shorten its schedule or raise its target in the configuration"
    }
  }
  return {
    error:
      freshAt === null
        ? "No run has read all of it yet."
        : "No run since then has read all changes and landed every record.",
    remedy: "see its last run"
  }
}

/** The reason why it fails or is late; null where nothing is wrong. */
export const problemOf = (state: ResourceState, now: Date): Problem | null => {
  const { failure, health } = state
  if (health.isFailing || health.isBlocked)
    return failure ?? { error: "The last run failed; no reason is stored.", remedy: null }
  return health.isLate ? lateReason(state, now) : null
}

/** An instant of the warehouse to the second, or to the millisecond, and how long ago it was. */
export const instant = (text: string | null, now: Date, hasMilliseconds = false): Html =>
  text === null
    ? html`<span class="none">unknown</span>`
    : html`${hasMilliseconds ? Times.exactInstant(new Date(text)) : Times.instant(text)}
        <span class="since">${ago(text, now)}</span>`
