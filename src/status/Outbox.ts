/**
 * The state of the outbox, for people: pushes, rows, open requests and rejected rows.
 *
 * Promise: the source is not contacted and nothing changes. Every age is by the warehouse's clock. The pages read only
 * rows that are open, rejected or of the last day, by an index: the cost does not grow with the pushes.
 */
import * as Effect from "effect/Effect"
import { expressionBuilder } from "kysely"
import {
  type Counts,
  type Difference,
  type Operation,
  outcomes,
  type PushState,
  pushStateOf,
  type RejectedRow,
  type Rows
} from "../outbox/Push.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control, type ControlTables } from "../postgres/Tables.ts"

/** The number of rows that were rejected with a code. */
export interface RejectedBy {
  readonly code: string
  readonly records: number
}

export interface Status {
  /** Newest first. */
  readonly pushes: ReadonlyArray<PushStatus>
  /** Pushes that are not listed; all of them are finished. */
  readonly older: number
  /** Rows that were inserted by SQL. */
  readonly outbox: ReadonlyArray<OutboxState>
  readonly calls: ReadonlyArray<OpenRequest>
}

/** Finished pushes that are listed unless pushes are named. */
const finishedShown = 20

const ms = (time: string) => `(extract(epoch from tributary.now() - ${time}) * 1000)::float8`

/** Sums of `amount` of the rows that meet each condition. */
const sumsOf = (amount: string, conditions: Readonly<Record<string, string>>) =>
  Object.entries(conditions)
    .map(([name, where]) => `coalesce(sum(${amount}) filter (where ${where}), 0)::float8 as ${name}`)
    .join(", ")

const byState = { waiting: "state = 'pending'", sending: "state = 'in_flight'", rejected: "state = 'rejected'" }
const byOutcome = Object.fromEntries(outcomes.map((outcome) => [outcome, `state = 'done' and outcome = '${outcome}'`]))
const byAll = { ...byState, ...byOutcome, different: "differences is not null" }
const stateColumns = Statement.columns("float8", "waiting", "sending", "rejected")

const counts = Object.entries(byAll).map(([name, where]) => `'${name}', count(*) filter (where ${where})`)
const selectedCounts = `json_build_object(${counts.join(", ")}) as counts,
  ${ms("min(created_at) filter (where state in ('pending', 'in_flight'))")} as "oldestMs"`
const countColumns = {
  counts: Statement.as<Counts>("json"),
  /** The age of the oldest open row; null when there is none. */
  oldestMs: "float8?"
} as const

const selectedPush = `p.id as push, p.company, p.resource, p.operation, p.source, p.record_count::float8 as records,
  p.duplicates::float8 as known`
const pushColumns = {
  push: "int8",
  ...Statement.columns("text", "company", "resource"),
  operation: Statement.as<Operation>("text"),
  /** The origin of the records, for people. */
  source: "text",
  /** Records of the input; `known` of them belong to an earlier push. */
  records: "float8",
  known: "float8"
} as const

export const pushesStatement = Statement.make({
  name: "read the state of pushes",
  params: ["int8[]"],
  columns: {
    ...pushColumns,
    ageMs: "float8",
    finishedAt: "text?",
    ...countColumns
  },
  text: `select ${selectedPush}, ${ms("p.created_at")} as "ageMs", to_json(p.finished_at) #>> '{}' as "finishedAt", o.*
    from tributary.pushes p
    cross join lateral (select ${selectedCounts} from tributary.outbox where push_id = p.id) o
   where case when cardinality($1::bigint[]) > 0 then p.id = any($1::bigint[])
              else p.finished_at is null
                or p.id in (select push_id from tributary.outbox where state = 'rejected' and push_id is not null)
                or p.id in (select id from tributary.pushes where finished_at is not null
                             order by id desc limit ${finishedShown})
         end
   order by p.id desc`
})

const rejected = control.selectFrom("tributary.outbox").where("state", "=", "rejected")

const isOf = (rows: Rows) => {
  const is = expressionBuilder<ControlTables, "tributary.outbox">()
  return "push" in rows
    ? is("push_id", "=", rows.push)
    : is.and([is("push_id", "is", null), is.and({ company: rows.company, resource: rows.resource })])
}

const unknownCode = "unknown"

/** Rejected rows by code, the most frequent first. */
const byCode = rejected
  .select((of) => [
    of.fn.coalesce("code", of.val(unknownCode)).as("code"),
    of.cast<number>(of.fn.countAll(), "float8").as("records")
  ])
  .groupBy("code")
  .orderBy("records", "desc")
  .orderBy("code")

/** The number of rejected rows by code, the most frequent first. */
export const rejectedBy = (rows: Rows) => Query.run(byCode.where(isOf(rows)))

