/**
 * Validation of rows that were inserted by SQL.
 *
 * Promise: no row is sent before it was validated: it gets the bytes that will be sent, or is rejected with every
 * problem.
 */
import * as Effect from "effect/Effect"
import type { Resource } from "../catalogue/Resource.ts"
import { protectPushed } from "../connector/ProtectedConnector.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { addUpdates } from "./OutboxCounts.ts"
import * as Statement from "../postgres/Statement.ts"
import { type OutboxRow, rowColumns, rowsOf, type RunSql, selectedColumns } from "./OutboxRow.ts"
import { parametersOf, pending, scopeParams } from "./OutboxStore.ts"
import type { Operation, Problem } from "./Push.ts"
import { type PushSession, type PushSessionError, scopeOf, transaction } from "./PushSession.ts"
import { rejected, resolveRows, type RowUpdate } from "./RowResolution.ts"
import { isInvalid, isSupported, makeValidator, type Validator } from "./Validate.ts"
import type { IdentifiedRecord, ValidationResult } from "./ValidateRecord.ts"

const rowsPerTransaction = 1_000

type Validators = (operation: Operation) => Validator | Problem

export const unvalidatedStatement = Statement.make({
  name: "find unvalidated rows of",
  params: [...scopeParams, "int8"],
  columns: rowColumns,
  text: `select ${selectedColumns} from tributary.outbox o where ${pending} and not o.validated and o.id <= $5
   order by o.id limit ${rowsPerTransaction} for update of o`
})

export const saveValidStatement = Statement.make({
  name: "save the valid rows of",
  params: ["text"],
  text: `update tributary.outbox o set validated = true, record = v.text::json, record_id = coalesce(v.record_id, o.record_id),
         externalid = case when o.operation = 'create' then o.externalid else v.externalid end
    from jsonb_to_recordset($1::text::jsonb) as v(id bigint, text text, record_id text, externalid text) where o.id = v.id`
})

const withheld: Problem = { line: null, field: null, message: "has a field with a privacy rule" }

/** Validates a record. Where it has fields with a privacy rule, it is refused, and no problem quotes a value of them. */
const validate = (
  validator: Validator,
  { protection }: Resource,
  text: string,
  beside: IdentifiedRecord
): ValidationResult => {
  const kept = protection === null ? text : protectPushed(protection, text)
  const result = validator.validateJson(kept, beside)
  return kept === text || isInvalid(result) ? result : [withheld]
}

/** Saves the bytes of valid rows, rejects the others, and returns those that were rejected. */
const saveValidation = Effect.fnUntraced(function* (
  run: RunSql,
  resource: Resource,
  rows: ReadonlyArray<OutboxRow>,
  validators: Validators
): Effect.fn.Return<ReadonlyArray<RowUpdate>, DatabaseError> {
  if (rows.length === 0) return []
  const invalid: Array<RowUpdate> = []
  const valid: Array<Readonly<Record<"id" | "text", string> & Record<"record_id" | "externalid", string | null>>> = []
  for (const row of rows) {
    const { externalid, recordId } = row
    const validator = validators(row.operation)
    const result = isSupported(validator)
      ? validate(validator, resource, row.text, { externalid, recordId })
      : [validator]
    if (isInvalid(result)) {
      const [first] = result
      const resolution = rejected("invalid", first?.field ?? null, first?.message ?? "the record is invalid")
      const problems = result.map(({ field, message }) => ({ field, message }))
      invalid.push({ row, requestId: null, resolution: { ...resolution, problems } })
    } else {
      valid.push({
        id: String(row.id),
        text: result.text,
        record_id: result.recordId,
        externalid: result.externalid
      })
    }
  }
  yield* rowsOf(run, saveValidStatement, [JSON.stringify(valid)])
  return yield* resolveRows(run, resource, invalid)
})

/** Validates the pending rows up to this one. */
export const validateRows = Effect.fnUntraced(function* (
  session: PushSession,
  through: bigint
): Effect.fn.Return<void, PushSessionError> {
  const { progress, table } = session
  const known = new Map<Operation, Validator | Problem>()
  const validators: Validators = (operation) => {
    const validator = known.get(operation) ?? makeValidator(table.resource, operation)
    known.set(operation, validator)
    return validator
  }
  for (;;) {
    const { rows, invalid } = yield* transaction(session, (run) =>
      Effect.gen(function* () {
        const rows = yield* rowsOf(run, unvalidatedStatement, [...parametersOf(scopeOf(session)), through])
        return { rows, invalid: yield* saveValidation(run, table.resource, rows, validators) }
      })
    )
    progress.counts = addUpdates(progress.counts, invalid)
    progress.resolved += rows.length
    if (rows.length < rowsPerTransaction) return
  }
})
