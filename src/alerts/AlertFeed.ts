/**
 * The feed of an alert route: the messages that are due, one request in a round.
 *
 * Promise: a message is sent exactly once, if the receiver answers and no process dies during the request. A message about
 * a condition is not sent before an earlier one. The begin of a request is stored before it. A process that dies earlier
 * leaves messages that another one sends. A process that dies during the request leaves an unknown outcome: a receiver that
 * knows idempotency keys gets the same request again; for any other receiver the messages become dead letters.
 */
import * as Effect from "effect/Effect"
import { type Definition, everything, nameOfRoute } from "../delivery/Endpoint.ts"
import * as Plan from "../delivery/Plan.ts"
import type { Feed, Sender } from "../delivery/Round.ts"
import * as SenderStore from "../delivery/SenderStore.ts"
import { limitsOfRoutes } from "../delivery/Transport.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as Formats from "./Formats.ts"
import * as MessageStore from "./MessageStore.ts"
import type { Route } from "./Route.ts"

type Open = ReadonlyArray<MessageStore.OpenMessage>

/** More messages of a route that are due together are sent as one. */
const apartMax = 5
/** The maximum number of messages in a request. */
const batchMax = 50
/** A message that fails for so long becomes a dead letter. */
const retryHours = 24

const isSending = ({ state }: MessageStore.OpenMessage): boolean => state === "sending"

/** The messages of the next request. One that is repeated has those of its first attempt. */
const nextOf = (open: Open, { digest }: Route, row: SenderStore.EndpointRow): Open => {
  const interrupted = open.filter(isSending)
  if (interrupted.length > 0) return interrupted
  const tried = open.filter(({ attempts, nextAttemptMs }) => attempts > 0 || nextAttemptMs <= row.nowMs)
  const due = SenderStore.isProbed(row) ? Plan.probeOf(tried) : Plan.dueOf(open, row.nowMs, open.length)
  const [first, ...others] = due.toSorted((a, b) => Number(a.position - b.position))
  if (first === undefined) return []
  if (first.batch !== null) return open.filter(({ batch }) => batch === first.batch)
  const together = [first, ...others.filter(({ batch }) => batch === null)]
  return digest !== null || together.length > apartMax ? together.slice(0, batchMax) : [first]
}

/** Reads what is due, and stores what waits and the begin of the next request. */
const begin = Effect.fnUntraced(function* (route: Route, sender: Sender, row: SenderStore.EndpointRow, from: bigint) {
  const open = yield* MessageStore.lockOpen(row.name, from)
  const next = nextOf(open, route, row)
  const last = open.length < MessageStore.openMax ? row.end : open.at(-1)!.position
  const number = last > from ? last : from
  const stored = open.filter((one) => one.position > from || next.includes(one))
  if (stored.length > 0) {
    yield* SenderStore.hold(sender, number)
    yield* MessageStore.bind(next)
    yield* SenderStore.storeWaits(
      row.name,
      stored.map((one) => ({ ...one, state: next.includes(one) ? "sending" : "waiting", error: null }))
    )
  }
  return { open, next, number }
}, transaction)

/** What became of a request whose process has died. */
const interrupted = {
  status: null,
  retryAfterMs: null,
  error: "the process ended during the request",
  mayHaveArrived: true
}

const feedOf = (route: Route): Feed => {
  const isIdempotent = Formats.isIdempotent(route.receiver)
  return {
    limits: limitsOfRoutes,
    isIdempotent,
    isFinished: true,
    read: Effect.fnUntraced(function* (sender, row, from) {
      const { open, next, number } = yield* begin(route, sender, row, from.number)
      const keyOf = Plan.makeKeys(open)
      const isInterrupted = next.some(isSending) && !isIdempotent
      return {
        position: { number, token: null },
        waiting: open,
        lanes: next.length === 0 ? [] : [[next.map((one) => ({ ...one, key: keyOf(one) }))]],
        behind: [],
        obsolete: [],
        canRead: true,
        send: Effect.fnUntraced(function* () {
          const outcome = isInterrupted ? interrupted : yield* Formats.send(route, sender.transport, next)
          // The log shows the first failure of a request.
          if (outcome.error !== null && next[0]?.attempts === 0) {
            yield* Effect.logWarning(`alerts: route ${route.name}: ${outcome.error}; tributary alerts history shows it`)
          }
          return { ...outcome, id: Formats.keyOf(next) }
        })
      }
    })
  }
}

/** The routes as endpoints. */
export const definitionsOf = (routes: ReadonlyArray<Route>): ReadonlyArray<Definition> =>
  routes.map(({ name, receiver }) => ({
    name: nameOfRoute(name),
    url: receiver.type,
    ...everything,
    batchMax,
    allowPrivate: true,
    retryHours
  }))

/** The feeds of the routes, by the name of their endpoint. */
export const feedsOf = (routes: ReadonlyArray<Route>): ReadonlyMap<string, Feed> =>
  new Map(routes.map((route) => [nameOfRoute(route.name), feedOf(route)]))
