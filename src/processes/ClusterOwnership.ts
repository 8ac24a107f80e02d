/**
 * Ownership by `effect/cluster`: the processes on one warehouse share the buckets, and take over those of a dead process.
 *
 * Only the engine's ownership of shards is used, with Postgres as the only shared component (BucketLocks.ts): no messages
 * and no port. A bucket is a shard; its owner has an advisory lock.
 *
 * Promise: the buckets of a killed process have new owners after about {@link BucketLocks.expiration}; those of a process
 * that ends in order, after about one second. A killed process that starts again owns its buckets at once. A process
 * whose connection was lost owns its buckets again a few seconds after it can connect, however slow the network is. A
 * process that cannot reach the warehouse ends its keepers within four seconds. A process owns nothing for about three
 * seconds after it joined others.
 *
 * The engine gives no fence, and a keeper that needs seconds to stop may overlap with the next owner: see Ownership.ts.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import * as EntityId from "effect/cluster/EntityId"
import * as MessageStorage from "effect/cluster/MessageStorage"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as Scope from "effect/Scope"
import { Database, type DatabaseShape } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as ProcessSlot from "../warehouse/ProcessSlot.ts"
import * as BucketLocks from "./BucketLocks.ts"
import { bucketCount, type Keeper, type Ownership, parallelScope, runKeeper } from "./Ownership.ts"

const shardGroup = "default"

/** A process without landings restores the lock of its slot too: otherwise another process would take its identity. */
const restoreEvery = Duration.seconds(2)

const config = (slot: number) =>
  ShardingConfig.layer({
    // An identity; no process connects to it.
    runnerAddress: Option.some(RunnerAddress.make(`process-${slot}`, 0)),
    shardsPerGroup: bucketCount,
    shardLockExpiration: BucketLocks.expiration,
    shardLockRefreshInterval: Duration.seconds(2),
    refreshAssignmentsInterval: Duration.seconds(1),
    runnerJoinDebounce: Duration.seconds(2),
    // Also the pause after a failed acquisition.
    entityMessagePollInterval: Duration.seconds(1)
  })

/** The engine places a singleton by its name: the first name on each shard. */
const namesByShard = (cluster: Sharding.Sharding["Service"]): ReadonlyMap<number, string> => {
  const names = new Map<number, string>()
  for (let i = 0; names.size < bucketCount; i++) {
    const name = `keeper/${i}`
    const shard = cluster.getShardId(EntityId.make(name), shardGroup).id
    if (!names.has(shard)) names.set(shard, name)
  }
  return names
}

const registerKeepers = Effect.fnUntraced(function* <R>(keeper: Keeper<R>) {
  const cluster = yield* Sharding.Sharding
  const logLevel = yield* References.MinimumLogLevel
  const scope = yield* parallelScope
  for (const [shard, name] of namesByShard(cluster)) {
    // Without runKeeper, the engine drops a singleton that fails, and keeps its shard.
    const kept = Effect.provideService(runKeeper(keeper, shard - 1), References.MinimumLogLevel, logLevel)
    yield* Scope.provide(cluster.registerSingleton(name, kept), scope)
  }
})

/** Ownership among the processes of a warehouse. The control plane's schema must exist. */
export const make = (database: DatabaseShape): Ownership<DatabaseError> => ({
  layer: (keeper) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        // A process that starts again after a crash has its former number, and owns its former buckets at once, without
        // the wait for an expiration.
        const slot = yield* Effect.provideService(ProcessSlot.acquire, Database, database)
        yield* Effect.forkScoped(Effect.repeat(database.locks.restore, Schedule.spaced(restoreEvery)))
        const sharding = Sharding.layer.pipe(
          Layer.provide([Runners.layerNoop, RunnerHealth.layerNoop, BucketLocks.layer(database)]),
          Layer.provide([MessageStorage.layerNoop, config(slot)]),
          // Its messages repeat for each bucket, and for each attempt of an outage, which other services report.
          Layer.provide(Layer.succeed(References.MinimumLogLevel, "Fatal"))
        )
        const keepers = Layer.effectDiscard(registerKeepers(keeper)).pipe(Layer.provide(sharding))
        yield* Effect.mapError(Layer.build(keepers), DatabaseError.from("share the companies with other processes"))
      })
    )
})
