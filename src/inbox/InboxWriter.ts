/**
 * Events on their way into `tributary.inbox`.
 *
 * Promise: whoever is told `stored` or `known` can rely on it: the event is committed, and with `synchronous_commit`,
 * whatever the operator set. Everything that waits goes in one statement, so that one commit serves many; whoever
 * comes alone waits for nobody, and in a stream for some milliseconds at most. While it cannot be stored, those who wait
 * are told so well within the sender's 15 s (DLV-01), and it recovers by itself. What waits is bounded in number and in
 * bytes. An event whose values Postgres refuses is refused alone.
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type pg from "pg"
import * as BinaryArray from "../postgres/BinaryArray.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as ThrottledWarnings from "../log/ThrottledWarnings.ts"

/** An event of a genuine delivery. */
export interface NewEvent {
  /** As the configuration calls it. */
  readonly company: string
  readonly eventId: string
  readonly eventType: string
  readonly resource: string | null
  readonly recordId: string | null
  readonly stamp: string | null
  /** RFC 3339 in UTC. */
  readonly occurredAt: string | null
  /** The time that the attempt was signed with, in seconds since 1970. */
  readonly sentAt: number
  /** The body's bytes as they arrived. */
  readonly body: Uint8Array
}

/** Both are durable; `known` was so before. */
export type InsertResult = "stored" | "known"

/** The event does not stand in the inbox, or nobody knows; sending it again is safe. */
export class InboxUnavailable extends Data.TaggedError("InboxUnavailable")<{
  /**
   * away: the warehouse does not answer or does not take it; full: too much waits already; refused: Postgres cannot
   * hold this event's values, which sending again does not help; ended: the process is stopping.
   */
  readonly reason: "away" | "full" | "refused" | "ended"
  readonly detail: string
}> {
  override get message(): string {
    return `the event cannot be stored (${this.detail})`
  }
}

export type Outcome = InsertResult | InboxUnavailable

export interface InboxStats {
  /** Events that wait for a writer, and their bytes. */
  readonly waiting: number
  readonly waitingBytes: number
  /** Writers with a connection. */
  readonly writersUp: number
  readonly stored: number
  readonly known: number
  readonly refused: number
  readonly unavailable: number
  /** Statements that committed. */
  readonly batches: number
  /** When it was last proved that events can be stored, in milliseconds since 1970; null when it never was. */
  readonly provedAt: number | null
  /** Why it cannot store now; null while it can. */
  readonly failing: string | null
}

export interface InboxWriter {
  /** Hands an event over; `done` is called once, after the commit or when there will be none. It must not throw. */
  readonly put: (event: NewEvent, done: (outcome: Outcome) => void) => void
  /** {@link put} as an effect. */
  readonly store: (event: NewEvent) => Effect.Effect<InsertResult, InboxUnavailable>
  /**
   * Proves that events can be stored now, by storing none; a proof of less than a second ago will do. However many ask,
   * one of them takes the place of an event.
   */
  readonly probe: Effect.Effect<void, InboxUnavailable>
  readonly stats: () => InboxStats
  /** Opened when something new was stored; whoever looks at the inbox closes it before looking. */
  readonly arrived: Latch.Latch
}

export interface InboxOptions {
  /** Connections that store at the same time; default 2. */
  readonly writers?: number | undefined
  /** How long a statement may take before its connection is given up; default 8 s. */
  readonly answerMaxMs?: number | undefined
  /** How long a connection may take to be made; default 4 s. */
  readonly connectMaxMs?: number | undefined
  /** How long an event may have waited when a statement begins; default 5 s. */
  readonly waitMaxMs?: number | undefined
  /** What may wait; default 20,000 events and 64 MiB. */
  readonly waitingMax?: number | undefined
  readonly waitingBytesMax?: number | undefined
}

const writersDefault = 2
/** Whoever waited as long as he may and then hangs for as long as a statement may is told 2 s before the sender gives up. */
const answerMaxMsDefault = 8_000
const waitMaxMsDefault = 5_000
const connectMaxMsDefault = 4_000
const waitingMaxDefault = 20_000
const waitingBytesMaxDefault = 64 * 1024 * 1024
const batchMax = 1_000
/**
 * A statement begins at once when the last one began so long ago; else when somebody has waited for so long, or when so
 * many wait: a third of the statements do for a steady stream, and where many come, one gathers while the other writes.
 */
const gatherMs = 10
const gatherMax = 16
const batchBytesMax = 8 * 1024 * 1024
/** What an event takes beside its body, about. */
const eventBytes = 512
const pauseMinMs = 250
const pauseMaxMs = 5_000
const provedForMs = 1_000

