/**
 * The state of the outbox, for people: pushes, rows, open requests and rejected rows.
 *
 * Promise: the source is not contacted and nothing changes. Every age is by the warehouse's clock. What the pages read
 * is open, rejected or of the last day, and found by an index: it costs little however much was pushed.
 */
import * as Effect from "effect/Effect"
import {
  type Counts,
  type Difference,
  type Operation,
  type Outcome,
  outcomes,
  type RejectedRow,
  type Rows,
  whereOf
} from "../outbox/Push.ts"
import * as Sql from "../postgres/Sql.ts"

/** The number of rows that were rejected with a code. */
export interface RejectedBy {
  readonly code: string
  readonly records: number
}

/** The rows of a push, or the rows of a resource that were inserted by SQL. */
export interface OutboxState {
  readonly company: string
  readonly resource: string
  readonly counts: Counts
  /** The age of the oldest open row; null when there is none. */
  readonly oldestMs: number | null
  readonly refusedBy: ReadonlyArray<RejectedBy>
}

interface Push {
  readonly push: bigint
  readonly company: string
  readonly resource: string
  readonly operation: Operation
  /** Where the records came from, for people. */
  readonly source: string
  /** Records of the input; `known` of them belong to an earlier push. */
  readonly records: number
  readonly known: number
}

export interface PushStatus extends Push, OutboxState {
  readonly state: "finished" | "unfinished"
  readonly ageMs: number
  readonly finishedAt: string | null
}

type OpenCounts = Pick<Counts, "waiting" | "sending" | "refused">

/** A push and its rows that are not done. */
export interface PushSummary extends Push, OpenCounts {
  readonly createdAt: Date
  readonly finishedAt: Date | null
}

/** Rows of a resource that were inserted by SQL: the open and rejected ones, and the outcomes of the last day. */
export interface InsertedSummary extends Omit<Counts, "different"> {
  readonly company: string
  readonly resource: string
  /** When the oldest open row was inserted. */
  readonly oldestAt: Date | null
}

/** A request whose outcome is not known yet. */
export interface OpenRequest {
  readonly company: string
  readonly resource: string
  readonly operation: string
  readonly items: number
  readonly ageMs: number
  /** Rounds of retries that ended without an outcome. */
  readonly failures: number
  readonly reason: string | null
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

/** The open and rejected rows of a company. */
export interface OutboxStatus extends OpenCounts {
  readonly company: string
  readonly oldestMs: number | null
}

/** A row of which the source has other values than were given. */
export interface DifferingRow {
  readonly line: number | null
  readonly externalid: string | null
  readonly recordId: string | null
  readonly outcome: Outcome
  readonly differences: ReadonlyArray<Difference>
}

/** Finished pushes that are listed unless pushes are named. */
const finishedShown = 20

const ms = (time: string) => `(extract(epoch from tributary.now() - ${time}) * 1000)::float8`

/** Sums of `amount` by the columns `state` and `outcome`, under the names of {@link Counts}. */
const sumsOf = (amount: string, names: ReadonlyArray<readonly [string, string]>) =>
  names.map(([name, where]) => `coalesce(sum(${amount}) filter (where ${where}), 0)::float8 as ${name}`).join(", ")

const openStates = [
  ["waiting", "state = 'pending'"],
  ["sending", "state = 'in_flight'"],
  ["refused", "state = 'rejected'"]
] as const

const byOutcome = outcomes.map((outcome) => [outcome, `state = 'done' and outcome = '${outcome}'`] as const)

/** All counts of rows of the outbox, and their oldest open row. */
const countColumns = `${sumsOf("1", [...openStates, ...byOutcome, ["different", "differences is not null"]])},
  ${ms("min(created_at) filter (where state in ('pending', 'in_flight'))")} as "oldestMs"`

type CountsRow = Counts & Pick<OutboxState, "oldestMs">

const countsOf = (row: Counts): Counts => {
  const { waiting, sending, created, adopted, updated, cancelled, unchanged, refused, different } = row
  return { waiting, sending, created, adopted, updated, cancelled, unchanged, refused, different }
}

const pushColumns = `p.id as push, p.company, p.resource, p.operation, p.source, p.record_count::float8 as records,
  p.duplicates::float8 as known`

const pushesSql = `
  select ${pushColumns}, ${ms("p.created_at")} as "ageMs", to_json(p.finished_at) #>> '{}' as "finishedAt", o.*
    from tributary.pushes p
    cross join lateral (select ${countColumns} from tributary.outbox where push_id = p.id) o
   where case when cardinality($1::bigint[]) > 0 then p.id = any($1::bigint[])
              else p.finished_at is null
                or p.id in (select push_id from tributary.outbox where state = 'rejected' and push_id is not null)
                or p.id in (select id from tributary.pushes where finished_at is not null
                             order by id desc limit ${finishedShown})
         end
   order by p.id desc`

/** The codes of rejected rows, by push. */
const codesSql = `
  select push_id as push, coalesce(code, 'unknown') as code, count(*)::float8 as records
    from tributary.outbox where state = 'rejected' and push_id = any($1::bigint[])
   group by 1, 2 order by records desc, code`

/**
 * The pushes with these numbers, newest first. Without numbers: all that are unfinished or have rejected rows, and the
 * newest of the others.
 */
export const pushes = Effect.fn("push.Status.pushes")(function* (numbers: ReadonlyArray<bigint> = []) {
  const found = yield* Sql.rows<Push & CountsRow & Pick<PushStatus, "ageMs" | "finishedAt">>(pushesSql, [
    numbers.map(String)
  ])
  const codes = yield* Sql.rows<RejectedBy & { push: bigint }>(codesSql, [found.map(({ push }) => push.toString())])
  return found.map((row): PushStatus => ({
    push: row.push,
    company: row.company,
    resource: row.resource,
    operation: row.operation,
    source: row.source,
    state: row.finishedAt === null ? "unfinished" : "finished",
    records: row.records,
    known: row.known,
    ageMs: row.ageMs,
    finishedAt: row.finishedAt,
    counts: countsOf(row),
    oldestMs: row.oldestMs,
    refusedBy: codes.flatMap(({ push, code, records }) => (push === row.push ? [{ code, records }] : []))
  }))
})

const summariesSql = `
  with listed as (
    (select id, 0 as rank from tributary.pushes where finished_at is null order by id desc limit $1::int)
    union all
    (select distinct push_id, 1 from tributary.outbox
      where state = 'rejected' and push_id is not null order by push_id desc limit $1::int)
    union all
    (select id, 2 from tributary.pushes order by id desc limit $1::int)
  ), chosen as (select id from listed group by id order by min(rank), id desc limit $1::int)
  select ${pushColumns}, p.created_at as "createdAt", p.finished_at as "finishedAt", o.*
    from chosen join tributary.pushes p using (id)
    cross join lateral (
      select ${sumsOf("1", openStates)} from tributary.outbox
       where push_id = p.id and state in ('pending', 'in_flight', 'rejected')) o
   order by p.id desc`

/** Unfinished pushes, pushes with rejected rows, and the newest of the others; newest first. */
export const summaries = (limit: number) => Sql.rows<PushSummary>(summariesSql, [limit])

const outboxSql = `
  select o.*, coalesce(r.codes, '[]') as "refusedBy"
    from (select company, resource, ${countColumns} from tributary.outbox where push_id is null group by 1, 2) o
    left join (select company, resource, json_agg(json_build_object('code', outcome, 'records', records)
                                                  order by records desc, outcome) as codes
                 from tributary.outbox_status where state = 'rejected' and is_inserted group by 1, 2) r
      using (company, resource)
   order by company, resource`

/** The rows that were inserted by SQL, by company and resource. */
export const outbox = Effect.map(
  Sql.rows<CountsRow & Omit<OutboxState, "counts">>(outboxSql),
  (rows): ReadonlyArray<OutboxState> =>
    rows.map((row) => ({
      company: row.company,
      resource: row.resource,
      counts: countsOf(row),
      oldestMs: row.oldestMs,
      refusedBy: row.refusedBy
    }))
)

const insertedSql = `
  select company, resource, min(oldest_at) filter (where state in ('pending', 'in_flight')) as "oldestAt",
         ${sumsOf("records", [...openStates, ...byOutcome])}
    from tributary.outbox_status where is_inserted group by 1, 2 order by 1, 2`

/** The company and resource of a push; null when there is no such push. */
export const targetOf = (push: bigint) =>
  Effect.map(
    Sql.rows<Pick<Push, "company" | "resource">>(
      "select company, resource from tributary.pushes where id = $1::bigint",
      [push.toString()]
    ),
    ([row]) => row ?? null
  )

/** {@link InsertedSummary} of every company and resource that has such rows. */
export const inserted = Sql.rows<InsertedSummary>(insertedSql)

const openRequestsSql = `
  select company, resource, operation, record_count as items, ${ms("created_at")} as "ageMs",
         failed_attempts as failures, reason
    from tributary.push_requests where state = 'open' order by id limit $1::int`

/** The oldest open requests; all of them without a limit. */
export const openRequests = (limit: number | null = null) => Sql.rows<OpenRequest>(openRequestsSql, [limit])

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
  const [all] = yield* Sql.rows<{ pushes: number }>("select count(*)::float8 as pushes from tributary.pushes")
  return { pushes: listed, older: all!.pushes - listed.length, outbox: yield* outbox, calls: open } satisfies Status
})

