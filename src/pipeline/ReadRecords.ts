/**
 * Reading single records by their numbers: what was found to differ, or what an event named.
 *
 * Promise: exactly these records are read and merged, under the rules of every landing; one that the source does not
 * have becomes a tombstone. A resource whose records cannot be asked for one by one is scanned instead, and the outcome
 * says so by its kind.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorShape, Page, Reading } from "../connector/Connector.ts"
import * as Lander from "../land/Lander.ts"
import type { Authority } from "../land/MergeSql.ts"
import type { Table } from "../model/Table.ts"
import type { Database } from "../postgres/Database.ts"
import type { Outcome } from "./Outcome.ts"
import { Progress } from "./Progress.ts"
import * as RunLedger from "./RunLedger.ts"
import {
  batchRecordsMaxDefault,
  counted,
  engineDefault,
  newState,
  outcomeOf,
  retried,
  type RunState,
  syncResource
} from "./SyncResource.ts"

export interface ReadRecordsOptions {
  readonly companyId: bigint
  readonly connector: ConnectorShape
  readonly table: Table
  /** Numbers of records, as text. */
  readonly ids: ReadonlyArray<string>
  /** `source`: what the source says now wins even over a newer stamp. */
  readonly authority: Authority
  /** What is written into `_origin`; default scan. */
  readonly origin?: "scan" | "webhook" | "push"
  readonly children?: ReadonlyArray<{ readonly resource: string; readonly field: string }>
}

/** Records read and landed together. */
const recordsPerLanding = 100
const concurrency = 4

/** A record that was read alone, as a page of one, so that it lands like any other. */
export const pageOf = (reading: Reading): Page => ({
  records: reading.record === null ? [] : [reading.record],
  rejected: reading.rejected === null ? [] : [reading.rejected],
  next: null,
  syncedThrough: null,
  beganAt: reading.beganAt,
  source: reading.source,
  bytes: 0,
  attempts: 1
})

const attempt = Effect.fnUntraced(function* (options: ReadRecordsOptions, left: Array<string>, state: RunState) {
  const { companyId, connector, table, authority } = options
  const lander = yield* Lander.open(
    {
      table,
      companyId,
      lane: "records",
      origin: options.origin ?? "scan",
      authority,
      acceptDeletions: true,
      deletionsShareMax: engineDefault.deletionsShareMax,
      children: options.children ?? []
    },
    () => Effect.succeed({ kind: "records", resumed: false, cursorFrom: null, lateness: null } as const)
  )
  state.runId = lander.runId
  state.began = { companyId, resource: table.resource.path, kind: "records", resumed: false }
  yield* (yield* Progress).began(state.began)
  while (left.length > 0) {
    const ids = left.slice(0, recordsPerLanding)
    const readings = yield* Effect.forEach(
      ids,
      (id) => Effect.map(connector.get(table.resource, id), (reading) => ({ id, reading })),
      { concurrency }
    )
    const pages = readings.map(({ reading }) => ({ page: pageOf(reading), observedAt: lander.timeOf(reading.beganAt) }))
    const absent = readings
      .filter(({ reading }) => reading.record === null && reading.rejected === null)
      .map(({ id, reading }) => ({ id, observedAt: lander.timeOf(reading.beganAt), source: reading.source }))
    const landed = yield* lander.land({ pages, scan: null, complete: false, absent })
    yield* counted(state, landed, pages)
    // Only what is durable is done: a fault of the database sends the rest to the next attempt.
    left.splice(0, ids.length)
  }
}, Effect.scoped)

/** Reads records again. Never fails: how it went is in the outcome. */
export const readRecords = Effect.fn("readRecords")(function* (
  options: ReadRecordsOptions
): Effect.fn.Return<Outcome, never, Database | SqlClient.SqlClient> {
  const { companyId, connector, table, authority } = options
  if (!table.resource.operations.includes("R")) {
    return yield* syncResource({
      companyId,
      connector,
      table,
      full: true,
      acceptDeletions: false,
      acceptRestored: authority === "source",
      batchRecordsMax: batchRecordsMaxDefault,
      ...(options.children === undefined ? {} : { children: options.children })
    })
  }
  const clock = yield* Clock.Clock
  const beganAt = clock.monotonicTimeNanosUnsafe()
  const state = newState()
  const left = [...new Set(options.ids)]
  const result = yield* Effect.result(retried(table.resource.path, attempt(options, left, state)))
  const error = result._tag === "Success" ? null : result.failure
  const durationMs = Number((clock.monotonicTimeNanosUnsafe() - beganAt) / 1_000_000n)
  const outcome: Outcome = { ...outcomeOf({ companyId, table }, state, error, false, durationMs), lane: "records" }
  if (outcome.runId !== null) yield* RunLedger.close(outcome.runId, outcome)
  yield* (yield* Progress).ended(outcome)
  return outcome
})
