/**
 * Group commit for incoming events.
 *
 * Promise: an event that is reported as `stored` or `known` is committed, whatever `synchronous_commit` the operator set.
 * All waiting events go into one statement. An event that arrives alone is inserted immediately; in a stream, an event
 * waits for some milliseconds at most. While events cannot be stored, their senders get that answer well within the
 * source's timeout of 15 s, and the writer recovers by itself. The queue is bounded. An event that Postgres cannot hold
 * fails alone. No body is stored under privacy rules that others replaced.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Client } from "../postgres/driver/Connection.ts"
import * as ThrottledWarnings from "../log/ThrottledWarnings.ts"
import { Database, type DatabaseShape } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import {
  type InsertedRow,
  insertEvents,
  isAboutValues,
  isTimeout,
  keyOf,
  type NewEvent,
  timedOut
} from "./InsertEvents.ts"
import * as PendingInserts from "./PendingInserts.ts"
import { InboxUnavailable, type InsertResult, type Outcome, type PendingInsert } from "./PendingInserts.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Backoff from "../time/Backoff.ts"
import { plural } from "../text/Count.ts"

export { InboxUnavailable, type InsertResult, type NewEvent, type Outcome }

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
  /** When a statement last succeeded, in milliseconds since 1970; null when none has. */
  readonly lastWriteOkAt: number | null
  /** Why events cannot be stored; null while they can. */
  readonly failing: string | null
}

export interface InboxWriter {
  /** Offers an event. `done` is called once, with the result. It must not throw. */
  readonly put: (event: NewEvent, done: (outcome: Outcome) => void) => void
  /**
   * Proves that events can be stored, by a statement without events. A proof of the last second counts. Concurrent
   * callers share one entry of the queue.
   */
  readonly probe: Effect.Effect<void, InboxUnavailable>
  readonly stats: () => InboxStats
}

export interface InboxOptions {
  /** Called with the companies of events that were stored just now. */
  readonly onStored?: (companies: ReadonlySet<string>) => void
  /** Connections that store at the same time; default 2. */
  readonly writers?: number
  /** Timeout of a statement, after which its connection is closed; default 8 s. */
  readonly answerTimeout?: Duration.Duration
  /** Timeout of connecting; default 4 s. */
  readonly connectTimeout?: Duration.Duration
  /** How long an event may have waited when its statement begins; default 5 s. */
  readonly waitMax?: Duration.Duration
  /**
   * The revision of the privacy rules that bodies follow, null where they may follow older ones; default: a warehouse that
   * never had rules.
   */
  readonly rules?: () => bigint | null
  /** The bounds of the queue; default 20,000 events and 64 MiB. */
  readonly waitingMax?: number
  readonly waitingBytesMax?: number
}

const nobodyWaits: NonNullable<InboxOptions["onStored"]> = () => {}

/** The longest wait and the longest statement together end 2 s before the sender's timeout. */
const defaults = {
  writers: 2,
  answerTimeout: Duration.seconds(8),
  connectTimeout: Duration.seconds(4),
  waitMax: Duration.seconds(5),
  onStored: nobodyWaits,
  rules: (): bigint | null => 0n,
  waitingMax: 20_000,
  waitingBytesMax: 64 * 1024 * 1024
}
/**
 * A statement begins at once when the last one began at least this long ago. Otherwise it begins when an event has waited
 * for this time, or when {@link batchWindowCount} events wait. In a steady stream, this saves two thirds of the statements.
 */
const batchWindowMs = 10
const batchWindowCount = 16
const pauseMinMs = 250
const pauseMaxMs = 5_000
const probeValidMs = 1_000

/** A fiber that inserts events over a connection of its own. */
interface Writer {
  hasConnection: boolean
  /** Whether a statement is running. */
  isWriting: boolean
  /** Failures in a row. */
  failures: number
  /** Number of waiting events that wakes it. */
  wakesAt: number
  /** Null while it is not idle. */
  wake: (() => void) | null
}

