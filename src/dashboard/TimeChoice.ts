/** The time of a list: the last hour, 24 hours, yesterday, seven days, or all. Days are those of UTC. */
import * as Effect from "effect/Effect"
import { dayMs, hourMs } from "../web/Times.ts"
import { choiceLinks } from "./ListControls.ts"
import type { Html, PageError, PageRequest } from "./Page.ts"
import { choiceOf } from "./Params.ts"

export const times = ["hour", "day", "yesterday", "week"] as const
export type Time = (typeof times)[number]

export const timeWords: Readonly<Record<Time, string>> = {
  hour: "Last hour",
  day: "Last 24 h",
  yesterday: "Yesterday (UTC)",
  week: "Last 7 days"
}

export interface ChosenTime {
  /** Null is all. */
  readonly time: Time | null
  readonly since: Date
  /** Not included. */
  readonly until: Date
}

/** The time that the query names. */
export const timeOf = (request: PageRequest): Effect.Effect<ChosenTime, PageError> =>
  Effect.map(choiceOf(request, "time", times), (time) => {
    const now = request.now.getTime()
    const today = Math.floor(now / dayMs) * dayMs
    const ago = (ms: number) => ({ time, since: new Date(now - ms), until: new Date(now + dayMs) })
    switch (time) {
      case "hour":
        return ago(hourMs)
      case "day":
        return ago(dayMs)
      case "week":
        return ago(7 * dayMs)
      case "yesterday":
        return { time, since: new Date(today - dayMs), until: new Date(today) }
      case null:
        return ago(now)
    }
  })

/** Links to the times. */
export const timeChoice = (path: string, query: Readonly<Record<string, string | null>>, label = "Time"): Html =>
  choiceLinks(label, path, query, "time", [
    [null, "All times"],
    ...times.map((time) => [time, timeWords[time]] as const)
  ])
