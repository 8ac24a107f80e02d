/**
 * Group commit of a push session.
 *
 * Promise: jobs that wait while a transaction runs are written together by the next one, in their order. When it fails,
 * each of its jobs fails.
 */
import * as Effect from "effect/Effect"
import type { FetchedRecord } from "../connector/Connector.ts"
import type { DeletedRecord, InTransaction, ObservedPage } from "../land/Landing.ts"
import { pageOf } from "../sync/FetchRecords.ts"
import { addTotals } from "../sync/RunState.ts"
import type { Commit, CommitJob, SelectRequests } from "./Commit.ts"
import { addUpdates } from "./OutboxCounts.ts"
import type { RunSql } from "./OutboxRow.ts"
import { confirmFence, type PushSession, type PushSessionError, reportProgress, scopeOf } from "./PushSession.ts"
import * as RequestStore from "./RequestStore.ts"
import { type ResolvedRow, resolveRows } from "./RowResolution.ts"
import { isShown } from "./SourceLookup.ts"

const jobsPerTransaction = 16

/** The records that were read to resolve a row, as pages. */
const pagesOf = (readings: ReadonlyArray<FetchedRecord>): ReadonlyArray<ObservedPage> =>
  readings.filter(isShown).map((reading) => ({ page: pageOf(reading) }))

/** The record of a row that the source was found not to have. */
const deletedRecordsOf = ({ row, readings = [] }: ResolvedRow): ReadonlyArray<DeletedRecord> => {
  const { recordId } = row
  if (recordId === null) return []
  return readings
    .filter((reading) => !isShown(reading))
    .map(({ beganAt, source }) => ({ id: recordId, changedAt: null, beganAt, source }))
}

/** Writes jobs in a transaction, and returns the resolutions that took effect. */
const writeJobs = (session: PushSession, jobs: ReadonlyArray<CommitJob>) => (run: RunSql) =>
  Effect.gen(function* () {
    const store = (requests: ReadonlyArray<RequestStore.NewRequest>) =>
      RequestStore.storeRequests(run, scopeOf(session), session.keyScope, requests)
    const commits = jobs.flatMap(({ commit }) => commit ?? [])
    for (const job of jobs) {
      const { closed = null, next = [] } = job.commit ?? {}
      job.requests = yield* store(next.map((request) => ({ ...request, from: closed?.id ?? null })))
    }
    const updates = yield* resolveRows(
      run,
      session.table.resource,
      commits.flatMap(({ closed, rows }) => rows.map((row) => ({ ...row, requestId: closed?.id ?? null })))
    )
    yield* RequestStore.closeRequests(
      run,
      commits.flatMap(({ closed }) => closed ?? [])
    )
    for (const [select, same] of Map.groupBy(jobs, (job) => job.select)) {
      if (select === null) continue
      const requests = yield* store(yield* select(run, same.length))
      for (const [index, job] of same.entries()) job.requests = requests.slice(index, index + 1)
    }
    return updates
  })

/** Commits the next jobs together. */
const commitJobs = Effect.fnUntraced(function* (
  session: PushSession,
  jobs: ReadonlyArray<CommitJob>
): Effect.fn.Return<void, PushSessionError> {
  const { progress, writeSession } = session
  const commits = jobs.flatMap(({ commit }) => commit ?? [])
  const pages = commits.flatMap(({ echo = [], rows }) => [
    ...echo,
    ...pagesOf(rows.flatMap(({ readings = [] }) => readings))
  ])
  const absent = commits.flatMap(({ rows }) => rows.flatMap((row) => deletedRecordsOf(row)))
  const write = writeJobs(session, jobs)
  let updates: Effect.Success<ReturnType<typeof write>> = []
  if (pages.length === 0 && absent.length === 0) {
    updates = yield* confirmFence(session, writeSession.transaction(write))
  } else {
    const inTransaction = ({ run }: InTransaction) =>
      Effect.tap(write(run), (written) =>
        Effect.sync(() => {
          updates = written
        })
      )
    const landed = yield* confirmFence(
      session,
      writeSession.land({ pages, scan: null, complete: false, absent, inTransaction })
    )
    yield* addTotals(progress.runState, landed, pages)
  }
  const selected = jobs.flatMap(({ select, requests }) => (select === null ? [] : requests))
  const sending = selected.reduce((sum, { rows }) => sum + rows.filter(({ isOwn }) => isOwn).length, 0)
  const { counts } = progress
  progress.counts = addUpdates(
    { ...counts, waiting: counts.waiting - sending, sending: counts.sending + sending },
    updates
  )
  progress.resolved += updates.length + commits.reduce((sum, { next = [] }) => sum + next.length, 0)
  for (const job of jobs) job.result = Effect.void
  if (commits.length > 0) yield* reportProgress(session)
})

/** Commits jobs until this one is among them. */
const commitUntil = (session: PushSession, job: CommitJob): Effect.Effect<void, PushSessionError> =>
  Effect.suspend(() => {
    if (job.result !== null) return job.result
    const jobs = session.commitJobs.splice(0, jobsPerTransaction)
    return commitJobs(session, jobs).pipe(
      Effect.tapError((error) =>
        Effect.sync(() => {
          for (const failed of jobs) failed.result = Effect.fail(error)
        })
      ),
      Effect.andThen(commitUntil(session, job))
    )
  })

const enqueueJob = (session: PushSession, commit: Commit | null, select: SelectRequests | null) =>
  Effect.suspend(() => {
    const job: CommitJob = { commit, select, requests: [], result: null }
    session.commitJobs.push(job)
    return Effect.map(session.transactionLock.withPermits(1)(commitUntil(session, job)), () => job.requests)
  })

/** Commits, and returns the next requests of its rows. */
export const commitRows = (
  session: PushSession,
  commit: Commit
): Effect.Effect<ReadonlyArray<RequestStore.PushRequest>, PushSessionError> => enqueueJob(session, commit, null)

/** Stores the next request of a selection; null when there is none. */
export const storeNextRequest = (
  session: PushSession,
  select: SelectRequests
): Effect.Effect<RequestStore.PushRequest | null, PushSessionError> =>
  Effect.map(enqueueJob(session, null, select), ([request]) => request ?? null)
