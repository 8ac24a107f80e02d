/**
 * Actions on tasks: sync, backfill, pause and resume.
 *
 * Promise: each action shows its consequences and needs a confirmation. A request is stored for the next free process.
 */
import * as Effect from "effect/Effect"
import { isAfter } from "../../connector/Instant.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { type Action, routesOf } from "../Action.ts"
import { html, type PageEffect, PageError, requester, type Route } from "../Page.ts"
import * as Resources from "../../status/Resources.ts"
import { plural, visible } from "../../web/Escape.ts"
import { companyAddress, resourceAddress } from "../Addresses.ts"
import { companyNamed } from "../Params.ts"
import { resourceNamed } from "./Resource.ts"

/** One resource, or all of a company. */
interface Target {
  readonly company: string
  readonly resource: string | null
  readonly states: ReadonlyArray<Resources.ResourceState>
}

interface TaskAction extends Omit<Action<Target>, "section" | "target" | "fields" | "back"> {
  readonly of: "resource" | "company" | "either"
}

const named = ({ company, resource, states }: Target): string =>
  resource === null
    ? `all ${plural(states.length, "resource")} of ${visible(company)}`
    : `${visible(resource)} of ${visible(company)}`

const isPaused = ({ health }: Resources.ResourceState) => health.isPaused

const requestSync =
  (isFull: boolean) =>
  (target: Target): PageEffect<string> =>
    Effect.as(
      Effect.forEach(
        target.states.filter(({ health }) => target.resource !== null || !health.isPaused),
        ({ company, resource }) => TaskQueue.requestSync({ company, resource, full: isFull, by: requester }),
        { discard: true }
      ),
      `Requested: ${named(target)} ${isFull ? "will be read in full" : "will be synced"} as soon as a process is free.`
    )

const timePattern =
  /^(\d{4}-\d\d-\d\d)(?:[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(\.\d{1,9})?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/

/** A bound in UTC of a day or an RFC 3339 instant; null for no text, undefined for another text. */
const boundOf = (text: string, end: "since" | "until"): string | null | undefined => {
  const given = text.trim()
  if (given === "") return null
  const [, day, time, fraction = "", zone] = timePattern.exec(given) ?? []
  if (day === undefined) return undefined
  // `Date` turns a day that does not exist into another one.
  const midnight = Date.parse(`${day}T00:00:00Z`)
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day)) return undefined
  if (time === undefined) return end === "since" ? `${day}T00:00:00Z` : `${day}T23:59:59.999999999Z`
  return `${new Date(`${day}T${time}${zone!.toUpperCase()}`).toISOString().slice(0, 19)}${fraction}Z`
}

const rangeOf = (
  since: string,
  until: string
): Effect.Effect<{ readonly since: string | null; readonly until: string | null }, PageError> => {
  const range = { since: boundOf(since, "since"), until: boundOf(until, "until") }
  const wrong = (message: string) => Effect.fail(new PageError({ status: 400, message }))
  if (range.since === undefined || range.until === undefined) {
    return wrong(
      `“${visible((range.since === undefined ? since : until).slice(0, 60))}” is not a time: expected a day like 2026-01-31 or an instant like 2026-01-31T08:00:00Z. Nothing was done.`
    )
  }
  const { since: from, until: to } = range
  return from !== null && to !== null && isAfter(to, from) !== true
    ? wrong("“From” must be before “to”. Nothing was done.")
    : Effect.succeed({ since: from, until: to })
}

export const backfillInputs = html`<fieldset>
  <legend>Only records that changed in this time; both may be empty</legend>
  <p>
    <label for="since">From</label>
    <input id="since" name="since" maxlength="40" autocomplete="off" aria-describedby="times" />
  </p>
  <p>
    <label for="until">To</label>
    <input id="until" name="until" maxlength="40" autocomplete="off" aria-describedby="times" />
  </p>
  <p class="hint" id="times">
    A day like 2026-01-31, or a time with its zone like 2026-01-31T08:00:00Z. Days are in UTC, and the last day is
    included.
  </p>
</fieldset>`

