/**
 * The comparison of pushed records with the records of the source.
 *
 * Promise: written without `src/outbox` and without the client. The source's state and its whole history come from the
 * control plane, and every record is counted by its externalid. So it also finds a record that was written twice and
 * removed again, and a record that no push has sent.
 */
import type { Expected, Given } from "./PushFile.ts"

/** A record of the source, with the fields that are compared. */
type Held = Readonly<Record<string, unknown>> & { readonly id: number; readonly externalid: string | null }

/** A version of the source. */
interface Version {
  readonly op: "insert" | "update" | "delete"
  readonly id: number
  readonly record: Held
}

/** A decimal in millionths, without floats. */
const millionths = (text: string): bigint => {
  const [, sign, whole, fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  if (whole === undefined || /[1-9]/.test(fraction.slice(6))) throw new Error(`${text} is not a decimal of six digits`)
  const value = BigInt(whole) * 1_000_000n + BigInt(fraction.slice(0, 6).padEnd(6, "0"))
  return sign === "-" ? -value : value
}

const isSame = (field: keyof Given, given: Given, held: Held): boolean => {
  const value = held[field]
  if (field !== "estimatedhours") return value === given[field]
  return typeof value === "string" && millionths(value) === millionths(given[field])
}

const fields: ReadonlyArray<keyof Given> = [
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
  expected: Iterable<Expected>,
  state: ReadonlyArray<string>,
  history: ReadonlyArray<string>,
  ours: (externalid: string) => boolean
): ReadonlyArray<string> => {
  const found: Array<string> = []
  const records = state.map((line) => JSON.parse(line) as Held)
  const byKey = Map.groupBy(records, ({ externalid }) => externalid)
  const versions = history.map((line) => JSON.parse(line) as Version)
  const inserts = count(versions.filter(({ op }) => op === "insert").map(({ record }) => record.externalid))
  const updates = count(versions.filter(({ op }) => op === "update").map(({ record }) => record.externalid))
  const known = new Set<string>()
  for (const { given, poison, changes, isCancelled } of expected) {
    const key = given.externalid
    known.add(key)
    const held = byKey.get(key) ?? []
    const made = inserts.get(key) ?? 0
    const changed = updates.get(key) ?? 0
    if (poison !== null) {
      if (made > 0) found.push(`${key} had to be rejected (${poison}) and was created ${made} times`)
      continue
    }
    if (made !== 1) found.push(`${key} was created ${made} times`)
    if (held.length !== 1) found.push(`${key} is ${held.length} times at the source`)
    const wanted = changes + (isCancelled ? 1 : 0)
    if (changed !== wanted) found.push(`${key} was changed ${changed} times instead of ${wanted}`)
    for (const record of held) {
      for (const field of fields) {
        if (isSame(field, given, record)) continue
        found.push(`${key}: ${field} is ${JSON.stringify(record[field])} instead of ${JSON.stringify(given[field])}`)
      }
      if (record["cancel"] !== isCancelled) found.push(`${key}: cancel is ${String(record["cancel"])}`)
    }
  }
  for (const key of inserts.keys()) {
    if (key !== null && ours(key) && !known.has(key)) found.push(`${key} is at the source, and was never given`)
  }
  for (const { op, id } of versions) if (op === "delete") found.push(`record ${id} was removed`)
  return found
}
