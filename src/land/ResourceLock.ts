/**
 * Exclusive access to one resource and lane: an advisory lock plus a fence.
 *
 * Promise: the lock keeps two runs of a lane from alternating by accident. The fence is the guarantee:
 * {@link ResourceLock.transaction} begins by locking the checkpoint and comparing the fence, so that a run which lost the
 * resource fails before it writes. Runs of all lanes lock the live checkpoint too, so that no two land at once.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import * as LaneLock from "../warehouse/LaneLock.ts"
import * as ProcessSlot from "../warehouse/ProcessSlot.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import { RulesChanged } from "../warehouse/RulesChanged.ts"
import type { Table } from "../warehouse/Table.ts"
import * as TableDamage from "../warehouse/TableDamage.ts"
import * as ChangeBatch from "./ChangeBatch.ts"
import { type Checkpoint, checkpointColumns, checkpointColumnTypes, fromRow, type Lane } from "./Checkpoint.ts"
import * as CheckpointIdentity from "./CheckpointIdentity.ts"
import * as ConfirmIdentity from "./ConfirmIdentity.ts"
import * as LandingConnection from "./LandingConnection.ts"
import { AlreadyRunning, FenceLost, type LandingError, TableChanged, WarehouseClockStepped } from "./LandingError.ts"
import { mergeSql } from "./MergeSql.ts"
import * as Refetch from "./Refetch.ts"
import * as WarehouseClock from "./WarehouseClock.ts"

/**
 * What to do while another run has the lane. `wait` waits a moment: it may just be ending. `fail` fails at once. `evict`
 * is for the owner of the company: it ends the session of a former owner, which may be suspended, and fails where a
 * command has the lane.
 */
export type WhenHeld = "wait" | "fail" | "evict"

export interface ResourceLockOptions {
  /** The table of the resource. */
  readonly table: Table
  /** The connector whose records are landed. */
  readonly connector: Pick<ConnectorShape, "catalogue" | "source">
  readonly companyId: bigint
  readonly lane: Lane
  /** Whether a person accepts that this program's older catalogue reads the resource again; default false. */
  readonly acceptsOlderCatalogue?: boolean
  /** Default: `wait`. */
  readonly whenHeld?: WhenHeld
}

export interface ResourceLock extends Pick<
  LandingConnection.LandingConnection,
  "client" | "connected" | "run" | "runStatement"
> {
  readonly table: Table
  readonly resource: string
  readonly companyId: bigint
  readonly lane: Lane
  /** The lane's checkpoint when the resource was acquired; it has this run's fence. */
  readonly checkpoint: Checkpoint
  /** The live lane's: the same as `checkpoint` in the live lane. */
  readonly live: Checkpoint
  /** The address of the source that is read; null where it has none. */
  readonly address: string | null
  /** The identity of the table that was acquired. */
  readonly tableIdentity: string
  /** The newest refetch request, of any resource, when the resource was acquired. */
  readonly refetchGeneration: bigint
  /** The warehouse's time when the resource was acquired, in milliseconds since 1970. */
  readonly acquiredAt: number
  /** The warehouse's time, in milliseconds since 1970, of an instant on the process' monotonic clock. */
  readonly timeOf: WarehouseClock.WarehouseClock["timeOf"]
  /** The warehouse's time now. */
  readonly now: Effect.Effect<number>
  /** Writes everything or nothing, and nothing after the fence was lost. */
  readonly transaction: <A, E>(
    body: Effect.Effect<A, E>
  ) => Effect.Effect<A, E | DatabaseError | FenceLost | WarehouseClockStepped>
  /**
   * Runs one statement that is a transaction of its own, and that changes nothing unless the fence is this run's and the
   * warehouse's time is within the bounds.
   */
  readonly runAtomic: <P extends ReadonlyArray<Statement.Type>, C extends Statement.Columns>(
    statement: Statement.Statement<P, C>,
    values: (clockBounds: readonly [from: number, until: number]) => Statement.Arguments<P>
  ) => Effect.Effect<ReadonlyArray<Statement.RowOf<Statement.Statement<P, C>>>, DatabaseError>
  /** Fails when an update under the fence changed no row. */
  readonly checkFence: (affected: number) => Effect.Effect<void, FenceLost>
}

export type AcquireError =
  | LandingError
  | AlreadyRunning
  | RulesChanged
  | TableChanged
  | CheckpointIdentity.NewerCatalogue
  | TableDamage.TableDamaged
  | SourceError

