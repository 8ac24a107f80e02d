/**
 * Actions on tasks: sync, backfill, pause and resume.
 *
 * Promise: each action shows its consequences and needs a confirmation. A request is stored for the next free process.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { isAfter } from "../../connector/Instant.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { html, PageError, redirect, type Html, type PageRequest, type Route } from "../Page.ts"
import { confirmation } from "../Components.ts"
import * as Resources from "../../status/Resources.ts"
import { plural, resourceAddress, visible } from "../Escape.ts"
import { companyNamed } from "../Params.ts"
import { meant } from "./Resource.ts"

/** One resource, or all of a company. */
interface Target {
  readonly company: string
  readonly resource: string | null
  readonly states: ReadonlyArray<Resources.ResourceState>
}

type Done = Effect.Effect<string, PageError | SqlError, SqlClient.SqlClient>

interface Action {
  readonly what: string
  readonly of: "resource" | "company" | "either"
  readonly title: (target: string) => string
  readonly consequences: (target: Target) => ReadonlyArray<string>
  readonly inputs?: Html
  readonly button: string
  /** Answers the notice that the next page shows. */
  readonly do: (target: Target, request: PageRequest) => Done
}

const named = ({ company, resource, states }: Target): string =>
  resource === null
    ? `all ${plural(states.length, "resource")} of ${visible(company)}`
    : `${visible(resource)} of ${visible(company)}`

const isPaused = ({ health }: Resources.ResourceState) => health.isPaused

const asked =
  (isFull: boolean) =>
  (target: Target, { by }: PageRequest): Done =>
    Effect.as(
      Effect.forEach(
        target.states.filter(({ health }) => target.resource !== null || !health.isPaused),
        ({ company, resource }) => TaskQueue.requestSync({ company, resource, full: isFull, by }),
        { discard: true }
      ),
      `Requested: ${named(target)} ${isFull ? "will be read in full" : "will be synced"} as soon as a process is free.`
    )

/** A bound in UTC of a day or an RFC 3339 instant; undefined for another text. */
const boundOf = (text: string, end: "since" | "until"): string | null | undefined => {
  const given = text.trim()
  if (given === "") return null
  const day = /^(\d{4})-(\d\d)-(\d\d)$/.test(given)
  const instant =
    /^\d{4}-\d\d-\d\d[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/
  if (!day && !instant.test(given)) return undefined
  // `Date` turns a day that does not exist into another one.
  const date = given.slice(0, 10)
  const midnight = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date)) return undefined
  if (day) return end === "since" ? `${given}T00:00:00Z` : `${given}T23:59:59.999999999Z`
  if (/[Zz]$/.test(given)) return given.toUpperCase()
  const whole = new Date(Date.parse(given.replace(/\.\d+/, ""))).toISOString().slice(0, 19)
  return `${whole}${/\.\d+/.exec(given)?.[0] ?? ""}Z`
}

