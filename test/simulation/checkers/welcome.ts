/** A genuine delivery is not rejected. */
import { aheadSeconds, toleranceSeconds } from "../world/Sender.ts"
import { type CheckerOf } from "./Checker.ts"

const grace = 2

export const welcome: CheckerOf = ({ plan }) => {
  /** Without other faults, a process knows a secret before anything is signed with it. */
  const isQuiet = [...plan.on].every((name) => name === "W6")
  /** Secrets with which a process has accepted a delivery before. */
  const acceptedKeys = new Set<string>()
  return {
    name: "welcome",
    holds:
      "SIG-05, H-08: a genuine delivery in the window is never rejected by a process that knows a secret of it, whichever v1 is first, and while the source may sign with it; nor while only secrets are rotated",
    answered: ({ answer: { status, arrival, clocks, by } }) => {
      if (arrival.forged !== null) return null
      const keys = arrival.secrets.map((secret) => `${by} ${arrival.company} ${secret}`)
      if (status >= 200 && status <= 299) {
        // With several secrets, it is unknown which one verified the delivery.
        if (keys.length === 1) acceptedKeys.add(keys[0]!)
        return null
      }
      if (status !== 400 && status !== 401 && status !== 413) return null
      const ages = clocks.map((clock) => clock / 1e6 - arrival.t!)
      const isTimely = ages.every((age) => age < toleranceSeconds - grace && age > -aheadSeconds + grace)
      if (isTimely && isQuiet && arrival.isRotated)
        return `${arrival.eventId} is genuine, in time, signed with a secret to which it was rotated, and was answered ${status}`
      if (isTimely && keys.some((key) => acceptedKeys.has(key)))
        return `${arrival.eventId} is genuine, in time, signed with a secret that ${by} knows, and was answered ${status}`
      return null
    }
  }
}