interface WriterState {
  readonly database: DatabaseShape
  readonly clock: Clock.Clock
  readonly warnings: ThrottledWarnings.ThrottledWarnings
  readonly limits: typeof defaults
  readonly pending: PendingInserts.PendingInserts
  readonly writers: ReadonlyArray<Writer>
  readonly counts: { stored: number; known: number; refused: number; unavailable: number; batches: number }
  /** When a statement last began, by the monotonic clock. */
  lastWriteAt: number
  /** When a statement last succeeded, by the monotonic clock and by the calendar. */
  lastWriteOk: { readonly monotonicMs: number; readonly at: number } | null
  failing: string | null
  /** Whether a writer has failed since a writer last connected, or replaced a lost connection. */
  hasFailed: boolean
  /** The callers of the probe that is running; null while none is. */
  probeCallers: Array<(outcome: Outcome) => void> | null
  /** Whether the log shows an outage whose end it does not show yet. */
  isOutageLogged: boolean
  isEnded: boolean
}

const monotonicMs = ({ clock }: WriterState) => MonotonicClock.nowMs(clock)
const isConnected = ({ writers }: WriterState) => writers.some(({ hasConnection }) => hasConnection)
const unavailable = ({ failing }: WriterState, otherwise = "no connection to the warehouse") =>
  new InboxUnavailable({ reason: "away", detail: failing ?? otherwise })
const ended = () => new InboxUnavailable({ reason: "ended", detail: "this process is stopping" })

const wakeOne = ({ writers, pending }: WriterState) =>
  writers.find(({ wake, wakesAt }) => wake !== null && pending.inserts.length >= wakesAt)?.wake?.()

const resolve = ({ counts }: WriterState, insert: PendingInsert, outcome: Outcome) => {
  insert.isResolved = true
  if (insert.event !== null) {
    if (outcome === "stored") counts.stored += 1
    else if (outcome === "known") counts.known += 1
    else if (outcome.reason === "refused") counts.refused += 1
    else counts.unavailable += 1
  }
  insert.done(outcome)
}

const failAll = (state: WriterState, inserts: ReadonlyArray<PendingInsert>, error: InboxUnavailable) => {
  for (const insert of inserts) if (!insert.isResolved) resolve(state, insert, error)
}

const offer = (state: WriterState, event: NewEvent | null, done: (outcome: Outcome) => void) => {
  const { pending, limits } = state
  const size = PendingInserts.sizeOf(event)
  const insert: PendingInsert = { event, size, since: monotonicMs(state), done, isResolved: false, attempts: 0 }
  const count = pending.inserts.length
  if (state.isEnded) return resolve(state, insert, ended())
  if (state.hasFailed && !isConnected(state)) return resolve(state, insert, unavailable(state))
  if (count >= limits.waitingMax || (pending.bytes > 0 && pending.bytes + size > limits.waitingBytesMax)) {
    return resolve(
      state,
      insert,
      new InboxUnavailable({ reason: "full", detail: `${plural(count, "event waits", "events wait")} already` })
    )
  }
  PendingInserts.append(pending, insert)
  wakeOne(state)
}

/** Resolves a batch that committed. Of several inserts of one event, only the first is new. */
const resolveBatch = (state: WriterState, batch: ReadonlyArray<PendingInsert>, rows: ReadonlyArray<InsertedRow>) => {
  state.counts.batches += 1
  state.failing = null
  state.lastWriteOk = { monotonicMs: monotonicMs(state), at: state.clock.currentTimeMillisUnsafe() }
  // An event whose first statement committed without an answer counts as known, but no worker has been woken for it yet.
  if (rows.length > 0 || batch.some(({ attempts }) => attempts > 0)) {
    state.limits.onStored(new Set(batch.flatMap(({ event }) => (event === null ? [] : [event.company]))))
  }
  const isAllNew = rows.length === batch.length
  const newKeys = new Set(isAllNew ? [] : rows.map(keyOf))
  for (const insert of batch) {
    const isNew = isAllNew || insert.event === null || newKeys.delete(keyOf(insert.event))
    resolve(state, insert, isNew ? "stored" : "known")
  }
}

