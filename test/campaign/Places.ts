/**
 * The places at which a process is killed.
 *
 * Promise: a place is a count of what the process does (messages, requests, landings) and never a time, so that the
 * same seed means the same on every machine. The work of a killed process is inferred from the moments seen of it.
 */
import type { Chance } from "../fuzz/Chance.ts"
import type { Counts, Moment, CommandWatch } from "../support/tap.ts"

export type Place =
  | { readonly kind: "start" }
  | { readonly kind: "message"; readonly number: number }
  | { readonly kind: "request"; readonly number: number; readonly stage: Extract<Moment, { kind: "request" }>["stage"] }
  | { readonly kind: "landing"; readonly number: number; readonly stage: Extract<Moment, { kind: "landing" }>["stage"] }
  /** The report is being printed: all work is done, and the process is about to end. */
  | { readonly kind: "report" }

/** Draws a place in a process whose counts are about `usual`. */
export const draw = (chance: Chance, usual: Counts): Place => {
  const request = chance.between(1, Math.max(2, usual.requests))
  const landing = chance.between(1, Math.max(1, usual.landings))
  return chance.weighted<Place>([
    [4, { kind: "start" }],
    [12, { kind: "message", number: chance.between(1, 20) }],
    [9, { kind: "request", number: request, stage: "asked" }],
    [13, { kind: "request", number: request, stage: "answered" }],
    [13, { kind: "request", number: request, stage: "half" }],
    [6, { kind: "request", number: request, stage: "delivered" }],
    [6, { kind: "landing", number: landing, stage: "opened" }],
    [9, { kind: "landing", number: landing, stage: "rows" }],
    [9, { kind: "landing", number: landing, stage: "commit" }],
    [13, { kind: "landing", number: landing, stage: "committed" }],
    [5, { kind: "landing", number: landing, stage: "confirmed" }],
    [8, { kind: "report" }]
  ])
}

/** A place between the first request and the last landing. */
export const drawAtWork = (chance: Chance, usual: Counts): Place => {
  for (;;) {
    const place = draw(chance, usual)
    if (place.kind === "landing" || (place.kind === "request" && place.number > 1)) return place
  }
}

export const isAt = (place: Place, moment: Moment): boolean =>
  place.kind === moment.kind &&
  place.number === moment.number &&
  (moment.kind === "message" || (place.kind !== "message" && place.stage === moment.stage))

export const phases = ["before the first request", "reading", "landing", "after the last page"] as const
export type Phase = (typeof phases)[number]

/** The phase of the process. */
export const phaseOf = (watched: CommandWatch, hasReported: boolean): Phase => {
  if (hasReported) return "after the last page"
  if (watched.counts().requests === 0) return "before the first request"
  return watched.isLanding() ? "landing" : "reading"
}
