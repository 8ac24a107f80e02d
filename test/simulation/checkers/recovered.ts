/** The first success after a loss is true: the table has again every record that the source showed at the loss. */
import { type CheckerOf, keyOf } from "./Checker.ts"

export const recovered: CheckerOf = ({ source, plan, canonical, overBound, excused, losses }) => {
  // A source that shows old lists, or an empty one, misleads the first read of any empty table.
  const isDeceived = (["S4e", "S16", "N9"] as const).some((name) => plan.on.has(name))
  const checkedLosses = new Map<string, number>()
  return {
    name: "recovered",
    holds:
      "no run reports done over a lost table: the first one that succeeds after the loss has restored every record that the source showed at the loss, in that version or a later one",
    landed: ({ subject: { company, resource, rows, quarantine } }) => {
      const loss = losses.latest(company, resource.path)
      const table = `${company}/${resource.path}`
      if (loss === null || !loss.isRepaired || checkedLosses.get(table) === loss.count) return null
      checkedLosses.set(table, loss.count)
      if (isDeceived) return null
      const history = source.history(company, resource.path)
      const latest = new Map<string, number>()
      history.forEach(({ id, at }, index) => {
        if (at < loss.at) latest.set(id, index)
      })
      for (const [id, index] of latest) {
        const key = keyOf(company, resource.path, id)
        if (overBound.has(key) || excused.has(key) || losses.deletedByHand.has(key)) continue
        if (quarantine.some((one) => one.id === id)) continue
        const since = history.filter((version, place) => place >= index && version.id === id)
        if (since.some(({ op }) => op === "delete")) continue
        const row = rows.get(id)
        if (row === undefined || row.deleted) return `${key} was lost, and is not restored`
        if (!since.some(({ text }) => canonical(company, resource, text).whole === row.value.whole))
          return `${key} was lost, and is restored in a version from before the loss`
      }
      return null
    }
  }
}
