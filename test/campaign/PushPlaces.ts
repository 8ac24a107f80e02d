/**
 * The places at which a push is killed, and its work at that time.
 *
 * Promise: a place is a count of what the process does (messages to the database, requests, transactions of the
 * ledger). Only a few places are a time. Places are on both sides of every step that must not happen twice: a request
 * is stored and not sent, sent and not answered, answered and not received, received and not recorded.
 */
import type { Chance } from "../fuzz/Chance.ts"
import type { Moment } from "../support/tap.ts"

type RequestStage = Extract<Moment, { kind: "request" }>["stage"]
type TransactionStage = Extract<Moment, { kind: "landing" }>["stage"]

export type Place =
  | { readonly kind: "start" }
  /** A time since its start, not a count. */
  | { readonly kind: "time"; readonly ms: number }
  | { readonly kind: "message"; readonly number: number }
  | { readonly kind: "write" | "read"; readonly number: number; readonly stage: RequestStage }
  /** A transaction under the fence: it stores a request, or the outcome of one. */
  | { readonly kind: "transaction"; readonly number: number; readonly stage: TransactionStage }
  /** The report is being printed. */
  | { readonly kind: "report" }

const requestStages = ["asked", "answered", "half", "delivered"] as const
const transactionStages = ["opened", "commit", "committed", "confirmed"] as const

export const draw = (chance: Chance): Place =>
  chance.weighted<() => Place>([
    [3, () => ({ kind: "start" })],
    [15, () => ({ kind: "time", ms: chance.between(300, 4_000) })],
    [10, () => ({ kind: "message", number: chance.between(1, 60) })],
    [50, () => ({ kind: "write", number: chance.between(1, 8), stage: chance.pick(requestStages) })],
    [8, () => ({ kind: "read", number: chance.between(1, 6), stage: chance.pick(requestStages) })],
    [30, () => ({ kind: "transaction", number: chance.between(1, 20), stage: chance.pick(transactionStages) })],
    [3, () => ({ kind: "report" })]
  ])()

/** A place between the first request and the end. */
export const drawAtWork = (chance: Chance): Place =>
  chance.is(0.6)
    ? { kind: "write", number: chance.between(1, 6), stage: chance.pick(requestStages) }
    : { kind: "transaction", number: chance.between(3, 16), stage: chance.pick(transactionStages) }

export const describePlace = (place: Place): string => {
  switch (place.kind) {
    case "start":
      return "at its start"
    case "time":
      return "at any moment"
    case "report":
      return "while it reported"
    case "message":
      return "between two messages to the database"
    case "read":
      return `while it looked up a record (${place.stage})`
    case "write":
      return {
        asked: "a write is on its way",
        answered: "a write is done, its answer is on its way",
        half: "half of the answer to a write has arrived",
        delivered: "the answer to a write has arrived"
      }[place.stage]
    case "transaction":
      return {
        opened: "a transaction of the ledger begins",
        rows: "a transaction of the ledger loads rows",
        commit: "before a commit of the ledger",
        committed: "after a commit of the ledger, before the process knows it",
        confirmed: "after a commit of the ledger"
      }[place.stage]
  }
}

/** Returns for each moment of one process whether it is the place. The caller passes every moment once. */
export const watchFor = (place: Place): ((moment: Moment) => boolean) => {
  const seen = { write: 0, read: 0 }
  /** Number of each request among those of its kind. */
  const numbers = new Map<number, number>()
  return (moment) => {
    switch (moment.kind) {
      case "message":
        return place.kind === "message" && place.number === moment.number
      case "landing":
        return place.kind === "transaction" && place.number === moment.number && place.stage === moment.stage
      case "request": {
        const kind = moment.method === "GET" ? "read" : "write"
        if (moment.stage === "asked") numbers.set(moment.number, (seen[kind] += 1))
        return (
          (place.kind === "read" || place.kind === "write") &&
          place.kind === kind &&
          place.number === numbers.get(moment.number) &&
          place.stage === moment.stage
        )
      }
    }
  }
}
