/** Every landed version is in the history, in order and without a gap. No version merely repeats the one before. */
import { isSameRow } from "./Canonical.ts"
import { type CheckerOf, isStampedLater, keyOf, mayPrecede } from "./Checker.ts"

export const history: CheckerOf = (setting) => ({
  name: "history",
  holds:
    "the history has the versions 1 to n of every row, each one that the source had, in the source's order, none twice in a row",
  healed: (final) => {
    const { source, canonical, losses, plan } = setting
    for (const subject of final.subjects) {
      const { company, resource, rows } = subject
      const commits = source.history(company, resource.path)
      const byId = Map.groupBy(final.history(subject), ({ id }) => id)
      for (const row of rows.values())
        if (!byId.has(row.id)) return `${keyOf(company, resource.path, row.id)} has no history`
      for (const [id, unordered] of byId) {
        const key = keyOf(company, resource.path, id)
        const versions = unordered.toSorted((a, b) => a.version - b.version)
        const current = rows.get(id)
        // A loss removes the current version of each row, and tombstones for good. The numbers continue from the
        // remaining history. Times, kinds and the source's order are compared only where nothing was lost.
        const isLost = losses.latest(company, resource.path)?.isTorn === true || losses.deletedByHand.has(key)
        if (current === undefined) {
          if (isLost || losses.hasHoles(company, resource.path)) continue
          return `${key} has a history and no row`
        }
        let place = -1
        for (const [index, version] of versions.entries()) {
          if (version.version !== index + 1 && !losses.hasHoles(company, resource.path))
            return `${key}: version ${index + 1} is missing in the history`
          const before = versions[index - 1]
          if (before?.version === version.version) return `${key} has version ${version.version} twice`
          if (isLost || losses.hasHoles(company, resource.path)) continue
          if (before !== undefined) {
            // Two versions may differ only in members that have a privacy rule, which are not compared here.
            const isCompared = plan.later.rules.length === 0
            if (isCompared && isSameRow(before.value, version.value) && before.deleted === version.deleted) {
              return `${key}: version ${version.version} repeats the one before`
            }
            if (before.validTo !== version.validFrom) {
              return `${key}: version ${before.version} ends ${before.validTo}, version ${version.version} begins ${version.validFrom}`
            }
          }
          const expected = version.deleted ? "delete" : index === 0 || before!.deleted ? "insert" : "update"
          if (version.op !== expected)
            return `${key}: version ${version.version} is called ${version.op}, not ${expected}`
          // The same version of the source again, where only the column of a value has changed.
          const isMoved = before !== undefined && !before.deleted && before.value.whole === version.value.whole
          const next = commits.findIndex(
            (commit, at) =>
              commit.id === id &&
              (at > place ||
                (isMoved && at === place) ||
                isStampedLater(commit, commits[place]) ||
                mayPrecede(
                  setting,
                  resource,
                  before === undefined ? undefined : { ...before, beganAt: before.validFrom },
                  { ...version, beganAt: version.validFrom },
                  commits.find((later, index) => index > at && later.id === id)
                )) &&
              (version.deleted ? commit.op === "delete" : commit.op !== "delete") &&
              (version.deleted || version.value.whole === canonical(company, resource, commit.text).whole)
          )
          if (next < 0) return `${key}: version ${version.version} is not one that the source had after the one before`
          place = next
        }
        const last = versions.at(-1)!
        if (last.version !== current.version || last.validTo !== null)
          return `${key}: the history does not end with the row`
      }
    }
    return null
  }
})
