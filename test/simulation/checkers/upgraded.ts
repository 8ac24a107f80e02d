/** An older release beside a newer one: it removes no value from a column that it does not know. */
import { plainField } from "../world/Programs.ts"
import { type CheckerOf, keyOf } from "./Checker.ts"

export const upgraded: CheckerOf = ({ plan }) => {
  const isMixed = plan.on.has("G2")
  /** By row, the version that an older release left, as known when the newer catalogue was confirmed. */
  const left = new Map<string, Map<string, number>>()
  return {
    name: "upgraded",
    holds:
      "once a newer catalogue has been confirmed, an older one writes nothing; after healing every value is in its column",
    landed: ({ subject: { company, resource, marks, rows } }) => {
      const lacking = plainField(resource)?.name
      if (!isMixed || lacking === undefined) return null
      // Every landing locks the live checkpoint. From the moment when it has the newer catalogue, no older landing is
      // open.
      const shape = marks.find(({ lane }) => lane === "live")?.shape ?? ""
      if (Number(/\bcatalogue=(\d+)/.exec(shape)?.[1] ?? 0) < 2) return null
      const table = `${company}/${resource.path}`
      const versionsLeft = left.get(table)
      const beyond = [...rows.values()].filter(({ value }) => value.beyond.split(" ").includes(lacking))
      if (versionsLeft === undefined) {
        left.set(table, new Map(beyond.map(({ id, version }) => [id, version])))
        return null
      }
      const written = beyond.find(({ id, version, deleted }) => !deleted && versionsLeft.get(id) !== version)
      return written === undefined
        ? null
        : `${keyOf(company, resource.path, written.id)}: an older release wrote version ${written.version} after a newer one was confirmed`
    },
    healed: ({ subjects, full, excused, odd }) => {
      if (!isMixed) return null
      for (const { company, resource, rows } of subjects) {
        const lacking = plainField(resource)?.name
        for (const { id, deleted, value } of rows.values()) {
          const key = keyOf(company, resource.path, id)
          // The source shows an older version than the row's, until an operator accepts it; or one that cannot be
          // landed.
          if ((!full && excused.has(key)) || odd.has(key)) continue
          if (!deleted && lacking !== undefined && value.beyond.split(" ").includes(lacking))
            return `${key}: ${lacking} is still where an older release has put it`
        }
      }
      return null
    }
  }
}
