/**
 * The comparison of pushed records with the records of the source.
 *
 * Promise: written without `src/outbox` and without the client. The source's state and its whole history come from the
 * control plane, and every record is counted by its externalid. So it also finds a record that was written twice and
 * removed again, and a record that no push has sent.
 */
import type { ExpectedRecord, PushRecord } from "./PushFile.ts"

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

const fields: ReadonlyArray<keyof PushRecord> = [
  "externalid",
  "title",
  "description",
  "estimatedhours",
  "offsetdays",
  "assignrole"
]

const count = <A>(items: Iterable<A>): Map<A, number> => {
  const counts = new Map<A, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}

/**
 * The problems, as sentences. `state` and `history` are the source's, as lines of JSON. `ours` tests whether a push
 * could have written an externalid.
 */
export const differences = (
  expected: Iterable<ExpectedRecord>,
  state: ReadonlyArray<string>,
  history: ReadonlyArray<string>,
  ours: (externalid: string) => boolean
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const records = state.map((line) => JSON.parse(line) as SourceRecord)
  const byKey = Map.groupBy(records, ({ externalid }) => externalid)
  const versions = history.map((line) => JSON.parse(line) as Version)
  const inserts = count(versions.filter(({ op }) => op === "insert").map(({ record }) => record.externalid))
  const updates = count(versions.filter(({ op }) => op === "update").map(({ record }) => record.externalid))
  const expectedKeys = new Set<string>()
  for (const { record: pushed, poison, changes, isCancelled } of expected) {
    const key = pushed.externalid
    expectedKeys.add(key)
    const stored = byKey.get(key) ?? []
    const made = inserts.get(key) ?? 0
    const changed = updates.get(key) ?? 0
    if (poison !== null) {
      if (made > 0) problems.push(`${key} had to be rejected (${poison}) and was created ${made} times`)
      continue
    }
    if (made !== 1) problems.push(`${key} was created ${made} times`)
    if (stored.length !== 1) problems.push(`${key} is ${stored.length} times at the source`)
    const expectedChanges = changes + (isCancelled ? 1 : 0)
    if (changed !== expectedChanges) problems.push(`${key} was changed ${changed} times instead of ${expectedChanges}`)
    for (const record of stored) {
      for (const field of fields) {
        if (isSame(field, pushed, record)) continue
        problems.push(
          `${key}: ${field} is ${JSON.stringify(record[field])} instead of ${JSON.stringify(pushed[field])}`
        )
      }
      if (record["cancel"] !== isCancelled) problems.push(`${key}: cancel is ${String(record["cancel"])}`)
    }
  }
  for (const key of inserts.keys()) {
    if (key !== null && ours(key) && !expectedKeys.has(key))
      problems.push(`${key} is at the source, and was in no push`)
  }
  for (const { op, id } of versions) if (op === "delete") problems.push(`record ${id} was removed`)
  return problems
}
