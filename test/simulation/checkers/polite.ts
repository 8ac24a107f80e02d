/** I10: no request before Retry-After, bounded retries, and no repetition after a final answer. */
import type { Attempt } from "../world/Network.ts"
import { type CheckerOf } from "./Checker.ts"

const attemptsMax = 8
/** A write is tried in rounds, with the same key. A round whose result a database fault lost is tried once more. */
const roundsMax = (path: string): number => (/^[A-Z]/.test(path) ? 8 : 3)
/** 429s are limited by time, not by number: this is far more than the time allows. */
const limitedMax = 60
const final = new Set([302, 401, 403])
const graceMicros = 1000
/** A request that is sent after a longer pause is a new one. */
const retryPause = 31_000_000
/** A webhook service runs for a long time. It may repeat a request after at least this pause. */
const servicePause = 4_900_000
/**
 * Several events may need the same record one after the other, each in rounds of its own. The pauses between the
 * attempts of a round take at least this long.
 */
const serviceRound = 15_800_000
/** Test deliveries of one subscription have a limit of their own: a 429 for one says nothing about other requests. */
const hasOwnLimit = (path: string): boolean => /^\/webhooks\/\d+\/test$/.test(path)
const isService = (name: string): boolean => name.startsWith("s") || name.startsWith("h")

export const polite: CheckerOf = () => ({
  name: "polite",
  holds: "I10: no request before Retry-After; at most 8 attempts of a request; none after an answer that is final",
  healed: ({ attempts }) => {
    const lives = Map.groupBy(attempts, ({ owner, life, company }) => `${owner.name} ${life} ${company}`)
    for (const [name, made] of lives) {
      const waits = made.filter(({ waitUntil }) => waitUntil !== null)
      for (const wait of waits) {
        if (wait.status !== 429 && wait.status !== 503) continue
        const early = made.find(
          ({ path, sentAt }) =>
            sentAt > wait.endedAt! &&
            sentAt < wait.waitUntil! - graceMicros &&
            (path === wait.path || wait.status !== 429 || !hasOwnLimit(wait.path))
        )
        if (early !== undefined) {
          return `${name}: ${early.path} was requested ${((wait.waitUntil! - early.sentAt) / 1e6).toFixed(3)} s before Retry-After had passed (${wait.status} for ${wait.path})`
        }
      }
      for (const [path, again] of Map.groupBy(made, (attempt: Attempt) => attempt.path)) {
        const answered = again
          .filter(({ endedAt }) => endedAt !== null)
          .toSorted((one, other) => one.endedAt! - other.endedAt!)
        let tries = 0
        let firstAt = 0
        let limited = 0
        /** After a final answer, a run that had a database fault at the same moment may repeat the request. */
        let stubborn = 0
        let repeatedUntil = 0
        for (const [index, attempt] of again.entries()) {
          const before = again[index - 1]
          // The answer to the previous attempt decides whether this is a retry or a new request.
          const isRetry =
            before !== undefined &&
            (before.status === null || before.status >= 400) &&
            attempt.sentAt - before.endedAt! < retryPause
          tries = isRetry ? tries + 1 : 1
          if (!isRetry) firstAt = attempt.sentAt
          limited = isRetry && before?.status === 429 ? limited + 1 : isRetry ? limited : 0
          // The last answer that was known when the request was sent. Two tasks may send the same request at the same
          // time: both count as one repetition.
          const known = answered.findLast(({ endedAt }) => endedAt! <= attempt.sentAt)
          const sinceMicros = attempt.sentAt - (known?.endedAt ?? 0)
          // A service that repeats a request after some time makes a new request.
          const isRepeated =
            final.has(known?.status ?? 0) && sinceMicros < (isService(attempt.owner.name) ? servicePause : retryPause)
          if (!isRepeated) stubborn = 0
          else if (attempt.sentAt >= repeatedUntil) {
            stubborn += 1
            repeatedUntil = attempt.endedAt!
          }
          if (stubborn >= 3) return `${name}: ${path} was requested again and again after ${known!.status}`
          const rounds = isService(attempt.owner.name)
            ? Math.max(roundsMax(path), 1 + Math.floor((attempt.sentAt - firstAt) / serviceRound))
            : roundsMax(path)
          if (tries - limited > attemptsMax * rounds || limited > limitedMax)
            return `${name}: ${path} was tried ${tries} times`
        }
      }
    }
    return null
  }
})