/** A push and its rows. */
export interface PushStatus extends Statement.RowOf<typeof pushesStatement> {
  readonly state: PushState
  readonly rejectedBy: ReadonlyArray<RejectedBy>
}

/**
 * The pushes with these numbers, newest first. Without numbers: all that are unfinished or have rejected rows, and the
 * newest of the others.
 */
export const pushes = Effect.fn("push.Status.pushes")(function* (numbers: ReadonlyArray<bigint> = []) {
  const found = yield* Statement.run(pushesStatement, [numbers])
  const ids = found.map(({ push }) => push)
  const codes = yield* Query.run(
    byCode.select("push_id as push").groupBy("push_id").where("push_id", "=", Query.anyOf(ids))
  )
  return found.map((row): PushStatus => ({
    ...row,
    state: pushStateOf(row.finishedAt !== null, row.counts.rejected),
    rejectedBy: codes.flatMap(({ push, code, records }) => (push === row.push ? [{ code, records }] : []))
  }))
})

export const summariesStatement = Statement.make({
  name: "read summaries of pushes",
  params: ["int4"],
  columns: { ...pushColumns, createdAt: "timestamptz", finishedAt: "timestamptz?", ...stateColumns },
  text: `with listed as (
    (select id, 0 as rank from tributary.pushes where finished_at is null order by id desc limit $1::int)
    union all
    (select distinct push_id, 1 from tributary.outbox
      where state = 'rejected' and push_id is not null order by push_id desc limit $1::int)
    union all
    (select id, 2 from tributary.pushes order by id desc limit $1::int)
  ), chosen as (select id from listed group by id order by min(rank), id desc limit $1::int)
  select ${selectedPush}, p.created_at as "createdAt", p.finished_at as "finishedAt", o.*
    from chosen join tributary.pushes p using (id)
    cross join lateral (
      select ${sumsOf("1", byState)} from tributary.outbox
       where push_id = p.id and state in ('pending', 'in_flight', 'rejected')) o
   order by p.id desc`
})
/** A push and its rows that are not done. */
export type PushSummary = Statement.RowOf<typeof summariesStatement>

/** Unfinished pushes, pushes with rejected rows, and the newest of the others; newest first. */
export const summaries = (limit: number) => Statement.run(summariesStatement, [limit])

export const outboxStatement = Statement.make({
  name: "read the state of inserted rows",
  columns: {
    company: "text",
    resource: "text",
    ...countColumns,
    rejectedBy: Statement.as<ReadonlyArray<RejectedBy>>("json")
  },
  text: `select o.*, coalesce(r.codes, '[]') as "rejectedBy"
    from (select company, resource, ${selectedCounts} from tributary.outbox where push_id is null group by 1, 2) o
    left join (select company, resource, json_agg(json_build_object('code', outcome, 'records', records)
                                                  order by records desc, outcome) as codes
                 from tributary.outbox_status where state = 'rejected' and is_inserted group by 1, 2) r
      using (company, resource)
   order by company, resource`
})

/** The rows of a resource that were inserted by SQL. */
export type OutboxState = Statement.RowOf<typeof outboxStatement>

/** The rows that were inserted by SQL, by company and resource. */
export const outbox = Statement.run(outboxStatement)

/** The company and resource of a push; null when there is no such push. */
export const targetOf = (push: bigint) =>
  Query.first(control.selectFrom("tributary.pushes").select(["company", "resource"]).where("id", "=", push))

export const insertedStatement = Statement.make({
  name: "read summaries of inserted rows",
  params: ["text?", "int4"],
  columns: {
    company: "text",
    resource: "text",
    /** When the oldest open row was inserted. */
    oldestAt: "timestamptz?",
    ...stateColumns,
    ...Statement.columns("float8", ...outcomes)
  },
  text: `select company, resource, min(oldest_at) filter (where state in ('pending', 'in_flight')) as "oldestAt",
         ${sumsOf("records", { ...byState, ...byOutcome })}
    from tributary.outbox_status where is_inserted and ($1::text is null or company = $1) group by 1, 2
   order by rejected desc, waiting desc, company, resource limit $2::int`
})
/** Rows of a resource that were inserted by SQL: the open and rejected ones, and the outcomes of the last day. */
export type InsertedSummary = Statement.RowOf<typeof insertedStatement>

/** {@link InsertedSummary} of the company, or of all, by resource: those with the most rejected and waiting rows first. */
export const inserted = (company: string | null, rowsMax: number) =>
  Statement.run(insertedStatement, [company, rowsMax])

const openCalls = control.selectFrom("tributary.push_requests").where("state", "=", "open")