/** Inserts a batch. Where Postgres rejects a value, the batch is halved until the event is found. */
const insertBatch = (
  state: WriterState,
  client: Client,
  batch: ReadonlyArray<PendingInsert>
): Effect.Effect<void, DatabaseError> => {
  const events = batch.flatMap(({ event }) => (event === null ? [] : [event]))
  return Effect.matchEffect(insertEvents(client, events, state.limits.rules()), {
    onSuccess: (rows) => Effect.sync(() => resolveBatch(state, batch, rows)),
    onFailure: (error) => {
      if (!isAboutValues(error)) return Effect.fail(error)
      const [only, ...others] = batch
      if (only !== undefined && others.length === 0) {
        const refused = new InboxUnavailable({ reason: "refused", detail: error.message })
        return Effect.sync(() => resolve(state, only, refused))
      }
      const middle = batch.length >> 1
      return Effect.andThen(
        insertBatch(state, client, batch.slice(0, middle)),
        insertBatch(state, client, batch.slice(middle))
      )
    }
  })
}

/** Resolves the inserts of a failed statement, or returns them to the queue if another connection may store them in time. */
const resolveFailedBatch = (state: WriterState, batch: ReadonlyArray<PendingInsert>, error: DatabaseError) => {
  const { pending, writers, limits } = state
  state.failing = error.message
  const oldest = monotonicMs(state) - Duration.toMillis(limits.waitMax)
  const retried = batch.filter(
    ({ isResolved, attempts, since }) =>
      error.isRetryable && !isResolved && attempts < writers.length && since >= oldest
  )
  for (const insert of retried) insert.attempts += 1
  PendingInserts.putBack(pending, retried)
  if (retried.length > 0) wakeOne(state)
  const failed = batch.filter((insert) => !retried.includes(insert))
  failAll(state, failed, unavailable(state))
  // The other inserts do not wait for a second timeout of the same server.
  if (isTimeout(error)) failAll(state, PendingInserts.shiftAll(pending), unavailable(state))
}

const writeBatch = (
  state: WriterState,
  client: Client,
  batch: ReadonlyArray<PendingInsert>
): Effect.Effect<void, DatabaseError> => {
  const { answerTimeout } = state.limits
  return insertBatch(state, client, batch).pipe(
    Effect.timeoutOrElse({ duration: answerTimeout, orElse: () => Effect.fail(timedOut(answerTimeout)) }),
    Effect.catchDefect((defect) => Effect.fail(DatabaseError.from("store events")(defect))),
    Effect.tapError((error) => Effect.sync(() => resolveFailedBatch(state, batch, error))),
    Effect.onInterrupt(() => Effect.sync(() => failAll(state, batch, ended())))
  )
}

/** Waits until this many events are pending. */
const awaitPending = ({ pending }: WriterState, writer: Writer, count: number) =>
  Effect.callback<void>((resume) => {
    if (pending.inserts.length >= count) return resume(Effect.void)
    writer.wakesAt = count
    writer.wake = () => {
      writer.wake = null
      resume(Effect.void)
    }
    return Effect.sync(() => {
      writer.wake = null
    })
  })

/** How long the next statement waits for more events. */
const batchWindowLeftMs = (state: WriterState) => {
  const { pending, writers, lastWriteAt } = state
  const isBusy = writers.some(({ isWriting }) => isWriting)
  const from = isBusy ? (pending.inserts[0]?.since ?? lastWriteAt) : lastWriteAt
  return from + batchWindowMs - monotonicMs(state)
}

/** Removes the next batch. Inserts that would exceed the sender's timeout fail now. */
const nextBatch = (state: WriterState) => {
  const { pending, limits } = state
  const late = PendingInserts.shiftOlder(pending, monotonicMs(state) - Duration.toMillis(limits.waitMax))
  failAll(state, late, unavailable(state, "the warehouse is too slow"))
  return PendingInserts.shiftBatch(pending)
}

