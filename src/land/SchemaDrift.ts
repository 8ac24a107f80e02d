/**
 * Telling that records carry fields which no catalogue states.
 *
 * Promise: the register says, in the transaction that lands them, which unknown fields there are and what every one of
 * their values looked like, so that a column can be made that holds all of them; and it counts the values that did not
 * fit the column once it was made. A landing that brings nothing new costs no statement: the counts are written with the
 * next one that does, or with the last of the scan.
 */
import * as Effect from "effect/Effect"
import type { Table } from "../warehouse/Table.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { ResourceLock } from "./ResourceLock.ts"

export interface DriftOptions {
  readonly run: ResourceLock["run"]
  readonly table: Table
  readonly companyId: bigint
  readonly runId: bigint
}

/** What a landing brought that nothing had told before. */
export interface DriftReport {
  /** Names of fields that were never seen before. */
  readonly unknown: ReadonlyArray<string>
  /** Names of learnt fields with values of a kind that their column cannot hold, for the first time. */
  readonly typeMismatches: ReadonlyArray<string>
}

export const emptyDriftReport: DriftReport = { unknown: [], typeMismatches: [] }

export interface SchemaDrift {
  /**
   * Notes the `extra` texts of the records of one landing, within its transaction. `last` writes the counts down that
   * were kept back: to be said at the end of a scan.
   */
  readonly note: (extras: Iterable<string | null>, last: boolean) => Effect.Effect<DriftReport, DatabaseError>
}

/** What a value looks like, as `tributary.unknown_fields.sample_types` says it. */
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

/** A longer name stands in `_extra` and nowhere else: no index could hold it. */
const nameBytesMax = 1000
/** A source that makes up names (numbers as keys) is not followed without end. */
const namesMax = 2000

/** A number with a fraction or an exponent, whose digits are lost in a float. */
const mayHaveFraction = /:\s*-?\d+[.eE]/

interface WithSource {
  readonly source: string
}
type Reviver = (key: string, value: unknown, context: WithSource) => unknown
const parse = JSON.parse as (text: string, reviver?: Reviver) => Readonly<Record<string, unknown>>

/** Stands for a number with a fraction. */
const fraction = Symbol("fraction")

/** Tells numbers that have a fraction or an exponent, whatever their value; the rest as it is. */
const keepFraction: Reviver = (_key, value, { source }) =>
  typeof value === "number" && !/^-?\d+$/.test(source) ? fraction : value

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
  // Most text is words: only what begins like a number is looked at closely.
  if (!((first >= 48 && first <= 57) || first === 45)) return "text"
  if (numeral.test(text)) return text === "-0" ? "text" : "numeral"
  if (decimal.test(text)) return /^-0\.0*$/.test(text) ? "text" : "decimal"
  if (day.test(text)) return isDay(text) ? "date" : "text"
  const at = instant.exec(text)
  if (at === null || Number(at[3]) > 23 || Number(at[4]) > 59 || Number(at[5]) > 59) return "text"
  return isDay(text.slice(0, 10)) ? "timestamp" : "text"
}

/** The kind of a value; numbers with a fraction come as {@link fraction}. */
const kindOf = (value: unknown): ValueKind => {
  switch (typeof value) {
    case "string":
      return kindOfText(value)
    case "boolean":
      return "boolean"
    case "number":
      return Number.isSafeInteger(value) ? "integer" : "number"
    default:
      return value === null ? "null" : value === fraction ? "number" : "nested"
  }
}

/** The place behind the string that begins at `at`. */
const stringEnd = (text: string, at: number): number => {
  let end = at + 1
  while (text.charAt(end) !== '"') end += text.charAt(end) === "\\" ? 2 : 1
  return end + 1
}

/**
 * The members of a JSON object. Node 24.21 confuses names with escapes (`{"\\":0}` and then `{"\"":0}`), so that those
 * are taken from the text one by one.
 */
