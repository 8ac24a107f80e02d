/**
 * Retention: deletes finished work that is older than the configuration keeps it.
 *
 * Promise: these rows stay whatever their age. Of the runs: the newest of each resource and lane, the last complete ones,
 * running ones, and those with open quarantine. Open quarantine. Rejected records with all records of their push, and
 * unfinished pushes. Current violations. No row of a push is deleted before the source has forgotten its keys. Pending events and open gaps. The
 * current version of a row. Each batch is a small transaction, so that no process waits for it, and several processes may
 * run it at once.
 *
 * A record whose outbox row was deleted is new when it is pushed again. The source is then searched before anything is sent
 * (src/outbox/Deduplicate.ts), so that the record is found and not created twice.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { batches, batchRows, cutoff, deletesOld } from "./Batches.ts"
import * as AlertRetention from "./AlertRetention.ts"
import * as HistoryRetention from "./HistoryRetention.ts"
import * as InboxRetention from "./InboxRetention.ts"
import * as OutboxRetention from "./OutboxRetention.ts"
import * as RunRetention from "./RunRetention.ts"
import { plural } from "../text/Count.ts"

/** How long finished work is kept. */
export interface RetentionSettings {
  readonly runs: Duration.Duration
  readonly quarantine: Duration.Duration
  readonly outbox: Duration.Duration
  /** Processed events. */
  readonly events: Duration.Duration
}

const interval = Duration.hours(1)
const sampleRetention = Duration.hours(25)

export const removeQuarantineStatement = Statement.make({
  ...deletesOld,
  name: "delete old quarantine",
  text: `delete from tributary.quarantine where id = any(array(
    select id from tributary.quarantine where resolved_at < $1::timestamptz
     order by resolved_at limit ${batchRows} for update skip locked)) returning id`
})

export const removeSamplesStatement = Statement.make({
  name: "delete old samples of budgets",
  params: ["timestamptz"],
  columns: { at: "timestamptz" },
  text: `delete from tributary.budget_usage s using (
    select o.fingerprint, o.at from tributary.budgets b cross join lateral (
      select fingerprint, at from tributary.budget_usage
       where fingerprint = b.fingerprint and at < $1::timestamptz order by at limit ${batchRows}) o
     limit ${batchRows}) old
   where s.fingerprint = old.fingerprint and s.at = old.at returning s.at`
})

export const removeViolationsStatement = Statement.make({
  ...deletesOld,
  name: "delete old violations",
  text: `delete from tributary.violations where id = any(array(
    select id from tributary.violations where ended_at < $1::timestamptz
     order by ended_at limit ${batchRows} for update skip locked)) returning id`
})

/** Finished backfills without a new request. */
export const removeTasksStatement = Statement.make({
  name: "delete old backfills",
  params: ["timestamptz"],
  columns: { resource: "text" },
  text: `delete from tributary.tasks
   where kind = 'backfill' and finished_at < $1::timestamptz and next_run_at is null and requested_at is null and paused_at is null
   returning resource`
})

/** One pass that deletes all old rows except the history. Returns the numbers of deleted rows. */
export const pass = Effect.fnUntraced(function* (settings: RetentionSettings) {
  const inbox = yield* InboxRetention.remove({ retention: settings.events })
  const quarantine = yield* batches(Statement.run(removeQuarantineStatement, [yield* cutoff(settings.quarantine)]))
  const runs = yield* RunRetention.remove(settings.runs)
  const pushed = yield* OutboxRetention.remove(settings.outbox)
  const samples = yield* batches(Statement.run(removeSamplesStatement, [yield* cutoff(sampleRetention)]))
  const tasks = (yield* Statement.run(removeTasksStatement, [yield* cutoff(settings.runs)])).length
  const alerts = yield* AlertRetention.remove(settings.runs)
  const violations = yield* batches(Statement.run(removeViolationsStatement, [yield* cutoff(settings.runs)]))
  return { ...inbox, ...pushed, quarantine, runs, samples, tasks, alerts, violations }
})

export interface HistorySettings {
  /** The dataset of all versions. */
  readonly dataset: string
  /** How long a version is kept after it was replaced; null for ever. */
  readonly retention: Duration.Duration | null
}

/** The history is pruned once in this many passes, because that reads all of it. */
const historyEvery = 24

/** Deletes old rows at once, then every hour, for ever; from the history once a day. */
export const runRetention = Effect.fnUntraced(function* (
  settings: RetentionSettings,
  { dataset, retention }: HistorySettings
): Effect.fn.Return<never, DatabaseError, SqlClient.SqlClient> {
  let round = 0
  const remove = Effect.gen(function* () {
    const { samples: _, processes: __, dead, ...removed } = yield* pass(settings)
    const versions = round % historyEvery === 0 ? yield* HistoryRetention.remove(dataset, retention) : 0
    const deleted = { ...removed, versions }
    const words = Object.entries(deleted).flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]))
    if (words.length > 0) yield* Effect.logInfo(`removed old rows: ${words.join(", ")}`)
    if (dead > 0) {
      yield* Effect.logWarning(
        `removed ${plural(dead, "dead letter")}, which cannot be replayed any longer: older than ${InboxRetention.deadDays} days, or beyond the limit`
      )
    }
    round += 1
  })
  return yield* Effect.forever(Effect.andThen(remove, Effect.sleep(interval)))
})