/** How long a process waits for another one that is just ending. */
const lockRetries = 40
const lockRetryEveryMs = 250

/** The context that the steps of acquiring a resource share. */
interface LockContext {
  readonly resource: string
  readonly table: Table
  readonly companyId: bigint
  readonly lane: Lane
  readonly identity: CheckpointIdentity.Identity
  readonly connection: LandingConnection.LandingConnection
  readonly clock: WarehouseClock.WarehouseClock
}

/** The longest wait for the end of a session, which has its locks until then. */
const evictedMsMax = 1_000

/**
 * Ends the session of a process of serve that has the lock, and the one that lands under it, and waits for their end.
 * Other runs of that process go on under their fences: a living process acquires their locks again.
 */
export const evictStatement = Statement.make({
  name: "end the session that locks",
  params: ["text", "text"],
  columns: { pg_terminate_backend: "bool" },
  text: `with former as (
       select pid from (${LaneLock.holdersSql("hashtextextended($1, 0)")}) h where pid <> pg_backend_pid() and pid in (${ProcessSlot.holdersSql}))
     select pg_terminate_backend(pid, ${evictedMsMax}) from (
       select pid from former union (${LaneLock.holdersSql("hashtextextended($2, 0)")} and exists (select from former))) sessions
      where pid <> pg_backend_pid()
        -- A role may not end the sessions of another role.
        and pid in (select pid from pg_stat_activity where usename = current_user)`
})

/** Acquires the advisory lock, which is released with the scope. */
const lockLane = Effect.fnUntraced(function* (context: LockContext, whenHeld: WhenHeld) {
  const { companyId, resource, lane } = context
  const { locks } = yield* Database
  const lock = LaneLock.nameOf(companyId, resource, lane)
  const isHeldHere = locks.has(lock)
  const acquire = locks.tryLock(lock).pipe(
    Effect.filterOrFail(
      (isLocked) => isLocked,
      () => new AlreadyRunning({ resource })
    )
  )
  // A process that was just killed keeps its lock until the server has noticed.
  const wait = Effect.retry(acquire, {
    while: (error) => error._tag === "AlreadyRunning",
    times: lockRetries,
    schedule: Schedule.spaced(lockRetryEveryMs)
  })
  const evict = context.connection.runStatement(evictStatement, [
    lock,
    LaneLock.landingNameOf(companyId, resource, lane)
  ])
  yield* whenHeld === "wait"
    ? wait
    : whenHeld === "fail" || isHeldHere
      ? acquire
      : Effect.catchTag(acquire, "AlreadyRunning", (held) =>
          Effect.flatMap(evict, ({ rows }) => (rows.length > 0 ? wait : Effect.fail(held)))
        )
})

/** SQL: whether the checkpoint exists, or may be made: not while a transaction ends the runs of the resource or company. */
const mayMakeSql = (lane: string) =>
  `(exists (select from tributary.checkpoints o where o.company_id = $1 and o.resource = $2 and o.lane = ${lane})
     or pg_try_advisory_xact_lock_shared(${LaneLock.newCheckpointsKeySql("$2")})
       and pg_try_advisory_xact_lock_shared(${LaneLock.newCheckpointsKeySql("$1::int8")}))`

export const prepareStatement = Statement.make({
  name: "prepare the checkpoint of",
  params: ["int8", "text", "text"],
  text: `insert into tributary.checkpoints (company_id, resource, lane, fence, shape, updated_at)
       select $1, $2, 'live', 0, $3, tributary.now() where ${mayMakeSql("'live'")}
       on conflict (company_id, resource, lane) do nothing`
})

/**
 * Changes nothing where the company has another source, or none yet, or where the checkpoint may not be made now. A first checkpoint of a table that has records has
 * no identity yet: the table begins in the change feed.
 */
