/**
 * The records of a push campaign as files, and the comparison with the records of the source.
 *
 * Promise: drawn from one random stream. Written without `src/outbox`, so that sent and expected records do not share a
 * mistake. The comparison counts every record of the source's whole history by its externalid. So it also finds a record
 * that was written twice and removed again, and a record that no push has sent.
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
}

/** The expected record at the source. */
export interface ExpectedRecord {
  record: PushRecord
  /** Number of changes by pushes. */
  changes: number
  isCancelled: boolean
}

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

/** A record of the source, with the fields that are compared. */
type SourceRecord = Readonly<Record<string, unknown>> & { readonly id: number; readonly externalid: string | null }

/** A version of the source. */
interface Version {
  readonly op: "insert" | "update" | "delete"
  readonly id: number
  readonly record: SourceRecord
}

/** A decimal in millionths, without floats. */
const millionths = (text: string): bigint => {
  const [, sign, whole, fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  if (whole === undefined || /[1-9]/.test(fraction.slice(6))) throw new Error(`${text} is not a decimal of six digits`)
  const value = BigInt(whole) * 1_000_000n + BigInt(fraction.slice(0, 6).padEnd(6, "0"))
  return sign === "-" ? -value : value
}

const isSame = (field: keyof PushRecord, pushed: PushRecord, stored: SourceRecord): boolean => {
  const value = stored[field]
  if (field !== "estimatedhours") return value === pushed[field]
  return typeof value === "string" && millionths(value) === millionths(pushed[field])
}

/** The differences, as sentences. `state` and `history` are the source's, as lines of JSON. */
export const differences = (
  expected: ReadonlyMap<string, ExpectedRecord>,
  state: ReadonlyArray<string>,
  history: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const byKey = Map.groupBy(
    state.map((line) => JSON.parse(line) as SourceRecord),
    ({ externalid }) => externalid
  )
  const versions = history.map((line) => JSON.parse(line) as Version)
  const timesOf = (expectedOp: Version["op"]) => {
    const times = new Map<string | null, number>()
    for (const { op, record } of versions)
      if (op === expectedOp) times.set(record.externalid, (times.get(record.externalid) ?? 0) + 1)
    return times
  }
  const [inserts, updates] = [timesOf("insert"), timesOf("update")]
  for (const [key, { record: pushed, changes, isCancelled }] of expected) {
    const stored = byKey.get(key) ?? []
    const [made, changed] = [inserts.get(key) ?? 0, updates.get(key) ?? 0]
    if (made !== 1) problems.push(`${key} was created ${made} times`)
    if (stored.length !== 1) problems.push(`${key} is ${stored.length} times at the source`)
    const expectedChanges = changes + (isCancelled ? 1 : 0)
    if (changed !== expectedChanges) problems.push(`${key} was changed ${changed} times instead of ${expectedChanges}`)
    for (const record of stored) {
      for (const field of Object.keys(pushed) as ReadonlyArray<keyof PushRecord>) {
        if (isSame(field, pushed, record)) continue
        problems.push(
          `${key}: ${field} is ${JSON.stringify(record[field])} instead of ${JSON.stringify(pushed[field])}`
        )
      }
      if (record["cancel"] !== isCancelled) problems.push(`${key}: cancel is ${String(record["cancel"])}`)
    }
  }
  for (const key of inserts.keys())
    if (key?.startsWith("push-") && !expected.has(key)) problems.push(`${key} is at the source, and was in no push`)
  for (const { op, id } of versions) if (op === "delete") problems.push(`record ${id} was removed`)
  return problems
}
