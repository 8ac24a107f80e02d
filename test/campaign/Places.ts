/**
 * The places at which a command is killed.
 *
 * Promise: a place is a count of what the command does (messages to the database, requests, landings) and never a time,
 * so that the same seed means the same on every machine. Places are on both sides of every step that must not happen
 * twice: sent and not answered, answered and not received, received and not committed, committed and not confirmed.
 */
import type { Chance } from "../fuzz/Chance.ts"
import type { Counts, Moment } from "../support/tap.ts"

type RequestStage = Extract<Moment, { kind: "request" }>["stage"]
type LandingStage = Extract<Moment, { kind: "landing" }>["stage"]

export type Place =
  | { readonly kind: "start" }
  | { readonly kind: "message"; readonly number: number }
  | { readonly kind: "read" | "write"; readonly number: number; readonly stage: RequestStage }
  /** A transaction under the fence. */
  | { readonly kind: "landing"; readonly number: number; readonly stage: LandingStage }
  /** The report is being printed: all work is done, and the command is about to end. */
  | { readonly kind: "report" }

const requestStages = ["asked", "answered", "half", "delivered"] as const

/** A place between the first request and the last landing of a command whose counts are about `usual`. */
export const drawAtWork = (chance: Chance, usual: Counts, kind: "read" | "write"): Place => {
  const landingStages =
    kind === "read"
      ? (["opened", "rows", "commit", "committed", "confirmed"] as const)
      : (["opened", "commit", "committed", "confirmed"] as const)
  return chance.is(0.5)
    ? { kind, number: chance.between(1, Math.max(2, usual.requests)), stage: chance.pick(requestStages) }
    : { kind: "landing", number: chance.between(1, Math.max(1, usual.landings)), stage: chance.pick(landingStages) }
}

/** Draws a place in a command whose counts are about `usual`. */
export const draw = (chance: Chance, usual: Counts, kind: "read" | "write"): Place =>
  chance.weighted<() => Place>([
    [4, () => ({ kind: "start" })],
    [12, () => ({ kind: "message", number: chance.between(1, 60) })],
    [80, () => drawAtWork(chance, usual, kind)],
    [6, () => ({ kind: "report" })]
  ])()

export const describePlace = (place: Place): string => {
  switch (place.kind) {
    case "start":
      return "at its start"
    case "report":
      return "while it reports"
    case "message":
      return "at a message to the database"
    default:
      return `${place.kind} ${place.stage}`
  }
}

/** Returns for each moment of one command whether it is the place. The caller passes every moment once. */
export const watchFor = (place: Place): ((moment: Moment) => boolean) => {
  const seen = { write: 0, read: 0 }
  /** Number of each request among those of its kind. */
  const numbers = new Map<number, number>()
  return (moment) => {
    if (moment.kind !== "request") {
      return (
        place.kind === moment.kind &&
        place.number === moment.number &&
        (moment.kind === "message" || (place.kind === "landing" && place.stage === moment.stage))
      )
    }
    const kind = moment.method === "GET" ? "read" : "write"
    if (moment.stage === "asked") numbers.set(moment.number, (seen[kind] += 1))
    return place.kind === kind && place.number === numbers.get(moment.number) && place.stage === moment.stage
  }
}