export const raiseStatement = Statement.make({
  name: "take over",
  isPrepared: true,
  params: ["int8", "text", "text", "text", "text", "text?", "text"],
  columns: {
    ...checkpointColumnTypes,
    ...ConfirmIdentity.identityColumnTypes,
    now_ms: "float8",
    /** How many columns of the resource the warehouse has inferred. */
    inferred: "int4",
    /** The privacy rules that the stored values follow. */
    privacy: "text?",
    replaced_privacy: "text[]?",
    current: "text",
    behind_ms: "float8?",
    refetch_generation: "int8"
  },
  text: `insert into tributary.checkpoints as c (company_id, resource, lane, fence, table_identity, shape, updated_at)
     select $1, $2, $3, 1, case when $3 <> 'live'
         or exists (select from tributary.checkpoints o where o.company_id = $1 and o.resource = $2 and o.lane = $3)
         or (tributary.has_records(to_regclass($4), $1) or tributary.has_records(to_regclass($7), $1)) is not true
         then ${CheckpointIdentity.tableIdentitySql("$4", "$7")} end, $5, tributary.now()
      where ($6::text is null or not exists (select from tributary.companies s where s.company_id = $1 and s.address is distinct from $6))
        and ${mayMakeSql("$3")}
     on conflict (company_id, resource, lane) do update set fence = c.fence + 1, updated_at = greatest(c.updated_at, tributary.now())
     returning ${checkpointColumns}, ${ConfirmIdentity.identityColumns}, ${WarehouseClock.nowColumn},
       ${WarehouseCatalogue.inferredCountSql("$2")} as inferred,
       (select p.statement from tributary.privacy_rules p where p.resource = $2) as privacy,
       (select p.replaced from tributary.privacy_rules p where p.resource = $2) as replaced_privacy, ${CheckpointIdentity.tableIdentitySql("$4", "$7")} as current,
       (select extract(epoch from max(o.updated_at) - tributary.now()) * 1000 from tributary.checkpoints o
         where o.company_id = $1 and o.resource = $2)::float8 as behind_ms,
       ${Refetch.generationSql} as refetch_generation`
})

export const awaitChangeStatement = Statement.make({
  name: "wait for the change of",
  params: ["text[]"],
  columns: { pg_advisory_xact_lock_shared: "void" },
  text: `select pg_advisory_xact_lock_shared(${LaneLock.newCheckpointsKeySql("subject")}) from unnest($1::text[]) as subject`
})

/** Raises the fence of the lane. Returns the lane's checkpoint and the live lane's. */
const raiseFence = Effect.fnUntraced(function* (context: LockContext) {
  const { companyId, resource, lane, table, identity, clock, connection } = context
  const { runStatement } = connection
  const { address, shape } = identity
  const confirmSource = ConfirmIdentity.confirmSource(connection, companyId, address)
  const prepare = Effect.andThen(confirmSource, runStatement(prepareStatement, [companyId, resource, shape]))
  const confirmAgain = Effect.andThen(
    confirmSource,
    runStatement(awaitChangeStatement, [[resource, String(companyId)]])
  )
  const raise: Effect.Effect<Statement.RowOf<typeof raiseStatement>, DatabaseError | SourceError> = Effect.flatMap(
    Effect.andThen(
      lane === "live" ? Effect.void : prepare,
      runStatement(raiseStatement, [companyId, resource, lane, table.current, shape, address, table.superseded])
    ),
    ({ rows: [row] }) => (row === undefined ? Effect.andThen(confirmAgain, raise) : Effect.succeed(row))
  )
  const own = yield* raise
  clock.observe(own.now_ms)
  if (lane === "live") return { own, live: own }
  // Read after the fence was raised: a newer release that confirms its catalogue later raises it again, and an earlier
  // confirmation is visible here.
  const { rows } = yield* runStatement(ConfirmIdentity.readStatement, [companyId, resource, "live"])
  return { own, live: rows[0]! }
})

export const lockStatement = Statement.make({
  name: "lock the checkpoint of",
  isPrepared: true,
  params: ["int8", "text", "text", "text"],
  columns: { lane: "text", fence: "int8", now_ms: "float8", pg_advisory_xact_lock_shared: "void" },
  text: `select lane, fence, ${WarehouseClock.nowColumn}, pg_advisory_xact_lock_shared(hashtextextended($4, 0)) from tributary.checkpoints
        where company_id = $1 and resource = $2 and lane in ('live', $3) order by lane <> 'live' for update`
})

/**
 * A transaction whose process is silent for a minute ends. Otherwise a proxy that does not report the end of its client
 * would keep the checkpoint locked.
 */
const beginText = "begin; set local idle_in_transaction_session_timeout = '60s'"

