/**
 * Runs `cases.json` against a reference server, with the standard HTTP client of JavaScript.
 *
 * Usage: `node run.ts <cases.json> <baseUrl> <controlUrl> [name=value …]`. The values fill `{{name}}` in the cases.
 */
import { readFileSync } from "node:fs"

type Values = Map<string, unknown>
type Tree = Readonly<Record<string, unknown>>

interface Step {
  readonly api?: string
  readonly control?: string
  readonly token?: string | null
  readonly headers?: Tree
  readonly body?: unknown
  readonly rawBody?: string
  readonly expect: Tree
  readonly save?: Readonly<Record<string, string>>
}

interface Case {
  readonly name: string
  /** Names of values without which the case is skipped. */
  readonly needs?: ReadonlyArray<string>
  readonly steps: ReadonlyArray<Step>
}

/** A difference between an expected and an actual value. */
class Mismatch extends Error {
  readonly at: string
  constructor(at: string, expected: unknown, actual: unknown) {
    super(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual) ?? "nothing"}`)
    this.at = at
  }
}

const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null && !Array.isArray(value)

/** Replaces `{{name}}`. A text that is nothing else becomes the value itself. */
const fill = (template: unknown, values: Values): unknown => {
  if (Array.isArray(template)) return template.map((one) => fill(one, values))
  if (isTree(template))
    return Object.fromEntries(Object.entries(template).map(([key, one]) => [key, fill(one, values)]))
  if (typeof template !== "string") return template
  const valueOf = (name: string): unknown => {
    if (!values.has(name)) throw new Mismatch("values", `a value for ${name}`, undefined)
    return values.get(name)
  }
  const whole = /^\{\{(\w+)\}\}$/.exec(template)
  return whole === null
    ? template.replace(/\{\{(\w+)\}\}/g, (_all, name: string) => String(valueOf(name)))
    : valueOf(whole[1]!)
}

const isType: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  object: isTree
}

const matches = (at: string, expected: unknown, actual: unknown): boolean => {
  try {
    match(at, expected, actual)
    return true
  } catch {
    return false
  }
}

const match = (at: string, expected: unknown, actual: unknown): void => {
  const require = (isMet: boolean) => {
    if (!isMet) throw new Mismatch(at, expected, actual)
  }
  if (Array.isArray(expected)) {
    require(Array.isArray(actual) && actual.length === expected.length)
    for (const [index, one] of expected.entries()) match(`${at}.${index}`, one, (actual as Array<unknown>)[index])
  } else if (!isTree(expected)) require(expected === actual)
  else if ("$type" in expected) require(isType[String(expected["$type"])]!(actual))
  else if ("$match" in expected)
    require(typeof actual === "string" && new RegExp(String(expected["$match"])).test(actual))
  else if ("$absent" in expected) require(actual === undefined)
  else if ("$length" in expected) require(Array.isArray(actual) && actual.length === expected["$length"])
  else if ("$contains" in expected) {
    require(Array.isArray(actual))
    for (const one of expected["$contains"] as Array<unknown>) {
      require((actual as Array<unknown>).some((candidate) => matches(at, one, candidate)))
    }
  } else {
    require(isTree(actual))
    for (const [key, one] of Object.entries(expected)) match(`${at}.${key}`, one, (actual as Tree)[key])
  }
}

const at = (value: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((node, key) => (node as Readonly<Record<string, unknown>> | undefined)?.[key], value)

const send = async (step: Step, base: string, control: string, values: Values): Promise<Tree> => {
  const [method, path] = String(fill(step.api ?? step.control, values)).split(" ") as [string, string]
  const headers: Record<string, string> = { ...(fill(step.headers ?? {}, values) as Record<string, string>) }
  const token = step.token === undefined ? "{{token}}" : step.token
  if (step.api !== undefined && token !== null) headers["Authorization"] = String(fill(`Bearer ${token}`, values))
  const body = step.rawBody ?? (step.body === undefined ? null : JSON.stringify(fill(step.body, values)))
  if (body !== null) headers["Content-Type"] = "application/json"
  try {
    const response = await fetch(`${step.api === undefined ? control : base}${path}`, { method, headers, body })
    const text = await response.text()
    return { status: response.status, headers: Object.fromEntries(response.headers), text, connection: "complete" }
  } catch {
    return { connection: "broken" }
  }
}

/** The parts of an answer that an expectation can name. */
const partsOf = (answer: Tree, expected: Tree): Tree => {
  const text = String(answer["text"])
  return {
    ...answer,
    ...("body" in expected ? { body: JSON.parse(text) as unknown } : {}),
    ...("lines" in expected
      ? {
          lines: text
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => JSON.parse(line) as unknown)
        }
      : {})
  }
}

const runStep = async (step: Step, base: string, control: string, values: Values): Promise<void> => {
  const answer = await send(step, base, control, values)
  const expected = fill(step.expect, values) as Tree
  for (const [key, one] of Object.entries(expected)) {
    if (key === "status" || key === "connection") match(key, one, answer[key])
  }
  const parts = partsOf(answer, { ...expected, ...(step.save === undefined ? {} : { body: null }) })
  for (const [key, one] of Object.entries(expected)) {
    const names =
      key === "headers"
        ? Object.fromEntries(Object.entries(one as Tree).map(([name, v]) => [name.toLowerCase(), v]))
        : one
    match(key, names, parts[key])
  }
  for (const [name, path] of Object.entries(step.save ?? {})) values.set(name, at(parts["body"], path))
}

const [file = "", base = "", control = "", ...given] = process.argv.slice(2)
const document = JSON.parse(readFileSync(file, "utf8")) as {
  readonly setup: ReadonlyArray<Step>
  readonly cases: ReadonlyArray<Case>
}
let failures = 0
let skipped = 0
for (const { name, needs = [], steps } of document.cases) {
  const values: Values = new Map(given.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]))
  const missing = needs.filter((one) => !values.has(one))
  if (missing.length > 0) {
    skipped += 1
    console.log(`skipped ${name}: needs ${missing.join(", ")}`)
    continue
  }
  let number = -document.setup.length
  try {
    for (const step of [...document.setup, ...steps]) {
      number += 1
      await runStep(step, base, control, values)
    }
    console.log(`ok ${name}`)
  } catch (error) {
    failures += 1
    const isMismatch = error instanceof Mismatch
    console.log(`not ok ${name}: step ${number}: ${isMismatch ? error.at : "text"}`)
    console.log(`# ${error instanceof Error ? error.message : String(error)}`)
  }
}
console.log(`${document.cases.length - failures - skipped} passed, ${failures} failed, ${skipped} skipped`)
process.exitCode = failures === 0 ? 0 : 1