const actions: ReadonlyArray<TaskAction> = [
  {
    name: "sync",
    of: "either",
    heading: (target) => `Sync ${named(target)} now?`,
    consequences: ({ states, resource }) => [
      "Records that changed at the source since the last run are read as soon as a process is free.",
      ...(states.some(({ health }) => health.isRunning) ? ["A run is active; another run follows it."] : []),
      ...(states.some(isPaused)
        ? [resource === null ? "Paused resources are left out." : "It is paused: it runs once and stays paused."]
        : [])
    ],
    button: "Sync now",
    act: requestSync(false)
  },
  {
    name: "full",
    of: "resource",
    heading: (target) => `Full scan of ${named(target)}?`,
    consequences: () => [
      "Every record is read again, and rows whose record is gone at the source are marked as deleted.",
      "This takes one request for each page. Nothing is removed from the history."
    ],
    button: "Full scan",
    act: requestSync(true)
  },
  {
    name: "backfill",
    of: "resource",
    heading: (target) => `Backfill ${named(target)}?`,
    consequences: () => [
      "A past range, or everything, is read again. Live syncing continues and has priority.",
      "No row returns to an older version. An interrupted backfill resumes where it stopped."
    ],
    inputs: backfillInputs,
    button: "Backfill",
    act: (target, { form }) =>
      Effect.gen(function* () {
        const range = yield* rangeOf(form.get("since") ?? "", form.get("until") ?? "")
        const { company, resource } = target
        if (resource === null) return yield* new PageError({ status: 400, message: "No resource was named." })
        const outcome = yield* TaskQueue.requestBackfill({ company, resource, ...range, by: requester })
        if (outcome === "running") {
          return yield* new PageError({
            status: 409,
            message: `A backfill of another range of ${named(target)} is running. Request it again when that has ended; nothing was changed.`
          })
        }
        return `Requested: ${named(target)} will be backfilled as soon as a process is free.`
      })
  },
  {
    name: "pause",
    of: "resource",
    heading: (target) => `Pause ${named(target)}?`,
    consequences: () => [
      "It is not run by its schedule until a person resumes it; a current run continues to its end.",
      "Events are still received and processed."
    ],
    button: "Pause",
    act: (target) => Effect.as(TaskQueue.pauseTasks({ ...target, by: requester }), `Paused: ${named(target)}.`)
  },
  {
    name: "resume",
    of: "resource",
    heading: (target) => `Resume ${named(target)}?`,
    consequences: () => ["It is run by its schedule again; a run that was missed meanwhile starts at once."],
    button: "Resume",
    act: (target) => Effect.as(TaskQueue.resumeTasks({ ...target, by: requester }), `Resumed: ${named(target)}.`)
  },
  {
    name: "pause-company",
    of: "company",
    heading: (target) => `Pause ${named(target)}?`,
    consequences: ({ states }) => [
      `${plural(states.filter((state) => !isPaused(state)).length, "resource")} will not be run by schedule until a person resumes them; current runs continue to their end.`,
      "Events are still received and processed."
    ],
    button: "Pause all",
    act: ({ company }) =>
      Effect.map(
        TaskQueue.pauseTasks({ company, resource: null, by: requester }),
        (changed) => `Paused: ${plural(changed, "resource")} of ${visible(company)}.`
      )
  },
  {
    name: "resume-company",
    of: "company",
    heading: (target) => `Resume ${named(target)}?`,
    consequences: ({ states }) => [
      `${plural(states.filter(isPaused).length, "resource")} will be run by schedule again; a run that was missed meanwhile starts at once.`
    ],
    button: "Resume all",
    act: ({ company }) =>
      Effect.map(
        TaskQueue.resumeTasks({ company, resource: null, by: requester }),
        (changed) => `Resumed: ${plural(changed, "resource")} of ${visible(company)}.`
      )
  }
]

const targetOf = (of: TaskAction["of"]): Action<Target>["target"] =>
  Effect.fnUntraced(function* (request, field) {
    const company = field("company")
    const resource = of === "company" ? null : field("resource")
    if (resource !== null || of === "resource") {
      const state = yield* resourceNamed(request, company, resource)
      return { company: state.company, resource: state.resource, states: [state] }
    }
    const configured = yield* companyNamed(request, company)
    return { company: configured.name, resource, states: yield* Resources.read([configured]) }
  })

export const routes: ReadonlyArray<Route> = actions.flatMap((action) =>
  routesOf({
    ...action,
    section: "resources",
    target: targetOf(action.of),
    fields: ({ company, resource }) => ({ company, resource }),
    back: ({ company, resource }) => (resource === null ? companyAddress(company) : resourceAddress(company, resource))
  })
)
