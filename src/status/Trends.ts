/**
 * Amounts by hour of the last 24 hours, from the newest rows of each table.
 *
 * Promise: a statement reads at most {@link countedMax} rows, by the primary key, however many the table has. Where the
 * day has more rows, the earlier hours are incomplete and `isCut` is true.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

/** Rows that are counted at most. */
export const countedMax = 20_000

const columns = { at: "timestamptz", kind: "text", amount: "float8", isCut: "bool" } as const

/** The start of the first hour that a chart shows. */
const since = "(date_trunc('hour', $1::timestamptz, 'UTC') - interval '23 hours')"

const params = ["timestamptz", "text?"] as const

/**
 * Counts the newest rows of a table by hour and kind; of the company $2 alone where the table has its name. The others are
 * zeros then: all of the newest rows may be of other companies.
 */
const textOf = (from: string, at: string, kind: string, amount = "1", company = "null::text"): string =>
  `with newest as (select ${at} as at, ${kind} as kind, ${amount} as amount, ${company} as company from ${from} order by id desc limit ${countedMax})
   select date_trunc('hour', least(at, $1::timestamptz), 'UTC') as at, kind,
          coalesce(sum(amount) filter (where $2::text is null or company = $2), 0)::float8 as amount,
          (select count(*) = ${countedMax} and min(n.at) >= ${since} from newest n) as "isCut"
     from newest n where n.at >= ${since} group by 1, 2`

export const eventsStatement = Statement.make({
  name: "count events by hour",
  params,
  columns,
  text: textOf("tributary.inbox", "received_at", "state", "1", "company")
})
export const outboxStatement = Statement.make({
  name: "count rows of the outbox by hour",
  params,
  columns,
  text: textOf("tributary.outbox", "created_at", "state")
})
export const quarantineStatement = Statement.make({
  name: "count quarantine entries by hour",
  params,
  columns,
  text: textOf("tributary.quarantine", "first_seen_at", "case when resolved_at is null then 'open' else 'resolved' end")
})
export const changesStatement = Statement.make({
  name: "count changes by hour",
  params,
  columns,
  text: textOf("tributary.change_batches", "landed_at", "'change'", "changes")
})
export const violationsStatement = Statement.make({
  name: "count violations by hour",
  params,
  columns,
  text: textOf(
    "tributary.violations",
    "first_seen_at",
    "case when ended_at is not null then 'ended' when opened_at is not null then 'open' else 'unconfirmed' end"
  )
})

type Amounts = ReadonlyArray<Statement.RowOf<typeof eventsStatement>>

export interface Trend {
  readonly amounts: Amounts
  /** Null where every row of the time was counted. */
  readonly countedMax: number | null
  readonly now: Date
}

/** Of all companies, or the events of one. */
export const read = (statement: typeof eventsStatement, now: Date, company: string | null = null): Sql.Query<Trend> =>
  Effect.map(Statement.run(statement, [now, company]), (amounts) => ({
    amounts,
    countedMax: amounts[0]?.isCut === true ? countedMax : null,
    now
  }))
