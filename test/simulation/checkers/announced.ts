/** A freshness that events prove is true. */
import { type CheckerOf, keyOf } from "./Checker.ts"

/**
 * Left out are changes that no event reports: those without an event, those whose only event of an unknown type is lost,
 * and what was lost in the warehouse since. A list that was answered with an earlier one may have closed a gap: the changes
 * that it hid are left out. So are those in a time in which a subscription was disabled and enabled again between two
 * checks, until the delivery log is read.
 */
export const announced: CheckerOf = ({ source, canonical, overBound, excused, losses }) => ({
  name: "announced",
  holds:
    "where events prove a resource fresh at a time, every change that the source committed by then is in the warehouse, or its event is in the inbox",
  proved: ({ provenAt, subject, waiting, unheard, hiddenSpans }) => {
    const { company, resource, rows, quarantine } = subject
    if (losses.latest(company, resource.path)?.isRepaired === false) return null
    if (waiting.has(null)) return null
    const history = source.history(company, resource.path)
    const stale = source.staleLists.filter((one) => one.company === company && one.resource === resource.path)
    const isHidden = (at: number) =>
      stale.some((one) => at > one.of && at <= one.at) || hiddenSpans.some(([from, to]) => at >= from && at <= to)
    const newest = new Map<string, number>()
    for (const [index, { id, at }] of history.entries()) if (at <= provenAt) newest.set(id, index)
    for (const [id, index] of newest) {
      const key = keyOf(company, resource.path, id)
      if (excused.has(key) || overBound.has(key) || unheard.has(key) || losses.deletedByHand.has(key)) continue
      if (waiting.has(id) || quarantine.some((one) => one.id === id) || isHidden(history[index]!.at)) continue
      const since = history.filter((version, position) => version.id === id && position >= index)
      const row = rows.get(id)
      const isThere =
        row === undefined || row.deleted
          ? since.some(({ op }) => op === "delete")
          : since.some(
              ({ op, text }) => op !== "delete" && canonical(company, resource, text).whole === row.value.whole
            )
      if (isThere) continue
      const { seq, op, at } = history[index]!
      return (
        `${key} is ${row === undefined ? "missing" : row.deleted ? "a tombstone" : "older"} although it is proven fresh: ` +
        `commit ${seq} (${op}) was ${Math.round((provenAt - at) / 1e6)} s before the proven time`
      )
    }
    return null
  }
})
