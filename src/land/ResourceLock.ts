/**
 * Having a resource to oneself.
 *
 * Promise: a turn holds a lock, so that two runs of a lane do not alternate by accident, and a fence, which is the
 * guarantee: {@link ResourceLock.transaction} begins by locking the checkpoint and looking at the fence, and whoever was taken
 * over learns it before writing. Runs of other lanes stand in the same line, so that no two land at once. Reads are
 * ordered by the warehouse's clock: each program measures how far its own monotonic clock is from it. A turn has a
 * connection for each of its transactions, and none while the source is read.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type pg from "pg"
import type { QueryResultRow } from "pg"
import { Priority } from "../budget/Budget.ts"
import * as LaneLock from "../warehouse/LaneLock.ts"
import * as Overlay from "../warehouse/Overlay.ts"
import { execute } from "../postgres/Connection.ts"
import type { Urgency } from "../postgres/ConnectionPool.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import type { SourceError } from "../connector/SourceError.ts"
import * as CheckpointIdentity from "./CheckpointIdentity.ts"
import { type Checkpoint, checkpointColumns, type CheckpointRow, fromRow, type Lane } from "./Checkpoint.ts"

/** Another run has taken the resource over; this one must stop and has written nothing since. */
export class FenceLost extends Data.TaggedError("FenceLost")<{
  readonly resource: string
  readonly fence: bigint
}> {
  override get message(): string {
    return `${this.resource}: another run took over (this one held fence ${this.fence}); nothing more was written`
  }
}

/** The table has learnt columns since this program looked; what it would write could lose their values. */
export class TableChanged extends Data.TaggedError("TableChanged")<{ readonly resource: string }> {
  override get message(): string {
    return `${this.resource}: another program has just given the table new columns`
  }
}

/** The table was replaced while it was read into; what was landed before is not in it. */
export class TableReplaced extends Data.TaggedError("TableReplaced")<{
  readonly resource: string
}> {
  override get message(): string {
    return `${this.resource}: its table was dropped, truncated or restored while the run was landing into it`
  }
}

/** The warehouse's clock was set back while the run read: when its reads began is not known any more. */
export class WarehouseClockRegressed extends Data.TaggedError("WarehouseClockRegressed")<{
  readonly resource: string
  readonly byMs: number
}> {
  override get message(): string {
    return `${this.resource}: the warehouse's clock was set back by ${Math.round(this.byMs / 1000)} s while the run read`
  }
}

/** Another process is syncing the same resource right now. */
export class AlreadyRunning extends Data.TaggedError("AlreadyRunning")<{ readonly resource: string }> {
  override get message(): string {
    return `${this.resource}: another process is syncing it right now; wait for it, or stop it, and run again`
  }
}

export interface ResourceLockOptions {
  readonly resource: string
  /** The table that is landed into, quoted and qualified. */
  readonly table: string
  readonly identity: CheckpointIdentity.Identity
  /** A person wants this program's older catalogue to read the resource again; default false. */
  readonly acceptsOlderCatalogue?: boolean
  /** Statement that gives rows of a restored table versions beyond those in its history. Parameters: company. */
  readonly renumber: string
  readonly companyId: bigint
  readonly lane: Lane
  /** Whoever holds the lock has given no sign of life for long: the server ends its session, and what it had open. */
  readonly takesOver?: boolean
  /** Whether it waits for a moment for a run that may just be ending; default true. */
  readonly waits?: boolean
}

export interface ResourceLock extends ResourceLockOptions {
  /** The connection of the transaction that this is part of. */
  readonly client: Effect.Effect<pg.Client>
  /** Lends one connection to all statements of the effect, which must not wait for anything else. */
  readonly connected: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | DatabaseError, R>
  /** How many fields of the resource the warehouse has learnt. */
  readonly learnt: number
  /** The lane's checkpoint when the turn began; its fence is ours. */
  readonly checkpoint: Checkpoint
  /** The live lane's: the same as `checkpoint` in a live turn. */
  readonly live: Checkpoint
  readonly run: <Row extends QueryResultRow>(
    operation: string,
    text: string,
    values?: ReadonlyArray<unknown>
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<Row>; readonly affected: number }, DatabaseError>
  /** SQL that is true while the table is the one that the turn began with; takes two parameters, the first given here. */
  readonly isSameTable: (parameter: number) => string
  readonly sameTableParameters: ReadonlyArray<string>
  /** The warehouse's time, in milliseconds since 1970, of an instant on the program's monotonic clock. */
  readonly timeOf: (monotonicMs: number) => number
  /** The warehouse's time now. */
  readonly now: Effect.Effect<number>
  /** Writes everything or nothing, and nothing after the fence was passed. */
  readonly transaction: <A, E>(
    body: Effect.Effect<A, E>
  ) => Effect.Effect<A, E | DatabaseError | FenceLost | WarehouseClockRegressed>
  /** Fails when an update under the fence met no row. */
  readonly checkFence: (affected: number) => Effect.Effect<void, FenceLost>
}

