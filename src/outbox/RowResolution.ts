/**
 * Resolutions of rows of the outbox.
 *
 * Promise: a row leaves `pending` and `in_flight` by a {@link RowResolution} only. A resolution changes no row that has
 * left the state in which it was resolved. A row that is done or rejected holds no value that a privacy rule leaves out.
 */
import * as Effect from "effect/Effect"
import type { Protection } from "../catalogue/Protection.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { FetchedRecord } from "../connector/Connector.ts"
import { protectPushed } from "../connector/ProtectedConnector.ts"
import type { WriteRejected } from "../connector/WriteResult.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { sanitizeText } from "../postgres/Text.ts"
import * as Statement from "../postgres/Statement.ts"
import { type OutboxRow, rowsOf, type RunSql } from "./OutboxRow.ts"
import { stateIs } from "./OutboxStore.ts"
import type { Difference, Outcome, Problem } from "./Push.ts"

export interface DoneResolution {
  readonly state: "done"
  readonly outcome: Outcome
  readonly recordId: string | null
  readonly differences: ReadonlyArray<Difference>
}

export interface RejectedResolution {
  readonly state: "rejected"
  readonly code: string
  readonly field: string | null
  readonly reason: string
  readonly problems: ReadonlyArray<Pick<Problem, "field" | "message">>
  /** Added to the attempts of the row. */
  readonly attempts?: number
}

/** The row is sent again, in another request. */
export interface PendingResolution {
  readonly state: "pending"
  readonly reason: string | null
  /** Added to the attempts of the row. */
  readonly attempts?: number
  /** Added to the conflict retries of the row. */
  readonly conflictRetries?: number
  /** Whether a read has shown that the source does not have the record. */
  readonly isAbsent?: boolean
}

export type RowResolution = DoneResolution | RejectedResolution | PendingResolution

export interface ResolvedRow {
  readonly row: OutboxRow
  readonly resolution: RowResolution
  /** The readings from the source by which it was resolved. */
  readonly readings?: ReadonlyArray<FetchedRecord>
}

/** A resolution of a row of a request, or of a pending row (null). */
export interface RowUpdate extends ResolvedRow {
  readonly requestId: bigint | null
}

/** The source's answer for a record that it did not write. */
export type Rejection = Pick<WriteRejected, "kind" | "code" | "field" | "detail" | "problems">

export const done = (
  outcome: Outcome,
  recordId: string | null,
  differences: ReadonlyArray<Difference> = []
): DoneResolution => ({ state: "done", outcome, recordId, differences })

export const rejected = (code: string, field: string | null, reason: string): RejectedResolution => ({
  state: "rejected",
  code,
  field,
  reason,
  problems: []
})

export const rejectedBySource = ({ code, field, detail, problems }: Rejection): RejectedResolution => ({
  ...rejected(code, field, detail),
  problems: problems.map((problem) => ({ field: problem.field, message: problem.message }))
})

const reasonLengthMax = 1_000

/** A replacer of `JSON.stringify`: a message of the source may hold characters that a text of Postgres cannot. */
export const sanitizeStrings = (_: string, value: unknown) => (typeof value === "string" ? sanitizeText(value) : value)

/** What is kept of the record under the privacy rules of its resource, once no request will send it; null: all of it. */
const keptOf = ({ row, resolution }: RowUpdate, protection: Protection | null): string | null => {
  if (protection === null || resolution.state === "pending") return null
  const kept = protectPushed(protection, row.text)
  return kept === row.text ? null : kept
}

const parameterOf = (update: RowUpdate, protection: Protection | null) => {
  const { row, resolution, requestId } = update
  const same = {
    id: String(row.id),
    state: resolution.state,
    kept: keptOf(update, protection),
    ...(requestId === null ? { text: row.text } : { request_id: String(requestId) })
  }
  switch (resolution.state) {
    case "done": {
      const { outcome, recordId, differences } = resolution
      return { ...same, outcome, record_id: recordId, differences: differences.length === 0 ? null : differences }
    }
    case "rejected": {
      const { code, field, reason, problems, attempts = 0 } = resolution
      return { ...same, code, field, reason, problems: problems.length === 0 ? null : problems, attempts }
    }
    case "pending": {
      const { reason, attempts = 0, conflictRetries = 0, isAbsent = false } = resolution
      return { ...same, reason, attempts, conflict_retries: conflictRetries, absent: isAbsent }
    }
  }
}

export const resolveStatement = Statement.make({
  name: "resolve rows of",
  params: ["text"],
  columns: { id: "int8" },
  text: `update tributary.outbox o set
     state = v.state, outcome = v.outcome, record_id = coalesce(v.record_id, o.record_id),
     attempts = o.attempts + coalesce(v.attempts, 0),
     conflict_retries = o.conflict_retries + coalesce(v.conflict_retries, 0),
     absence_confirmed_at = case when v.absent then tributary.now() else o.absence_confirmed_at end,
     request_id = case when v.state = 'pending' then null else o.request_id end,
     request_index = case when v.state = 'pending' then null else o.request_index end,
     code = v.code, field = v.field, reason = left(v.reason, ${reasonLengthMax}), problems = v.problems,
     differences = v.differences, record = coalesce(v.kept::json, o.record),
     expected_values = case when v.kept is null then o.expected_values end,
     resolved_at = case when v.state = 'pending' then null else tributary.now() end
   from jsonb_to_recordset($1::text::jsonb) as v(id bigint, request_id bigint, state text, text text, outcome text,
     record_id text, attempts integer, conflict_retries integer, absent boolean, code text, field text, reason text,
     problems json, differences json, kept text)
   where o.id = v.id and o.request_id is not distinct from v.request_id
     and ${stateIs("case when v.request_id is null then 'pending' else 'in_flight' end")}
     and (v.text is null or v.text = o.record::text)
   returning o.id`
})

/** Writes resolutions, and returns those that took effect. */
export const resolveRows = Effect.fnUntraced(function* (
  run: RunSql,
  { protection }: Pick<Resource, "protection">,
  updates: ReadonlyArray<RowUpdate>
): Effect.fn.Return<ReadonlyArray<RowUpdate>, DatabaseError> {
  if (updates.length === 0) return []
  const rows = yield* rowsOf(run, resolveStatement, [
    JSON.stringify(
      updates.map((update) => parameterOf(update, protection)),
      sanitizeStrings
    )
  ])
  const ids = new Set(rows.map(({ id }) => id))
  return updates.filter(({ row }) => ids.has(row.id))
})
