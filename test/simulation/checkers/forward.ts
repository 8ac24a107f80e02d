/** I2: a row never goes back to an earlier version. */
import { type CheckerOf, keyOf } from "./Checker.ts"

export const forward: CheckerOf = ({ source, canonical }) => {
  const reached = new Map<string, { seq: number; version: number; whole: string; deleted: boolean }>()
  return {
    name: "forward",
    holds: "I2: per key, versions never go backwards, and _version grows with every change and with nothing else",
    landed: ({ subject: { company, resource, rows } }) => {
      const history = source.history(company, resource.path)
      for (const row of rows.values()) {
        const key = keyOf(company, resource.path, row.id)
        const before = reached.get(key)
        const isSame = before?.whole === row.value.whole && before.deleted === row.deleted
        if (before !== undefined && isSame && before.version === row.version) continue
        if (before !== undefined && isSame) return `${key} was written again without a change (version ${row.version})`
        if (before !== undefined && row.version <= before.version) {
          return `${key} changed and its _version went from ${before.version} to ${row.version}`
        }
        // The same values may have been there twice: the latest time counts.
        let latest = -1
        for (const version of history) {
          if (version.id !== row.id) continue
          const isIt = row.deleted
            ? version.op === "delete"
            : version.op !== "delete" && canonical(company, resource, version.text).whole === row.value.whole
          if (isIt) latest = Math.max(latest, version.seq)
        }
        if (before !== undefined && latest >= 0 && latest < before.seq) {
          return `${key} went back from the source's commit ${before.seq} to ${latest}`
        }
        // Where the same values stood twice, the earliest is what is known to be reached.
        let earliest = latest
        if (latest >= 0 && !row.deleted) {
          earliest = history.find(
            ({ id, op, seq, text }) =>
              id === row.id &&
              op !== "delete" &&
              seq >= (before?.seq ?? 0) &&
              canonical(company, resource, text).whole === row.value.whole
          )!.seq
        }
        reached.set(key, {
          seq: Math.max(before?.seq ?? 0, earliest),
          version: row.version,
          whole: row.value.whole,
          deleted: row.deleted
        })
      }
      return null
    }
  }
}
