/** Retention of pushes, their records and their requests. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { batches, batchRows, cutoff, deletesOld } from "./Batches.ts"

/** Longer than the lifetime of a key at any source. */
const keyLifetimeMax = Duration.days(2)

/** Old finished pushes whose records are all done. */
export const oldPushesStatement = Statement.make({
  ...deletesOld,
  name: "find old pushes",
  text: `select p.id from tributary.pushes p where p.finished_at < $1::timestamptz and not exists (
      select from tributary.outbox o where o.push_id = p.id and o.state in ('pending', 'in_flight', 'rejected')) order by p.id`
})

export const removePushedStatement = Statement.make({
  name: "delete old records of a push",
  params: ["timestamptz", "int8"],
  columns: { id: "int8" },
  text: `delete from tributary.outbox where id = any(array(
    select o.id from tributary.outbox o join tributary.pushes p on p.id = o.push_id
     where o.push_id = $2::bigint and o.state = 'done' and o.resolved_at < $1::timestamptz and p.finished_at < $1::timestamptz
     limit ${batchRows} for update of o skip locked)) returning id`
})

export const removePushStatement = Statement.make({
  name: "delete an old push",
  params: ["timestamptz", "int8"],
  columns: { id: "int8" },
  text: `delete from tributary.pushes p where p.id = $2::bigint and p.finished_at < $1::timestamptz
     and not exists (select from tributary.outbox o where o.push_id = p.id) returning p.id`
})

export const removeFreeStatement = Statement.make({
  ...deletesOld,
  name: "delete old records without a push",
  text: `delete from tributary.outbox where id = any(array(
    select id from tributary.outbox where push_id is null and state = 'done' and resolved_at < $1::timestamptz
     order by resolved_at limit ${batchRows} for update skip locked)) returning id`
})

/** Requests of rejected records stay with them. */
export const removeCallsStatement = Statement.make({
  ...deletesOld,
  name: "delete old push requests",
  text: `delete from tributary.push_requests where id = any(array(
    select c.id from tributary.push_requests c where c.state <> 'open' and c.closed_at < $1::timestamptz
       and not exists (select from tributary.outbox o where o.request_id = c.id and o.state = 'rejected')
     order by c.closed_at limit ${batchRows} for update skip locked)) returning id`
})

/**
 * Deletes records that were pushed longer ago than `retention`, with their finished pushes and requests. Rejected records
 * stay with all records of their push, and no row of a push is deleted before the source has forgotten its keys.
 */
export const remove = Effect.fnUntraced(function* (retention: Duration.Duration) {
  const before = yield* cutoff(Duration.max(retention, keyLifetimeMax))
  let outbox = yield* batches(Statement.run(removeFreeStatement, [before]))
  let pushes = 0
  for (const { id } of yield* Statement.run(oldPushesStatement, [before])) {
    outbox += yield* batches(Statement.run(removePushedStatement, [before, id]))
    pushes += (yield* Statement.run(removePushStatement, [before, id])).length
  }
  return { outbox, pushes, calls: yield* batches(Statement.run(removeCallsStatement, [before])) }
})
