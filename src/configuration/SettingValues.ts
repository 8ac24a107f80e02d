/**
 * A setting as data: its name in the file, its form, its description and its default. Decoding, the JSON Schema and the
 * messages follow from it.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { addressCharacters } from "../delivery/Endpoint.ts"

/** A form of values. Settings are read and never written. */
export type Form<A, E = unknown> = Schema.Codec<A, E>

export interface Setting<A> {
  /** The name in the file. */
  readonly key: string
  readonly schema: Form<A>
}

/**
 * A setting with its default as the file would hold it; without a default it is null. The description names a default
 * that is a single value.
 */
export function setting<A, E>(key: string, form: Form<A, E>, description: string, fallback: NoInfer<E>): Setting<A>
export function setting<A, E>(key: string, form: Form<A, E>, description: string): Setting<A | null>
export function setting<A, E>(key: string, form: Form<A, E>, description: string, fallback?: E): Setting<A | null> {
  const isWord = typeof fallback === "string" || typeof fallback === "number" || typeof fallback === "boolean"
  const text = isWord ? `${description}; default ${fallback}` : description
  const described: Form<A, E> = form.pipe(Schema.annotateEncoded({ description: text }))
  if (fallback !== undefined) {
    return { key, schema: described.pipe(Schema.withDecodingDefaultKey(Effect.succeed(fallback))) }
  }
  const schema = Schema.optionalKey(described).pipe(
    Schema.decodeTo(Schema.NullOr(Schema.toType(described)), {
      decode: SchemaGetter.withDefault<A | null>(Effect.succeed(null)),
      encode: SchemaGetter.forbiddenEncoding
    })
  )
  return { key, schema }
}

/** A setting that the file must hold. */
export const required = <A, E>(key: string, form: Form<A, E>, description: string): Setting<A> => ({
  key,
  schema: form.pipe(Schema.annotateEncoded({ description }))
})

type Settings = Readonly<Record<string, Setting<unknown>>>
type Values<S extends Settings> = { readonly [Name in keyof S]: S[Name]["schema"]["Type"] }

/** A section of the file: its settings by their names in the program. */
export const section = <const S extends Settings>(settings: S): Form<Values<S>> => {
  const names = Object.entries(settings)
  return Schema.Struct(Object.fromEntries(names.map(([name, { schema }]) => [name, schema]))).pipe(
    Schema.encodeKeys(Object.fromEntries(names.map(([name, { key }]) => [name, key])))
  ) as unknown as Form<Values<S>>
}

/** A written form that stands for a value of another type. */
export const meaning = <A, E, B>(written: Form<A, E>, target: Form<B, B>, decode: (value: A) => B): Form<B, E> =>
  written.pipe(
    Schema.decodeTo(target, { decode: SchemaGetter.transform(decode), encode: SchemaGetter.forbiddenEncoding })
  )

const durationOf = (decode: (count: number) => Duration.Duration) => (count: Form<number, number>) =>
  meaning(count, Schema.Duration, decode)
export const seconds = durationOf(Duration.seconds)
export const minutes = durationOf(Duration.minutes)
export const hours = durationOf(Duration.hours)
export const days = durationOf(Duration.days)

/** The form of a text: its message, which begins with "Expected", and the same words as a title of the JSON Schema. */
const form = (message: string) => ({ message, title: message.replace(/^Expected /, "") })

export const pattern = (regex: RegExp, message: string) =>
  Schema.String.annotate({ message }).check(Schema.isPattern(regex, form(message)))

/** A value of several forms, with the message for a value that resembles none of them. */
export const choice = <const Members extends ReadonlyArray<Schema.Top>>(members: Members, message: string) =>
  Schema.Union(members).annotate({ message })

/** An address as it is requested. */
export const address = pattern(
  addressCharacters,
  "Expected an address without spaces, line breaks and other control characters"
)

export const between = (minimum: number, maximum: number) =>
  Schema.Int.check(
    Schema.isBetween({ minimum, maximum }, { message: `Expected a whole number from ${minimum} to ${maximum}` })
  )
export const natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
export const positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

export const filled = (message: string) => Schema.String.check(Schema.isNonEmpty(form(message)))

/** A text with a rule that JSON Schema cannot express; `isValid` returns true, or the message of the mistake. */
export const ruled = (title: string, isValid: (text: string) => true | string) =>
  Schema.String.check(Schema.makeFilter(isValid, { title, toJsonSchema: () => ({}) }))

export const variableName = filled("Expected the name of an environment variable")

/** The setting for every event of the synced resources. */
export const everyEvent = "all"

/** An event that a subscription may list. The source checks the name when it is subscribed to. */
export const eventName = ruled("an event, <resource>.<verb>", (name) =>
  name === "*"
    ? "Expected event names one by one: the service takes no * for all of them"
    : /^[A-Za-z0-9][A-Za-z0-9_/-]*\.[A-Za-z0-9_]+$/.test(name) || "Expected an event name, <resource>.<verb>"
)

/** The events of a subscription: `all`, or their names. */
export const eventNames = choice(
  [
    Schema.Literal(everyEvent),
    Schema.Array(eventName).check(
      Schema.isMinLength(1, { message: "Expected all, or at least one event; leave the setting out for its default" })
    )
  ],
  "Expected all, or a list of events, for example [orders.updated]"
)