/** Everything of it ends with the scope; who waits then is told. */
export const make = Effect.fnUntraced(function* (
  options: InboxOptions = {}
): Effect.fn.Return<InboxWriter, never, Database | Scope.Scope> {
  const database = yield* Database
  const clock = yield* Clock.Clock
  const notices = yield* ThrottledWarnings.make
  const answerMaxMs = options.answerMaxMs ?? answerMaxMsDefault
  const connectMaxMs = options.connectMaxMs ?? connectMaxMsDefault
  const waitMaxMs = options.waitMaxMs ?? waitMaxMsDefault
  const waitingMax = options.waitingMax ?? waitingMaxDefault
  const waitingBytesMax = options.waitingBytesMax ?? waitingBytesMaxDefault
  const monotonicMs = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

  let waiting: Array<Waiter> = []
  let waitingBytes = 0
  const writers: Array<Writer> = []
  const arrived = Latch.makeUnsafe(false)
  const counts = { stored: 0, known: 0, refused: 0, unavailable: 0, batches: 0 }
  let proved: { readonly monotonicMs: number; readonly at: number } | null = null
  let failing: string | null = null
  /** A writer failed and pauses; false again as soon as one has a connection, or replaces one that it merely lost. */
  let hasFailed = false
  /** Who waits for the proof that is under way. */
  let probing: Array<(outcome: Outcome) => void> | null = null
  /** Somebody was told that nothing can be stored, and nobody yet that it can be again. */
  let isTroubled = false
  let isEnded = false

  const tell = (waiter: Waiter, outcome: Outcome) => {
    waiter.isTold = true
    if (waiter.event !== null) {
      if (outcome === "stored") counts.stored += 1
      else if (outcome === "known") counts.known += 1
      else if (outcome.reason === "refused") counts.refused += 1
      else counts.unavailable += 1
    }
    waiter.done(outcome)
  }
  const tellAll = (waiters: ReadonlyArray<Waiter>, error: InboxUnavailable) => {
    for (const waiter of waiters) if (!waiter.isTold) tell(waiter, error)
  }
  const takeAll = () => {
    const all = waiting
    waiting = []
    waitingBytes = 0
    return all
  }
  const isLate = ({ since }: Waiter) => monotonicMs() - since > waitMaxMs
  /** A statement might not end within the patience of those who have waited for long already: they are told now. */
  const dismissLate = () => {
    const count = waiting.findIndex((one) => !isLate(one))
    const late = waiting.splice(0, count < 0 ? waiting.length : count)
    for (const { size } of late) waitingBytes -= size
    tellAll(late, new InboxUnavailable({ reason: "away", detail: failing ?? "the warehouse is too slow" }))
  }
  const takeBatch = () => {
    dismissLate()
    if (waiting.length <= batchMax && waitingBytes <= batchBytesMax) return takeAll()
    let count = 0
    let bytes = 0
    while (count < waiting.length && count < batchMax) {
      const { size } = waiting[count]!
      if (count > 0 && bytes + size > batchBytesMax) break
      bytes += size
      count += 1
    }
    waitingBytes -= bytes
    return waiting.splice(0, count)
  }

  const wakeOne = () => writers.find(({ wake, wakesAt }) => wake !== null && waiting.length >= wakesAt)?.wake?.()
  const isUp = () => writers.some((writer) => writer.isUp)
  const away = () => new InboxUnavailable({ reason: "away", detail: failing ?? "no connection to the warehouse" })
  const ended = () => new InboxUnavailable({ reason: "ended", detail: "this process is stopping" })

  const offer = (event: NewEvent | null, done: (outcome: Outcome) => void) => {
    const size = event === null ? 0 : event.body.length + eventBytes
    const waiter: Waiter = { event, size, since: monotonicMs(), done, isTold: false, tries: 0 }
    if (isEnded) return tell(waiter, ended())
    if (hasFailed && !isUp()) return tell(waiter, away())
    if (waiting.length >= waitingMax || (waitingBytes > 0 && waitingBytes + size > waitingBytesMax)) {
      return tell(waiter, new InboxUnavailable({ reason: "full", detail: `${waiting.length} events wait already` }))
    }
    waiting.push(waiter)
    waitingBytes += size
    wakeOne()
  }

  /** Tells whom the statement stored, of those who stand behind the same event only the first. */
  const tellStored = (batch: ReadonlyArray<Waiter>, rows: ReadonlyArray<StoredRow>) => {
    counts.batches += 1
    failing = null
    proved = { monotonicMs: monotonicMs(), at: clock.currentTimeMillisUnsafe() }
    // What an attempt stored before its answer was lost counts as known, and is new all the same.
    if (rows.length > 0 || batch.some(({ tries }) => tries > 0)) arrived.openUnsafe()
    const fresh = rows.length === batch.length ? null : new Set(rows.map(keyOf))
    for (const waiter of batch) {
      const isFresh = fresh === null || waiter.event === null || fresh.delete(keyOf(rowOf(waiter.event)))
      tell(waiter, isFresh ? "stored" : "known")
    }
  }

  const store = (client: pg.Client, batch: ReadonlyArray<Waiter>): Effect.Effect<void, DatabaseError> =>
    Effect.matchEffect(insert(client, batch), {
      onSuccess: (rows) => Effect.sync(() => tellStored(batch, rows)),
      onFailure: (error) => {
        if (!isAboutValues(error)) return Effect.fail(error)
        const [only, ...others] = batch
        if (only !== undefined && others.length === 0) {
          return Effect.sync(() => tell(only, new InboxUnavailable({ reason: "refused", detail: error.message })))
        }
        const middle = batch.length >> 1
        return Effect.andThen(store(client, batch.slice(0, middle)), store(client, batch.slice(middle)))
      }
    })

  /**
   * Whoever is told nothing stands in line again where another connection may help and there is time for it, as often as
   * every connection may have been lost; otherwise he is told so.
   */
  const write = (client: pg.Client, batch: ReadonlyArray<Waiter>): Effect.Effect<void, DatabaseError> =>
    store(client, batch).pipe(
      Effect.timeoutOrElse({ duration: answerMaxMs, orElse: () => Effect.fail(hung(answerMaxMs)) }),
      Effect.catchDefect((defect) => Effect.fail(DatabaseError.from("store events")(defect))),
      Effect.tapError((error) =>
        Effect.sync(() => {
          failing = error.message
          const again = error.isRetryable
            ? batch.filter((one) => !one.isTold && one.tries < writers.length && !isLate(one))
            : []
          for (const waiter of again) {
            waiter.tries += 1
            waitingBytes += waiter.size
          }
          const left = batch.filter((one) => !one.isTold && !again.includes(one))
          waiting.unshift(...again)
          if (again.length > 0) wakeOne()
          tellAll(left, away())
          // A server that hangs is not waited for once more by those who stand in line behind.
          if (error.code === hungCode) tellAll(takeAll(), away())
        })
      ),
      Effect.onInterrupt(() => Effect.sync(() => tellAll(batch, ended())))
    )

  const connected = database.connect.pipe(
    Effect.timeoutOrElse({ duration: connectMaxMs, orElse: () => Effect.fail(hung(connectMaxMs)) })
  )

  /** Until so many wait. */
  const untilWaiting = (writer: Writer, count: number) =>
    Effect.callback<void>((resume) => {
      if (waiting.length >= count) return resume(Effect.void)
      writer.wakesAt = count
      writer.wake = () => {
        writer.wake = null
        resume(Effect.void)
      }
      return Effect.sync(() => {
        writer.wake = null
      })
    })

  /** When the last statement of any of them began. */
  let wroteAt = Number.NEGATIVE_INFINITY
  /** How long more are waited for. */
  const gathersMs = () => {
    const from = writers.some(({ isWriting }) => isWriting) ? (waiting[0]?.since ?? wroteAt) : wroteAt
    return from + gatherMs - monotonicMs()
  }

  /** Stores until its connection fails. */
  const session = (writer: Writer): Effect.Effect<never, DatabaseError> =>
    Effect.scoped(
      Effect.gen(function* () {
        const client = yield* connected
        writer.isUp = true
        hasFailed = false
        for (;;) {
          yield* untilWaiting(writer, 1)
          const restMs = gathersMs()
          if (restMs > 0) yield* Effect.timeoutOption(untilWaiting(writer, gatherMax), restMs)
          const batch = takeBatch()
          if (batch.length === 0) continue
          wroteAt = monotonicMs()
          writer.isWriting = true
          yield* Effect.ensuring(
            write(client, batch),
            Effect.sync(() => {
              writer.isWriting = false
            })
          )
          // The warehouse is there: what another one has lost before is not held against it either.
          for (const one of writers) one.failures = 0
          if (isTroubled) yield* Effect.logInfo("Events can be stored again")
          isTroubled = false
        }
      })
    )

  const serve = (writer: Writer) =>
    Effect.gen(function* () {
      for (;;) {
        const error = yield* Effect.flip(session(writer))
        // A connection that was lost, perhaps while nobody used it, is simply replaced; those who wait go with the new one.
        const isReplaced = writer.isUp && writer.failures === 0 && error.isRetryable
        writer.failures += 1
        writer.isUp = false
        hasFailed = !isReplaced
        if (isReplaced) continue
        failing = error.message
        isTroubled = true
        notices.note("inbox", `Events cannot be stored: ${error.message}; senders are asked to come again`)
        if (!isUp()) tellAll(takeAll(), away())
        yield* Effect.sleep(Math.min(pauseMaxMs, pauseMinMs * 2 ** Math.min(writer.failures - 1, 10)))
      }
    })

  for (let number = 0; number < (options.writers ?? writersDefault); number++) {
    writers.push({ isUp: false, isWriting: false, failures: 0, wakesAt: 1, wake: null })
  }
  yield* Effect.addFinalizer(() => Effect.sync(() => tellAll(takeAll(), ended())))
  for (const writer of writers) yield* Effect.forkScoped(serve(writer))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isEnded = true
    })
  )

  return {
    put: offer,
    store: (event) =>
      Effect.callback((resume) =>
        offer(event, (outcome) => resume(typeof outcome === "string" ? Effect.succeed(outcome) : Effect.fail(outcome)))
      ),
    probe: Effect.callback((resume) => {
      if (proved !== null && failing === null && monotonicMs() - proved.monotonicMs < provedForMs) {
        return resume(Effect.void)
      }
      const told = (outcome: Outcome) => resume(typeof outcome === "string" ? Effect.void : Effect.fail(outcome))
      if (probing !== null) {
        probing.push(told)
        return
      }
      const sharing = [told]
      probing = sharing
      offer(null, (outcome) => {
        probing = null
        for (const one of sharing) one(outcome)
      })
    }),
    stats: () => ({
      waiting: waiting.length,
      waitingBytes,
      writersUp: writers.filter((writer) => writer.isUp).length,
      ...counts,
      provedAt: proved?.at ?? null,
      failing
    }),
    arrived
  }
})

