/** I2: a row never goes back to an earlier version. */
import { type Canonical, isSameRow } from "./Canonical.ts"
import { type CheckerOf, isStampedLater, keyOf, mayPrecede } from "./Checker.ts"

interface ReachedVersion {
  readonly seq: number
  readonly version: number
  readonly value: Canonical
  readonly deleted: boolean
  readonly beganAt: string
}

export const forward: CheckerOf = (setting) => {
  const { source, canonical, losses, plan } = setting
  const reached = new Map<string, ReachedVersion>()
  /** Number of losses of each table that were seen. */
  const lost = new Map<string, number>()
  /** The loss after which a row has continued its history, by {@link keyOf}. */
  const continued = new Map<string, number>()
  return {
    name: "forward",
    holds:
      "I2: per key, versions never go backwards, and _version grows with every change and otherwise only once, where rows and history were restored apart",
    landed: ({ subject: { company, resource, rows } }) => {
      const history = source.history(company, resource.path)
      // A loss removes the versions that were landed before it. Among the rows landed since, nothing goes back.
      const table = `${company}/${resource.path}/`
      const loss = losses.latest(company, resource.path)
      const count = loss?.ofRows ?? 0
      if (count !== (lost.get(table) ?? 0)) {
        lost.set(table, count)
        for (const key of reached.keys()) if (key.startsWith(table)) reached.delete(key)
      }
      for (const row of rows.values()) {
        const key = keyOf(company, resource.path, row.id)
        if (losses.deletedByHand.has(key)) continue
        const before = reached.get(key)
        const isSame = before !== undefined && isSameRow(before.value, row.value) && before.deleted === row.deleted
        if (isSame && before.version === row.version) continue
        // Rows and a history that were restored apart may have the same numbers. Before the next success, the rows
        // continue the history, once.
        const mayContinue =
          loss?.isRepaired === false && losses.hasHoles(company, resource.path) && continued.get(key) !== loss.count
        if (isSame && mayContinue && row.version > before.version) {
          continued.set(key, loss.count)
          reached.set(key, { ...before, version: row.version })
          continue
        }
        // Only members that have a privacy rule changed, or the rule.
        if (isSame && plan.later.rules.length > 0 && row.version > before.version) {
          reached.set(key, { ...before, version: row.version })
          continue
        }
        if (isSame) return `${key} was written again without a change (version ${row.version})`
        if (before !== undefined && row.version <= before.version) {
          return `${key} changed and its _version went from ${before.version} to ${row.version}`
        }
        // The record may have had the same values twice: the latest time counts.
        let latest = -1
        for (const version of history) {
          if (version.id !== row.id) continue
          const isIt = row.deleted
            ? version.op === "delete"
            : version.op !== "delete" && canonical(company, resource, version.text).whole === row.value.whole
          if (isIt) latest = Math.max(latest, version.seq)
        }
        const next = history.find(({ id, seq }) => id === row.id && seq > latest)
        const version = { version: row.version, value: row.value, deleted: row.deleted, beganAt: row.observedAt }
        const overlapped = latest < (before?.seq ?? 0) && mayPrecede(setting, resource, before, version, next)
        const commit = (number: number) => history.find(({ id, seq }) => id === row.id && seq === number)
        const mayGoBack = overlapped || (before !== undefined && isStampedLater(commit(latest), commit(before.seq)))
        if (before !== undefined && latest >= 0 && latest < before.seq && !mayGoBack) {
          return `${key} went back from the source's commit ${before.seq} to ${latest}`
        }
        const least = mayGoBack ? 0 : (before?.seq ?? 0)
        // If the record had the same values twice, only the earliest version is proven to be reached.
        let earliest = latest
        if (latest >= 0 && !row.deleted) {
          earliest = history.find(
            ({ id, op, seq, text }) =>
              id === row.id &&
              op !== "delete" &&
              seq >= least &&
              canonical(company, resource, text).whole === row.value.whole
          )!.seq
        }
        reached.set(key, { seq: Math.max(least, earliest), ...version })
      }
      return null
    }
  }
}
