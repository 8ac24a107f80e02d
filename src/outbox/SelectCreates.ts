/**
 * The next creates, packed into requests.
 *
 * Promise: a create is selected when no earlier row of its record is open and its record is assumed new.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { isAssumedNew } from "./AssumedNew.ts"
import { type OutboxRow, type OutboxScope, rowColumns, rowOf, type RunSql, type SelectedRow } from "./OutboxRow.ts"
import { blocker, parametersOf, pending } from "./OutboxStore.ts"

export interface CreateLimits {
  /** Records of one request. */
  readonly recordsMax: number
  /** Bytes of one request, about. */
  readonly bytesMax: number
  readonly requestsMax: number
}

/** Rows of each request, and the last row that was looked at. */
export interface SelectedCreates {
  readonly requests: ReadonlyArray<ReadonlyArray<OutboxRow>>
  readonly after: bigint
}

interface CreateRow extends SelectedRow {
  readonly is_ready: boolean
}

/** Packs rows that are ready into requests, until a row does not fit into the last of them. */
const pack = (rows: ReadonlyArray<CreateRow>, start: bigint, limits: CreateLimits): SelectedCreates => {
  const requests: Array<Array<OutboxRow>> = []
  let after = start
  let bytes = 0
  for (const row of rows) {
    if (row.is_ready) {
      const last = requests.at(-1)
      bytes += row.record.length
      if (last !== undefined && last.length < limits.recordsMax && bytes <= limits.bytesMax) last.push(rowOf(row))
      else if (requests.length === limits.requestsMax) break
      else {
        requests.push([rowOf(row)])
        bytes = row.record.length
      }
    }
    after = row.id
  }
  return { requests, after }
}

/** Locks the next creates of the range. */
export const selectCreates = Effect.fnUntraced(function* (
  run: RunSql,
  scope: OutboxScope,
  range: { readonly after: bigint; readonly through: bigint },
  limits: CreateLimits
): Effect.fn.Return<SelectedCreates, DatabaseError> {
  const rowsMax = limits.recordsMax * limits.requestsMax
  for (let { after } = range; ;) {
    const { rows } = yield* run<CreateRow>(
      "take rows of",
      `with o as materialized (
         select * from tributary.outbox o
          where ${pending} and o.operation = 'create' and o.validated and o.id > $5 and o.id <= $6
          order by o.id limit $7 for update
       )
       select ${rowColumns}, ${blocker} is null and ${isAssumedNew} as is_ready from o order by o.id`,
      [...parametersOf(scope), after, range.through, rowsMax]
    )
    const selected = pack(rows, after, limits)
    if (selected.requests.length > 0 || rows.length < rowsMax) return selected
    after = selected.after
  }
})
