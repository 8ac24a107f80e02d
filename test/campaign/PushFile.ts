/**
 * What a campaign of pushes gives: records of one resource, as files and as rows, and what the source has to hold in the
 * end.
 *
 * Promise: drawn from one chance; written without `src/outbox`, so that what is sent and what is expected do not come from
 * the same hand.
 */
import type { Chance } from "../fuzz/Chance.ts"

/** A resource without a key that is unique at the source: nothing there hides what is written twice. */
export const resource = "teamprojecttemplateitems"

/** A record as it is given; decimals are texts of at most six digits behind the point. */
export interface Given {
  readonly externalid: string
  readonly title: string
  readonly description: string
  readonly estimatedhours: string
  readonly offsetdays: number
  readonly assignrole: boolean
  readonly parentitemid?: number
}

/** Why a record must be refused: it names a record that is not there, or the source refuses every call with it. */
export type Poison = "unknown" | "refused"

/** What the source has to hold of a record. */
export interface Expected {
  given: Given
  readonly poison: Poison | null
  /** How often it was changed by a push. */
  changes: number
  isCancelled: boolean
}

/** Stands in records that the proxy refuses; a call that carries one is refused as a whole. */
export const poisonMark = "poison@example.com"
const nobody = 999_999_999

/** Values with what likes to get lost: quotes, tabs, line ends, backslashes, commas, signs beyond 16 bits. */
const oddities = ["plain", "tab\there", 'a "quoted" one', "żółw 🐢", "back\\slash \\N", "two\nlines", "a, b; c", "NULL"]

const hours = (chance: Chance): string => {
  const digits = chance.below(7)
  const whole = chance.below(10_000)
  return digits === 0 ? String(whole) : `${whole}.${String(chance.below(10 ** digits)).padStart(digits, "0")}`
}

/** A new record; `mark` makes its key unique. */
export const draw = (chance: Chance, mark: string): Given => ({
  externalid: `push-${mark}`,
  title: `${mark} ${chance.pick(oddities)}`,
  description: Array.from({ length: chance.between(1, 4) }, () => chance.pick(oddities)).join(" "),
  estimatedhours: hours(chance),
  offsetdays: chance.below(400),
  assignrole: chance.is(0.5)
})

/** The same record made one that must be refused. */
export const poisoned = (given: Given, poison: Poison): Given =>
  poison === "unknown" ? { ...given, parentitemid: nobody } : { ...given, description: poisonMark }

/** Other values for the same record; one of them surely is another. */
export const change = (chance: Chance, before: Given): Given => ({
  ...before,
  description: `${before.description} again`,
  estimatedhours: hours(chance),
  ...(chance.is(0.5) ? { assignrole: !before.assignrole } : {})
})

export const ndjson = (records: ReadonlyArray<Partial<Given>>): string =>
  records
    .map((record, place) => {
      const text = JSON.stringify(record)
      // Every other decimal comes as a number, as programs write it.
      return place % 2 === 0 ? text : text.replace(/"estimatedhours":"([0-9.]+)"/, '"estimatedhours":$1')
    })
    .join("\n")
    .concat("\n")

const cell = (value: string | number | boolean): string => {
  const text = String(value)
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csv = (records: ReadonlyArray<Partial<Given>>): string => {
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))] as ReadonlyArray<keyof Given>
  const rows = records.map((record) => columns.map((column) => cell(record[column] ?? "")).join(","))
  return `${columns.join(",")}\n${rows.join("\n")}\n`
}
