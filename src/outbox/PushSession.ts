/**
 * One turn of pushing: what all parts of it share.
 *
 * Promise: transactions stand in line, each under the fence; what became of rows, the records that the source answered,
 * and the end of a call become true together; whoever must stop says why, once, and everybody looks before the next
 * request. Nothing here is remembered that the ledger does not hold: another process can go on at any point.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { LandingError } from "../land/LandingError.ts"
import type * as Lander from "../land/WriteSession.ts"
import type { Table } from "../warehouse/Table.ts"
import { failureOf, type Failure } from "../sync/Outcome.ts"
import { addTotals, type RunState } from "../sync/RunState.ts"
import type { EngineSettings } from "../sync/SyncResource.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as RequestStore from "./RequestStore.ts"
import * as OutboxStore from "./OutboxStore.ts"
import type { Counts } from "./Push.ts"

export interface PushSettings {
  /** Records of one call at most, 1 to 250 (CODE-07). */
  readonly batchRecordsMax: number
  /** Whether many records are created by one call where the resource offers it. */
  readonly useBatch: boolean
  /** A key older than this is not relied upon any more: shorter than the source remembers it (B-08). */
  readonly keyAgeMaxMs: number
  /** Calls in flight. */
  readonly concurrency: number
}

export const settingsDefault: PushSettings = {
  batchRecordsMax: 250,
  useBatch: true,
  keyAgeMaxMs: 23 * 60 * 60 * 1000,
  concurrency: 4
}

/** A company as pushing works with it. */
export interface PushCompany {
  /** As the configuration calls it. */
  readonly name: string
  readonly connector: ConnectorShape
  readonly engine: EngineSettings
  /** Records landed in one transaction, about. */
  readonly batchRecordsMax: number
}

/** The rows of one push, or those that belong to none. */
export type Scope = { readonly push: bigint } | "outbox"

export interface PusherOptions {
  readonly company: PushCompany
  readonly companyId: bigint
  readonly table: Table
  /** Whose records are read again when a row changes here. */
  readonly children: ReadonlyArray<{ readonly resource: string; readonly field: string }>
  readonly settings: PushSettings
  readonly scope: Scope
  /** Told after each settlement. */
  readonly told?: (counts: Counts) => Effect.Effect<void>
}

/** What the turns of one push share, so that a fault of the database does not forget it. */
export interface PushProgress {
  readonly state: RunState
  counts: Counts
  sent: number
  batches: number
  /** Changes with everything that is settled. */
  settled: number
  failure: Failure | null
}

/** What may end a turn before its end; a {@link SourceError} ends it as a stop. */
export type PushSessionError = LandingError

/** What becomes true together. */
export interface Commit {
  /** The call that ends with it, and how; null when the rows were in none. */
  readonly call: { readonly id: bigint; readonly closing: RequestStore.RequestResult } | null
  readonly judged: ReadonlyArray<OutboxStore.ResolvedRow>
  readonly pages?: ReadonlyArray<Lander.ObservedPage>
  readonly absent?: ReadonlyArray<Lander.DeletedRecord>
  /** Calls that its rows go on in, under new keys. */
  readonly next?: ReadonlyArray<RequestStore.NewRequest>
}

/** Chooses what calls are made of, so many at most, in the transaction that forms them. */
export type SelectRows = (
  run: OutboxStore.Run,
  atMost: number
) => Effect.Effect<ReadonlyArray<RequestStore.RequestLimits>, DatabaseError>

/** A settlement, or a call to be formed, that waits for its transaction. */
interface Job {
  readonly settlement: Commit | null
  readonly choose: SelectRows | null
  formed: ReadonlyArray<RequestStore.PushRequest>
  /** Null until it is done, or has failed. */
  result: Effect.Effect<void, PushSessionError> | null
}