export const rangeOf = (
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

const backfillInputs = html`<fieldset>
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

const actions: ReadonlyArray<Action> = [
  {
    what: "sync",
    of: "either",
    title: (target) => `Sync ${target} now?`,
    consequences: ({ states, resource }) => [
      "Records that changed at the source since the last run are read as soon as a process is free.",
      ...(states.some(({ health }) => health.isRunning) ? ["A run is active; another run follows it."] : []),
      ...(states.some(isPaused)
        ? [resource === null ? "Paused resources are left out." : "It is paused: it runs once and stays paused."]
        : [])
    ],
    button: "Sync now",
    do: asked(false)
  },
  {
    what: "full",
    of: "resource",
    title: (target) => `Read all of ${target}?`,
    consequences: () => [
      "Every record is read again, and rows whose record is gone at the source are marked as deleted.",
      "This takes one request for each page. Nothing is removed from the history."
    ],
    button: "Read everything",
    do: asked(true)
  },
  {
    what: "backfill",
    of: "resource",
    title: (target) => `Backfill ${target}?`,
    consequences: () => [
      "A past range, or everything, is read again. Live syncing continues and has priority.",
      "No row returns to an older version. An interrupted backfill resumes where it stopped."
    ],
    inputs: backfillInputs,
    button: "Backfill",
    do: (target, { form, by }) =>
      Effect.gen(function* () {
        const range = yield* rangeOf(form.get("since") ?? "", form.get("until") ?? "")
        const { company, resource } = target
        if (resource === null) return yield* new PageError({ status: 400, message: "No resource was named." })
        const outcome = yield* TaskQueue.requestBackfill({ company, resource, ...range, by })
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
    what: "pause",
    of: "resource",
    title: (target) => `Pause ${target}?`,
    consequences: () => [
      "It is not run by its schedule until a person resumes it; a current run continues to its end.",
      "Events are still received and processed."
    ],
    button: "Pause",
    do: (target, { by }) => Effect.as(TaskQueue.pauseTasks({ ...target, by }), `Paused: ${named(target)}.`)
  },
  {
    what: "resume",
    of: "resource",
    title: (target) => `Resume ${target}?`,
    consequences: () => ["It is run by its schedule again; a run that was missed meanwhile starts at once."],
    button: "Resume",
    do: (target, { by }) => Effect.as(TaskQueue.resumeTasks({ ...target, by }), `Resumed: ${named(target)}.`)
  },
  {
    what: "pause-company",
    of: "company",
    title: (target) => `Pause ${target}?`,
    consequences: ({ states }) => [
      `${plural(states.filter((state) => !isPaused(state)).length, "resource")} will not be run by schedule until a person resumes them; current runs continue to their end.`,
      "Events are still received and processed."
    ],
    button: "Pause all",
    do: ({ company }, { by }) =>
      Effect.map(
        TaskQueue.pauseTasks({ company, resource: null, by }),
        (changed) => `Paused: ${plural(changed, "resource")} of ${visible(company)}.`
      )
  },
  {
    what: "resume-company",
    of: "company",
    title: (target) => `Resume ${target}?`,
    consequences: ({ states }) => [
      `${plural(states.filter(isPaused).length, "resource")} will be run by schedule again; a run that was missed meanwhile starts at once.`
    ],
    button: "Resume all",
    do: ({ company }, { by }) =>
      Effect.map(
        TaskQueue.resumeTasks({ company, resource: null, by }),
        (changed) => `Resumed: ${plural(changed, "resource")} of ${visible(company)}.`
      )
  }
]

/** The target that the query or the form names. */
const targetOf = Effect.fnUntraced(function* (action: Action, request: PageRequest, given: URLSearchParams) {
  const company = given.get("company")
  const resource = action.of === "company" ? null : given.get("resource")
  if (resource !== null || action.of === "resource") {
    const state = yield* meant(request, company, resource)
    return { company: state.company, resource: state.resource, states: [state] } satisfies Target
  }
  const configured = yield* companyNamed(request, company)
  const states = yield* Resources.read([configured], request.now)
  return { company: configured.name, resource: null, states } satisfies Target
})

const backTo = ({ company, resource }: Target) => (resource === null ? "/" : resourceAddress(company, resource))

export const routes: ReadonlyArray<Route> = actions.flatMap((action): ReadonlyArray<Route> => [
  {
    method: "GET",
    path: `/confirm/${action.what}`,
    handle: (request) =>
      Effect.map(targetOf(action, request, request.query), (target) =>
        confirmation(request, "overview", action.title(named(target)), {
          title: action.title(named(target)),
          consequences: action.consequences(target),
          action: `/do/${action.what}`,
          fields: { company: target.company, ...(target.resource === null ? {} : { resource: target.resource }) },
          ...(action.inputs === undefined ? {} : { inputs: action.inputs }),
          button: action.button,
          back: backTo(target)
        })
      )
  },
  {
    method: "POST",
    path: `/do/${action.what}`,
    handle: (request) =>
      Effect.gen(function* () {
        const target = yield* targetOf(action, request, request.form)
        return redirect(backTo(target), yield* action.do(target, request))
      })
  }
])
