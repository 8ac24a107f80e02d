/** A pause in words: who requested it, with which answer, when, and for how long. */
import type { HoldReport } from "./Rule.ts"

/** A length of time, roughly: "40 s", "15 min", "3 h", "365 days". */
export const roughly = (ms: number): string => {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`
  const days = Math.round(seconds / 86_400)
  return days > 3_650 ? "more than 10 years" : `${days} days`
}

/** The sender of the answer. */
export const answeredBy = ({ origin }: Pick<HoldReport, "origin">): string =>
  origin === "source" ? "the service" : "something between here and the service (no error body of the API)"

/** The answer that requested a pause. */
export const tellHold = (by: HoldReport): string =>
  `${by.request === null ? "a request" : by.request} was answered ${by.status} by ${answeredBy(by)} ` +
  `${roughly(by.agoMs)} ago, with Retry-After ${roughly(by.statedMs)}`
