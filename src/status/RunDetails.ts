/** The read models of one run and of one resource: phases, changes and charts. Each reads a bounded number of rows. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { SqlClient } from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { RunPhases } from "../sync/RunPhases.ts"
import { ofLastHours } from "./Activity.ts"
import type { Run } from "./Runs.ts"

const decodePhases = Schema.decodeUnknownOption(RunPhases)

/** The phases of a run; null where none are stored, or a newer program stored others. */
export const readPhases = (id: bigint) =>
  Effect.map(Query.first(control.selectFrom("tributary.runs").select("phases").where("id", "=", id)), (row) =>
    Option.getOrNull(decodePhases(row?.phases))
  )

export const neighboursStatement = Statement.make({
  name: "look for the runs before and after a run",
  params: ["int8", "text", "int8"],
  columns: Statement.columns("int8?", "before", "after"),
  text: `select (select max(id) from tributary.runs where company_id = $1 and resource = $2 and id < $3) as before,
         (select min(id) from tributary.runs where company_id = $1 and resource = $2 and id > $3) as after`
})

/** The runs of the same resource before and after a run; null where there is none. */
export const readNeighbours = ({ companyId, resource, id }: ResourceOfCompany & { readonly id: bigint }) =>
  Effect.map(Statement.run(neighboursStatement, [companyId, resource, id]), ([row]) => row!)

// -------------------------------------------------------------------------------------------------------------- events

/** Events of a run that a page shows. */
export const eventsShown = 10
/** How many events of the company or time are searched for those of a run. */
const eventsSearched = 20_000

const eventOf = `id, event_id as "eventId", event_type as "eventType", resource, record_id as "recordId", state, run_id`

export const eventsStatement = Statement.make({
  name: "find the events of a run",
  params: ["int8", "text", "timestamptz", "timestamptz", "int4"],
  columns: {
    id: "int8",
    ...Statement.columns("text", "eventId", "eventType"),
    ...Statement.columns("text?", "resource", "recordId"),
    state: Statement.as<"pending" | "done" | "dead_letter" | "skipped">("text")
  },
  // Two searches, each in the order of an index: dead letters of the company, and events that were resolved meanwhile.
  text: `select id, "eventId", "eventType", resource, "recordId", state from (
           (select ${eventOf} from tributary.inbox where company = $2 and state = 'dead_letter'
             order by company desc, id desc limit ${eventsSearched})
           union all
           (select ${eventOf} from tributary.inbox
             where state in ('done', 'skipped') and resolved_at between $3 and $4 limit ${eventsSearched})) e
          where run_id = $1 order by state <> 'dead_letter', id desc limit $5::int`
})
export type RunEvent = Statement.RowOf<typeof eventsStatement>

/** The events that name a run, dead letters first, at most `max`; none for a company without a stored name. */
export const readEvents = (
  { id, company, beganAt, endedAt }: Pick<Run, "id" | "company" | "beganAt" | "endedAt">,
  now: Date,
  max: number
) =>
  company === null ? Effect.succeed([]) : Statement.run(eventsStatement, [id, company, beganAt, endedAt ?? now, max])

// ------------------------------------------------------------------------------------------------------------- changes

/** Batches of the feed that a search reads at most. */
const batchesMax = 5_000
/** Changes that a page shows. */
export const changesShown = 10
/** Changes that are read: other lanes may land between those of a run. */
const changesMax = 100

/** Batches have rising ids and times, so that a binary search over the key finds the first one of a time. */
export const firstOfRunStatement = Statement.make({
  name: "look for the changes of a run",
  params: ["int8", "text", "timestamptz", "timestamptz", "int8"],
  columns: { position: "int8" },
  text: `with recursive search(low, high) as (
    select min(id), max(id) + 1 from tributary.change_batches
    union all
    select case when probe.landed_at < $3 then middle.id + 1 else s.low end, case when probe.landed_at < $3 then s.high else middle.id end
      from search s cross join lateral (select (s.low + s.high) / 2 as id) middle
           cross join lateral (select b.landed_at from tributary.change_batches b where b.id >= middle.id order by b.id limit 1) probe
     where s.low < s.high)
  select b.last_position - b.changes as position
    from (select w.* from tributary.change_batches w
           where w.id >= (select low from search where low >= high) order by w.id limit $5) b
   where b.company_id = $1 and b.resource = $2 and b.last_position is not null and b.landed_at <= $4 and b.kind = 'versions'
     and to_regclass(b.history) is not null
   order by b.last_position limit 1`
})

export const newestOfResourceStatement = Statement.make({
  name: "look for the newest changes of a resource",
  params: ["int8", "text", "int8", "int8"],
  columns: { position: "int8?" },
  text: `select min(greatest(b.last_position - b.changes, b.last_position - ($4 - b.later))) as position
    from (select w.last_position, w.changes, sum(w.changes) over (order by w.last_position desc) - w.changes as later
            from (select * from tributary.change_batches where last_position is not null order by last_position desc limit $3) w
           where w.company_id = $1 and w.resource = $2 and to_regclass(w.history) is not null) b
   where b.later < $4`
})

