/** Values that a schema of the document accepts, and values at or beyond its limits. */
import type { Chance } from "./Chance.ts"

export type Node = Readonly<Record<string, unknown>>

/** Ids and other values of existing records. */
export interface StoredRecords {
  readonly idOf: (resource: string) => number | null
  readonly codeOf: (resource: string, by: string) => string | null
}

const words = [
  "Bolt M8",
  "Panel",
  "Ødegård & Søn",
  "日本語",
  "👩‍🔧 tools",
  'a "quoted" \\ text',
  "line\nbreak",
  "",
  " ",
  "null",
  "0",
  "'; drop table orders; --",
  "\u0000",
  "\ud800",
  "\u202eabc",
  "x".repeat(60)
]

/** Values for places that expect something else. */
export const odd = (chance: Chance): unknown =>
  chance.weighted<() => unknown>([
    [2, () => null],
    [1, () => true],
    [1, () => chance.pick([0, -1, 1.5, 1e300, -0, 2 ** 53, 1e-7, 999999999999999])],
    [2, () => chance.pick(["", "1", "-0.5", "1e3", "+1", " 1", "1,5", "0x10", "NaN", "Infinity", "٣"])],
    [1, () => "9".repeat(chance.between(1, 400))],
    [1, () => `0.${"1".repeat(chance.between(1, 40))}`],
    [2, () => chance.pick(["2026-02-30", "2026-02-28", "0000-01-01", "9999-12-31", "9999-12-31T23:59:60Z"])],
    [1, () => chance.pick(["2026-03-16T09:00:00+02:00", "2026-03-16t09:00:00.123456789z", "2026-03-16 09:00"])],
    [2, () => chance.pick(words)],
    [1, () => "é".repeat(chance.between(1, 600))],
    [1, () => chance.pick<unknown>([[], [null], [[]], [{}], {}, { id: 1 }, { __proto__: 1 }, [1, "a"]])],
    [1, () => nested(chance.pick([5, 200]))]
  ])()

const nested = (depth: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

const decimal = (chance: Chance, pattern: string): string => {
  const scale = Number(/\{1,(\d+)\}\)\?\$$/.exec(pattern)?.[1] ?? 0)
  const whole = Number(/\[0-9\]\{1,(\d+)\}/.exec(pattern)?.[1] ?? 1)
  const digits = chance.weighted([
    [6, String(chance.below(50))],
    [3, String(chance.below(100_000))],
    [1, "0"],
    [1, "9".repeat(whole)],
    [1, `000${chance.below(10)}`]
  ])
  const sign = chance.is(0.15) ? "-" : ""
  if (scale === 0 || chance.is(0.5)) return `${sign}${digits}`
  return `${sign}${digits}.${String(chance.below(10 ** 6))
    .padStart(6, "0")
    .slice(0, chance.between(1, Math.min(6, scale)))}`
}

const day = (chance: Chance): string =>
  chance.weighted([
    [6, `2026-0${chance.between(1, 6)}-${String(chance.between(1, 28)).padStart(2, "0")}`],
    [1, "2024-02-29"],
    [1, "0001-01-01"],
    [1, "9999-12-31"]
  ])

const textFor = (chance: Chance, schema: Node): string => {
  const {
    pattern,
    format,
    minLength = 0,
    maxLength = 300,
    anyOf
  } = schema as {
    pattern?: string
    format?: string
    minLength?: number
    maxLength?: number
    anyOf?: unknown
  }
  if (pattern !== undefined && pattern.startsWith("^-?")) return decimal(chance, pattern)
  if (format === "date-time" || anyOf !== undefined) {
    const date = day(chance)
    if (format !== "date-time" && chance.is(0.7)) return date
    return `${date}T${chance.pick(["00:00:00Z", "12:30:15.5Z", "23:59:59.123456Z", "09:00:00+00:00"])}`
  }
  if (pattern?.includes("[Hh][Tt]") === true) return `https://receiver.example/${chance.below(100)}`
  const text = chance.weighted([
    [5, `${chance.pick(words)} ${chance.below(500)}`],
    [2, chance.pick(words)],
    [1, "m".repeat(Math.min(maxLength, 300))],
    [1, "👍".repeat(Math.min(maxLength, 200))]
  ])
  const cut = Array.from(text).slice(0, maxLength).join("")
  return cut.length >= minLength ? cut : "a".repeat(minLength)
}

