/** Retention of the inbox: old events, closed delivery gaps and former processes. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { batchRows, cutoff, deletesOld } from "./Batches.ts"

export interface InboxRetentionOptions {
  /** How long resolved events and closed gaps are kept. */
  readonly retention: Duration.Duration
  /** Maximum number of resolved events; default 2,000,000. */
  readonly resolvedMax?: number | undefined
  /** Maximum number of dead letters; default 100,000. */
  readonly deadMax?: number | undefined
}

/** Dead letters are kept longer than the source keeps events that it abandoned (30 days). */
export const deadDays = 90

const isResolved = "state in ('done', 'skipped')"
const isDead = "state = 'dead_letter'"
const count = { columns: { count: "int8" } } as const
const countEvents = (which: string) => `select count(*) as count from tributary.inbox where ${which}`
/** SQL: removes the oldest events that were resolved before $1, $2 at most. */
const removeEvents = (which: string) =>
  `delete from tributary.inbox where id = any(array(
     select id from tributary.inbox where ${which} and resolved_at < $1::timestamptz
      order by resolved_at limit $2 for update skip locked)) returning id`

const removal = { params: ["timestamptz", "int8"], columns: { id: "int8" } } as const
export const resolvedEvents = {
  count: Statement.make({ name: "count resolved events", ...count, text: countEvents(isResolved) }),
  remove: Statement.make({ name: "remove resolved events", ...removal, text: removeEvents(isResolved) })
}
export const deadLetters: typeof resolvedEvents = {
  count: Statement.make({ name: "count dead letters", ...count, text: countEvents(isDead) }),
  remove: Statement.make({ name: "remove dead letters", ...removal, text: removeEvents(isDead) })
}

/** Removes events that are older than `retention`, and the oldest beyond `most`. Returns their number. */
const removeOld = Effect.fnUntraced(function* (
  statements: typeof resolvedEvents,
  retention: Duration.Duration,
  most: number
) {
  const before = yield* cutoff(retention)
  let removed = 0
  for (let last = batchRows; last === batchRows; removed += last) {
    last = (yield* Statement.run(statements.remove, [before, batchRows])).length
  }
  const [counted] = yield* Statement.run(statements.count)
  let excess = Number(counted!.count) - most
  for (let last = 1; excess > 0 && last > 0; excess -= last) {
    last = (yield* Statement.run(statements.remove, ["infinity", Math.min(excess, batchRows)])).length
    removed += last
  }
  return removed
})

export const removeGapsStatement = Statement.make({
  ...deletesOld,
  name: "remove closed delivery gaps",
  // The source's log shows an abandoned event for 30 days. Its gap must be known until then.
  text: `delete from tributary.delivery_gaps where closed_at < $1::timestamptz
            and (events = '{}' or closed_at < tributary.now() - interval '31 days') returning id`
})

export const removeProcessesStatement = Statement.make({
  name: "remove former processes",
  params: ["timestamptz"],
  columns: { process_id: "text" },
  text: `delete from tributary.processes old
          where greatest(stopped_at, heartbeat_at) < $1::timestamptz
            and exists (select from tributary.processes later
                         where later.companies @> old.companies and later.started_at > old.started_at
                           and greatest(later.stopped_at, later.heartbeat_at) > greatest(old.stopped_at, old.heartbeat_at))
         returning process_id`
})

/**
 * Removes old rows, the oldest first. Pending events and open gaps always stay, and so does the last process of each set
 * of companies. A dead letter stays for {@link deadDays}, unless there are too many. A removed event that is delivered
 * again is processed again, which does no harm.
 */
export const remove = Effect.fnUntraced(function* ({
  retention,
  resolvedMax = 2_000_000,
  deadMax = 100_000
}: InboxRetentionOptions) {
  const before = yield* cutoff(retention)
  return {
    events: yield* removeOld(resolvedEvents, retention, resolvedMax),
    dead: yield* removeOld(deadLetters, Duration.max(retention, Duration.days(deadDays)), deadMax),
    gaps: (yield* Statement.run(removeGapsStatement, [before])).length,
    processes: (yield* Statement.run(removeProcessesStatement, [before])).length
  }
})
