/**
 * Comparing what the warehouse holds with what the source holds.
 *
 * Promise: every record and every value is compared, both ways, and nothing of the loading is trusted: the source's
 * side is its own JSON text, the warehouse's side is what SQL answers. Decimals are compared as decimals, instants to
 * the microsecond, everything else as it stands.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Field } from "../catalogue/Field.ts"
import { recordJson, type Table } from "../model/Table.ts"

/** One record that is not the same on both sides. */
export interface Difference {
  readonly id: string
  readonly kind: "missing" | "surplus" | "different"
  /** Fields whose values differ; empty unless `kind` is different. */
  readonly fields: ReadonlyArray<string>
}

export interface Comparison {
  readonly source: number
  readonly warehouse: number
  readonly differences: ReadonlyArray<Difference>
}

type Json = { readonly [name: string]: unknown }

interface RawJson {
  readonly rawJSON: string
}
// Node has both; the library that TypeScript knows of does not yet.
const exactJson = JSON as unknown as {
  readonly rawJSON: (text: string) => RawJson
  readonly parse: (text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown) => Json
}

/** Parses keeping every number as the text that was sent. */
const parse = (text: string): Json =>
  exactJson.parse(text, (_key, value, context) =>
    typeof value === "number" ? exactJson.rawJSON(context.source) : value
  )

const plainDecimal = (text: string): string => {
  const match = /^(-?)0*(\d*)(?:\.(\d*?)0*)?$/.exec(text)
  if (match === null) return text
  const whole = match[2] === "" ? "0" : match[2]!
  const plain = match[3] === undefined || match[3] === "" ? whole : `${whole}.${match[3]}`
  return plain === "0" ? "0" : `${match[1]}${plain}`
}

const plainInstant = (text: string): string => {
  const match = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2})(?:\.(\d+))?Z)?$/.exec(text)
  return match === null ? text : `${match[1]}T${match[2] ?? "00:00:00"}.${(match[3] ?? "").padEnd(6, "0").slice(0, 6)}Z`
}

/** A day is a day, also where it is told as its midnight. */
const plainDay = (text: string): string => (text.length > 10 ? plainInstant(text).replace(/T00:00:00\.0+Z$/, "") : text)

/** A value in a form in which equal things are equal texts. */
const canonical = (field: Field | undefined, value: unknown): string => {
  if (value === null || value === undefined) return "null"
  const raw = typeof value === "object" && "rawJSON" in value ? (value as RawJson).rawJSON : undefined
  const text = raw ?? (typeof value === "string" ? value : undefined)
  switch (field?.type._tag) {
    case "integer":
    case "decimal":
      return text === undefined ? JSON.stringify(value) : plainDecimal(text)
    case "timestamp":
      return text === undefined ? JSON.stringify(value) : plainInstant(text)
    case "date":
      return text === undefined ? JSON.stringify(value) : plainDay(text)
    default:
      return JSON.stringify(value, (_key, item: unknown) => (isPlainObject(item) ? sorted(item) : item))
  }
}

const isPlainObject = (item: unknown): item is Json =>
  typeof item === "object" && item !== null && !Array.isArray(item) && !("rawJSON" in item)

const sorted = (object: Json): Json =>
  Object.fromEntries(
    Object.keys(object)
      .sort()
      .map((key) => [key, object[key]])
  )

const differingFields = (table: Table, source: Json, warehouse: Json): ReadonlyArray<string> => {
  const names = new Set([...Object.keys(source), ...Object.keys(warehouse)])
  return [...names].filter((name) => {
    const field = table.resource.field.get(name)
    return canonical(field, source[name]) !== canonical(field, warehouse[name])
  })
}

/** Compares the source's records, a JSON text each, with the live rows of a company. */
export const compare = Effect.fn("compare")(function* (
  table: Table,
  companyId: bigint,
  source: Iterable<string>
): Effect.fn.Return<Comparison, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const expected = new Map<string, Json>()
  for (const text of source) {
    const record = parse(text)
    expected.set(canonical({ type: { _tag: "integer" } } as Field, record["id"]), record)
  }
  const total = expected.size
  const differences: Array<Difference> = []
  let rows = 0
  yield* sql
    .unsafe<{ id: string; record: string }>(
      `select t."id"::text as id, (${recordJson(table, "t")})::text as record from ${table.current} t ` +
        `where t."_company_id" = $1 and t."_deleted_at" is null`,
      [companyId]
    )
    .stream.pipe(
      Stream.runForEach(({ id, record }) =>
        Effect.sync(() => {
          rows += 1
          const wanted = expected.get(id)
          expected.delete(id)
          if (wanted === undefined) {
            differences.push({ id, kind: "surplus", fields: [] })
            return
          }
          const fields = differingFields(table, wanted, parse(record))
          if (fields.length > 0) differences.push({ id, kind: "different", fields })
        })
      )
    )
  for (const id of expected.keys()) differences.push({ id, kind: "missing", fields: [] })
  return { source: total, warehouse: rows, differences }
})
