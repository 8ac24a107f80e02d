/**
 * The session in which one process pushes one resource: its options, its progress and its state.
 *
 * Promise: transactions follow each other, each under the fence. The first failure stops the session, and is checked for
 * before every request. A session has no state that the database does not have: after a crash another process
 * continues.
 */
import * as Duration from "effect/Duration"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { LandingError } from "../land/LandingError.ts"
import type * as WriteSession from "../land/WriteSession.ts"
import type { Table } from "../warehouse/Table.ts"
import { failureOf, type Failure } from "../sync/Outcome.ts"
import type { RunState } from "../sync/RunState.ts"
import type { EngineSettings } from "../sync/EngineSettings.ts"
import * as AssumedNew from "./AssumedNew.ts"
import type { CommitJob } from "./Commit.ts"
import { countRows } from "./OutboxCounts.ts"
import type { OutboxScope, RunSql } from "./OutboxRow.ts"
import { plannerSql } from "./OutboxStore.ts"
import type { Counts } from "./Push.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"

export interface PushSettings {
  /** Maximum records of one request; the source may accept fewer. */
  readonly batchRecordsMax: number
  /** Whether one request creates many records where the resource offers it. */
  readonly useBatch: boolean
  /** A key older than this is not sent any more; the source may forget it earlier. */
  readonly keyAgeMax: Duration.Duration
  /** Requests in flight. */
  readonly concurrency: number
  /** Up to this many records are looked up one by one (20); more are found by a scan or a list. */
  readonly lookupsMax?: number
}

/** A company that is pushed to. */
export interface PushCompany {
  /** Its name in the configuration. */
  readonly name: string
  readonly connector: ConnectorShape
  readonly engine: EngineSettings
  /** Approximate number of records landed in one transaction. */
  readonly batchRecordsMax: number
}

/** The rows of one push, or those that belong to none. */
export type PushScope = { readonly push: bigint } | "outbox"

export interface PushOptions {
  readonly company: PushCompany
  readonly companyId: bigint
  readonly table: Table
  /** The children that are read again when a row changes here. */
  readonly children: ReadonlyArray<{ readonly resource: string; readonly field: string }>
  readonly settings: PushSettings
  readonly scope: PushScope
  /** Runs after each commit. */
  readonly onProgress?: (counts: Counts) => Effect.Effect<void>
}

/** The state that the sessions of one push share; it survives a failure of the database. */
export interface PushProgress {
  readonly runState: RunState
  counts: Counts
  requests: number
  batches: number
  /** Rows resolved and requests bisected: while it rises, the push makes progress. */
  resolved: number
  /** Why the push stops; null while it goes on. */
  failure: Failure | null
}

/** The errors that end a session at once. A {@link SourceError} stops it instead. */
export type PushSessionError = LandingError

/** A moment by both clocks: one of them may stand still while the machine sleeps. */
interface Moment {
  readonly monotonicMs: number
  readonly wallMs: number
}

/** The state of a session that changes while it runs. */
export interface PushState {
  /** When the fence was last confirmed. */
  fenceSeenAt: Moment
  /** Records of one request; falls when the source rejects a request as too large. */
  recordsMax: number
  /** Falls when the source does not offer batches. */
  useBatch: boolean
  /** Requests in a row at which the source failed. */
  consecutiveFailures: number
  /** Rows outside the scope that must be sent before rows of the scope. */
  blockers: ReadonlyArray<bigint>
}

export interface PushSession extends PushOptions {
  readonly clock: Clock.Clock
  readonly writeSession: WriteSession.WriteSession
  readonly progress: PushProgress
  readonly state: PushState
  /** The token's scope of idempotency keys. */
  readonly keyScope: string | null
  /** The permit of the running transaction. */
  readonly transactionLock: Semaphore.Semaphore
  /** A permit for each request in flight. */
  readonly sendPermits: Semaphore.Semaphore
  /** Jobs that wait for their transaction. */
  readonly commitJobs: Array<CommitJob>
}

/** A share of its lifetime after which a key counts as forgotten: the clocks of both sides may differ. */
const keyLifetimeShare = 23 / 24

