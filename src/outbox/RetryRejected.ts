/**
 * Retry of rejected rows, after a person has fixed the cause at the source.
 *
 * Promise: the rows are validated and looked up again, as if they had never been sent. No other row changes.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import { isInserted, type Rows } from "./Push.ts"

/** The same input was given again, and that push is not finished. */
export class PushSuperseded extends Data.TaggedError("PushSuperseded")<{ readonly push: bigint; readonly by: bigint }> {
  override get message(): string {
    return `the input of push ${this.push} is being pushed by push ${this.by}: continue that one first`
  }
}

/** How a person corrects a row that no push inserted. */
export const correctSql = "update tributary.outbox set record = '…' where id = …"

const retrySql = (where: string) => `
  with retried as (
    update tributary.outbox
       set state = 'pending', validated = false, absence_confirmed_at = null, request_id = null, request_index = null,
           attempts = 0, conflict_retries = 0, expected_values = null, code = null, field = null, reason = null,
           problems = null, resolved_at = null
     where state = 'rejected' and ${where} returning 1)
  select count(*)::float8 as rows from retried`

export const retryOfPush = Statement.make({
  name: "retry the rejected rows of a push",
  params: ["int8"],
  columns: { rows: "float8" },
  text: retrySql("push_id = $1")
})
export const retryInserted = Statement.make({
  name: "retry the rejected rows of no push",
  params: ["text", "text"],
  columns: { rows: "float8" },
  text: retrySql(isInserted("$1", "$2"))
})

/** Returns the unfinished push of the same input, if there is one; otherwise reopens the push. */
export const reopenStatement = Statement.make({
  name: "reopen a push",
  params: ["int8"],
  columns: { id: "int8" },
  text: `with successor as (
    select o.id from tributary.pushes p
      join tributary.pushes o using (company, resource, operation, content_hash)
     where p.id = $1 and o.id <> p.id and o.finished_at is null
  ), reopened as (
    update tributary.pushes set finished_at = null where id = $1 and not exists (select from successor)
  ) select id from successor`
})

/** Makes rejected rows pending, and returns how many. Their push is unfinished again. */
export const retryRejected = Effect.fn("push.putBack")(function* (rows: Rows) {
  const [retried] = yield* "push" in rows
    ? Statement.run(retryOfPush, [rows.push])
    : Statement.run(retryInserted, [rows.company, rows.resource])
  const count = retried!.rows
  if (count === 0 || !("push" in rows)) return count
  const { push } = rows
  const [successor] = yield* Statement.run(reopenStatement, [push])
  return successor === undefined ? count : yield* new PushSuperseded({ push, by: successor.id })
}, transaction)
