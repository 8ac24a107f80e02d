/**
 * The records of a push campaign, as files and as rows, and the expected records at the source.
 *
 * Promise: drawn from one random stream. Written without `src/outbox`, so that sent and expected records do not share a
 * mistake.
 */
import type { Chance } from "../fuzz/Chance.ts"

/** A resource without a key that is unique at the source: nothing there hides a record that is written twice. */
export const resource = "teamprojecttemplateitems"

/** A record as a push reads it. Decimals are texts with at most six digits after the point. */
export interface PushRecord {
  readonly externalid: string
  readonly title: string
  readonly description: string
  readonly estimatedhours: string
  readonly offsetdays: number
  readonly assignrole: boolean
  readonly parentitemid?: number
}

/**
 * Why a record must be rejected: it names a record that does not exist, or the source rejects every request with it.
 */
export type Poison = "unknown" | "refused"

/** The expected record at the source. */
export interface ExpectedRecord {
  record: PushRecord
  readonly poison: Poison | null
  /** Number of changes by pushes. */
  changes: number
  isCancelled: boolean
}

/** A text in records that the proxy rejects. A request with such a record is rejected as a whole. */
export const poisonMark = "poison@example.com"
const missingItemId = 999_999_999

/** Values that programs often damage: quotes, tabs, line ends, backslashes, commas, characters beyond 16 bits. */
const oddities = ["plain", "tab\there", 'a "quoted" one', "żółw 🐢", "back\\slash \\N", "two\nlines", "a, b; c", "NULL"]

const hours = (chance: Chance): string => {
  const digits = chance.below(7)
  const whole = chance.below(10_000)
  return digits === 0 ? String(whole) : `${whole}.${String(chance.below(10 ** digits)).padStart(digits, "0")}`
}

/** A new record; `mark` makes its key unique. */
export const draw = (chance: Chance, mark: string): PushRecord => ({
  externalid: `push-${mark}`,
  title: `${mark} ${chance.pick(oddities)}`,
  description: Array.from({ length: chance.between(1, 4) }, () => chance.pick(oddities)).join(" "),
  estimatedhours: hours(chance),
  offsetdays: chance.below(400),
  assignrole: chance.is(0.5)
})

/** The same record, changed so that it must be rejected. */
export const poisoned = (record: PushRecord, poison: Poison): PushRecord =>
  poison === "unknown" ? { ...record, parentitemid: missingItemId } : { ...record, description: poisonMark }

/** Other values for the same record; at least one of them differs. */
export const change = (chance: Chance, before: PushRecord): PushRecord => ({
  ...before,
  description: `${before.description} again`,
  estimatedhours: hours(chance),
  ...(chance.is(0.5) ? { assignrole: !before.assignrole } : {})
})

export const ndjson = (records: ReadonlyArray<Partial<PushRecord>>): string =>
  records
    .map((record, place) => {
      const text = JSON.stringify(record)
      // Every other decimal is a number token, as programs write it.
      return place % 2 === 0 ? text : text.replace(/"estimatedhours":"([0-9.]+)"/, '"estimatedhours":$1')
    })
    .join("\n")
    .concat("\n")

const cell = (value: string | number | boolean): string => {
  const text = String(value)
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csv = (records: ReadonlyArray<Partial<PushRecord>>): string => {
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))] as ReadonlyArray<keyof PushRecord>
  const rows = records.map((record) => columns.map((column) => cell(record[column] ?? "")).join(","))
  return `${columns.join(",")}\n${rows.join("\n")}\n`
}
