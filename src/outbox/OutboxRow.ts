/**
 * Rows of the outbox, as a push reads them.
 *
 * Promise: a row carries the body byte for byte, so that a request is built from what was validated and nothing else.
 */
import * as Effect from "effect/Effect"
import type { QueryResultRow } from "pg"
import type { ResourceLock } from "../land/ResourceLock.ts"
import type { Operation } from "./Push.ts"

/** Runs a statement in a transaction under the fence. */
export type RunSql = ResourceLock["run"]

/** The source's values when a change was first compared with the record, by field. */
export type ExpectedValues = Readonly<Record<string, string | null>>

/** A record to be written. */
export interface OutboxRow {
  readonly id: bigint
  readonly operation: Operation
  readonly externalid: string | null
  readonly recordId: string | null
  /** The body, byte for byte. */
  readonly text: string
  /** Whether it is in the scope of the session; false for a blocker and for a row of an open request. */
  readonly isOwn: boolean
  /** Its index in the request; null while it is in none. */
  readonly requestIndex: number | null
  readonly attempts: number
  readonly conflictRetries: number
  readonly expectedValues: ExpectedValues | null
}

/** The rows of one push, or those that belong to none (null). */
export interface OutboxScope {
  readonly company: string
  readonly resource: string
  readonly push: bigint | null
  /** Rows outside the scope that must be sent before rows of the scope. */
  readonly blockers: ReadonlyArray<bigint>
}

/** A row as {@link rowColumns} select it. */
export interface SelectedRow extends QueryResultRow {
  readonly id: bigint
  readonly operation: Operation
  readonly externalid: string | null
  readonly record_id: string | null
  readonly record: string
  readonly own: boolean
  readonly request_index: number | null
  readonly attempts: number
  readonly conflict_retries: number
  readonly expected_values: ExpectedValues | null
}

/** The columns of a row of `o`; `$3` is the push. */
export const rowColumns =
  "o.id, o.operation, o.externalid, o.record_id, o.record::text as record, o.push_id is not distinct from $3::bigint as own, " +
  "o.request_index, o.attempts, o.conflict_retries, o.expected_values"

export const rowOf = (row: SelectedRow): OutboxRow => ({
  id: row.id,
  operation: row.operation,
  externalid: row.externalid,
  recordId: row.record_id,
  text: row.record,
  isOwn: row.own,
  requestIndex: row.request_index,
  attempts: row.attempts,
  conflictRetries: row.conflict_retries,
  expectedValues: row.expected_values
})

/** Runs a statement that selects {@link rowColumns}. */
export const selectRows = (run: RunSql, operation: string, sql: string, values: ReadonlyArray<unknown>) =>
  Effect.map(run<SelectedRow>(operation, sql, values), ({ rows }) => rows.map(rowOf))