/** Writes batches until the connection fails. */
const writeUntilFailure = Effect.fnUntraced(function* (
  state: WriterState,
  writer: Writer
): Effect.fn.Return<never, DatabaseError, Scope.Scope> {
  const { connectTimeout } = state.limits
  const client = yield* state.database.connect.pipe(
    Effect.timeoutOrElse({ duration: connectTimeout, orElse: () => Effect.fail(timedOut(connectTimeout)) })
  )
  writer.hasConnection = true
  state.hasFailed = false
  for (;;) {
    yield* awaitPending(state, writer, 1)
    const leftMs = batchWindowLeftMs(state)
    if (leftMs > 0) yield* Effect.timeoutOption(awaitPending(state, writer, batchWindowCount), leftMs)
    const batch = nextBatch(state)
    if (batch.length === 0) continue
    state.lastWriteAt = monotonicMs(state)
    writer.isWriting = true
    yield* Effect.ensuring(
      writeBatch(state, client, batch),
      Effect.sync(() => {
        writer.isWriting = false
      })
    )
    // The warehouse answers, so earlier failures of other writers no longer count.
    for (const each of state.writers) each.failures = 0
    if (state.isOutageLogged) yield* Effect.logInfo("Events can be stored again")
    state.isOutageLogged = false
  }
})

const runWriter = Effect.fnUntraced(function* (state: WriterState, writer: Writer) {
  for (;;) {
    const error = yield* Effect.flip(Effect.scoped(writeUntilFailure(state, writer)))
    // A lost connection, perhaps an idle one, is replaced at once. The pending inserts go over the new one.
    const isReplaced = writer.hasConnection && writer.failures === 0 && error.isRetryable
    writer.failures += 1
    writer.hasConnection = false
    state.hasFailed = !isReplaced
    if (isReplaced) continue
    state.failing = error.message
    state.isOutageLogged = true
    state.warnings.warn("inbox", `Events cannot be stored: ${error.message}; senders get 503 and retry`)
    if (!isConnected(state)) failAll(state, PendingInserts.shiftAll(state.pending), unavailable(state))
    yield* Effect.sleep(Backoff.delayMs(writer.failures, pauseMinMs, pauseMaxMs))
  }
})

const probe = (state: WriterState): Effect.Effect<void, InboxUnavailable> =>
  Effect.callback((resume) => {
    const { lastWriteOk, failing } = state
    if (lastWriteOk !== null && failing === null && monotonicMs(state) - lastWriteOk.monotonicMs < probeValidMs) {
      return resume(Effect.void)
    }
    const answer = (outcome: Outcome) => resume(typeof outcome === "string" ? Effect.void : Effect.fail(outcome))
    if (state.probeCallers !== null) {
      state.probeCallers.push(answer)
      return
    }
    const callers = [answer]
    state.probeCallers = callers
    offer(state, null, (outcome) => {
      state.probeCallers = null
      for (const caller of callers) caller(outcome)
    })
  })

/** Starts the writers. When the scope ends, all pending inserts fail. */
export const make = Effect.fnUntraced(function* (
  options: InboxOptions = {}
): Effect.fn.Return<InboxWriter, never, Database | Scope.Scope> {
  const limits = { ...defaults, ...options }
  const newWriter = (): Writer => ({ hasConnection: false, isWriting: false, failures: 0, wakesAt: 1, wake: null })
  const state: WriterState = {
    database: yield* Database,
    clock: yield* Clock.Clock,
    warnings: yield* ThrottledWarnings.make,
    limits,
    pending: { inserts: [], bytes: 0 },
    writers: Array.from({ length: limits.writers }, newWriter),
    counts: { stored: 0, known: 0, refused: 0, unavailable: 0, batches: 0 },
    lastWriteAt: Number.NEGATIVE_INFINITY,
    lastWriteOk: null,
    failing: null,
    hasFailed: false,
    probeCallers: null,
    isOutageLogged: false,
    isEnded: false
  }
  yield* Effect.addFinalizer(() => Effect.sync(() => failAll(state, PendingInserts.shiftAll(state.pending), ended())))
  for (const writer of state.writers) yield* Effect.forkScoped(runWriter(state, writer))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      state.isEnded = true
    })
  )
  return {
    put: (event, done) => offer(state, event, done),
    probe: probe(state),
    stats: () => ({
      waiting: state.pending.inserts.length,
      waitingBytes: state.pending.bytes,
      writersUp: state.writers.filter(({ hasConnection }) => hasConnection).length,
      ...state.counts,
      lastWriteOkAt: state.lastWriteOk?.at ?? null,
      failing: state.failing
    })
  }
})