export interface PushSession extends PusherOptions {
  readonly place: () => OutboxStore.OutboxScope
  readonly pushing: PushProgress
  readonly lander: Lander.WriteSession
  readonly transaction: <A, E>(
    body: (run: OutboxStore.Run) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | PushSessionError>
  /** Settles, and answers the calls that were formed. */
  readonly settle: (settlement: Commit) => Effect.Effect<ReadonlyArray<RequestStore.PushRequest>, PushSessionError>
  /** Forms what is chosen. */
  readonly form: (choose: SelectRows) => Effect.Effect<RequestStore.PushRequest | null, PushSessionError>
  /** A permit for each call in flight. */
  readonly flight: Semaphore.Semaphore
  /** Counts again what others may have changed. */
  readonly recount: Effect.Effect<void, PushSessionError>
  /** Whether the source surely knows the call's key: it is young enough, and of the token that we have. */
  readonly isRemembered: (call: RequestStore.PushRequest) => Effect.Effect<boolean>
  /** For how long, in milliseconds, a call of another token may still be on its way; 0 when it is one of ours. */
  readonly strangeMs: (call: RequestStore.PushRequest) => number
  /** Whether the call may be sent: its key is remembered, and nobody has taken over while this process slept. */
  readonly mayBeSent: (call: RequestStore.PushRequest) => Effect.Effect<boolean>
  readonly stop: (failure: Failure) => void
  /** Stops for what the source said. */
  readonly stopFor: (error: SourceError) => void
  readonly isStopped: () => boolean
  /** Records of a call at most, and whether calls may carry more than one; learnt from what the source refuses. */
  limits: { recordsMax: number; useBatch: boolean }
  /** Calls that were given up since the last one that was answered. */
  inVain: number
  /** Rows of others that stand in the way. */
  beside: ReadonlyArray<bigint>
}

/** The source's limit on the records of one call (EP-07). */
const recordsMax = 250

/** For so long a request may be worked on after whoever sent it is gone. */
const onItsWayMs = 10 * 60_000

/** For so long it is believed that nobody has taken over. */
const freshMs = 2_000

/** So often the warehouse is asked who has the fence, when its answer itself is late. */
const fenceChecksMax = 3

/** What becomes true in one transaction at most. */
const jobsTogether = 16

/** Where the rows stand that are meant. */
export const outboxScopeOf = (
  { company, table, scope }: PusherOptions,
  beside: ReadonlyArray<bigint>
): OutboxStore.OutboxScope => ({
  company: company.name,
  resource: table.resource.path,
  push: scope === "outbox" ? null : scope.push,
  beside
})

export const make = Effect.fnUntraced(function* (
  options: PusherOptions,
  lander: Lander.WriteSession,
  pushing: PushProgress
): Effect.fn.Return<PushSession, PushSessionError> {
  const { table, settings, scope } = options
  const { resource } = table
  const clock = yield* Clock.Clock
  const line = yield* Semaphore.make(1)
  const inLine = line.withPermits(1)

  const monotonicMs = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const wallMs = () => clock.currentTimeMillisUnsafe()
  /** When the fence was last seen to be ours, by both clocks: one of them may stand still while the machine sleeps. */
  let seen = { monotonicMs: monotonicMs(), wallMs: wallMs() }
  const underFence = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      const now = { monotonicMs: monotonicMs(), wallMs: wallMs() }
      return Effect.tap(effect, () =>
        Effect.sync(() => {
          seen = now
        })
      )
    })
  const transaction: PushSession["transaction"] = (body) => inLine(underFence(lander.transaction(body)))
  const ownScope = options.company.connector.keyScope ?? null
  const isRemembered: PushSession["isRemembered"] = ({ formedAt, keyScope }) =>
    Effect.sync(() => keyScope === ownScope && lander.timeOf(monotonicMs()) - formedAt < settings.keyAgeMaxMs)

  const tell = Effect.suspend(() => options.told?.(pushing.counts) ?? Effect.void)

