/**
 * A limit of wrong passwords per minute, for each client and for all networks together.
 *
 * Promise: a browser that logged in before has a limit of its own, so that others cannot lock it out. While a limit is
 * reached, no password is compared.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

export interface PasswordAttempts {
  failures: ReadonlyArray<{ readonly at: number; readonly client: string }>
}

/** The sender of a password. */
export interface Client {
  readonly key: string
  /** Whether it is a browser that logged in before, and not a network. */
  readonly isKnownBrowser: boolean
}

export type AttemptResult =
  | { readonly _tag: "Right" }
  | { readonly _tag: "Wrong" }
  | { readonly _tag: "TooMany"; readonly retryAfterSeconds: number }

const windowMs = 60_000
/** Wrong passwords within a minute from one client. */
const failuresMax = 10
/** Wrong passwords within a minute from all networks. */
const failuresOfAllMax = 100

export const make = (): PasswordAttempts => ({ failures: [] })

/** After how many seconds the client may try again; 0 for now. */
const retryAfterSeconds = (attempts: PasswordAttempts, now: number, { key, isKnownBrowser }: Client): number => {
  attempts.failures = attempts.failures.filter(({ at }) => now - at < windowMs && at <= now)
  const own = attempts.failures.filter(({ client }) => client === key)
  const all = isKnownBrowser ? [] : attempts.failures
  const first = own.length >= failuresMax ? own[0] : all.length >= failuresOfAllMax ? all[0] : undefined
  return first === undefined ? 0 : Math.max(1, Math.ceil((first.at + windowMs - now) / 1000))
}

/** Compares a password, unless the client has tried too many. */
export const attempt = (
  attempts: PasswordAttempts,
  client: Client,
  isRight: () => boolean
): Effect.Effect<AttemptResult> =>
  Effect.map(Clock.currentTimeMillis, (now): AttemptResult => {
    const seconds = retryAfterSeconds(attempts, now, client)
    if (seconds > 0) return { _tag: "TooMany", retryAfterSeconds: seconds }
    if (isRight()) return { _tag: "Right" }
    attempts.failures = [...attempts.failures, { at: now, client: client.key }]
    return { _tag: "Wrong" }
  })