/** The oldest open requests; all of them without a limit. */
export const openRequests = (limit: number | null = null) =>
  Query.run(
    openCalls
      .select(["company", "resource", "operation", "record_count as items", "failed_attempts as failures", "reason"])
      .select((of) => Query.ageMs(of.ref("created_at")).as("ageMs"))
      .orderBy("id")
      .$if(limit !== null, (requests) => requests.limit(limit!))
  )
/** A request whose outcome is not known yet; `failures` are rounds of retries that ended without an outcome. */
export type OpenRequest = Effect.Success<ReturnType<typeof openRequests>>[number]

/** The number of requests without a known outcome. */
export const countRequests = Effect.map(
  Query.first(openCalls.select((of) => of.fn.countAll<bigint>().as("requests"))),
  (row) => Number(row!.requests)
)

const countPushes = Query.first(
  control.selectFrom("tributary.pushes").select((of) => of.fn.countAll<bigint>().as("pushes"))
)

/** The whole state, or a push alone with the open requests of its resource. */
export const read = Effect.fn("push.Status.read")(function* (push: bigint | null) {
  const listed = yield* pushes(push === null ? [] : [push])
  const open = yield* openRequests()
  if (push !== null) {
    const calls = open.filter(({ company, resource }) =>
      listed.some((one) => one.company === company && one.resource === resource)
    )
    return { pushes: listed, older: 0, outbox: [], calls } satisfies Status
  }
  const all = yield* countPushes
  return {
    pushes: listed,
    older: Number(all!.pushes) - listed.length,
    outbox: yield* outbox,
    calls: open
  } satisfies Status
})

const rejectedRow = rejected.select((of) => [
  "id",
  of.cast<number | null>("line", "float8").as("line"),
  "operation",
  "externalid",
  "record_id as recordId",
  of.fn.coalesce("code", of.val(unknownCode)).as("code"),
  "field",
  of.fn.coalesce("reason", of.val("")).as("reason"),
  of.fn<RejectedRow["problems"]>("coalesce", ["problems", of.val("[]")]).as("problems"),
  of.cast<string>("record", "text").as("record")
])

/** Rejected rows after the one with this number, in the order of their numbers. */
export const rejectedRows = (rows: Rows, after: bigint, limit: number): Sql.Query<ReadonlyArray<RejectedRow>> =>
  Query.run(rejectedRow.where(isOf(rows)).where("id", ">", after).orderBy("id").limit(limit))

/** The rows inserted by SQL that were rejected last. */
export const latestRejectedRows = (company: string, resource: string, limit: number) =>
  Query.run(
    rejectedRow
      .where(isOf({ company, resource }))
      .orderBy("resolved_at", (order) => order.desc().nullsLast())
      .orderBy("id")
      .limit(limit)
  )

/** The first rows with other values at the source. */
export const differingRows = (rows: Rows, limit: number) =>
  Query.run(
    control
      .selectFrom("tributary.outbox")
      .select((of) => [
        of.cast<number | null>("line", "float8").as("line"),
        "externalid",
        "record_id as recordId",
        "outcome",
        of.ref("differences").$castTo<ReadonlyArray<Difference>>().as("differences")
      ])
      .where((is) => is.and([is("state", "=", "done"), is("differences", "is not", null), isOf(rows)]))
      .orderBy("id")
      .limit(limit)
  )
/** A row with other values at the source than were given. */
export type DifferingRow = Effect.Success<ReturnType<typeof differingRows>>[number]

export const totalStatement = Statement.make({
  name: "count the open and rejected rows of all companies",
  columns: Statement.columns("float8", "waiting", "rejected"),
  text: `select (select count(*) from tributary.outbox where state in ('pending', 'in_flight'))::float8 as waiting,
         (select count(*) from tributary.outbox where state = 'rejected')::float8 as rejected`
})

/** The open and the rejected rows of all companies. */
export const total = Effect.map(Statement.run(totalStatement), ([row]) => row!)

export const openStatement = Statement.make({
  name: "count open and rejected rows",
  params: ["text[]?"],
  columns: { company: "text", ...stateColumns, oldestMs: "float8?" },
  text: `select company, ${sumsOf("records", byState)},
         ${ms("min(oldest_at) filter (where state <> 'rejected')")} as "oldestMs"
    from tributary.outbox_status
   where state <> 'done' and ($1::text[] is null or company = any($1)) group by 1 order by 1`
})
/** The open and rejected rows of a company. */
export type OutboxStatus = Statement.RowOf<typeof openStatement>

/** {@link OutboxStatus} of those of these companies that have open or rejected rows. */
export const openOf = (companies: ReadonlyArray<string> | null) => Statement.run(openStatement, [companies])

/** {@link OutboxStatus} of every company that has open or rejected rows. */
export const open = openOf(null)
