/**
 * Retention: deletes finished work that is older than the configuration keeps it.
 *
 * Promise: these rows stay whatever their age. Of the runs: the newest of each resource and lane, the last complete ones,
 * running ones, and those with open quarantine. Open quarantine. Rejected records with all records of their push, and
 * unfinished pushes. Nothing of a push goes before the source has forgotten its keys. The current version of a row stays.
 * Each batch is a small transaction, so that no process waits for it, and several processes may run it at once.
 *
 * A record whose outbox row was deleted is new when it is pushed again. The source is then searched before anything is sent
 * (src/outbox/Deduplicate.ts), so that the record is found and not created twice.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { identifier, supersededSuffix } from "../warehouse/Identifier.ts"
import { makesFresh, readToEnd } from "../warehouse/RunConditions.ts"

/** How long finished work is kept. */
export interface RetentionSettings {
  readonly runsMs: number
  readonly quarantineMs: number
  readonly outboxMs: number
}

/** The numbers of deleted rows. */
export type RetentionResult = Readonly<
  Record<"runs" | "quarantine" | "outbox" | "pushes" | "calls" | "samples" | "tasks", number>
>

const everyMs = 60 * 60_000
const batchRows = 5_000
/** The number of runs of a resource and lane that stay whatever their age. */
const runsKept = 20
/** Longer than any source knows a key. */
const keysKnownMs = 2 * 24 * 60 * 60_000
const samplesKeptMs = 25 * 60 * 60_000

export const cutoffStatement = Statement.make({
  name: "read the time of a cutoff",
  params: ["float8"],
  columns: { at: "text" },
  text: "select (tributary.now() - make_interval(secs => $1::float8))::text as at"
})

/** The warehouse's time this long ago, to the microsecond. */
const cutoff = (ms: number): Sql.Query<string> =>
  Effect.map(Statement.run(cutoffStatement, [ms / 1000]), ([row]) => row!.at)

/** Repeats a statement that deletes a batch until it finds no more. Answers the number of deleted rows. */
const batches = Effect.fnUntraced(function* (batch: Sql.Query<ReadonlyArray<unknown>>) {
  let all = 0
  for (;;) {
    const { length } = yield* batch
    all += length
    if (length < batchRows) return all
  }
})

/**
 * For each resource and lane: the run ids below which runs may be deleted. New runs only raise them, so that they hold for
 * a whole pass. A lookup for each run would be slow where Postgres estimates wrongly.
 */
export const runsNeededStatement = Statement.make({
  name: "find runs that are kept",
  columns: {
    ...Statement.columns("text", "company_id", "resource", "lane"),
    ...Statement.columns("text?", "newest", "read_well", "read_whole")
  },
  text: `select company_id::text as company_id, resource, lane,
         max(id) filter (where place = ${runsKept})::text as newest,
         max(id) filter (where ${makesFresh("r")})::text as read_well,
         max(id) filter (where ${readToEnd("r")} and r.kind = 'full')::text as read_whole
    from (select *, row_number() over (partition by company_id, resource, lane order by id desc) as place from tributary.runs) r
   group by company_id, resource, lane`
})

/** Deletes the runs of a batch, from the oldest on, that no rule keeps. */
export const removeRunsStatement = Statement.make({
  name: "delete old runs",
  params: ["timestamptz", "timestamptz", "int8", "text"],
  columns: { seen: "float8", gone: "float8", at: "text?", id: "text?" },
  text: `with old as materialized (
    select r.id, r.finished_at from tributary.runs r
     where r.finished_at < $1::timestamptz and (r.finished_at, r.id) > ($2::timestamptz, $3::bigint)
     order by r.finished_at, r.id limit ${batchRows}),
  gone as (
    delete from tributary.runs r using old, jsonb_to_recordset($4::text::jsonb) as needed(
             company_id bigint, resource text, lane text, newest bigint, read_well bigint, read_whole bigint)
     where r.id = old.id and r.status <> 'running'
       and needed.company_id = r.company_id and needed.resource = r.resource and needed.lane = r.lane
       and r.id < needed.newest and (not (${makesFresh("r")}) or r.id < needed.read_well)
       and (not (${readToEnd("r")} and r.kind = 'full') or r.id < needed.read_whole)
       and not exists (select from tributary.quarantine q where q.run_id = r.id and q.resolved_at is null)
    returning 1)
  select count(*)::float8 as seen, (select count(*) from gone)::float8 as gone,
         max(finished_at)::text as at, (array_agg(id order by finished_at desc, id desc))[1]::text as id from old`
})

const runs = Effect.fnUntraced(function* (settings: RetentionSettings) {
  const before = yield* cutoff(settings.runsMs)
  const needed = JSON.stringify(yield* Statement.run(runsNeededStatement))
  let [at, id, all] = ["-infinity", "0", 0]
  for (;;) {
    const [batch] = yield* Statement.run(removeRunsStatement, [before, at, id, needed])
    all += batch!.gone
    if (batch!.seen < batchRows || batch!.at === null || batch!.id === null) return all
    ;[at, id] = [batch!.at, batch!.id]
  }
})

/** What deletes a batch of rows that ended before a time. */
const deletesOld = { params: ["timestamptz"], columns: { id: "int8" } } as const