/** Somebody who waits for an event to be stored, or (with none) for the proof that one could be. */
interface Waiter {
  readonly event: NewEvent | null
  readonly size: number
  /** When it came, by a clock that only goes on. */
  readonly since: number
  readonly done: (outcome: Outcome) => void
  isTold: boolean
  /** Statements with it that failed: after one of them it may stand in the inbox already. */
  tries: number
}

interface Writer {
  /** Whether it has a connection. */
  isUp: boolean
  /** Whether a statement of it is under way. */
  isWriting: boolean
  /** In a row. */
  failures: number
  /** How many must wait for it to go on. */
  wakesAt: number
  /** There while it has nothing to do. */
  wake: (() => void) | null
}

// ---------------------------------------------------------------------------------------------------------- statements

interface StoredRow {
  readonly company: string
  readonly event_id: string
}

const keyOf = ({ company, event_id }: StoredRow): string => `${company}\n${event_id}`
const rowOf = ({ company, eventId }: NewEvent): StoredRow => ({ company, event_id: eventId })

/**
 * A commit that is answered is on disk, also where the operator traded that for speed. Stronger settings stay. It stands
 * in the statement itself, so that it holds whichever session runs it.
 */
const insertText = `with durable as materialized (
    select case when current_setting('synchronous_commit') = 'off'
                then set_config('synchronous_commit', 'on', true) end as setting)
  insert into tributary.inbox
  (company, event_id, event_type, resource, record_id, stamp, occurred_at, sent_at, body)
  select company, event_id, event_type, resource, record_id, stamp, occurred_at::timestamptz,
         to_timestamp(sent_at::float8), body
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[])
      as given (company, event_id, event_type, resource, record_id, stamp, occurred_at, sent_at, body)
   where (select count(*) from durable) = 1
  on conflict (company, event_id) do nothing
  returning company, event_id`

