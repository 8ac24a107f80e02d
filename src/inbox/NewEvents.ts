/**
 * A watch for new events in the inbox: one statement for all companies of a process.
 *
 * Promise: a worker is woken as soon as this process has stored an event of its company, and within the interval after
 * another process has. Ids become visible out of order; a look at each interval begins two intervals back. An event that
 * becomes visible even later is found by the watch for pending work (`src/processes/PendingWork.ts`).
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import type { SqlClient } from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"

const newest = control.selectFrom("tributary.inbox").select(({ fn }) => fn.max<bigint | null>("id").as("id"))

const newEvents = (after: bigint) =>
  control
    .selectFrom("tributary.inbox")
    .select(({ fn }) => ["company", fn.max("id").as("id")])
    .where("id", ">", after)
    .groupBy("company")

const intervalDefault = Duration.millis(250)

/** Opens the latch of each company that has new events, for ever. `arrived` opens when this process has stored some. */
export const watch = Effect.fnUntraced(function* (
  arrived: Latch.Latch,
  workers: ReadonlyMap<string, { readonly openUnsafe: () => unknown }>,
  interval: Duration.Duration = intervalDefault
): Effect.fn.Return<never, DatabaseError, SqlClient> {
  const nowMs = yield* MonotonicClock.make
  /** The newest id: at the last look, one interval ago, and two intervals ago. */
  let last = (yield* Query.first(newest))?.id ?? 0n
  let [recent, older] = [last, last]
  let intervalEndsAt = nowMs() + Duration.toMillis(interval)
  for (;;) {
    yield* Effect.timeoutOption(arrived.await, interval)
    yield* arrived.close
    const isIntervalOver = nowMs() >= intervalEndsAt
    const rows = yield* Query.run(newEvents(isIntervalOver ? older : last))
    for (const { company, id } of rows) {
      if (id > last) last = id
      workers.get(company)?.openUnsafe()
    }
    if (!isIntervalOver) continue
    older = recent
    recent = last
    intervalEndsAt = nowMs() + Duration.toMillis(interval)
  }
})
