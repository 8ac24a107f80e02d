/** An event is done only when the row contains the change that it announced. */
import { type CheckerOf, keyOf, type Subject } from "./Checker.ts"

export const settled: CheckerOf = ({ source, canonical, overBound, excused, losses }) => {
  const states = new Map<string, string>()
  /** When an event was stored. */
  const storedAt = new Map<string, number>()
  const checkRow = ({ company, resource, rows, quarantine }: Subject, id: string, at: number): string | null => {
    if (quarantine.some((one) => one.id === id)) return null
    // The row may have existed when its event was resolved, and was lost since.
    if (losses.latest(company, resource.path)?.isRepaired === false) return null
    if (losses.deletedByHand.has(keyOf(company, resource.path, id))) return null
    const versions = source.history(company, resource.path).filter((version) => version.id === id)
    const newest = versions.findLastIndex((version) => version.at <= at)
    if (newest < 0) return null
    const row = rows.get(id)
    const since = versions.slice(newest)
    // If a record cannot be read by its id, only a full read shows that it was removed.
    if (!resource.operations.includes("R") && since.some(({ op }) => op === "delete")) return null
    if (row === undefined || row.deleted) {
      return since.some(({ op }) => op === "delete")
        ? null
        : `the row is ${row === undefined ? "missing" : "a tombstone"}, and the source has it`
    }
    return since.some(({ op, text }) => op !== "delete" && canonical(company, resource, text).whole === row.value.whole)
      ? null
      : `the row is older than commit ${versions[newest]!.seq}: it is of ${versions
          .filter(({ text }) => canonical(company, resource, text).whole === row.value.whole)
          .map(({ seq }) => seq)
          .join(", ")} of ${versions.map(({ seq, op }) => `${seq} ${op}`).join(", ")}`
  }
  /**
   * Everything that could be listed at a time. Changes that only a full scan shows are left out where none is needed.
   */
  const checkRows = (subject: Subject, stored: number): string | null => {
    const { company, resource } = subject
    // A scan that was answered with an earlier list shows the resource as it was then. Its cursor is as old.
    const stale = source.staleLists.filter((one) => one.company === company && one.resource === resource.path)
    const at = Math.min(stored, ...stale.flatMap(({ at, of }) => (at >= stored ? [of] : [])))
    const versions = source.history(company, resource.path).filter((version) => version.at <= at)
    for (const id of new Set(versions.map((version) => version.id))) {
      const key = keyOf(company, resource.path, id)
      if (excused.has(key) || overBound.has(key)) continue
      const ofIt = source.history(company, resource.path).filter((version) => version.id === id)
      if (ofIt.some(({ op }) => op === "delete")) continue
      const what = checkRow(subject, id, at)
      if (what !== null) return `of ${key}, ${what}`
    }
    return null
  }
  return {
    name: "settled",
    holds:
      "an event is done only when the row is at least as new as the record was when the event fired, and if a read resolved it, as the record was shown when the event was stored; an event without an id only when all of the resource is",
    stored: ({ now, entries, subjects }) => {
      for (const { number, company, resource, recordId, state, eventId, type, reason, occurredAt } of entries) {
        const before = states.get(number)
        if (before === state) continue
        states.set(number, state)
        if (before === undefined) storedAt.set(number, now)
        if (state !== "done" || resource === null) continue
        const subject = subjects.find((one) => one.company === company && one.resource.path === resource)
        if (subject === undefined) continue
        const stored = storedAt.get(number)!
        if (recordId === null) {
          const what = checkRows(subject, stored)
          if (what !== null) return `${eventId} (${type}) is done${reason === null ? "" : ` (${reason})`}: ${what}`
          continue
        }
        // Without a read for this event, a row of the event's version or later is enough. The same holds after a read
        // that may have shown an earlier version.
        const mayBeEarlier = (source.earlier.get(keyOf(company, resource, recordId))?.until ?? 0) > stored
        const isOwnRead = (reason === null && !mayBeEarlier) || occurredAt === null
        const what = checkRow(subject, recordId, isOwnRead ? stored : Math.min(occurredAt, stored))
        if (what !== null)
          return `${eventId} (${type} of ${keyOf(company, resource, recordId)}) is done${reason === null ? "" : ` (${reason})`}: ${what}`
      }
      return null
    }
  }
}
