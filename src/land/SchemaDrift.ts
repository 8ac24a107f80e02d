/**
 * The register of unknown fields, `tributary.unknown_fields`.
 *
 * Promise: the landing that brings an unknown field registers it, with the kinds of all its values, so that a column can
 * hold all of them. Values that do not fit their inferred column are counted. A landing without a new field or kind costs
 * no statement: its counts are written by the next one that has one, or at the end of the scan.
 */
import * as Effect from "effect/Effect"
import { type JsonObject, NumberToken, parse } from "../json/Json.ts"
import type { Table } from "../warehouse/Table.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as UnknownFields from "../warehouse/UnknownFields.ts"
import type { ResourceLock } from "./ResourceLock.ts"

export interface DriftOptions {
  readonly runStatement: ResourceLock["runStatement"]
  readonly table: Table
  readonly companyId: bigint
  readonly runId: bigint
}

/** New drift of a landing. */
export interface DriftReport {
  /** Names of fields that were never seen before. */
  readonly unknown: ReadonlyArray<string>
  /** Names of inferred fields with values of a kind that their column cannot hold, for the first time. */
  readonly typeMismatches: ReadonlyArray<string>
}

export const emptyDriftReport: DriftReport = { unknown: [], typeMismatches: [] }

export interface SchemaDrift {
  /** Adds the `extra` texts of one landing's records, within its transaction. `last` writes all counts. */
  readonly note: (extras: Iterable<string | null>, last: boolean) => Effect.Effect<DriftReport, DatabaseError>
}

/** The kind of a value, as `tributary.unknown_fields.sample_types` stores it. */
export type ValueKind =
  | "null"
  | "boolean"
  | "integer"
  | "number"
  | "numeral"
  | "decimal"
  | "date"
  | "timestamp"
  | "text"
  | "nested"

/** A longer name is not registered: no index can hold it. */
const nameBytesMax = 1000
/** The bound for a source that generates names, for example numbers as keys. */
const namesMax = 2000

/** A number with a fraction or an exponent, which a float loses. */
const mayHaveFraction = /:\s*-?\d+[.eE]/

const numeral = /^-?(?:0|[1-9]\d{0,17})$/
const decimal = /^-?(?:0|[1-9]\d{0,17})\.\d{1,18}$/
const day = /^\d{4}-(\d\d)-(\d\d)$/
const instant = /^\d{4}-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,6})?Z$/

const isDay = (text: string): boolean => {
  const time = Date.parse(`${text}T00:00:00Z`)
  // A day that the month does not have is parsed as one of the next month.
  return !text.startsWith("0000") && !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

const kindOfText = (text: string): ValueKind => {
  const first = text.charCodeAt(0)
  if (!((first >= 48 && first <= 57) || first === 45)) return "text"
  if (numeral.test(text)) return text === "-0" ? "text" : "numeral"
  if (decimal.test(text)) return /^-0\.0*$/.test(text) ? "text" : "decimal"
  if (day.test(text)) return isDay(text) ? "date" : "text"
  const at = instant.exec(text)
  if (at === null || Number(at[3]) > 23 || Number(at[4]) > 59 || Number(at[5]) > 59) return "text"
  return isDay(text.slice(0, 10)) ? "timestamp" : "text"
}

/** The kind of a number, by its digits. */
const kindOfNumber = (text: string): ValueKind =>
  /^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? "integer" : "number"

const kindOf = (value: unknown): ValueKind => {
  if (value === null) return "null"
  switch (typeof value) {
    case "string":
      return kindOfText(value)
    case "boolean":
      return "boolean"
    case "number":
      return Number.isSafeInteger(value) ? "integer" : "number"
    default:
      return value instanceof NumberToken ? kindOfNumber(value.text) : "nested"
  }
}

/** The members of a JSON object. The reader that keeps digits and names is slow, so that it reads only where it must. */
const membersOf = (text: string): Iterable<readonly [name: string, value: unknown]> =>
  text.includes("\\") || mayHaveFraction.test(text)
    ? (parse(text) as JsonObject)
    : Object.entries(JSON.parse(text) as Readonly<Record<string, unknown>>)

interface FieldSighting {
  readonly kinds: Set<ValueKind>
  /** Sightings that are not written yet. */
  times: number
}

/** One instance for each resource lock: landings of another run would make its memory wrong. */
export const make = ({ runStatement, table, companyId, runId }: DriftOptions): SchemaDrift => {
  const { field: fields, path } = table.resource
  const remembered = new Map<string, FieldSighting>()
  /** Names that are not registered: fields of the catalogue, whose odd digits are in `_extra`, and those beyond the bounds. */
  const ignored = new Set<string>()

  const look = (name: string): FieldSighting | undefined => {
    const seen = remembered.get(name)
    if (seen !== undefined) return seen
    if (ignored.has(name)) return undefined
    const isStated = fields.get(name)?.inferred === null
    if (isStated || Buffer.byteLength(name) > nameBytesMax || remembered.size >= namesMax) {
      if (ignored.size < namesMax) ignored.add(name)
      return undefined
    }
    const fresh: FieldSighting = { kinds: new Set(), times: 0 }
    remembered.set(name, fresh)
    return fresh
  }

  const count = (extra: string): boolean => {
    let isNew = false
    for (const [name, value] of membersOf(extra)) {
      const seen = look(name)
      if (seen === undefined) continue
      seen.times += 1
      const kind = kindOf(value)
      if (seen.kinds.has(kind)) continue
      seen.kinds.add(kind)
      isNew = true
    }
    return isNew
  }

  const write = Effect.fnUntraced(function* (): Effect.fn.Return<DriftReport, DatabaseError> {
    const pending = [...remembered].filter(([, { times }]) => times > 0)
    if (pending.length === 0) return emptyDriftReport
    const { rows } = yield* runStatement(UnknownFields.noteStatement, [
      companyId,
      path,
      runId,
      pending.map(([name]) => name),
      pending.map(([, { times }]) => times),
      pending.map(([, { kinds }]) => [...kinds].sort().join(",")),
      pending.map(([name]) => fields.has(name))
    ])
    for (const [, seen] of pending) seen.times = 0
    return {
      unknown: rows.filter(({ field, fresh }) => fresh && !fields.has(field)).map(({ field }) => field),
      typeMismatches: rows.filter(({ field, grew }) => grew && fields.has(field)).map(({ field }) => field)
    }
  })

  return {
    note: (extras, last) =>
      Effect.suspend(() => {
        let isNew = false
        for (const extra of extras) if (extra !== null && count(extra)) isNew = true
        return isNew || last ? write() : Effect.succeed(emptyDriftReport)
      })
  }
}

/** A sentence for the run's note; null without drift. */
export const describe = (resource: string, { unknown, typeMismatches }: DriftReport): string | null => {
  const list = (names: ReadonlyArray<string>) =>
    names
      .slice(0, namesListedMax)
      .map((name) => JSON.stringify(`${resource}.${name}`))
      .join(", ") + (names.length > namesListedMax ? ` and ${names.length - namesListedMax} more` : "")
  const parts = [
    ...(unknown.length === 0
      ? []
      : [`new fields, kept in _extra until they have columns: ${list(unknown)}; see tributary schema plan`]),
    ...(typeMismatches.length === 0
      ? []
      : [`values that do not fit their inferred column, kept in _extra: ${list(typeMismatches)}`])
  ]
  return parts.length === 0 ? null : parts.join("; ")
}

const namesListedMax = 10
