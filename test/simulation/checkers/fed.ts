/** A reader of the change feed has the records of the warehouse, at every commit. */
import { type CheckerOf, type Fed, keyOf, type Subject } from "./Checker.ts"

export const fed: CheckerOf = ({ losses }) => {
  const difference = ({ company, resource }: Pick<Subject, "company" | "resource">, { rows, shown }: Fed) => {
    for (const id of new Set([...rows.keys(), ...shown.keys()])) {
      const key = keyOf(company, resource.path, id)
      // A landing did not delete it.
      if (losses.deletedByHand.has(key) || rows.get(id) === shown.get(id)) continue
      return `${key}: the feed has ${shown.get(id) ?? "nothing"}, the table has ${rows.get(id) ?? "nothing"}`
    }
    return null
  }
  return {
    name: "fed",
    holds:
      "the change feed has every version once, at positions without a gap: replayed, it gives the records of the warehouse at every commit",
    landed: ({ subject, fed: seen }) => {
      if (seen.restarts > losses.ledgers)
        return `a position of the feed was lost ${seen.restarts} times in ${losses.ledgers} restores`
      // A lost table begins again when a process notices the loss.
      if (!seen.isFed || seen.isBlocked || losses.latest(subject.company, subject.resource.path)?.isRepaired === false)
        return null
      return difference(subject, seen)
    },
    healed: (final) => {
      for (const subject of final.subjects) {
        const seen = final.fed(subject)
        if (!seen.isFed) return `${subject.company}/${subject.resource.path}: its table has not begun in the feed`
        if (seen.isBlocked) return "the feed waits for a view that was dropped"
        const what = difference(subject, seen)
        if (what !== null) return what
      }
      return null
    }
  }
}