const readAfter = (
  position: bigint | null | undefined,
  { companyId, resource }: ResourceOfCompany,
  max: number
): Effect.Effect<ReadonlyArray<ChangeFeed.Change>, DatabaseError, SqlClient> =>
  position === null || position === undefined
    ? Effect.succeed([])
    : Effect.catchTags(
        ChangeFeed.readAfter({ number: position, token: null }, { companyId, resources: [resource] }, max),
        { PositionLost: () => Effect.succeed([]), ViewDropped: () => Effect.succeed([]) }
      )

export type { Change } from "../changes/ChangeFeed.ts"

export interface ResourceOfCompany {
  readonly companyId: bigint
  readonly resource: string
}

/** The first changes of a run that the feed still has, at most {@link changesShown}. */
export const changesOfRun = Effect.fnUntraced(function* (
  run: ResourceOfCompany & { readonly id: bigint; readonly beganAt: Date; readonly endedAt: Date | null },
  now: Date
) {
  const until = new Date((run.endedAt ?? now).getTime() + 1_000)
  const [first] = yield* Statement.run(firstOfRunStatement, [
    run.companyId,
    run.resource,
    run.beganAt,
    until,
    batchesMax
  ])
  const changes = yield* readAfter(first?.position, run, changesMax)
  return changes.filter(({ runId }) => runId === run.id).slice(0, changesShown)
})

/** The newest changes of a resource, newest first, at most {@link changesShown}; of the newest batches of all resources. */
export const newestChanges = Effect.fnUntraced(function* (of: ResourceOfCompany) {
  const [newest] = yield* Statement.run(newestOfResourceStatement, [
    of.companyId,
    of.resource,
    batchesMax,
    changesShown
  ])
  return (yield* readAfter(newest?.position, of, changesShown)).toReversed()
})

// ------------------------------------------------------------------------------------------------------------ activity

/** Hours that a chart shows. */
export const hoursShown = 48

export const hoursStatement = Statement.make({
  name: "read the activity of a resource by hour",
  params: ["text", "text"],
  columns: {
    at: "timestamptz",
    ...Statement.columns("float8", "runs", "inserted", "updated", "deleted", "gaps"),
    ...Statement.columns("float8?", "rows", "ageMs", "lateness")
  },
  text: `select at, runs::float8 as runs, inserted::float8 as inserted, updated::float8 as updated, deleted::float8 as deleted,
         gaps::float8 as gaps, rows::float8 as rows, age_ms_max::float8 as "ageMs", lateness_max as lateness
    from tributary.activity
   where resolution = 'hour' and ${ofLastHours(hoursShown)}
     and coalesce(company, '') = $1 and coalesce(resource, '') = $2 order by at`
})
/** The activity of one resource in one hour. */
export type ResourceHour = Statement.RowOf<typeof hoursStatement>

/** The last {@link hoursShown} hours, oldest first; hours without data are absent. */
export const readHours = ({ company, resource }: { readonly company: string; readonly resource: string }) =>
  Statement.run(hoursStatement, [company, resource])

// -------------------------------------------------------------------------------------------------------------- fields

/** Fields that the source sent and the catalogue does not have. */
export const readUnknownFields = ({ companyId, resource }: ResourceOfCompany) =>
  Query.run(
    control
      .selectFrom("tributary.unknown_fields")
      .select(["field", "first_seen_at as firstSeenAt", "last_seen_at as lastSeenAt"])
      .select(["sample_types as types", "promoted_at as promotedAt"])
      .select((of) => of.cast<number>(of("times", "+", of.ref("type_mismatches")), "float8").as("times"))
      .where((is) => is.and({ company_id: companyId, resource }))
      .orderBy("field")
      .limit(200)
  )
export type UnknownField = Effect.Success<ReturnType<typeof readUnknownFields>>[number]

export const columnsStatement = Statement.make({
  name: "read the columns of a resource",
  params: ["name", "name"],
  columns: { name: "name", type: "text", nullShare: "float8?" },
  text: `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
         s.null_frac::float8 as "nullShare"
    from pg_attribute a
    left join pg_stats s on s.schemaname = $1 and s.tablename = $2 and s.attname = a.attname
   where a.attrelid = to_regclass(format('%I.%I', $1::name, $2::name)) and a.attnum > 0 and not a.attisdropped
     and left(a.attname, 1) <> '_' order by a.attnum`
})

/**
 * The columns of a table without those of the engine. The share of null values is an estimate of Postgres over all
 * companies; null before the first statistics.
 */
export const readColumns = (schema: string, table: string) => Statement.run(columnsStatement, [schema, table])
export type ResourceColumn = Statement.RowOf<typeof columnsStatement>
