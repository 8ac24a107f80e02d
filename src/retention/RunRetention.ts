/** Retention of runs. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { makesFresh, readToEnd } from "../warehouse/RunConditions.ts"
import { batchRows, cutoff } from "./Batches.ts"

/** The number of runs of a resource and lane that stay whatever their age. */
const runsKept = 20

/**
 * For each resource and lane with a run that may be deleted: the ids below which runs may be deleted. New runs only raise
 * them, so that they hold for a whole pass. A lookup for each run would be slow where Postgres estimates wrongly.
 */
export const runsNeededStatement = Statement.make({
  name: "find runs that are kept",
  params: ["timestamptz"],
  columns: {
    ...Statement.columns("text", "company_id", "resource", "lane"),
    ...Statement.columns("text?", "newest", "read_well", "read_whole")
  },
  text: `select company_id::text as company_id, resource, lane,
         max(id) filter (where place = ${runsKept})::text as newest,
         max(id) filter (where ${makesFresh("r")})::text as read_well,
         max(id) filter (where ${readToEnd("r")} and r.kind = 'full')::text as read_whole
    from (select *, row_number() over (partition by company_id, resource, lane order by id desc) as place from tributary.runs) r
   group by company_id, resource, lane having count(*) > ${runsKept} and min(finished_at) < $1::timestamptz`
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

/**
 * Deletes runs that ended longer ago than `retention`. The newest of each resource and lane stay, the last complete ones,
 * and those with open quarantine. Returns their number.
 */
export const remove = Effect.fnUntraced(function* (retention: Duration.Duration) {
  const before = yield* cutoff(retention)
  const needed = JSON.stringify(yield* Statement.run(runsNeededStatement, [before]))
  let [at, id, all] = ["-infinity", "0", 0]
  for (;;) {
    const [batch] = yield* Statement.run(removeRunsStatement, [before, at, id, needed])
    all += batch!.gone
    if (batch!.seen < batchRows || batch!.at === null || batch!.id === null) return all
    ;[at, id] = [batch!.at, batch!.id]
  }
})
