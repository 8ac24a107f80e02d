/**
 * The sender: a loop for each active endpoint and alert route, in whichever process has its lease.
 *
 * Promise: a slow or dead endpoint delays no other one: each has a loop and connections of its own, and at most one
 * round of changes in memory. The endpoints of a killed process are sent to by another one within seconds. A process that was
 * suspended stores nothing once another one has the lease. Without endpoints, the only work is a query every few seconds.
 * A process that stops gives its leases back after its last round.
 */
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import type { Proxies } from "../http/Proxies.ts"
import * as Supervisor from "../processes/Supervisor.ts"
import * as EndpointFeed from "./EndpointFeed.ts"
import type { Keys } from "./EndpointSecrets.ts"
import * as Round from "./Round.ts"
import * as SenderStore from "./SenderStore.ts"
import * as Transport from "./Transport.ts"

export interface SenderOptions {
  readonly processId: string
  readonly keys: Keys
  readonly proxies: Proxies | null
  /** The feeds of the alert routes of the file, by the name of their endpoint. */
  readonly routes: ReadonlyMap<string, Round.Feed>
}

/** The interval at which the end of the feed is read while an endpoint is active. */
const pollMs = 100
/** The same while only alert routes are active. */
const routePollMs = 1_000
/** The interval at which leases are renewed, in polls for changes. */
const pollsPerLease = 10
/** The interval at which a process without endpoints looks for one. */
const idleMs = 2_000

/** The ends of the feeds and the time, as last read. */
interface Pulse {
  ends: Readonly<Record<SenderStore.LeasedEndpoint["kind"], bigint>>
  nowMs: number
  readonly beat: Latch.Latch
}

/** Waits until the feed is longer than the position, or something is due. */
const awaitWork = Effect.fnUntraced(function* (
  { kind }: SenderStore.LeasedEndpoint,
  { position, canRead, dueMs }: Round.State,
  pulse: Pulse
) {
  const hasWork = () =>
    (canRead && position !== null && pulse.ends[kind] > position.number) || (dueMs !== null && pulse.nowMs >= dueMs)
  while (!hasWork()) yield* pulse.beat.await
})

/** Sends to one endpoint until it is lost. */
const sendForever = Effect.fnUntraced(function* (
  { keys, proxies, routes }: SenderOptions,
  endpoint: SenderStore.LeasedEndpoint,
  pulse: Pulse
) {
  const feed = routes.get(endpoint.name) ?? EndpointFeed.make(keys)
  const sender: Round.Sender = { ...endpoint, transport: yield* Transport.make(proxies, feed.limits) }
  if (endpoint.kind === "changes") {
    const row = yield* SenderStore.load(endpoint)
    yield* ChangeFeed.confirm({ number: row.lastPosition, token: row.lastToken })
  }
  let state = Round.initial
  for (;;) {
    state = yield* Round.run(feed, sender, state)
    if (!state.isBusy) yield* awaitWork(endpoint, state, pulse)
  }
}, Effect.scoped)

/** The loop of an endpoint under the supervisor. What cannot be read on ends the endpoint. */
const serve = (options: SenderOptions, one: SenderStore.LeasedEndpoint, pulse: Pulse) =>
  Supervisor.runForever(
    `endpoint ${one.name}`,
    sendForever(options, one, pulse).pipe(
      Effect.catchTags({
        PositionLost: ({ message }) =>
          Effect.gen(function* () {
            yield* SenderStore.end(one, message)
            yield* Effect.logWarning(`endpoint ${one.name}: ${message}`)
            return yield* Effect.never
          }),
        // The lease is compared every second, which ends this fiber or begins another one.
        LeaseLost: () => Effect.never
      })
    )
  )

/** Runs the loops of the endpoints that this process has leased, until it is interrupted. */
export const run = (options: SenderOptions): Effect.Effect<never, DatabaseError, SqlClient> =>
  Effect.scoped(
    Effect.gen(function* (): Effect.fn.Return<never, DatabaseError, SqlClient | Scope.Scope> {
      const { processId, keys, routes } = options
      yield* Effect.addFinalizer(() => Effect.ignore(SenderStore.release(processId)))
      const fibers = yield* FiberMap.make<string>()
      const leases = new Map<string, SenderStore.LeasedEndpoint>()
      const pulse: Pulse = { ends: { changes: -1n, alerts: -1n }, nowMs: 0, beat: yield* Latch.make() }
      const names = [...keys.file.keys(), ...routes.keys()]
      const renew = Effect.gen(function* () {
        yield* SenderStore.lease(processId, names, keys.key !== null)
        const leased = yield* SenderStore.readLeased(processId)
        for (const name of leases.keys()) {
          if (leased.some((one) => one.name === name)) continue
          leases.delete(name)
          // A route finishes its request, for which the other leases do not wait.
          yield* Effect.forkChild(FiberMap.remove(fibers, name))
        }
        for (const one of leased) {
          if (leases.get(one.name)?.fence === one.fence) continue
          leases.set(one.name, one)
          yield* FiberMap.run(fibers, one.name, serve(options, one, pulse))
        }
      })
      const hasChanges = () => [...leases.values()].some(({ kind }) => kind === "changes")
      for (let poll = 0; ; poll += 1) {
        if (poll % pollsPerLease === 0 || !hasChanges()) yield* renew
        if (hasChanges()) yield* ChangeFeed.order
        if (leases.size > 0) {
          const { changes, alerts, nowMs } = (yield* SenderStore.readEnds)!
          pulse.ends = { changes, alerts: alerts ?? 0n }
          pulse.nowMs = nowMs
          yield* pulse.beat.release
        }
        yield* Effect.sleep(leases.size === 0 ? idleMs : hasChanges() ? pollMs : routePollMs)
      }
    })
  )
