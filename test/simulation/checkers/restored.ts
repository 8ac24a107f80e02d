/** A restored source: no row goes back before an operator accepts it, and no run hides the difference. */
import { type CheckerOf, keyOf } from "./Checker.ts"
import { differences } from "./equal.ts"

export const restored: CheckerOf = (setting) => {
  /** The stamps of the live rows, by table. */
  const stamps = new Map<string, ReadonlyMap<string, string>>()
  /** Number of losses of each table's rows that were seen. A restore of the warehouse brings earlier rows back. */
  const lost = new Map<string, number>()
  return {
    name: "restored",
    holds:
      "until an operator accepts that the source was restored, no live row gets an earlier lastchangedate; a full scan that leaves a difference is not done",
    landed: ({ subject: { company, resource, rows } }) => {
      const place = resource.fields.findIndex(({ name }) => name === "lastchangedate")
      if (place < 0 || setting.isRestoreAccepted()) return null
      const table = `${company}/${resource.path}`
      const losses = setting.losses.latest(company, resource.path)?.ofRows ?? 0
      const before = losses === (lost.get(table) ?? 0) ? stamps.get(table) : undefined
      lost.set(table, losses)
      const now = new Map<string, string>()
      stamps.set(table, now)
      for (const { id, deleted, value } of rows.values()) {
        const stamp = value.fields[place]!
        // A row that was deleted or lost, or has no stamp, is ordered by the time of the reads.
        if (deleted || !/^\d{4}-/.test(stamp)) continue
        now.set(id, stamp)
        const earlier = before?.get(id)
        const key = keyOf(company, resource.path, id)
        // A row deleted by hand has no version that a landing could compare with.
        if (earlier !== undefined && stamp < earlier && !setting.losses.deletedByHand.has(key)) {
          return `${key} went back from ${earlier} to ${stamp}`
        }
      }
      return null
    },
    disputed: (final) => {
      const different = [...differences(setting, final)]
      for (const { company, resource, status } of final.said) {
        if (status !== "done") continue
        const difference = different.find(([key]) => key.startsWith(`${company}/${resource}/`))
        if (difference !== undefined) return `${difference[0]} ${difference[1]}, and a full scan reports done`
      }
      return null
    }
  }
}