  /** What waits for its turn to become true: whoever comes first does it for all. */
  const jobs: Array<Job> = []
  const doTogether = Effect.gen(function* () {
    const now = jobs.splice(0, jobsTogether)
    const settlements = now.flatMap(({ settlement }) => settlement ?? [])
    const pages = settlements.flatMap((one) => one.pages ?? [])
    const absent = settlements.flatMap((one) => one.absent ?? [])
    let took: ReadonlyArray<OutboxStore.GivenRow> = []
    const body = (run: OutboxStore.Run) =>
      Effect.gen(function* () {
        for (const job of now) {
          const { call, next = [] } = job.settlement ?? {}
          job.formed = yield* RequestStore.create(
            run,
            lane.place(),
            ownScope,
            next.map((draft) => ({ draft, from: call?.id ?? null }))
          )
        }
        took = yield* OutboxStore.resolveRows(
          run,
          settlements.flatMap(({ call, judged }) => judged.map((one) => ({ ...one, callId: call?.id ?? null })))
        )
        yield* RequestStore.close(
          run,
          settlements.flatMap(({ call }) => call ?? [])
        )
        const choosing = now.filter(({ choose }) => choose !== null)
        for (const [choose, alike] of Map.groupBy(choosing, (job) => job.choose)) {
          const formed = yield* RequestStore.create(
            run,
            lane.place(),
            ownScope,
            choose === null ? [] : yield* choose(run, alike.length)
          )
          for (const [at, job] of alike.entries()) job.formed = formed.slice(at, at + 1)
        }
      })
    if (pages.length === 0 && absent.length === 0) yield* underFence(lander.transaction(body))
    else {
      const inTransaction = ({ run }: Lander.InTransaction) => body(run)
      const landed = yield* underFence(lander.land({ pages, scan: null, complete: false, absent, inTransaction }))
      yield* addTotals(pushing.state, landed, pages)
    }
    const begun = now.flatMap(({ choose, formed }) => (choose === null ? [] : formed))
    const sending = begun.reduce((sum, { rows }) => sum + rows.filter(({ isOwn }) => isOwn).length, 0)
    const { counts } = pushing
    pushing.counts = OutboxStore.counted(
      { ...counts, waiting: counts.waiting - sending, sending: counts.sending + sending },
      took
    )
    pushing.settled += took.length + settlements.reduce((sum, { next = [] }) => sum + next.length, 0)
    for (const job of now) job.result = Effect.void
    if (settlements.length > 0) yield* tell
  })
  const until = (job: Job): Effect.Effect<void, PushSessionError> =>
    Effect.suspend(() => {
      if (job.result !== null) return job.result
      const now = jobs.slice(0, jobsTogether)
      return doTogether.pipe(
        Effect.tapError((error) =>
          Effect.sync(() => {
            for (const one of now) one.result = Effect.fail(error)
          })
        ),
        Effect.andThen(until(job))
      )
    })
  const together = (wish: Pick<Job, "settlement" | "choose">) =>
    Effect.suspend(() => {
      const job: Job = { ...wish, formed: [], result: null }
      jobs.push(job)
      return Effect.map(inLine(until(job)), () => job.formed)
    })

  const lane: PushSession = {
    ...options,
    place: () => outboxScopeOf(options, lane.beside),
    pushing,
    lander,
    transaction,
    settle: (settlement) => together({ settlement, choose: null }),
    form: (choose) => Effect.map(together({ settlement: null, choose }), ([call]) => call ?? null),
    flight: yield* Semaphore.make(settings.concurrency),
    recount: Effect.gen(function* () {
      const found = yield* transaction((run) => OutboxStore.count(run, lane.place()))
      // Of rows that belong to no push only the open ones are counted: the rest is what this one did.
      const { waiting, sending } = found
      pushing.counts = scope === "outbox" ? { ...pushing.counts, waiting, sending } : found
      yield* tell
    }),
    isRemembered,
    strangeMs: ({ formedAt, keyScope }) =>
      keyScope === ownScope ? 0 : Math.max(0, formedAt + onItsWayMs - lander.timeOf(monotonicMs())),
    mayBeSent: (call) =>
      Effect.gen(function* () {
        // The warehouse tells the time to whoever slept, and who has the fence.
        const isFresh = () => Math.max(monotonicMs() - seen.monotonicMs, wallMs() - seen.wallMs) < freshMs
        // A process may also sleep while the answer is on its way: then it says who had the fence before.
        for (let checks = 0; checks < fenceChecksMax && !isFresh(); checks += 1) {
          if (!(yield* Effect.isSuccess(transaction(() => Effect.void)))) return false
        }
        return isFresh() && (yield* isRemembered(call))
      }),
    stop: (failure) => {
      pushing.failure ??= failure
    },
    stopFor: (error) => {
      pushing.failure ??= failureOf(error)
    },
    isStopped: () => pushing.failure !== null,
    limits: {
      recordsMax: Math.max(1, Math.min(recordsMax, settings.batchRecordsMax)),
      useBatch: settings.useBatch && resource.operations.includes("B")
    },
    inVain: 0,
    beside: []
  }
  yield* transaction(OutboxStore.prepare)
  yield* lane.recount
  return lane
})
