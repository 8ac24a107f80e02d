/** A pause as text: its sender, its answer, its age and its length. */
import type { PauseReport } from "./PermitRule.ts"

/** An approximate length of time: "40 s", "15 min", "3 h", "365 days". */
const roundedDuration = (ms: number): string => {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`
  const days = Math.round(seconds / 86_400)
  return days > 3_650 ? "more than 10 years" : `${days} days`
}

/** The sender of the answer. */
const pauseOrigin = ({ origin }: Pick<PauseReport, "origin">): string =>
  origin === "source" ? "the service" : "something between here and the service (no error body of the API)"

/** The answer that requested a pause. */
export const describePause = (by: PauseReport): string =>
  `${by.request === null ? "a request" : by.request} was answered ${by.status} by ${pauseOrigin(by)} ` +
  `${roundedDuration(by.agoMs)} ago, with Retry-After ${roundedDuration(by.statedMs)}`