/** A clock that goes back by less is corrected as clocks are. */
const clockBackMsMax = 60_000

/** How long a process waits for another one that is just ending. */
const lockRetries = 40
const lockRetryEveryMs = 250

/** The connection that the statements of a fiber go to; null lends one to each statement. */
const Connected = Context.Reference<pg.Client | null>("tributary/land/Connected", { defaultValue: () => null })

/** Events and pushes first, then what follows the source, then backfills. */
const classOf = ({ lane }: ResourceLockOptions, priority: Priority): number =>
  lane === "records" || lane === "push" || priority.class === "urgent" ? 0 : priority.class === "live" ? 1 : 2

const nowColumn = "(extract(epoch from tributary.now()) * 1000)::float8 as now_ms"

interface NowRow extends QueryResultRow {
  readonly now_ms: number
}

/** What a checkpoint says that it belongs to. */
interface IdentityRow extends QueryResultRow {
  readonly identity_fence: bigint | null
  readonly table_identity: string | null
  readonly shape: string | null
}

const identityColumns = "identity_fence, table_identity, shape"

interface TakenRow extends CheckpointRow, NowRow, IdentityRow {
  readonly learnt: number
  /** The identity of the table as it stands. */
  readonly current: string
  /** How far the last landing lies in the future of the warehouse's clock. */
  readonly behind_ms: number | null
  /** Whether another lane was raised by a program that confirms no identity. */
  readonly unconfirmed: boolean
}

/** An instant of the warehouse as text, to the microsecond. */
export const instantText = (milliseconds: number): string => {
  const whole = Math.floor(milliseconds)
  const micros = Math.floor((milliseconds - whole) * 1000)
  return new Date(whole).toISOString().replace("Z", `${String(micros).padStart(3, "0")}Z`)
}

