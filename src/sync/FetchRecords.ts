/**
 * Fetches of single records by number.
 *
 * Promise: exactly these records are read and merged, under the rules of every landing. A record that the source does not
 * have becomes a tombstone. Each run fetches up to a hundred records. It acquires the resource only for the landing, so
 * that no other run waits for the source. A resource that cannot be read by number is scanned instead.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { type FetchedRecord, isMissing, type Page } from "../connector/Connector.ts"
import * as ResourceLock from "../land/ResourceLock.ts"
import * as WriteSession from "../land/WriteSession.ts"
import type { ConflictPolicy } from "../land/MergeSql.ts"
import type { Database } from "../postgres/Database.ts"
import { type Outcome, sum } from "./Outcome.ts"
import { Progress } from "./Progress.ts"
import { attemptWith, withRun } from "./Run.ts"
import { addTotals, type RunState } from "./RunState.ts"
import * as RunPhases from "./RunPhases.ts"
import { engineDefault } from "./EngineSettings.ts"
import { syncResource, type SyncTarget } from "./SyncResource.ts"

export interface FetchRecordsOptions extends SyncTarget {
  /** Numbers of records, as text. */
  readonly ids: ReadonlyArray<string>
  /** `source`: the source's current version wins even over a newer stamp. */
  readonly authority: ConflictPolicy
}

/** Records read and landed together. */
const recordsPerLanding = 100
const concurrency = 4
/** Attempts to acquire the resource after the first run has landed; each attempt waits some seconds. */
const lockAttemptsMax = 12

/** A fetched record as a page of one. */
export const pageOf = (reading: FetchedRecord): Page => ({
  records: reading.record === null ? [] : [reading.record],
  rejected: reading.rejected === null ? [] : [reading.rejected],
  ...(reading.unselected === undefined ? {} : { unselected: [reading.unselected] }),
  next: null,
  syncedThrough: null,
  beganAt: reading.beganAt,
  source: reading.source,
  bytes: 0,
  attempts: 1
})

/** Fetches some records, and lands them together. */
const readAndLand = Effect.fnUntraced(function* (
  options: FetchRecordsOptions,
  ids: ReadonlyArray<string>,
  waitsForLock: boolean,
  state: RunState
) {
  const { companyId, connector, table, authority } = options
  const progress = yield* Progress
  const readings = yield* Effect.forEach(
    ids,
    (id) => Effect.map(connector.get(table.resource, id), (reading) => ({ id, reading })),
    { concurrency }
  )
  const land = Effect.gen(function* () {
    const lock = yield* ResourceLock.acquire({ table, connector, companyId, lane: "records" })
    const session = yield* WriteSession.open(lock, {
      run: { kind: "fetch" },
      origin: "scan",
      authority,
      acceptDeletions: true,
      deletionsShareMax: engineDefault.deletionsShareMax,
      children: options.children ?? []
    })
    state.runId = session.runId
    state.began = { companyId, resource: table.resource.path, kind: "fetch", resumed: false }
    yield* progress.began(state.began)
    const pages = readings.map(({ reading }) => ({ page: pageOf(reading) }))
    const absent = readings
      .filter(({ reading }) => isMissing(reading))
      .map(({ id, reading: { beganAt, source } }) => ({ id, changedAt: null, beganAt, source }))
    const landed = yield* RunPhases.timed(
      state.phases,
      "landing",
      session.land({ pages, scan: null, complete: false, absent })
    )
    yield* addTotals(state, landed, pages)
  }).pipe(Effect.scoped)
  yield* waitsForLock
    ? Effect.retry(land, { while: ({ _tag }) => _tag === "AlreadyRunning", times: lockAttemptsMax - 1 })
    : land
})

/** Two consecutive runs as one outcome. */
const combine = (before: Outcome, after: Outcome): Outcome => ({
  ...after,
  status: after.status === "done" ? before.status : after.status,
  kind: after.kind ?? before.kind,
  runId: after.runId ?? before.runId,
  durationMs: before.durationMs + after.durationMs,
  totals: sum(before.totals, after.totals),
  notes: [...new Set([...before.notes, ...after.notes])]
})

/** Fetches records. Never fails: the outcome has the failure. */
export const fetchRecords = Effect.fn("readRecords")(function* (
  options: FetchRecordsOptions
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  const { authority, companyId, table } = options
  if (!table.resource.operations.includes("R")) {
    return yield* syncResource(options, { mode: { full: true, acceptRestored: authority === "source" } })
  }
  const ids = [...new Set(options.ids)]
  const read = (some: ReadonlyArray<string>, waitsForLock: boolean) =>
    withRun({ companyId, table, lane: "records" }, (run) =>
      attemptWith(run, readAndLand(options, some, waitsForLock, run.state))
    )
  let outcome = yield* read(ids.slice(0, recordsPerLanding), false)
  for (let at = recordsPerLanding; at < ids.length && outcome.failure === null; at += recordsPerLanding) {
    outcome = combine(outcome, yield* read(ids.slice(at, at + recordsPerLanding), true))
  }
  return outcome
})