const insert = (
  client: pg.Client,
  batch: ReadonlyArray<Waiter>
): Effect.Effect<ReadonlyArray<StoredRow>, DatabaseError> =>
  Effect.tryPromise({
    try: async () => {
      const events = batch.flatMap(({ event }) => (event === null ? [] : [event]))
      const { rows } = await client.query<StoredRow>({ name: "inbox", text: insertText }, [
        BinaryArray.texts(events, (event) => event.company),
        BinaryArray.texts(events, (event) => event.eventId),
        BinaryArray.texts(events, (event) => event.eventType),
        BinaryArray.texts(events, (event) => event.resource),
        BinaryArray.texts(events, (event) => event.recordId),
        BinaryArray.texts(events, (event) => event.stamp),
        BinaryArray.texts(events, (event) => event.occurredAt),
        BinaryArray.texts(events, (event) => String(event.sentAt)),
        BinaryArray.bytes(events, (event) => event.body)
      ])
      return rows
    },
    catch: DatabaseError.from("store events")
  })

/** Data exceptions, violated checks, and what is too large for an index: the same statement without it may succeed. */
const isAboutValues = ({ code }: DatabaseError): boolean => code !== undefined && /^(?:22|23|54)[0-9A-Z]{3}$/.test(code)

const hungCode = "ETIMEDOUT"
const hung = (afterMs: number) =>
  new DatabaseError({
    operation: "store events",
    code: hungCode,
    message: `the warehouse did not answer within ${afterMs / 1000} s`,
    isRetryable: false
  })