export const outboxScopeOf = (
  { company, table, scope }: PushOptions,
  blockers: ReadonlyArray<bigint>
): OutboxScope => ({
  company: company.name,
  resource: table.resource.path,
  push: scope === "outbox" ? null : scope.push,
  blockers
})

export const scopeOf = (session: PushSession): OutboxScope => outboxScopeOf(session, session.state.blockers)

const now = (clock: Clock.Clock): Moment => ({
  monotonicMs: MonotonicClock.nowMs(clock),
  wallMs: clock.currentTimeMillisUnsafe()
})

/** How long ago the fence was confirmed, in milliseconds: the longer time of both clocks. */
export const fenceAgeMs = ({ clock, state: { fenceSeenAt } }: PushSession): number => {
  const { monotonicMs, wallMs } = now(clock)
  return Math.max(monotonicMs - fenceSeenAt.monotonicMs, wallMs - fenceSeenAt.wallMs)
}

/** The warehouse's time in milliseconds since 1970. */
export const warehouseNow = ({ clock, writeSession }: PushSession): number =>
  writeSession.timeOf(now(clock).monotonicMs)

/** Runs a transaction, and notes that the fence was confirmed when it began. */
export const confirmFence = <A, E>(session: PushSession, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const beganAt = now(session.clock)
    return Effect.tap(effect, () =>
      Effect.sync(() => {
        session.state.fenceSeenAt = beganAt
      })
    )
  })

/** Runs statements in a transaction under the fence, after the transactions before it. */
export const transaction = <A, E>(
  session: PushSession,
  body: (run: RunSql) => Effect.Effect<A, E>
): Effect.Effect<A, E | PushSessionError> =>
  session.transactionLock.withPermits(1)(confirmFence(session, session.writeSession.transaction(body)))

/** Stops the session: the first failure is kept. */
export const stop = ({ progress }: PushSession, failure: Failure): void => {
  progress.failure ??= failure
}

export const stopForSource = (session: PushSession, error: SourceError): void => stop(session, failureOf(error))

export const isStopped = ({ progress }: PushSession): boolean => progress.failure !== null

export const reportProgress = (session: PushSession): Effect.Effect<void> =>
  Effect.suspend(() => session.onProgress?.(session.progress.counts) ?? Effect.void)

/** Counts the rows again: other processes may have changed them. */
export const recount = Effect.fnUntraced(function* (session: PushSession): Effect.fn.Return<void, PushSessionError> {
  const { progress, scope } = session
  const counts = yield* transaction(session, (run) => countRows(run, scopeOf(session)))
  // Of rows that belong to no push, only the open ones are counted: the others are those that this session resolved.
  const { waiting, sending } = counts
  progress.counts = scope === "outbox" ? { ...progress.counts, waiting, sending } : counts
  yield* reportProgress(session)
})

export const openSession = Effect.fnUntraced(function* (
  options: PushOptions,
  writeSession: WriteSession.WriteSession,
  progress: PushProgress
): Effect.fn.Return<PushSession, PushSessionError> {
  const { company, table } = options
  const { traits } = table.resource
  const keyAgeMax = Duration.min(
    options.settings.keyAgeMax,
    Duration.times(Duration.fromInputUnsafe(traits.keyLifetime), keyLifetimeShare)
  )
  const settings = { ...options.settings, keyAgeMax }
  const clock = yield* Clock.Clock
  const session: PushSession = {
    ...options,
    settings,
    clock,
    writeSession,
    progress,
    state: {
      fenceSeenAt: now(clock),
      recordsMax: Math.max(1, Math.min(traits.batchRecordsMax, settings.batchRecordsMax)),
      useBatch: settings.useBatch && table.resource.operations.includes("B"),
      consecutiveFailures: 0,
      blockers: []
    },
    keyScope: company.connector.keyScope ?? null,
    transactionLock: yield* Semaphore.make(1),
    sendPermits: yield* Semaphore.make(settings.concurrency),
    commitJobs: []
  }
  yield* transaction(session, (run) => run("prepare the push of", `${AssumedNew.prepareSql}; ${plannerSql}`))
  yield* recount(session)
  return session
})
