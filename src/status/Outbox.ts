/**
 * The state of the outbox, for people: pushes, rows, open requests and rejected rows.
 *
 * Promise: the source is not contacted and nothing changes. Every age is by the warehouse's clock. The pages read only
 * rows that are open, rejected or of the last day, by an index: the cost does not grow with the pushes.
 */
import * as Effect from "effect/Effect"
import {
  type Counts,
  type Difference,
  type Operation,
  type Outcome,
  isInserted,
  outcomes,
  type PushState,
  pushStateOf,
  type RejectedRow,
  type Rows
} from "../outbox/Push.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

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

export const codesStatement = Statement.make({
  name: "count rejected rows of pushes by code",
  params: ["int8[]"],
  columns: { push: "int8?", code: "text", records: "float8" },
  text: `select push_id as push, coalesce(code, 'unknown') as code, count(*)::float8 as records
    from tributary.outbox where state = 'rejected' and push_id = any($1::bigint[])
   group by 1, 2 order by records desc, code`
})

export const insertedCodesStatement = Statement.make({
  name: "count rejected rows of no push by code",
  params: ["text", "text"],
  columns: { code: "text", records: "float8" },
  text: `select coalesce(code, 'unknown') as code, count(*)::float8 as records
    from tributary.outbox where state = 'rejected' and ${isInserted("$1", "$2")} group by 1 order by records desc, code`
})

/** The number of rejected rows by code, the most frequent first. */
export const rejectedBy = (rows: Rows): Sql.Query<ReadonlyArray<RejectedBy>> =>
  "push" in rows
    ? Statement.run(codesStatement, [[rows.push]])
    : Statement.run(insertedCodesStatement, [rows.company, rows.resource])

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
  const codes = yield* Statement.run(codesStatement, [found.map(({ push }) => push)])
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

export const targetStatement = Statement.make({
  name: "find the resource of a push",
  params: ["int8"],
  columns: { company: "text", resource: "text" },
  text: "select company, resource from tributary.pushes where id = $1"
})

/** The company and resource of a push; null when there is no such push. */
export const targetOf = (push: bigint) => Effect.map(Statement.run(targetStatement, [push]), ([row]) => row ?? null)

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

export const openRequestsStatement = Statement.make({
  name: "read open push requests",
  params: ["int4?"],
  columns: {
    ...Statement.columns("text", "company", "resource", "operation"),
    items: "int4",
    ageMs: "float8",
    /** Rounds of retries that ended without an outcome. */
    failures: "int4",
    reason: "text?"
  },
  text: `select company, resource, operation, record_count as items, ${ms("created_at")} as "ageMs",
         failed_attempts as failures, reason
    from tributary.push_requests where state = 'open' order by id limit $1::int`
})
/** A request whose outcome is not known yet. */
export type OpenRequest = Statement.RowOf<typeof openRequestsStatement>

/** The oldest open requests; all of them without a limit. */
export const openRequests = (limit: number | null = null) => Statement.run(openRequestsStatement, [limit])

export const countRequestsStatement = Statement.make({
  name: "count open push requests",
  columns: { requests: "float8" },
  text: "select count(*)::float8 as requests from tributary.push_requests where state = 'open'"
})

/** The number of requests without a known outcome. */
export const countRequests = Effect.map(Statement.run(countRequestsStatement), ([row]) => row!.requests)

export const countPushesStatement = Statement.make({
  name: "count pushes",
  columns: { pushes: "float8" },
  text: "select count(*)::float8 as pushes from tributary.pushes"
})

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
  const [all] = yield* Statement.run(countPushesStatement)
  return { pushes: listed, older: all!.pushes - listed.length, outbox: yield* outbox, calls: open } satisfies Status
})

const rejectedColumns = {
  id: "int8",
  line: "float8?",
  operation: Statement.as<Operation>("text"),
  ...Statement.columns("text?", "externalid", "recordId"),
  code: "text",
  field: "text?",
  reason: "text",
  problems: Statement.as<RejectedRow["problems"]>("json"),
  record: "text"
} as const
const rejectedSql = `select id, line::float8 as line, operation, externalid, record_id as "recordId",
       coalesce(code, 'unknown') as code, field, coalesce(reason, '') as reason, coalesce(problems, '[]') as problems,
       record::text as record
  from tributary.outbox where state = 'rejected'`

export const rejectedOfPush = Statement.make({
  name: "read the rejected rows of a push",
  params: ["int8", "int8", "int8"],
  columns: rejectedColumns,
  text: `${rejectedSql} and push_id = $3 and id > $1 order by id limit $2`
})
export const rejectedInserted = Statement.make({
  name: "read the rejected rows that were inserted",
  params: ["int8", "int8", "text", "text"],
  columns: rejectedColumns,
  text: `${rejectedSql} and ${isInserted("$3", "$4")} and id > $1 order by id limit $2`
})

/** Rejected rows after the one with this number, in the order of their numbers. */
export const rejectedRows = (rows: Rows, after: bigint, limit: number): Sql.Query<ReadonlyArray<RejectedRow>> =>
  "push" in rows
    ? Statement.run(rejectedOfPush, [after, limit, rows.push])
    : Statement.run(rejectedInserted, [after, limit, rows.company, rows.resource])

export const latestRejectedStatement = Statement.make({
  name: "read the inserted rows that were rejected last",
  params: ["int8", "text", "text"],
  columns: rejectedColumns,
  text: `${rejectedSql} and ${isInserted("$2", "$3")} order by resolved_at desc nulls last, id limit $1`
})

/** The rows inserted by SQL that were rejected last. */
export const latestRejectedRows = (company: string, resource: string, limit: number) =>
  Statement.run(latestRejectedStatement, [limit, company, resource])

const differingColumns = {
  line: "float8?",
  ...Statement.columns("text?", "externalid", "recordId"),
  outcome: Statement.as<Outcome>("text?"),
  differences: Statement.as<ReadonlyArray<Difference>>("json?")
} as const
/** A row with other values at the source than were given. */
export type DifferingRow = Statement.RowOf<Statement.Statement<[], typeof differingColumns>>

const differingSql = `select line::float8 as line, externalid, record_id as "recordId", outcome, differences
      from tributary.outbox where state = 'done' and differences is not null`

export const differingOfPush = Statement.make({
  name: "read the differing rows of a push",
  params: ["int8", "int8"],
  columns: differingColumns,
  text: `${differingSql} and push_id = $2 order by id limit $1`
})
export const differingInserted = Statement.make({
  name: "read the differing rows that were inserted",
  params: ["int8", "text", "text"],
  columns: differingColumns,
  text: `${differingSql} and ${isInserted("$2", "$3")} order by id limit $1`
})

/** The first rows with other values at the source. */
export const differingRows = (rows: Rows, limit: number) =>
  "push" in rows
    ? Statement.run(differingOfPush, [limit, rows.push])
    : Statement.run(differingInserted, [limit, rows.company, rows.resource])

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
