/** Counts of the rows of a push by their state and outcome. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { type OutboxScope, rowsOf, type RunSql } from "./OutboxRow.ts"
import { isOpen } from "./OutboxStore.ts"
import type { Counts, Outcome } from "./Push.ts"
import type { RowUpdate } from "./RowResolution.ts"

/** The names of the counts of rows that are not done, by state. */
const names = { pending: "waiting", in_flight: "sending", rejected: "rejected" } as const

const columns = {
  name: Statement.as<keyof typeof names | Outcome>("text"),
  rows: "float8",
  different: "float8"
} as const
type CountsStatement<P extends ReadonlyArray<Statement.Type>> = Statement.Statement<P, typeof columns>

export const noCounts: Counts = {
  waiting: 0,
  sending: 0,
  created: 0,
  adopted: 0,
  updated: 0,
  cancelled: 0,
  unchanged: 0,
  rejected: 0,
  different: 0
}

const countsSql = `select coalesce(o.outcome, o.state) as name, count(*)::float8 as rows,
       (count(*) filter (where o.differences is not null))::float8 as different from tributary.outbox o`

export const countsOf = (rows: ReadonlyArray<Statement.RowOf<CountsStatement<[]>>>): Counts =>
  rows.reduce(
    (counts, { name, rows: count, different }) => ({
      ...counts,
      [name in names ? names[name as keyof typeof names] : name]: count,
      different: counts.different + different
    }),
    noCounts
  )

export const countOpenStatement = Statement.make({
  name: "count the open rows of",
  params: ["text", "text"],
  columns,
  text: `${countsSql} where o.company = $1 and o.resource = $2 and ${isOpen("o")} and o.push_id is null group by 1`
})

export const countPushStatement = Statement.make({
  name: "count the rows of",
  params: ["int8"],
  columns,
  text: `${countsSql} where o.push_id = $1 group by 1`
})

type Counting<P extends ReadonlyArray<Statement.Type>> = readonly [CountsStatement<P>, Statement.Values<P>]

/** Counts all rows of a push; of rows that belong to no push, the open ones. */
export const counting = ({ company, resource, push }: OutboxScope): Counting<ReadonlyArray<Statement.Type>> =>
  push === null ? [countOpenStatement, [company, resource]] : [countPushStatement, [push]]

export const countRows = (run: RunSql, scope: OutboxScope) => Effect.map(rowsOf(run, ...counting(scope)), countsOf)

/** The counts after these resolutions. */
export const addUpdates = (before: Counts, updates: ReadonlyArray<RowUpdate>): Counts => {
  const after: Record<keyof Counts, number> = { ...before }
  for (const { row, resolution, requestId } of updates) {
    if (!row.isOwn) continue
    after[requestId === null ? "waiting" : "sending"] -= 1
    after[resolution.state === "done" ? resolution.outcome : names[resolution.state]] += 1
    if (resolution.state === "done" && resolution.differences.length > 0) after.different += 1
  }
  return after
}
