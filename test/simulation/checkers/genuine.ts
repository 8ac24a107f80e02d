/**
 * I1: every row is a whole version that the source really had. A tombstone belongs to a record that was really removed.
 */
import { type CheckerOf, keyOf } from "./Checker.ts"

export const genuine: CheckerOf = ({ source, canonical }) => {
  const versionsByKey = new Map<string, Set<string>>()
  const read = new Map<string, number>()
  return {
    name: "genuine",
    holds: "I1: every row version existed in the source's history; a tombstone follows a removal",
    landed: ({ subject: { company, resource, rows } }) => {
      const history = source.history(company, resource.path)
      const table = `${company}/${resource.path}`
      for (let index = read.get(table) ?? 0; index < history.length; index++) {
        const { id, text } = history[index]!
        const key = keyOf(company, resource.path, id)
        let versions = versionsByKey.get(key)
        if (versions === undefined) versionsByKey.set(key, (versions = new Set()))
        versions.add(canonical(company, resource, text).whole)
      }
      read.set(table, history.length)
      for (const row of rows.values()) {
        const key = keyOf(company, resource.path, row.id)
        const versions = versionsByKey.get(key)
        if (versions === undefined) return `${key} is in the warehouse and was never in the source`
        if (!versions.has(row.value.whole)) return `${key}: no version of the source is ${row.value.whole}`
        if (row.deleted && !history.some(({ id, op }) => id === row.id && op === "delete")) {
          return `${key} is marked deleted, and the source never removed it`
        }
      }
      return null
    }
  }
}
