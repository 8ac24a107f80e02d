/** No two versions of a record are valid at one moment, and a query as of a moment shows what the warehouse showed then. */
import { isSameRow } from "./Canonical.ts"
import { type CheckerOf, keyOf, microsOf, type Row } from "./Checker.ts"

const textOf = (row: Row | undefined): string =>
  row === undefined ? "absent" : `${row.deleted ? "deleted in " : ""}version ${row.version}`

export const past: CheckerOf = ({ losses, plan }) => ({
  name: "past",
  holds:
    "a query as of a moment or position shows each record at most once, and at a position exactly what the warehouse showed there; it fails where versions were lost",
  healed: ({ history, recollections, subjects }) => {
    // Two releases, and a clock that was set, leave moments that no query can name.
    if (plan.later.clockStep !== 0 || plan.later.periods.length > 0) return null
    for (const subject of subjects) {
      const { company, resource } = subject
      for (const [id, versions] of Map.groupBy(history(subject), (version) => version.id)) {
        const inOrder = versions.toSorted((a, b) => a.version - b.version)
        for (const [index, { validFrom, version }] of inOrder.entries()) {
          const before = inOrder[index - 1]
          if (before === undefined) continue
          if (before.validTo === null || microsOf(validFrom) < microsOf(before.validTo))
            return `${keyOf(company, resource.path, id)}: version ${version} begins ${validFrom}, and version ${before.version} ends ${before.validTo ?? "never"}`
        }
      }
    }
    for (const { company, resource, position, rows, asOf, time, idsAtTime } of recollections) {
      const table = `${company}/${resource.path}`
      const ids = typeof idsAtTime === "string" ? [] : idsAtTime
      const twice = ids.find((id, index) => ids.indexOf(id) !== index)
      if (twice !== undefined) return `${keyOf(company, resource.path, twice)} has two versions at ${time}`
      if (typeof asOf === "string") {
        // Without a loss or restore, every moment is known.
        if (
          losses.ledgers === 0 &&
          losses.latest(company, resource.path) === null &&
          !losses.hasHoles(company, resource.path)
        )
          return `${table} as of position ${position} fails although nothing was lost: ${asOf}`
        continue
      }
      const shown = new Map(asOf.map((row) => [row.id, row]))
      if (shown.size !== asOf.length) return `${table} has two versions of a record at position ${position}`
      for (const id of new Set([...rows.keys(), ...shown.keys()])) {
        if (losses.deletedByHand.has(keyOf(company, resource.path, id))) continue
        const [then, now] = [rows.get(id), shown.get(id)]
        if (
          then === undefined ||
          now === undefined ||
          then.deleted !== now.deleted ||
          !isSameRow(then.value, now.value)
        )
          return `${keyOf(company, resource.path, id)} was ${textOf(then)} at position ${position}, and the query shows ${textOf(now)}`
      }
    }
    return null
  }
})
