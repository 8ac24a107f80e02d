/**
 * The form of a call's input: fields with the sentence that names a wrong one.
 *
 * A field is decoded and described by one Schema. Its annotation `sentence` makes the message from the field's place.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import { isObject, Raw } from "../json.ts"
import { readDay, readInstant } from "../time.ts"

/** An error message for the caller; it answers 400. */
export class ControlError extends Error {
  override readonly name = "ControlError"
}

export type Form<A, E = unknown> = Schema.Codec<A, E>

type Sentence = (name: string) => string

/** A field that the call needs. Its message is "<name> must be <expected>". */
export const field = <A, E>(form: Form<A, E>, expected: string | Sentence, description: string) => {
  const sentence: Sentence = typeof expected === "string" ? (name) => `${name} must be ${expected}` : expected
  return (form as Schema.Codec<A, E>).pipe(Schema.annotate({ description }), Schema.annotateKey({ sentence }))
}

/** A field that may be left out. */
export const optional = <A, E>(form: Form<A, E>, expected: string | Sentence, description: string) =>
  Schema.optionalKey(field(form, expected, description))

export const whole = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))

/** An optional whole number of at least `minimum`. */
export const count = (minimum: number, description: string) =>
  optional(whole(minimum), `a whole number from ${minimum}`, description)

/** An optional true or false. */
export const flag = (description: string) => optional(Schema.Boolean, "true or false", description)

/** `a, b or c`. */
const listed = (values: ReadonlyArray<string | number>) =>
  values.length < 2 ? values.join("") : `${values.slice(0, -1).join(", ")} or ${String(values.at(-1))}`

/** An optional word of a list. */
export const oneOf = <const Values extends ReadonlyArray<string | number>>(values: Values, description: string) =>
  optional(Schema.Literals(values), listed(values), description)

/** A JSON object that is not decoded any further, with the digits of its numbers. */
export const anyObject = Schema.Record(Schema.String, Schema.Unknown).check(Schema.makeFilter(isObject))

/** RFC 3339 in UTC, such as `2026-11-21T03:05:43Z`. */
export const instant = Schema.String.check(
  Schema.makeFilter((text: string) => readInstant(text) !== null, { toJsonSchema: () => ({ format: "date-time" }) })
)

/** A day, such as `2026-11-21`. */
export const day = Schema.String.check(
  Schema.makeFilter((text: string) => readDay(text) !== null, { toJsonSchema: () => ({ format: "date" }) })
)

export const company = field(whole(1), "a whole number from 1", "the number of a company; created when first mentioned")

export const resource = field(Schema.String, "the path of a resource", "the path of a resource, such as `orders`")

/** The JSON value with its numbers as plain numbers, except in members of these names. */
const withPlainNumbers = (value: unknown, exact: ReadonlyArray<string>): unknown => {
  if (value instanceof Raw) return Number(value.text)
  if (Array.isArray(value)) return value.map((member) => withPlainNumbers(member, exact))
  if (!isObject(value)) return value
  const members = Object.entries(value)
  return Object.fromEntries(
    members.map(([name, member]) => [name, exact.includes(name) ? member : withPlainNumbers(member, exact)])
  )
}

const printPath = (path: ReadonlyArray<PropertyKey>) =>
  path.map((key, index) => (typeof key === "number" ? `[${key}]` : `${index === 0 ? "" : "."}${String(key)}`)).join("")

const fieldOf = (ast: SchemaAST.AST, key: PropertyKey) =>
  ast._tag === "Objects" ? ast.propertySignatures.find(({ name }) => name === key) : undefined

/** The first problem of an issue as a sentence. */
const sentenceOf = (issue: SchemaIssue.Issue): string => {
  let path: ReadonlyArray<PropertyKey> = []
  let named: ReadonlyArray<PropertyKey> = []
  let sentence: Sentence = (name) => `${name} must be a JSON object`
  let node: SchemaIssue.Issue | undefined = issue
  let parent: SchemaAST.AST | null = null
  while (node !== undefined) {
    if (node._tag === "Pointer") {
      path = [...path, ...node.path]
      const annotation = parent === null ? undefined : fieldOf(parent, node.path[0]!)?.type.context?.annotations
      const own: unknown = annotation?.["sentence"]
      if (typeof own === "function") [sentence, named] = [own as Sentence, path]
    }
    if (node._tag === "UnexpectedKey") {
      const names = node.ast._tag === "Objects" ? node.ast.propertySignatures.map(({ name }) => String(name)) : []
      return `there is no "${printPath(path)}" here; there are: ${names.join(", ")}`
    }
    if (node._tag === "Composite") parent = node.ast
    node = "issue" in node ? node.issue : node._tag === "Composite" ? node.issues[0] : undefined
  }
  const place = path.length > named.length ? `; see ${printPath(path)}` : ""
  return `${sentence(named.length === 0 ? "the body" : printPath(named))}${place}`
}

/** Reads an input; fails with a {@link ControlError} that names the field. */
export const reader = <A>(form: Form<A>, exact: ReadonlyArray<string> = []) => {
  const decode = Schema.decodeUnknownResult(form, { onExcessProperty: "error" })
  return (input: unknown): A => {
    const result = decode(withPlainNumbers(input, exact))
    if (Result.isFailure(result)) throw new ControlError(sentenceOf(result.failure.issue))
    return result.success
  }
}

/** Refuses the input of a call that takes none. */
export const readNothing = (input: unknown): {} => {
  const [name] = isObject(input) ? Object.keys(input) : []
  if (name !== undefined) throw new ControlError(`there is no "${name}" here; nothing is expected`)
  return {}
}
