/** The runs of the last 24 hours by hour and resource, from `tributary.activity`; bounded however many runs there are. */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { ofLastHours } from "./Activity.ts"

/** Resources that have rows of their own: those with the most failed runs, then quarantine, then runs. */
const resourcesMax = 12

/** The runs that a list shows; null is any. */
export interface RunsOf {
  readonly company: string | null
  readonly resource: string | null
}

export const hoursStatement = Statement.make({
  name: "read runs by hour and resource",
  params: ["text?", "text?"],
  columns: {
    ...Statement.columns("text?", "company", "resource"),
    at: "timestamptz",
    ...Statement.columns("float8", "runs", "quarantined", "failed", "abandoned")
  },
  text: `with day as materialized (
      select company, resource, at, runs::float8 as runs, quarantined_runs::float8 as quarantined, failed_runs::float8 as failed, abandoned_runs::float8 as abandoned
        from tributary.activity
       where resolution = 'hour' and ${ofLastHours()}
         and ($1::text is null or company = $1) and ($2::text is null or resource = $2)),
    worst as (
      select company, resource from day where resource is not null and company is not null group by 1, 2 having sum(runs) > 0
       order by sum(failed + abandoned) desc, sum(quarantined) desc, sum(runs) desc, 1, 2 limit ${resourcesMax})
    select null as company, null as resource, at, sum(runs) as runs, sum(quarantined) as quarantined, sum(failed) as failed, sum(abandoned) as abandoned
      from day group by at
    union all
    select company, resource, at, runs, quarantined, failed, abandoned from day join worst using (company, resource)
     order by company nulls first, resource, at`
})
export type RunHour = Statement.RowOf<typeof hoursStatement>

export interface RunHours {
  /** All runs together. */
  readonly all: ReadonlyArray<RunHour>
  /** The resources with the most failures, worst first. */
  readonly resources: ReadonlyArray<{
    readonly company: string
    readonly resource: string
    readonly hours: ReadonlyArray<RunHour>
  }>
}

export const failuresOf = ({ failed, abandoned }: Pick<RunHour, "failed" | "abandoned">): number => failed + abandoned
const sumOf = (of: ReadonlyArray<RunHour>, value: (hour: RunHour) => number) =>
  of.reduce((sum, hour) => sum + value(hour), 0)

export const read = (of: RunsOf): Sql.Query<RunHours> =>
  Effect.map(Statement.run(hoursStatement, [of.company, of.resource]), (rows) => {
    const isTotal = ({ resource }: RunHour) => resource === null
    const own = Map.groupBy(
      rows.filter((row) => !isTotal(row)),
      ({ company, resource }) => JSON.stringify([company, resource])
    )
    return {
      all: rows.filter(isTotal),
      resources: [...own.values()]
        .map((each) => ({ company: each[0]!.company!, resource: each[0]!.resource!, hours: each }))
        .toSorted(
          (one, other) =>
            sumOf(other.hours, failuresOf) - sumOf(one.hours, failuresOf) ||
            sumOf(other.hours, ({ quarantined }) => quarantined) - sumOf(one.hours, ({ quarantined }) => quarantined)
        )
    }
  })
