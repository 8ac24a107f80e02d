/**
 * Pushing of creates.
 *
 * Promise: requests are stored while others are in flight. A create is in one request at a time. It is sent when no
 * earlier row of its record is open and its record is assumed new.
 */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { isAssumedNew } from "./AssumedNew.ts"
import type { SelectRequests } from "./Commit.ts"
import { completeRequest } from "./CompleteRequest.ts"
import { storeNextRequest } from "./GroupCommit.ts"
import * as Statement from "../postgres/Statement.ts"
import { type OutboxRow, type OutboxScope, rowColumns, rowsOf, type RunSql, selectedColumns } from "./OutboxRow.ts"
import { blocker, parametersOf, pending, scopeParams } from "./OutboxStore.ts"
import { isStopped, type PushSession, type PushSessionError, scopeOf } from "./PushSession.ts"
import { createRequestOf } from "./RequestStore.ts"

/** Approximate maximum size of a request's body. */
const bytesMax = 4_000_000

interface CreateLimits {
  /** Records of one request. */
  readonly recordsMax: number
  readonly requestsMax: number
}

/** Rows of each request, and the last row that was looked at. */
interface SelectedCreates {
  readonly requests: ReadonlyArray<ReadonlyArray<OutboxRow>>
  readonly after: bigint
}

export const createsStatement = Statement.make({
  name: "select creates of",
  params: [...scopeParams, "int8", "int8", "int8"],
  columns: { ...rowColumns, isReady: "bool" },
  text: `with o as materialized (
    select * from tributary.outbox o
     where ${pending} and o.operation = 'create' and o.validated and o.id > $5 and o.id <= $6
     order by o.id limit $7 for update
  )
  select ${selectedColumns}, ${blocker} is null and ${isAssumedNew} as "isReady" from o order by o.id`
})
type CreateRow = Statement.RowOf<typeof createsStatement>

/** Packs rows that are ready into requests, until a row does not fit into the last of them. */
const pack = (rows: ReadonlyArray<CreateRow>, start: bigint, limits: CreateLimits): SelectedCreates => {
  const requests: Array<Array<OutboxRow>> = []
  let after = start
  let bytes = 0
  for (const { isReady, ...row } of rows) {
    if (isReady) {
      const last = requests.at(-1)
      bytes += row.text.length
      if (last !== undefined && last.length < limits.recordsMax && bytes <= bytesMax) last.push(row)
      else if (requests.length === limits.requestsMax) break
      else {
        requests.push([row])
        bytes = row.text.length
      }
    }
    after = row.id
  }
  return { requests, after }
}

/** Locks the next creates after one row and up to another. */
const selectCreates = Effect.fnUntraced(function* (
  run: RunSql,
  scope: OutboxScope,
  start: bigint,
  through: bigint,
  limits: CreateLimits
): Effect.fn.Return<SelectedCreates, DatabaseError> {
  const rowsMax = limits.recordsMax * limits.requestsMax
  for (let after = start; ;) {
    const rows = yield* rowsOf(run, createsStatement, [...parametersOf(scope), after, through, rowsMax])
    const selected = pack(rows, after, limits)
    if (selected.requests.length > 0 || rows.length < rowsMax) return selected
    after = selected.after
  }
})

/** Pushes the creates up to this row. */
export const pushCreates = Effect.fnUntraced(function* (
  session: PushSession,
  through: bigint
): Effect.fn.Return<void, PushSessionError> {
  let after = -1n
  const select: SelectRequests = (run, requestsMax) =>
    Effect.gen(function* () {
      const { recordsMax, useBatch } = session.state
      const limits = { recordsMax: useBatch ? recordsMax : 1, requestsMax }
      const selected = yield* selectCreates(run, scopeOf(session), after, through, limits)
      after = selected.after
      return selected.requests.map(createRequestOf)
    })
  const worker = Effect.gen(function* () {
    while (!isStopped(session)) {
      const request = yield* storeNextRequest(session, select)
      if (request === null) return
      yield* completeRequest(session, request)
    }
  })
  yield* Effect.all(
    // As many requests are stored and resolved as are in flight.
    Array.from({ length: 2 * session.settings.concurrency }, () => worker),
    { concurrency: "unbounded", discard: true }
  )
})