/** A value that the schema admits. */
export const instance = (chance: Chance, document: Node, schema: Node, records: StoredRecords): unknown => {
  const { $ref: reference, enum: values, type } = schema
  if (typeof reference === "string") {
    let node: unknown = document
    for (const part of reference.slice(2).split("/")) node = (node as Node)[part]
    return instance(chance, document, node as Node, records)
  }
  const types = (Array.isArray(type) ? type : [type]) as ReadonlyArray<string | undefined>
  if (types.includes("null") && chance.is(0.06)) return null
  if (Array.isArray(values)) return chance.pick(values as ReadonlyArray<unknown>)
  const target = schema["x-reference"] as { readonly resource: string; readonly by?: string } | undefined
  if (target !== undefined && chance.is(0.93)) {
    const stored = target.by === undefined ? records.idOf(target.resource) : records.codeOf(target.resource, target.by)
    if (stored !== null) return stored
  }
  switch (types.find((one) => one !== "null")) {
    case "integer":
      return chance.weighted([
        [6, chance.between(1, 40)],
        [1, 0],
        [1, -1],
        [1, Number.MAX_SAFE_INTEGER]
      ])
    case "boolean":
      return chance.is(0.5)
    case "string":
      return textFor(chance, schema)
    case "array": {
      const { items, minItems = 0 } = schema as { items?: Node; minItems?: number }
      const count = chance.weighted([
        [4, 1],
        [3, 2],
        [1, 5],
        [1, minItems]
      ])
      return Array.from({ length: Math.max(count, minItems) }, () =>
        items === undefined ? chance.below(9) : instance(chance, document, items, records)
      )
    }
    case "object":
      return objectFor(chance, document, schema, records)
    default:
      return chance.pick<unknown>([null, 1, "x", { a: [1] }])
  }
}

const objectFor = (chance: Chance, document: Node, schema: Node, records: StoredRecords): Node => {
  const {
    properties = {},
    required = [],
    allOf = []
  } = schema as {
    properties?: Readonly<Record<string, Node>>
    required?: ReadonlyArray<string>
    allOf?: ReadonlyArray<{ readonly anyOf: ReadonlyArray<{ readonly required: ReadonlyArray<string> }> }>
  }
  const needed = new Set([...required, ...allOf.map(({ anyOf }) => chance.pick(anyOf).required[0]!)])
  const value: Record<string, unknown> = {}
  const often = chance.pick([0.1, 0.3, 0.7])
  for (const [name, property] of Object.entries(properties)) {
    if (name === "custom_fields" && !chance.is(0.1)) continue
    // A whole pair of references conflicts more often than not.
    const isHalf = property["x-reference"] !== undefined
    if (
      !needed.has(name) &&
      !chance.is(name === "lines" ? 0.7 : name === "cancel" ? 0.05 : isHalf ? often / 3 : often)
    ) {
      continue
    }
    do value[name] = instance(chance, document, property, records)
    while (needed.has(name) && (value[name] === null || value[name] === ""))
  }
  return value
}

/** The value with one error, or a small change. */
export const mutated = (chance: Chance, value: unknown): unknown => {
  if (Array.isArray(value)) {
    const items = [...(value as ReadonlyArray<unknown>)]
    if (items.length === 0 || chance.is(0.2)) return [...items, odd(chance)]
    const index = chance.below(items.length)
    items[index] = chance.is(0.5) ? mutated(chance, items[index]) : odd(chance)
    return items
  }
  if (typeof value !== "object" || value === null) return odd(chance)
  const names = Object.keys(value)
  const name =
    names.length === 0 || chance.is(0.2)
      ? chance.pick(["colour", "__proto__", "", "Id", "constructor"])
      : chance.pick(names)
  const present = (value as Node)[name]
  if (chance.is(0.25)) return Object.fromEntries(Object.entries(value).filter(([other]) => other !== name))
  const isDeep = typeof present === "object" && present !== null && chance.is(0.6)
  return Object.fromEntries([...Object.entries(value), [name, isDeep ? mutated(chance, present) : odd(chance)]])
}