/** Takes a resource over: locks it for this process and raises the fence of the lane. Ends with the scope. */
export const acquire = Effect.fn("Turn.take")(function* (
  options: ResourceLockOptions
): Effect.fn.Return<
  ResourceLock,
  | DatabaseError
  | AlreadyRunning
  | FenceLost
  | WarehouseClockRegressed
  | CheckpointIdentity.NewerCatalogue
  | SourceError,
  Database | Scope.Scope
> {
  const { resource, companyId, lane, identity } = options
  const { landings, locks } = yield* Database
  const clock = yield* Clock.Clock
  const monotonicMs = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const priority = yield* Priority
  const urgency: Urgency = {
    class: classOf(options, priority),
    party: companyId.toString(),
    dueAt: priority.dueAt
  }
  /** Why nothing more can be written: the end of a transaction is unknown. */
  let broken: DatabaseError | null = null

  const connected: ResourceLock["connected"] = (effect) =>
    Effect.flatMap(Connected, (client) =>
      client !== null
        ? effect
        : Effect.suspend(() =>
            broken === null
              ? landings.use(urgency, (lent) => Effect.provideService(effect, Connected, lent))
              : Effect.fail(broken)
          )
    )
  const client = Effect.map(Connected, (lent) => lent!)
  const run = <Row extends QueryResultRow>(operation: string, text: string, values?: ReadonlyArray<unknown>) =>
    connected(Effect.flatMap(client, (lent) => execute<Row>(lent, `${operation} ${resource}`, text, values)))

  /** The first program that reads a company says which source its rows come from; another source is refused. */
  const confirmSource = Effect.fnUntraced(function* () {
    const { address } = identity
    if (address === null) return
    const { rows: known } = yield* run<{ address: string }>(
      "look at the source of",
      "select address from tributary.sources where company_id = $1",
      [companyId]
    )
    if (known[0]?.address === address) return
    const { rows } = yield* run<{ address: string }>(
      "look at the source of",
      `insert into tributary.sources as s (company_id, address, since) values ($1, $2, tributary.now())
       on conflict (company_id) do update set address = s.address returning address`,
      [companyId, address]
    )
    const stored = rows[0]!.address
    if (stored !== address) return yield* CheckpointIdentity.otherAddress(companyId, stored, address)
  })

  const lock = LaneLock.nameOf(companyId, resource, lane)
  const landing = LaneLock.landingNameOf(companyId, resource, lane)
  if (options.takesOver === true && !locks.has(lock)) {
    // The session that holds the locks of the other process, and the one that lands here. Its other runs go on under
    // their fences: a living process takes their locks again.
    yield* run(
      "take over",
      `select pg_terminate_backend(pid) from (
         ${LaneLock.holdersSql("hashtextextended($1, 0)")} union ${LaneLock.holdersSql("hashtextextended($2, 0)")}
       ) holders
        where pid <> pg_backend_pid()
          -- Nobody may end the sessions of another role: those are waited for.
          and pid in (select pid from pg_stat_activity where usename = current_user)`,
      [lock, landing]
    )
  }
  yield* locks.tryLock(lock).pipe(
    Effect.filterOrFail(
      (isLocked) => isLocked,
      () => new AlreadyRunning({ resource })
    ),
    // A process that was just killed holds its lock until the server has noticed.
    Effect.retry({
      while: (error) => error._tag === "AlreadyRunning",
      times: options.waits === false && options.takesOver !== true ? 0 : lockRetries,
      schedule: Schedule.spaced(lockRetryEveryMs)
    })
  )

  /**
   * How far the warehouse's clock is ahead of ours. Each look gives at most the truth, since the answer travels: the
   * largest is the best, until the clocks themselves were moved (a machine that slept).
   */
  let aheadMs = -Infinity
  const look = (nowMs: number) => {
    const seen = nowMs - monotonicMs()
    aheadMs = Math.max(aheadMs, seen)
  }

  let liveRow: (CheckpointRow & IdentityRow) | undefined
  const own = yield* connected(
    Effect.gen(function* () {
      yield* confirmSource()
      if (lane !== "live") {
        yield* run(
          "prepare",
          `insert into tributary.checkpoints (company_id, resource, lane, fence, identity_fence, table_identity, shape, updated_at)
       values ($1, $2, 'live', 0, 0, ${CheckpointIdentity.tableIdentitySql("$3")}, $4, tributary.now())
       on conflict (company_id, resource, lane) do nothing`,
          [companyId, resource, options.table, identity.shape]
        )
      }
      const { rows: taken } = yield* run<TakenRow>(
        "take over",
        `insert into tributary.checkpoints as c (company_id, resource, lane, fence, identity_fence, table_identity, shape, updated_at)
     values ($1, $2, $3, 1, 1, ${CheckpointIdentity.tableIdentitySql("$4")}, $5, tributary.now())
     on conflict (company_id, resource, lane) do update set fence = c.fence + 1, identity_fence = c.identity_fence + 1,
       updated_at = greatest(c.updated_at, tributary.now())
     returning ${checkpointColumns}, ${identityColumns}, ${nowColumn}, ${Overlay.inferredCountSql("$2")} as learnt,
       ${CheckpointIdentity.tableIdentitySql("$4")} as current,
       (select extract(epoch from max(o.updated_at) - tributary.now()) * 1000 from tributary.checkpoints o
         where o.company_id = $1 and o.resource = $2)::float8 as behind_ms,
       exists (select 1 from tributary.checkpoints o where o.company_id = $1 and o.resource = $2 and o.lane <> $3
                 and o.identity_fence is distinct from o.fence) as unconfirmed`,
        [companyId, resource, lane, options.table, identity.shape]
      )
      look(taken[0]!.now_ms)
      if (lane !== "live") {
        // After the fence was raised: a newer release that confirms its catalogue later raises it again, and one that
        // was earlier is seen here.
        const { rows } = yield* run<CheckpointRow & IdentityRow>(
          "look at",
          `select ${checkpointColumns}, ${identityColumns} from tributary.checkpoints c
        where company_id = $1 and resource = $2 and lane = 'live'`,
          [companyId, resource]
        )
        liveRow = rows[0]!
      }
      return taken[0]!
    })
  )
  const { fence, current } = own

  const checkFence = (affected: number) =>
    affected === 1 ? Effect.void : Effect.fail(new FenceLost({ resource, fence }))

  const inTransaction = <A, E>(body: Effect.Effect<A, E>) =>
    Effect.gen(function* () {
      yield* run("begin landing", "begin")
      // Whoever lands into this resource stands in line here; who was taken over learns it before writing.
      const { rows } = yield* run<NowRow & { lane: Lane; fence: bigint }>(
        "lock the checkpoint of",
        `select lane, fence, ${nowColumn}, pg_advisory_xact_lock_shared(hashtextextended($4, 0)) from tributary.checkpoints
          where company_id = $1 and resource = $2 and lane in ('live', $3) order by lane <> 'live' for update`,
        [companyId, resource, lane, landing]
      )
      const locked = rows.find((row) => row.lane === lane)
      yield* checkFence(locked?.fence === fence ? 1 : 0)
      const byMs = aheadMs - (locked!.now_ms - monotonicMs())
      if (byMs > clockBackMsMax) return yield* new WarehouseClockRegressed({ resource, byMs })
      look(locked!.now_ms)
      const result = yield* body
      yield* run("commit landing of", "commit")
      return result
    }).pipe(
      Effect.tapError((error) =>
        error instanceof DatabaseError && error.isRetryable
          ? Effect.void
          : Effect.ignore(run("roll back landing of", "rollback"))
      ),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit)) broken ??= unknownEnd(exit.cause)
        })
      )
    )

  const transaction: ResourceLock["transaction"] = (body) =>
    Effect.andThen(locks.restore, connected(inTransaction(body)))

  const stored = liveRow ?? own
  const met = CheckpointIdentity.generationOf(stored.shape)
  if (met > identity.generation && options.acceptsOlderCatalogue !== true) {
    return yield* new CheckpointIdentity.NewerCatalogue({ resource, own: identity.generation, met })
  }
  const replaced =
    stored.table_identity === null
      ? null
      : CheckpointIdentity.tableDifference(options.table, stored.table_identity, current)
  const differences = [
    own.unconfirmed || own.identity_fence !== fence ? "an earlier version of this program has written here" : null,
    replaced,
    own.behind_ms !== null && own.behind_ms > clockBackMsMax
      ? `the warehouse's clock is ${Math.round(own.behind_ms / 1000)} s behind its last landing`
      : null,
    stored.shape === null ? null : CheckpointIdentity.shapeDifference(stored.shape, identity.shape)
  ].filter((difference) => difference !== null)

  /**
   * The rows are not what the cursor says: every lane is fenced off, scans in progress are forgotten, and the next live
   * run reads every record. In one transaction, so that a crash leaves either all of it or the same differences.
   */
  const confirm = Effect.fnUntraced(function* () {
    yield* run(
      "confirm what the checkpoint belongs to of",
      `update tributary.checkpoints set
         fence = fence + case when lane = $3 then 0 else 1 end, identity_fence = fence + case when lane = $3 then 0 else 1 end,
         table_identity = $4, shape = $5, full_wanted = case when lane = 'live' then $6 else full_wanted end,
         scan_run_id = null, scan_kind = null, scan_since = null, scan_until = null, scan_token = null, scan_pages = null,
         scan_synced_through = null, scan_began_at = null, updated_at = tributary.now()
       where company_id = $1 and resource = $2`,
      [companyId, resource, lane, current, identity.shape, differences.join("; ")]
    )
    yield* run("forget ids of", "delete from tributary.scan_seen where company_id = $1 and resource = $2", [
      companyId,
      resource
    ])
    if (replaced !== null) yield* run("renumber restored rows of", options.renumber, [companyId])
    const { rows } = yield* run<CheckpointRow & { lane: Lane }>(
      "look at",
      `select lane, ${checkpointColumns} from tributary.checkpoints c
        where company_id = $1 and resource = $2 and lane in ('live', $3)`,
      [companyId, resource, lane]
    )
    return rows
  })
  const rows = differences.length === 0 ? null : yield* transaction(confirm())
  const checkpoint = fromRow(rows?.find((row) => row.lane === lane) ?? own)
  const live = fromRow(rows?.find((row) => row.lane === "live") ?? stored)

  const timeOf = (at: number) => at + aheadMs
  const now = Effect.sync(() => timeOf(monotonicMs()))
  const { learnt } = own
  const isSameTable = (first: number) => `$${first + 1} = ${CheckpointIdentity.tableIdentitySql(`$${first}`)}`
  const sameTableParameters = [options.table, current]
  return {
    ...options,
    learnt,
    client,
    connected,
    checkpoint,
    live,
    run,
    isSameTable,
    sameTableParameters,
    timeOf,
    now,
    transaction,
    checkFence
  }
})

/** Why a turn must begin again after a transaction whose end it does not know; null where it was rolled back. */
const unknownEnd = (cause: Cause.Cause<unknown>): DatabaseError | null => {
  const error = Cause.squash(cause)
  if (error instanceof DatabaseError && error.isRetryable) return error
  return !Cause.hasInterrupts(cause)
    ? null
    : new DatabaseError({
        operation: "land",
        code: undefined,
        message: "an earlier landing was interrupted",
        isRetryable: true
      })
}
