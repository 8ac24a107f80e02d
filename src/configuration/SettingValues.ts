/** The forms of values in the settings: names, numbers and described members. */
import * as Schema from "effect/Schema"

export const described = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(schema.annotate({ description }))

export const pattern = (regex: RegExp, message: string) => Schema.String.check(Schema.isPattern(regex, { message }))

export const between = (minimum: number, maximum: number) =>
  Schema.Int.check(
    Schema.isBetween({ minimum, maximum }, { message: `Expected a whole number from ${minimum} to ${maximum}` })
  )
export const natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
export const positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

export const variableName = Schema.String.check(
  Schema.isNonEmpty({ message: "Expected the name of an environment variable" })
)

/** An event that a subscription may list. The source checks the name when it is subscribed to. */
export const eventName = Schema.String.check(
  Schema.makeFilter((name: string) =>
    name === "*"
      ? "Expected event names one by one: the service takes no * for all of them"
      : /^[A-Za-z0-9][A-Za-z0-9_/-]*\.[A-Za-z0-9_]+$/.test(name) || "Expected an event name, <resource>.<verb>"
  )
)
