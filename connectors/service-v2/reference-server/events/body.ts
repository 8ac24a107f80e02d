/**
 * Checks of the bodies of POST and PATCH /webhooks (WEBHOOK-13, WEBHOOK-16, H-11).
 *
 * Promise: checked in the order of D-03: unknown fields, then types and lengths together (D-02), then the meaning of
 * the values. Read-only fields are ignored; a PATCH with nothing else is refused.
 */
import { eventNames } from "../../catalogue/events.ts"
import { limits } from "../../catalogue/limits.ts"
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Problem } from "../ApiError.ts"
import { ApiError, unknownName } from "../ApiError.ts"
import { isObject } from "../json.ts"
import { codePoints } from "../rules/body.ts"

/** The fields that were sent; undefined where one was not. */
export interface SubscriptionInput {
  readonly url?: string
  readonly events?: ReadonlyArray<string>
  readonly description?: string | null
  readonly paused?: boolean
  readonly enabled?: boolean
  readonly secret?: string
}

const readOnly = ["id", "failcount", "lastdeliverydate", "disableddate", "cancel"]
const writable = ["url", "events", "description", "paused", "enabled"]
const secretLength = { min: 16, max: 255 }

const readText = (field: string, value: unknown, most: number, problems: Array<Problem>) => {
  if (typeof value !== "string") problems.push({ field, code: "invalid_type", message: "must be a string" })
  else if (codePoints(value) > most) {
    problems.push({ field, code: "too_long", message: `must be at most ${most} characters` })
  }
}

const required = (field: string, message: string): Problem => ({ field, code: "required", message })

const readEvents = (value: unknown, problems: Array<Problem>) => {
  if (!Array.isArray(value)) {
    problems.push({ field: "events", code: "invalid_type", message: "must be an array of event names" })
  } else if (value.length === 0) {
    problems.push(required("events", "must name at least one event"))
  } else {
    for (const [index, name] of value.entries()) {
      if (typeof name === "string") continue
      problems.push({ field: `events[${index}]`, code: "invalid_type", message: "must be the name of an event" })
    }
  }
}

const readSecret = (value: unknown, problems: Array<Problem>) => {
  readText("secret", value, secretLength.max, problems)
  if (typeof value === "string" && codePoints(value) < secretLength.min) {
    problems.push({
      field: "secret",
      code: "too_short",
      message: `must be at least ${secretLength.min} characters`
    })
  }
}

const readShape = (body: Readonly<Record<string, unknown>>, mode: "create" | "update"): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const isGiven = (name: string) => body[name] !== undefined
  for (const name of ["url", "events"]) {
    const isMissing = body[name] === null || body[name] === "" || (mode === "create" && !isGiven(name))
    if (isMissing) problems.push(required(name, "is required"))
    else if (name === "url" && isGiven(name)) readText(name, body[name], limits.webhookUrlLengthMax, problems)
    else if (name === "events" && isGiven(name)) readEvents(body[name], problems)
  }
  if (isGiven("description") && body["description"] !== null) {
    readText("description", body["description"], limits.webhookDescriptionLengthMax, problems)
  }
  for (const name of ["paused", "enabled"]) {
    if (!isGiven(name) || typeof body[name] === "boolean") continue
    problems.push({ field: name, code: "invalid_type", message: "must be true or false" })
  }
  if (isGiven("secret")) readSecret(body["secret"], problems)
  return problems
}

/** A single kind of problem answers with its own code, any other set with the list (D-01, D-02). */
const refuse = (problems: ReadonlyArray<Problem>) => {
  const [first] = problems
  if (first === undefined) return
  const { field } = first
  if (problems.length === 1 && first.code === "invalid_type") {
    throw new ApiError(first.code, `${field} ${first.message}`, { field })
  }
  const message = problems.map((problem) => `${problem.field} ${problem.message}`).join("; ")
  throw new ApiError("invalid_request", message, { field, errors: problems })
}

const refuseUrl = (url: string) => {
  if (URL.canParse(url) && new URL(url).protocol === "https:") return
  throw new ApiError("unsupported_value", "url must be an https address", { field: "url" })
}

const refuseEvents = (catalogue: Catalogue, names: ReadonlyArray<string>) => {
  const validNames = new Set(eventNames(catalogue))
  const index = names.findIndex((name) => !validNames.has(name))
  if (index < 0) return
  const name = names[index]!
  const message =
    name === "*" ? "events are listed by name: * is not accepted" : `there is no event ${JSON.stringify(name)}`
  throw new ApiError("unknown_value", message, { field: `events[${index}]` })
}

/** Reads a body. `checked` is called when its form is valid, before its values are checked (C-02). */
export const readInput = (
  catalogue: Catalogue,
  mode: "create" | "update",
  body: unknown,
  checked: () => void = () => {}
): SubscriptionInput => {
  if (!isObject(body)) throw new ApiError("invalid_request", "the body must be a JSON object")
  const names = mode === "create" ? writable : [...writable, "secret"]
  const unknown = Object.keys(body).find((name) => !names.includes(name) && !readOnly.includes(name))
  if (unknown !== undefined) {
    throw unknownName("field", unknown, names.join(", "))
  }
  refuse(readShape(body, mode))
  const input: SubscriptionInput = Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)))
  if (mode === "update" && Object.keys(input).length === 0) {
    throw new ApiError("invalid_request", `no field was sent; valid are: ${names.join(", ")}`)
  }
  checked()
  if (input.url !== undefined) refuseUrl(input.url)
  if (input.events !== undefined) refuseEvents(catalogue, input.events)
  return input
}
