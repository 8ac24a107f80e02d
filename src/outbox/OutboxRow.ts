/**
 * Rows of the outbox, as a push reads them.
 *
 * Promise: a row carries the body byte for byte, so that a request is built from what was validated and nothing else.
 */
import * as Effect from "effect/Effect"
import type { ResourceLock } from "../land/ResourceLock.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Operation } from "./Push.ts"

/** Runs a statement in a transaction under the fence. */
export type RunSql = ResourceLock["run"]

/** The source's values when a change was first compared with the record, by field. */
export type ExpectedValues = Readonly<Record<string, string | null>>

/** The columns that {@link selectedColumns} selects. */
export const rowColumns = {
  id: "int8",
  operation: Statement.as<Operation>("text"),
  externalid: "text?",
  recordId: "text?",
  /** The body, byte for byte. */
  text: "text",
  /** Whether it is in the scope of the session; false for a blocker and for a row of an open request. */
  isOwn: "bool",
  /** Its index in the request; null while it is in none. */
  requestIndex: "int4?",
  attempts: "int4",
  conflictRetries: "int4",
  expectedValues: Statement.as<ExpectedValues | null>("json?")
} as const

/** The columns of a row of `o`; `$3` is the push. */
export const selectedColumns = `o.id, o.operation, o.externalid, o.record_id as "recordId", o.record::text as text,
       o.push_id is not distinct from $3::bigint as "isOwn", o.request_index as "requestIndex", o.attempts,
       o.conflict_retries as "conflictRetries", o.expected_values as "expectedValues"`

/** A record to be written. */
export type OutboxRow = Statement.RowOf<Statement.Statement<readonly [], typeof rowColumns>>

/** The rows of one push, or those that belong to none (null). */
export interface OutboxScope {
  readonly company: string
  readonly resource: string
  readonly push: bigint | null
  /** Rows outside the scope that must be sent before rows of the scope. */
  readonly blockers: ReadonlyArray<bigint>
}

/** The rows of a named statement. */
export const rowsOf = <P extends ReadonlyArray<Statement.Type>, C extends Statement.Columns>(
  run: RunSql,
  { name, text }: Statement.Statement<P, C>,
  values: Statement.Values<P>
) => Effect.map(run<Statement.RowOf<Statement.Statement<P, C>>>(name, text, values), ({ rows }) => rows)
