/** Helpers for tests of pushes: resources of the catalogue, and values for their fields. */
import { Effect, Stream } from "effect"
import * as fc from "fast-check"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { FieldType } from "../../src/catalogue/Field.ts"
import type { Resource } from "../../src/catalogue/Resource.ts"
import {
  type ValidRecord,
  type Validator,
  type ValidatorOptions,
  makeValidator,
  isSupported,
  isInvalid
} from "../../src/outbox/Validate.ts"
import * as Csv from "../../src/outbox/input/Csv.ts"
import type { InputRecord } from "../../src/outbox/input/InputRecord.ts"
import * as NdJson from "../../src/outbox/input/NdJson.ts"
import type { Operation, Problem } from "../../src/outbox/Push.ts"
import type { WriteColumn, WriteColumns } from "../../src/outbox/WriteSchema.ts"

export const resourceOf = (path: string): Resource => {
  const resource = serviceV2.resources.get(path)
  if (resource === undefined) throw new Error(`the catalogue has no ${path}`)
  return resource
}

export const checkerOf = (path: string, operation: Operation = "create", options: ValidatorOptions = {}): Validator => {
  const validator = makeValidator(resourceOf(path), operation, options)
  if (!isSupported(validator)) throw new Error(validator.message)
  return validator
}

/** The valid record, or its problems as `field: message`. */
export const withProblemTexts = (answer: ValidRecord | ReadonlyArray<Problem>): ValidRecord | ReadonlyArray<string> =>
  isInvalid(answer) ? answer.map(({ field, message }) => `${field ?? "record"}: ${message}`) : answer

/** The bytes in chunks of the given size, as from a file. */
export const bytesOf = async function* (text: string | Uint8Array, size = 65_536): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

export const all = async (pieces: AsyncIterable<ReadonlyArray<InputRecord>>): Promise<ReadonlyArray<InputRecord>> => {
  const records: Array<InputRecord> = []
  for await (const piece of pieces) records.push(...piece)
  return records
}

export const fromNdJson = (text: string | Uint8Array, size?: number) => all(NdJson.read(bytesOf(text, size)))
export const fromCsv = (text: string | Uint8Array, delimiter?: Csv.Delimiter, size?: number) =>
  all(Csv.read(bytesOf(text, size), delimiter))

export const ndJsonStream = (text: string): Stream.Stream<InputRecord> =>
  Stream.unwrap(
    Effect.map(
      Effect.promise(() => fromNdJson(text)),
      Stream.fromIterable
    )
  )

/** The validator's results for these inputs, including the one for the header. */
export const answers = (validator: Validator, inputs: ReadonlyArray<InputRecord>) =>
  inputs.map((one) => validator.validateInput(one)).filter((answer) => answer !== null)

// ---------------------------------------------------------------------------------------------------------------------
// Values
// ---------------------------------------------------------------------------------------------------------------------

const digits = (min: number, max: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: min, maxLength: max }).map((list) => list.join(""))

/** A plain decimal that fits a field of this scale. */
export const decimalOf = (scale: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom("", "-"), digits(1, 20 - scale), digits(0, scale))
    .map(([sign, whole, fraction]) => `${sign}${whole}${fraction === "" ? "" : `.${fraction}`}`)

const letter = fc.constantFrom(
  "a",
  "Z",
  "0",
  "é",
  "ß",
  "中",
  "😀",
  " ",
  '"',
  "\\",
  ",",
  ";",
  "\t",
  "\n",
  "\r\n",
  "'",
  "\u2028"
)
const textOf = (max: number | null) =>
  fc.array(letter, { minLength: 1, maxLength: Math.min(max ?? 40, 40) }).map((list) =>
    Array.from(list.join(""))
      .slice(0, max ?? 40)
      .join("")
  )

const day = fc
  .date({ min: new Date("0001-01-01T00:00:00Z"), max: new Date("9999-12-30T00:00:00Z"), noInvalidDate: true })
  .map((date) => date.toISOString())

/** Valid values of a field, in the form in which they are sent. */
export const good = (slot: WriteColumn): fc.Arbitrary<unknown> => {
  if (slot.values !== null) return fc.constantFrom(...slot.values.map(({ value }) => value))
  const type: FieldType = slot.type
  switch (type._tag) {
    case "integer":
      return fc.maxSafeInteger()
    case "decimal":
      return decimalOf(type.scale)
    case "boolean":
      return fc.boolean()
    case "string":
      return textOf(type.maxLength)
    case "date":
      return fc.oneof(
        day.map((text) => text.slice(0, 10)),
        day
      )
    case "timestamp":
      return fc.oneof(
        day,
        day.map((text) => text.slice(0, 10))
      )
    case "list":
      return slot.lines === null
        ? fc.array(fc.integer(), { maxLength: 2 })
        : fc.array(recordOf(slot.lines, good), { minLength: 1, maxLength: 2 })
  }
}

const bad = (slot: WriteColumn): fc.Arbitrary<unknown> => {
  const type: FieldType = slot.type
  const strange = fc.constantFrom<unknown>(
    {},
    [1],
    "x y",
    "",
    "1,5",
    "1e3",
    "+1",
    " 1",
    1.5,
    1e30,
    "2026-02-30",
    "0000-01-01"
  )
  if (type._tag === "decimal") {
    return fc.oneof(
      strange,
      decimalOf(type.scale).map((text) => `${text.includes(".") ? text : `${text}.`}${"0".repeat(type.scale + 1)}`),
      digits(22 - type.scale, 25).map((text) => `1${text}`)
    )
  }
  if (type._tag === "string" && type.maxLength !== null) {
    return fc.oneof(
      strange,
      fc.constantFrom("a", "😀").map((one) => one.repeat(type.maxLength! + 1))
    )
  }
  if (slot.lines !== null) {
    return fc.oneof(strange, fc.constant([]), fc.array(recordOf(slot.lines, mixed), { minLength: 1, maxLength: 2 }))
  }
  return fc.oneof(
    strange,
    fc.constantFrom<unknown>("true", "2026-03-16T09:00:00+02:00", "9999-12-31T23:59:60Z", 7, -0.5)
  )
}

/** Mostly a valid value, sometimes none, and sometimes an invalid one. */
export const mixed = (slot: WriteColumn): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 30, arbitrary: good(slot) },
    { weight: 1, arbitrary: bad(slot) },
    { weight: 2, arbitrary: fc.constant(null) }
  )

/** Required fields are mostly present, others in half of the records. */
export const recordOf = (
  slots: WriteColumns,
  value: (slot: WriteColumn) => fc.Arbitrary<unknown>
): fc.Arbitrary<Record<string, unknown>> =>
  fc
    .tuple(
      ...[...slots.values()].map((slot) =>
        fc.option(value(slot), { nil: undefined, freq: slot.required ? 30 : 1 }).map((one) => [slot.name, one] as const)
      )
    )
    .map((members) => Object.fromEntries(members.filter(([, one]) => one !== undefined)))
