/** Counts of the rows of a push by their state and outcome. */
import * as Effect from "effect/Effect"
import type { QueryResultRow } from "pg"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { OutboxScope, RunSql } from "./OutboxRow.ts"
import { isOpen } from "./OutboxStore.ts"
import type { Counts, Outcome } from "./Push.ts"
import type { RowUpdate } from "./RowResolution.ts"

/** The names of the counts of rows that are not done, by state. */
const names = { pending: "waiting", in_flight: "sending", rejected: "refused" } as const

interface CountsRow extends QueryResultRow {
  readonly name: keyof typeof names | Outcome
  readonly rows: number
  readonly different: number
}

export const noCounts: Counts = {
  waiting: 0,
  sending: 0,
  created: 0,
  adopted: 0,
  updated: 0,
  cancelled: 0,
  unchanged: 0,
  refused: 0,
  different: 0
}

const countsSql = `select coalesce(o.outcome, o.state) as name, count(*)::float8 as rows,
       (count(*) filter (where o.differences is not null))::float8 as different from tributary.outbox o`

const countsOf = (rows: ReadonlyArray<CountsRow>): Counts =>
  rows.reduce(
    (counts, { name, rows: count, different }) => ({
      ...counts,
      [name in names ? names[name as keyof typeof names] : name]: count,
      different: counts.different + different
    }),
    noCounts
  )

/** All rows of a push; of rows that belong to no push, the open ones. */
const countsQuery = ({ company, resource, push }: OutboxScope): readonly [string, ReadonlyArray<unknown>] =>
  push === null
    ? [
        `${countsSql} where o.company = $1 and o.resource = $2 and ${isOpen("o")} and o.push_id is null group by 1`,
        [company, resource]
      ]
    : [`${countsSql} where o.push_id = $1 group by 1`, [push]]

/** Counts the rows outside of a session's transactions. */
export const countRowsWith = <E, R>(
  query: (text: string, values: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<CountsRow>, E, R>,
  scope: OutboxScope
): Effect.Effect<Counts, E, R> => Effect.map(query(...countsQuery(scope)), countsOf)

export const countRows = (run: RunSql, scope: OutboxScope): Effect.Effect<Counts, DatabaseError> =>
  countRowsWith(
    (text, values) => Effect.map(run<CountsRow>("count the rows of", text, values), ({ rows }) => rows),
    scope
  )

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
