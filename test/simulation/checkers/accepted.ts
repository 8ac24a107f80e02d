/** I5: a delivery that was accepted is not lost. */
import { companyOf } from "../world/Sender.ts"
import { type CheckerOf, type Entry } from "./Checker.ts"

/** Pending events and dead letters are kept. */
const isSettled = ({ state }: Entry): boolean => state === "done" || state === "skipped"

export const accepted: CheckerOf = () => {
  /** Events that were acknowledged, and whether they have been resolved since. */
  const acknowledged = new Map<string, boolean>()
  return {
    name: "accepted",
    holds:
      "I5: a delivery that is answered 2xx is in the inbox at that moment, once, and stays there until it is resolved",
    answered: ({ answer: { status, arrival }, entries }) => {
      if (status < 200 || status > 299) return null
      const own = entries.filter(({ company }) => `company-${company}` === arrival.company)
      const key = `${companyOf(arrival.company)} ${arrival.eventId}`
      // Processed events may be removed at any time, also between the read of the inbox and the answer.
      if (own.length === 0)
        return acknowledged.get(key) === true
          ? null
          : `${arrival.eventId} was answered ${status} and is not in the inbox`
      if (own.length > 1) return `${arrival.eventId} is ${own.length} times in the inbox`
      acknowledged.set(key, isSettled(own[0]!))
      return null
    },
    stored: ({ entries }) => {
      const present = new Map(entries.map((entry) => [`${entry.company} ${entry.eventId}`, entry]))
      if (present.size !== entries.length) return "an event is in the inbox more than once"
      for (const [key, wasSettled] of acknowledged) {
        const entry = present.get(key)
        if (entry === undefined && !wasSettled)
          return `event ${key} was accepted, is not resolved and is not in the inbox`
        if (entry !== undefined) acknowledged.set(key, isSettled(entry))
      }
      return null
    }
  }
}
