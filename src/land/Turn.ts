/**
 * Having a resource to oneself.
 *
 * Promise: a turn holds a lock, so that two runs of a lane do not alternate by accident, and a fence, which is the
 * guarantee: {@link Turn.transaction} begins by locking the checkpoint and looking at the fence, and whoever was taken
 * over learns it before writing. Runs of other lanes stand in the same line, so that no two land at once. Reads are
 * ordered by the warehouse's clock: each program measures how far its own monotonic clock is from it.
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type pg from "pg"
import type { QueryResultRow } from "pg"
import * as LaneLock from "../model/LaneLock.ts"
import * as Overlay from "../model/Overlay.ts"
import { execute } from "../postgres/Connection.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { type Checkpoint, checkpointColumns, type CheckpointRow, fromRow, type Lane } from "./Checkpoint.ts"

/** Another run has taken the resource over; this one must stop and has written nothing since. */
export class FencedOff extends Data.TaggedError("FencedOff")<{
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

/** Another process is syncing the same resource right now. */
export class AlreadyRunning extends Data.TaggedError("AlreadyRunning")<{ readonly resource: string }> {
  override get message(): string {
    return `${this.resource}: another process is syncing it right now; wait for it, or stop it, and run again`
  }
}

export interface TurnOptions {
  readonly resource: string
  readonly companyId: bigint
  readonly lane: Lane
  /** Whoever holds the lock has given no sign of life for long: the server ends its session, and what it had open. */
  readonly takesOver?: boolean
  /** Whether it waits for a moment for a run that may just be ending; default true. */
  readonly waits?: boolean
}

export interface Turn extends TurnOptions {
  readonly client: pg.Client
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
  /** The warehouse's time, in milliseconds since 1970, of an instant on the program's monotonic clock. */
  readonly timeOf: (monotonicMs: number) => number
  /** The warehouse's time now. */
  readonly now: Effect.Effect<number>
  /** Writes everything or nothing, and nothing after the fence was passed. */
  readonly transaction: <A, E>(body: Effect.Effect<A, E>) => Effect.Effect<A, E | DatabaseError | FencedOff>
  /** Fails when an update under the fence met no row. */
  readonly checkFence: (affected: number) => Effect.Effect<void, FencedOff>
}

/** How long a process waits for another one that is just ending. */
const lockRetries = 40
const lockRetryEveryMs = 250

const nowColumn = "(extract(epoch from tributary.now()) * 1000)::float8 as now_ms"

interface NowRow extends QueryResultRow {
  readonly now_ms: number
}

/** An instant of the warehouse as text, to the microsecond. */
export const instantText = (milliseconds: number): string => {
  const whole = Math.floor(milliseconds)
  const micros = Math.floor((milliseconds - whole) * 1000)
  return new Date(whole).toISOString().replace("Z", `${String(micros).padStart(3, "0")}Z`)
}

/** Takes a resource over: locks it for this process and raises the fence of the lane. Ends with the scope. */
export const take = Effect.fn("Turn.take")(function* (
  options: TurnOptions
): Effect.fn.Return<Turn, DatabaseError | AlreadyRunning, Database | Scope.Scope> {
  const { resource, companyId, lane } = options
  const database = yield* Database
  const clock = yield* Clock.Clock
  const client = yield* database.connect
  const monotonicMs = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

  const run = <Row extends QueryResultRow>(operation: string, text: string, values?: ReadonlyArray<unknown>) =>
    execute<Row>(client, `${operation} ${resource}`, text, values)

  const lock = LaneLock.nameOf(companyId, resource, lane)
  if (options.takesOver === true) {
    yield* run(
      "take over",
      `select pg_terminate_backend(pid) from (${LaneLock.holdersSql("hashtextextended($1, 0)")}) holders
        where pid <> pg_backend_pid()
          -- Nobody may end the sessions of another role: those are waited for.
          and pid in (select pid from pg_stat_activity where usename = current_user)`,
      [lock]
    )
  }
  yield* run<{ locked: boolean }>("lock", `select pg_try_advisory_lock(hashtextextended($1, 0)) as locked`, [
    lock
  ]).pipe(
    Effect.filterOrFail(
      ({ rows }) => rows[0]?.locked === true,
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

  let live: Checkpoint | undefined
  if (lane !== "live") {
    yield* run(
      "prepare",
      `insert into tributary.checkpoints (company_id, resource, lane, fence, updated_at)
       values ($1, $2, 'live', 0, tributary.now()) on conflict (company_id, resource, lane) do nothing`,
      [companyId, resource]
    )
    const { rows } = yield* run<CheckpointRow>(
      "look at",
      `select ${checkpointColumns} from tributary.checkpoints where company_id = $1 and resource = $2 and lane = 'live'`,
      [companyId, resource]
    )
    live = fromRow(rows[0]!)
  }
  const { rows: taken } = yield* run<CheckpointRow & NowRow & { learnt: number }>(
    "take over",
    `insert into tributary.checkpoints as c (company_id, resource, lane, fence, updated_at)
     values ($1, $2, $3, 1, tributary.now())
     on conflict (company_id, resource, lane) do update set fence = c.fence + 1, updated_at = tributary.now()
     returning ${checkpointColumns}, ${nowColumn}, ${Overlay.learntCountSql("$2")} as learnt`,
    [companyId, resource, lane]
  )
  look(taken[0]!.now_ms)
  const checkpoint = fromRow(taken[0]!)
  const { fence } = checkpoint

  const checkFence = (affected: number) =>
    affected === 1 ? Effect.void : Effect.fail(new FencedOff({ resource, fence }))

  const transaction: Turn["transaction"] = (body) =>
    Effect.gen(function* () {
      yield* run("begin landing", "begin")
      // Whoever lands into this resource stands in line here; who was taken over learns it before writing.
      const { rows } = yield* run<NowRow & { lane: Lane; fence: bigint }>(
        "lock the checkpoint of",
        `select lane, fence, ${nowColumn} from tributary.checkpoints
          where company_id = $1 and resource = $2 and lane in ('live', $3) order by lane <> 'live' for update`,
        [companyId, resource, lane]
      )
      const own = rows.find((row) => row.lane === lane)
      yield* checkFence(own?.fence === fence ? 1 : 0)
      look(own!.now_ms)
      const result = yield* body
      yield* run("commit landing of", "commit")
      return result
    }).pipe(
      Effect.tapError((error) =>
        error instanceof DatabaseError && error.isRetryable
          ? Effect.void
          : Effect.ignore(run("roll back landing of", "rollback"))
      )
    )

  const timeOf = (at: number) => at + aheadMs
  const now = Effect.sync(() => timeOf(monotonicMs()))
  const { learnt } = taken[0]!
  return { ...options, learnt, client, checkpoint, live: live ?? checkpoint, run, timeOf, now, transaction, checkFence }
})