export const removeQuarantineStatement = Statement.make({
  ...deletesOld,
  name: "delete old quarantine",
  text: `delete from tributary.quarantine where id = any(array(
    select id from tributary.quarantine where resolved_at < $1::timestamptz
     order by resolved_at limit ${batchRows} for update skip locked)) returning id`
})

/** Pushes that are done with, all of whose records are done. */
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

const pushed = Effect.fnUntraced(function* (settings: RetentionSettings) {
  const before = yield* cutoff(Math.max(settings.outboxMs, keysKnownMs))
  let outbox = yield* batches(Statement.run(removeFreeStatement, [before]))
  let pushes = 0
  for (const { id } of yield* Statement.run(oldPushesStatement, [before])) {
    outbox += yield* batches(Statement.run(removePushedStatement, [before, id]))
    pushes += (yield* Statement.run(removePushStatement, [before, id])).length
  }
  return { outbox, pushes, calls: yield* batches(Statement.run(removeCallsStatement, [before])) }
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

/** Finished backfills without a new request. */
export const removeTasksStatement = Statement.make({
  name: "delete old backfills",
  params: ["timestamptz"],
  columns: { resource: "text" },
  text: `delete from tributary.tasks
   where kind = 'backfill' and finished_at < $1::timestamptz and next_run_at is null and requested_at is null and paused_at is null
     and (lease_expires_at is null or lease_expires_at < tributary.now()) returning resource`
})

/** One pass over everything that is old enough. */
export const pass = Effect.fnUntraced(function* (
  settings: RetentionSettings
): Effect.fn.Return<RetentionResult, SqlError, SqlClient.SqlClient> {
  const quarantine = yield* batches(Statement.run(removeQuarantineStatement, [yield* cutoff(settings.quarantineMs)]))
  const ended = yield* runs(settings)
  const { outbox, pushes, calls } = yield* pushed(settings)
  const samples = yield* batches(Statement.run(removeSamplesStatement, [yield* cutoff(samplesKeptMs)]))
  const tasks = (yield* Statement.run(removeTasksStatement, [yield* cutoff(settings.runsMs)])).length
  return { runs: ended, quarantine, outbox, pushes, calls, samples, tasks }
})

/** Earlier versions of rows. */
export interface HistorySettings {
  /** The dataset of all versions. */
  readonly dataset: string
  /** How long a version is kept after it was replaced; null for ever. */
  readonly historyMs: number | null
}

/** Looks at a batch of versions in the order of their key, and removes those that were replaced long ago. */
const removeVersions = (table: string) => `
  with batch as materialized (
    select "_company_id" as company, "id", "_version" as version, "_valid_to" as ended from ${table}
     where ("_company_id", "id", "_version") > ($2::bigint, $3::bigint, $4::bigint)
     order by "_company_id", "id", "_version" limit ${batchRows}),
  gone as (
    delete from ${table} t using batch b
     where t."_company_id" = b.company and t."id" = b."id" and t."_version" = b.version and b.ended < $1::timestamptz
    returning 1)
  select count(*)::float8 as seen, (select count(*) from gone)::float8 as gone,
         (array_agg(concat_ws(' ', company, "id", version) order by company desc, "id" desc, version desc))[1] as last
    from batch`

export const historyTablesStatement = Statement.make({
  name: "find tables of earlier versions",
  params: ["name", "text"],
  columns: { name: "name" },
  text: `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relkind = 'r' and right(c.relname, length($2)) = $2 order by 1`
})

/**
 * Removes versions that were replaced before the time allowed, of every resource. The current version of a row is in
 * another table and stays, however old it is. Questions about a time before that find nothing, or a later version.
 */
export const passHistory = Effect.fnUntraced(function* ({
  dataset,
  historyMs
}: HistorySettings): Effect.fn.Return<number, SqlError, SqlClient.SqlClient> {
  if (historyMs === null) return 0
  const before = yield* cutoff(historyMs)
  const tables = yield* Statement.run(historyTablesStatement, [dataset, supersededSuffix])
  let all = 0
  for (const { name } of tables) {
    const statement = removeVersions(`${identifier(dataset)}.${identifier(name)}`)
    const least = "-9223372036854775808"
    let after: ReadonlyArray<string> = [least, least, least]
    for (;;) {
      const [batch] = yield* Sql.rows<{ seen: number; gone: number; last: string | null }>(statement, [
        before,
        ...after
      ])
      all += batch!.gone
      if (batch!.seen < batchRows || batch!.last === null) break
      after = batch!.last.split(" ")
    }
  }
  return all
})

/** The history is looked at once in so many passes: it is read as a whole for that. */
const historyEvery = 24

/** Removes what is old enough at once, then every hour, for ever; of the history once a day. */
export const runRetention = Effect.fnUntraced(function* (
  settings: RetentionSettings,
  history: HistorySettings
): Effect.fn.Return<never, SqlError, SqlClient.SqlClient> {
  for (let round = 0; ; round += 1) {
    const { samples: _, ...removed } = yield* pass(settings)
    const deleted = { ...removed, versions: round % historyEvery === 0 ? yield* passHistory(history) : 0 }
    const words = Object.entries(deleted).flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]))
    if (words.length > 0) yield* Effect.logInfo(`removed what was old: ${words.join(", ")}`)
    yield* Effect.sleep(everyMs)
  }
})
