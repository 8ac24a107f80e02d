/** Decoding of a page's parameters; an invalid one is a {@link PageError}. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Priority } from "../budget/Budget.ts"
import { PageError, type PageRequest, type ShownCompany } from "./Page.ts"
import * as TaskQueue from "../tasks/TaskQueue.ts"
import { visible } from "../web/Escape.ts"

/** The priority of requests that a person waits for. */
export const withPagePriority = Effect.provideService(Priority, { class: "urgent", dueAt: 0 })

/** The time after which a page answers without the source. */
export const sourceTimeout = Duration.seconds(10)

/** A parameter of the path. */
export const ofPath = ({ path }: PageRequest, name: string): string => path[name] ?? ""

/** A parameter of the query; null when it is absent or empty. */
export const ofQuery = ({ query }: PageRequest, name: string): string | null => {
  const value = query.get(name)?.trim() ?? ""
  return value === "" ? null : value
}

/** A field of the form; null when it is absent or empty. */
export const ofForm = ({ form }: PageRequest, name: string): string | null => {
  const value = form.get(name) ?? ""
  return value === "" ? null : value
}

/** One of these values, or null where the query has none. */
export const choiceOf = <A extends string>(
  request: PageRequest,
  name: string,
  values: ReadonlyArray<A>
): Effect.Effect<A | null, PageError> => {
  const text = ofQuery(request, name)
  const value = values.find((one) => one === text)
  return text === null || value !== undefined
    ? Effect.succeed(value ?? null)
    : Effect.fail(new PageError({ status: 400, message: `There is no such ${name}.` }))
}

/** Companies that a message names. */
const namesMax = 20

/** The configured company of this name. */
export const companyNamed = (
  { companies }: PageRequest,
  name: string | null
): Effect.Effect<ShownCompany, PageError> => {
  const found = companies.find((one) => one.name === name)
  if (found !== undefined) return Effect.succeed(found)
  const named = name === null ? "No company was named" : `No company ${visible(name)} is configured here`
  const shown = companies.slice(0, namesMax).map((one) => visible(one.name))
  const further = companies.length - shown.length
  const there = shown.join(", ") + (further > 0 ? ` and ${further.toLocaleString("en-US")} more` : "")
  return Effect.fail(new PageError({ status: 404, message: `${named}; there is ${there === "" ? "none" : there}.` }))
}

/** The number of a company at the source; null where none is named. */
export const companyIdNamed = Effect.fnUntraced(function* (request: PageRequest, name: string | null) {
  if (name === null) return null
  const known = yield* TaskQueue.companyIdOf(name)
  if (known !== null) return known
  yield* companyNamed(request, name)
  return yield* new PageError({
    status: 404,
    message:
      `Nothing of company ${visible(name)} was read yet, and its number at the source is not known. ` +
      "The page of the company has the reason."
  })
})

/** The id in the query after which a list continues; null at its beginning. */
export const positionOf = (
  request: PageRequest,
  name: string,
  what: string
): Effect.Effect<bigint | null, PageError> => {
  const text = ofQuery(request, name)
  return text === null ? Effect.succeed(null) : numberOf(text, what)
}

/** An id from the warehouse. */
export const numberOf = (text: string | null, what: string): Effect.Effect<bigint, PageError> =>
  text !== null && /^\d{1,18}$/.test(text)
    ? Effect.succeed(BigInt(text))
    : Effect.fail(new PageError({ status: 400, message: `That is not the number of ${what}.` }))