// ----------------------------------------------------------------------------------------------------------- retention

export interface PurgeOptions {
  /** How long settled events and closed gaps are kept. */
  readonly keepMs: number
  /** How many settled events are kept at most; default 2,000,000. */
  readonly settledMax?: number | undefined
  /** How many dead events are kept at most; default 100,000. */
  readonly deadMax?: number | undefined
}

export interface PurgeResult {
  /** Settled events. */
  readonly events: number
  readonly dead: number
  readonly gaps: number
  readonly receivers: number
}

const settledMaxDefault = 2_000_000
/** Longer than anybody would still replay them, and longer than the source keeps what it gave up (DLV-15). */
export const deadDays = 90
const deadMaxDefault = 100_000
const purgeBatch = 5_000

/**
 * Removes what is settled and old: never an event that waits, one that is dead (a person may replay it) only after
 * {@link deadDays} or when there are all too many, the oldest first; never an open gap, and of the receivers always the
 * last of its companies. A delivery of an event that is gone is stored and acted on again, which does no harm.
 */
export const purge = Effect.fnUntraced(function* (
  options: PurgeOptions
): Effect.fn.Return<PurgeResult, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const agedMs = (ms: number) => sql`tributary.now() - ${ms}::float8 * interval '1 millisecond'`
  const before = agedMs(options.keepMs)

  const settled = sql`state in ('done', 'ignored')`
  const isDead = sql`state = 'dead'`
  const remove = (which: typeof settled, limit: number) =>
    sql`delete from tributary.inbox where id = any(array(
      select id from tributary.inbox where ${which} order by settled_at limit ${limit} for update skip locked)) returning 1`
  const aged = Effect.fnUntraced(function* (which: typeof settled, oldest: typeof before) {
    for (let events = 0; ;) {
      const removed = yield* remove(sql`${which} and settled_at < ${oldest}`, purgeBatch)
      events += removed.length
      if (removed.length < purgeBatch) return events
    }
  })
  const beyond = Effect.fnUntraced(function* (which: typeof settled, most: number) {
    const [counted] = yield* sql<{
      readonly count: bigint
    }>`select count(*) as count from tributary.inbox where ${which}`
    const surplus = Number(counted?.count ?? 0n) - most
    for (let events = 0; ;) {
      const limit = Math.min(surplus - events, purgeBatch)
      const removed = limit <= 0 ? [] : yield* remove(which, limit)
      events += removed.length
      if (removed.length === 0) return events
    }
  })
  const events = (yield* aged(settled, before)) + (yield* beyond(settled, options.settledMax ?? settledMaxDefault))
  const dead =
    (yield* aged(isDead, agedMs(Math.max(options.keepMs, deadDays * 86_400_000)))) +
    (yield* beyond(isDead, options.deadMax ?? deadMaxDefault))

  // The source's log shows an event that was given up for 30 days (DLV-15): until then it must not be news again.
  const gaps = yield* sql`
    delete from tributary.gaps
     where closed_at < ${before} and (events = '{}' or closed_at < tributary.now() - interval '31 days') returning 1`
  const receivers = yield* sql`
    delete from tributary.receivers old
     where greatest(ended_at, alive_at) < ${before}
       and exists (select from tributary.receivers later
                    where later.companies @> old.companies and later.began_at > old.began_at
                      and greatest(later.ended_at, later.alive_at) > greatest(old.ended_at, old.alive_at))
    returning 1`
  return { events, dead, gaps: gaps.length, receivers: receivers.length }
})