/** Runs the body in a transaction that begins by locking the checkpoint and comparing its fence. */
const inTransaction = <A, E>(
  context: LockContext,
  checkFence: ResourceLock["checkFence"],
  fence: bigint,
  body: Effect.Effect<A, E>
) => {
  const { companyId, resource, lane, clock } = context
  const { run, runStatement, transactionEnded } = context.connection
  const landing = LaneLock.landingNameOf(companyId, resource, lane)
  return Effect.gen(function* () {
    yield* run("begin landing", beginText)
    // Every landing into this resource queues here; a run that lost its fence fails before it writes.
    const { rows } = yield* runStatement(lockStatement, [companyId, resource, lane, landing])
    const locked = rows.find((row) => row.lane === lane)
    yield* checkFence(locked?.fence === fence ? 1 : 0)
    const byMs = clock.stepMs(locked!.now_ms)
    if (Math.abs(byMs) > WarehouseClock.clockStepMsMax) return yield* new WarehouseClockStepped({ resource, byMs })
    clock.observe(locked!.now_ms)
    const result = yield* body
    yield* run("commit landing of", "commit")
    return result
  }).pipe(
    Effect.tapError((error) =>
      error instanceof DatabaseError && error.isRetryable
        ? Effect.void
        : Effect.ignore(run("roll back landing of", "rollback"))
    ),
    Effect.onExit((exit) => transactionEnded(exit))
  )
}

/** Acquires a resource: locks it for this process and raises the fence of the lane. Ends with the scope. */
export const acquire = Effect.fn("ResourceLock.acquire")(function* (
  options: ResourceLockOptions
): Effect.fn.Return<ResourceLock, AcquireError, Database | Scope.Scope> {
  const { table, companyId, lane } = options
  const resource = table.resource.path
  const identity = CheckpointIdentity.identityOf(table.resource, options.connector)
  const { locks } = yield* Database
  const clock = yield* WarehouseClock.make
  const connection = yield* LandingConnection.make({ companyId, resource, lane })
  const { client, connected, run, runStatement } = connection
  const context: LockContext = { resource, table, companyId, lane, identity, connection, clock }

  yield* lockLane(context, options.whenHeld ?? "wait")
  const { own, live } = yield* connected(raiseFence(context))
  const { fence } = own
  const checkFence = (affected: number) =>
    affected === 1 ? Effect.void : Effect.fail(new FenceLost({ resource, fence }))
  const transaction: ResourceLock["transaction"] = (body) =>
    Effect.andThen(locks.restore, connected(inTransaction(context, checkFence, fence, body)))

  const runAtomic: ResourceLock["runAtomic"] = (statement, values) =>
    Effect.andThen(
      locks.restore,
      // The bounds are of the time at which the connection is lent.
      connected(Effect.suspend(() => runStatement(statement, ...values(clock.bounds())))).pipe(
        Effect.onExit((exit) => connection.transactionEnded(exit)),
        Effect.map(({ rows: changed }) => changed)
      )
    )

  const writtenBy = CheckpointIdentity.generationOf(live.shape)
  if (writtenBy > identity.generation && options.acceptsOlderCatalogue !== true) {
    return yield* new CheckpointIdentity.NewerCatalogue({ resource, own: identity.generation, met: writtenBy })
  }
  const rules = table.resource.protection?.statement ?? ""
  // What it would write could be in clear.
  if ((own.privacy ?? "") !== rules)
    return yield* new RulesChanged({ resource, isReplaced: own.replaced_privacy?.includes(rules) === true })
  if (CheckpointIdentity.lacksKey(own.current)) return yield* TableDamage.withoutKey(table)
  const differences = ConfirmIdentity.differencesOf(table, identity, own, live)
  const confirmed = {
    table,
    tableIdentity: own.current,
    shape: identity.shape,
    continueVersionsSql: mergeSql(table).continueVersions
  }
  const isFirst = live.table_identity === null
  const rows =
    !isFirst && differences.all.length === 0
      ? null
      : yield* transaction(
          Effect.gen(function* () {
            const result = yield* ConfirmIdentity.confirmIdentity(connection, context, confirmed, differences)
            if (isFirst) yield* ConfirmIdentity.loseUnreadPast(connection, context, table)
            if (isFirst || !result.isFed) yield* ChangeBatch.beginAgain(connection, table, companyId, !result.isFed)
            return result.rows
          })
        )
  if (own.inferred !== WarehouseCatalogue.inferredCount(table.resource)) return yield* new TableChanged({ resource })

  return {
    table,
    resource,
    companyId,
    lane,
    client,
    connected,
    run,
    runStatement,
    checkpoint: fromRow(rows?.find((row) => row.lane === lane) ?? own),
    live: fromRow(rows?.find((row) => row.lane === "live") ?? live),
    address: identity.address,
    tableIdentity: own.current,
    refetchGeneration: own.refetch_generation,
    acquiredAt: own.now_ms,
    timeOf: clock.timeOf,
    now: clock.now,
    transaction,
    runAtomic,
    checkFence
  }
})
