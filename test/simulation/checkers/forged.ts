/** I11: a delivery that the source did not send, or sent too long ago, changes nothing. */
import { aheadSeconds, toleranceSeconds } from "../world/Sender.ts"
import { type CheckerOf } from "./Checker.ts"

/** Seconds by which clocks and rounding may differ. */
const grace = 2

export const forged: CheckerOf = () => ({
  name: "forged",
  holds: "I11: a forged, stale or premature delivery is never answered 2xx and leaves nothing in the inbox",
  answered: ({ answer: { status, arrival, clocks } }) => {
    if (status < 200 || status > 299) return null
    if (arrival.forged !== null) return `${arrival.eventId} was answered ${status}, and is forged: ${arrival.forged}`
    // The receiver read its clock between arrival and answer.
    const ages = clocks.map((clock) => clock / 1e6 - arrival.t!)
    if (Math.min(...ages) > toleranceSeconds + grace)
      return `${arrival.eventId} was answered ${status} at an age of ${Math.min(...ages).toFixed(0)} seconds`
    if (Math.max(...ages) < -aheadSeconds - grace)
      return `${arrival.eventId} was answered ${status}, ${(-Math.max(...ages)).toFixed(0)} seconds before its time`
    return null
  },
  stored: ({ entries }) => {
    const entry = entries.find(({ eventId }) => eventId.startsWith("evt_forged"))
    return entry === undefined ? null : `${entry.eventId} is in the inbox, and the source never sent it`
  }
})
