/** The forms of values in the settings: names, numbers and described members. */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"

/** The description is that of the written form, as the JSON Schema shows it. */
export const described = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(schema.pipe(Schema.annotateEncoded({ description })))

export const pattern = (regex: RegExp, message: string) => Schema.String.check(Schema.isPattern(regex, { message }))

export const between = (minimum: number, maximum: number) =>
  Schema.Int.check(
    Schema.isBetween({ minimum, maximum }, { message: `Expected a whole number from ${minimum} to ${maximum}` })
  )
export const natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
export const positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const units = {
  seconds: { decode: Duration.seconds, encode: Duration.toSeconds },
  minutes: { decode: Duration.minutes, encode: Duration.toMinutes },
  hours: { decode: Duration.hours, encode: Duration.toHours },
  days: { decode: Duration.days, encode: Duration.toDays }
}

/** A duration that is written as a number of one unit. */
export const durationIn = (unit: keyof typeof units, number: Schema.Codec<number>) =>
  number.pipe(Schema.decodeTo(Schema.Duration, SchemaTransformation.transform(units[unit])))

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
