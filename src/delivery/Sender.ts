/**
 * The sender: a loop for each active endpoint, in whichever process has its lease.
 *
 * Promise: a slow or dead endpoint delays no other one: each has a loop and connections of its own, and at most one
 * round of changes in memory. The endpoints of a killed process are sent to by another one within seconds. A process that was
 * suspended stores nothing once another one has the lease. Without endpoints, the only work is a query every few seconds.
 */
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import type { Proxies } from "../http/Proxies.ts"
import * as Statement from "../postgres/Statement.ts"
import * as Supervisor from "../processes/Supervisor.ts"
import type { Keys } from "./EndpointSecrets.ts"
import * as Round from "./Round.ts"
import * as SenderStore from "./SenderStore.ts"
import * as Transport from "./Transport.ts"

export interface SenderOptions {
  readonly processId: string
  readonly keys: Keys
  readonly proxies: Proxies | null
}

/** The interval at which the end of the feed is read while an endpoint is active. */
const pollMs = 100
/** The interval at which leases are renewed, in polls. */
const pollsPerLease = 10
/** The interval at which a process without endpoints looks for one. */
const idleMs = 2_000

/** The end of the feed and the time, as last read. */
interface Pulse {
  end: bigint
  nowMs: number
  readonly beat: Latch.Latch
}

/** Waits until the feed is longer than the position, or something is due. */
const awaitWork = Effect.fnUntraced(function* ({ position, canRead, dueMs }: Round.State, pulse: Pulse) {
  const hasWork = () =>
    (canRead && position !== null && pulse.end > position.number) || (dueMs !== null && pulse.nowMs >= dueMs)
  while (!hasWork()) yield* pulse.beat.await
})

/** Sends to one endpoint until it is lost. */
const sendForever = Effect.fnUntraced(function* (
  { keys, proxies }: SenderOptions,
  lease: SenderStore.Lease,
  pulse: Pulse
) {
  const transport = yield* Transport.make(proxies)
  const sender: Round.Sender = { ...lease, keys, transport }
  const row = yield* SenderStore.load(lease)
  yield* ChangeFeed.confirm({ number: row.lastPosition, token: row.lastToken })
  let state = Round.initial
  for (;;) {
    state = yield* Round.run(sender, state)
    if (!state.isBusy) yield* awaitWork(state, pulse)
  }
}, Effect.scoped)

/** The loop of an endpoint under the supervisor. What cannot be read on ends the endpoint. */
const serve = (options: SenderOptions, one: SenderStore.Lease, pulse: Pulse) =>
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
      const { processId, keys } = options
      const fibers = yield* FiberMap.make<string>()
      const fences = new Map<string, bigint>()
      const pulse: Pulse = { end: -1n, nowMs: 0, beat: yield* Latch.make() }
      yield* Effect.addFinalizer(() => Effect.ignore(SenderStore.release(processId)))
      const renew = Effect.gen(function* () {
        yield* Statement.run(SenderStore.leaseStatement, [processId, [...keys.file.keys()], keys.key !== null])
        const leased = yield* SenderStore.readLeased(processId)
        for (const name of fences.keys()) {
          if (leased.some((one) => one.name === name)) continue
          fences.delete(name)
          yield* FiberMap.remove(fibers, name)
        }
        for (const one of leased) {
          if (fences.get(one.name) === one.fence) continue
          fences.set(one.name, one.fence)
          yield* FiberMap.run(fibers, one.name, serve(options, one, pulse))
        }
      })
      for (let poll = 0; ; poll += 1) {
        if (poll % pollsPerLease === 0 || fences.size === 0) yield* renew
        if (fences.size > 0) {
          yield* ChangeFeed.order
          const now = yield* SenderStore.readEnd
          pulse.end = now!.end
          pulse.nowMs = now!.nowMs
          yield* pulse.beat.release
        }
        yield* Effect.sleep(fences.size === 0 ? idleMs : pollMs)
      }
    })
  )
