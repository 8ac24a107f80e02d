/**
 * How much is open that needs a person, for the menu of every page.
 *
 * Promise: one statement, of which each part reads at most {@link countedMax} entries of an index of open entries, whatever
 * the number of companies, events, rows and invariants.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

/** A larger number is not counted: the number is then this one. */
export const countedMax = 100

/** The order is that of the index, so that Postgres reads the index alone. */
const counted = (table: string, condition: string, order: string): string =>
  `(select count(*) from (select 1 from tributary.${table} where ${condition} order by ${order} limit ${countedMax}) one)::float8`

export const numbersStatement = Statement.make({
  name: "count what is open",
  columns: Statement.columns("float8", "quarantine", "webhooks", "outbox", "invariants"),
  text: `select ${counted("quarantine", "resolved_at is null", "id")} as quarantine,
         ${counted("inbox", "state = 'dead_letter'", "company, id")} as webhooks,
         ${counted("outbox", "state = 'rejected'", "company, resource, id")} as outbox,
         ${counted("invariant_states", "state = 'violated'", "invariant, company_id")} as invariants`
})

/** Open quarantine entries, dead letters, rejected rows and violated invariants by company, each at most {@link countedMax}. */
export type OpenNumbers = Statement.RowOf<typeof numbersStatement>

export const read: Sql.Query<OpenNumbers> = Effect.map(Statement.run(numbersStatement), ([row]) => row!)