const membersOf = (text: string): ReadonlyArray<readonly [name: string, value: unknown]> => {
  const value = mayHaveFraction.test(text) ? parse(text, keepFraction) : parse(text)
  if (!text.includes("\\")) return Object.entries(value)
  const members: Array<readonly [name: string, value: unknown]> = []
  let depth = 0
  let name: string | null = null
  let from = 0
  const close = (at: number) => {
    if (name === null) return
    const raw = text.slice(from, at)
    members.push([name, mayHaveFraction.test(`:${raw}`) ? parse(`[${raw}]`, keepFraction)[0] : parse(`[${raw}]`)[0]])
    name = null
  }
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at)
    if (sign === '"') {
      const end = stringEnd(text, at)
      if (depth === 1 && name === null) {
        name = String(JSON.parse(text.slice(at, end)))
        from = text.indexOf(":", end) + 1
        at = from - 1
      } else at = end - 1
    } else if (sign === "{" || sign === "[") depth += 1
    else if (sign === "}" || sign === "]") {
      depth -= 1
      if (depth === 0) close(at)
    } else if (sign === "," && depth === 1) close(at)
  }
  return members
}

interface FieldSighting {
  readonly kinds: Set<ValueKind>
  /** Sightings that are not written down yet. */
  times: number
}

/** One for each turn at a resource: what it remembers is true as long as nobody else lands there. */
export const make = ({ run, table, companyId, runId }: DriftOptions): SchemaDrift => {
  const { field: fields, path } = table.resource
  const remembered = new Map<string, FieldSighting>()
  /** Whether the name is to be noted: unknown, or learnt and not fitting. A catalogue's field has odd digits there. */
  const ignored = new Set<string>()

  const look = (name: string): FieldSighting | undefined => {
    const seen = remembered.get(name)
    if (seen !== undefined) return seen
    if (ignored.has(name)) return undefined
    const isStated = fields.get(name)?.learnt === null
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
    // Kinds as one text each, since arrays of arrays must have equal lengths.
    const { rows } = yield* run<{ field: string; fresh: boolean; grew: boolean }>(
      "note unknown fields of",
      `with sent as (
         select field, times, string_to_array(kinds, ',') as kinds, learnt
           from unnest($4::text[], $5::bigint[], $6::text[], $7::boolean[]) as s (field, times, kinds, learnt)
       ), before as (
         select field, sample_types from tributary.unknown_fields
          where company_id = $1 and resource = $2 and field in (select field from sent)
       ), noted as (
         insert into tributary.unknown_fields as u
           (company_id, resource, field, first_seen_at, last_seen_at, times, type_mismatches, sample_types, run_id)
         select $1, $2, field, tributary.now(), tributary.now(), case when learnt then 0 else times end,
                case when learnt then times else 0 end, kinds, $3 from sent
         on conflict (company_id, resource, field) do update set
           last_seen_at = excluded.last_seen_at, times = u.times + excluded.times, type_mismatches = u.type_mismatches + excluded.type_mismatches,
           sample_types = array(select distinct unnest(u.sample_types || excluded.sample_types) order by 1)
       )
       select s.field, b.field is null as fresh, not coalesce(b.sample_types @> s.kinds, false) as grew
         from sent s left join before b using (field)`,
      [
        companyId,
        path,
        runId,
        pending.map(([name]) => name),
        pending.map(([, { times }]) => times),
        pending.map(([, { kinds }]) => [...kinds].sort().join(",")),
        pending.map(([name]) => fields.has(name))
      ]
    )
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

/** A sentence for the run's note; null when there is nothing to tell. */
export const describe = (resource: string, { unknown, typeMismatches }: DriftReport): string | null => {
  const list = (names: ReadonlyArray<string>) =>
    names
      .slice(0, namesListedMax)
      .map((name) => JSON.stringify(`${resource}.${name}`))
      .join(", ") + (names.length > namesListedMax ? ` and ${names.length - namesListedMax} more` : "")
  const parts = [
    ...(unknown.length === 0
      ? []
      : [`new fields, kept in _extra until they have columns: ${list(unknown)}; see npx tributary schema plan`]),
    ...(typeMismatches.length === 0
      ? []
      : [`values that do not fit their learnt column, kept in _extra: ${list(typeMismatches)}`])
  ]
  return parts.length === 0 ? null : parts.join("; ")
}

const namesListedMax = 10