/** Selects rows of one push, or of one resource without a push. */
const selectOf = <Row extends object>(
  rows: Rows,
  sql: (where: string, next: number) => string,
  ...values: Array<unknown>
) => {
  const [where, parameters] = whereOf(rows)
  return Sql.rows<Row>(sql(where, parameters.length + 1), [...parameters, ...values])
}

const rejectedSql = `select id, line::float8 as line, operation, externalid, record_id as "recordId",
       coalesce(code, 'unknown') as code, field, coalesce(reason, '') as reason, coalesce(problems, '[]') as problems,
       record::text as record
  from tributary.outbox where state = 'rejected'`

/** Rejected rows after the one with this number, in the order of their numbers. */
export const rejectedRows = (rows: Rows, after: bigint, limit: number) =>
  selectOf<RejectedRow>(
    rows,
    (where, next) => `${rejectedSql} and ${where} and id > $${next}::bigint order by id limit $${next + 1}::bigint`,
    after.toString(),
    limit
  )

/** The rows that were rejected last. */
export const latestRejectedRows = (rows: Rows, limit: number) =>
  selectOf<RejectedRow>(
    rows,
    (where, next) => `${rejectedSql} and ${where} order by resolved_at desc nulls last, id limit $${next}::bigint`,
    limit
  )

/** The first rows of which the source has other values. */
export const differingRows = (rows: Rows, limit: number) =>
  selectOf<DifferingRow>(
    rows,
    (where, next) => `select line::float8 as line, externalid, record_id as "recordId", outcome, differences
      from tributary.outbox where state = 'done' and differences is not null and ${where} order by id limit $${next}::bigint`,
    limit
  )

const openSql = `
  select company, ${sumsOf("records", openStates)},
         ${ms("min(oldest_at) filter (where state <> 'rejected')")} as "oldestMs"
    from tributary.outbox_status where state <> 'done' group by 1 order by 1`

/** {@link OutboxStatus} of every company that has open or rejected rows. */
export const open = Sql.rows<OutboxStatus>(openSql)
