/** The activity of companies by hour, for charts and `status`: `tributary.activity`, which one process of `serve` writes. */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { seriesMax } from "../tasks/WriteActivity.ts"

const sums = [
  "runs",
  "quarantined_runs",
  "failed_runs",
  "abandoned_runs",
  "inserted",
  "updated",
  "deleted",
  "quarantined",
  "requests",
  "retries",
  "run_ms",
  "gaps"
] as const
const sumsOrNone = ["rows"] as const
const highest = ["run_ms_max", "paused_ms"] as const
const highestOrNone = ["age_ms_max", "lateness_max", "budget_share_max"] as const

const figures = {
  ...Statement.columns("float8", ...sums),
  ...Statement.columns("float8?", ...sumsOrNone),
  ...Statement.columns("float8", ...highest),
  ...Statement.columns("float8?", ...highestOrNone)
} as const
const figuresSql = [
  ...sums.map((name) => `coalesce(sum(${name}), 0)::float8 as ${name}`),
  ...sumsOrNone.map((name) => `sum(${name})::float8 as ${name}`),
  ...highest.map((name) => `coalesce(max(${name}), 0)::float8 as ${name}`),
  ...highestOrNone.map((name) => `max(${name})::float8 as ${name}`)
].join(", ")

/**
 * Selects the last hours of the clock, the current one included, as charts show them. The list is made once: a comparison
 * with the clock, which is volatile, cannot use the index, and would read the hours of the whole month.
 */
export const ofLastHours = (hours = 24, now = "tributary.now()"): string =>
  `at = any(array(select generate_series(date_trunc('hour', ${now}, 'UTC') - interval '${hours - 1} hours', ${now}, interval '1 hour')))`

/** `offset 0`: whether a row is shown is found once, and not for each sum. */
export const hoursStatement = Statement.make({
  name: "read the activity by hour",
  params: ["text[]?"],
  columns: { at: "timestamptz", ...figures, process_starts: "float8" },
  text: `select at, ${figuresSql.replaceAll(/\((\w+)\)/g, "($1) filter (where is_shown)")}, coalesce(sum(process_starts), 0)::float8 as process_starts
    from (select *, $1::text[] is null or company in (select unnest($1::text[])) as is_shown from tributary.activity
           where resolution = 'hour' and ${ofLastHours()} offset 0) a
   group by at order by at`
})
/** The activity of an hour; at is its start. The last hour is not over. */
export type Hour = Statement.RowOf<typeof hoursStatement>

/** The last 24 hours of these companies together, oldest first; null is all companies. Hours without data are absent. */
export const readHours = (names: ReadonlyArray<string> | null): Sql.Query<ReadonlyArray<Hour>> =>
  Statement.run(hoursStatement, [names])

export const companyHoursStatement = Statement.make({
  name: "read the activity of companies by hour",
  params: ["text[]?"],
  columns: { company: "text?", at: "timestamptz", ...figures, process_starts: "float8" },
  text: `select company, at, ${figuresSql}, coalesce(sum(process_starts), 0)::float8 as process_starts
    from tributary.activity
   where resolution = 'hour' and ${ofLastHours()}
     and ($1::text[] is null or company is null or company in (select unnest($1::text[])))
   group by company, at order by company nulls first, at`
})

/** The last 24 hours of these companies, a row for each hour and company; the company is null for what concerns all. */
export const readDay = (names: ReadonlyArray<string> | null) => Statement.run(companyHoursStatement, [names])

/** The last 24 hours of all companies together. */
export const readTotals = readHours(null)

/** Whether hours are stored only for all of so many companies together. */
export const hasTotalsOnly = (companies: number): boolean => companies > seriesMax.hour

/** The last 24 hours of some of all companies; null where they are stored only for all together. */
export const readHoursOf = (names: ReadonlyArray<string>, companies: number): Sql.Query<ReadonlyArray<Hour> | null> =>
  !hasTotalsOnly(companies) ? readHours(names) : names.length === companies ? readTotals : Effect.succeed(null)

export const resourceHoursStatement = Statement.make({
  name: "read the activity of resources by hour",
  params: ["text[]", "text[]"],
  columns: {
    company: "text",
    resource: "text",
    at: "timestamptz",
    landed: "float8",
    lateness: "float8?",
    ageMs: "float8?"
  },
  text: `select coalesce(company, '') as company, coalesce(resource, '') as resource, at, (inserted + updated + deleted)::float8 as landed, lateness_max as lateness, age_ms_max::float8 as "ageMs"
    from tributary.activity
   where resolution = 'hour' and ${ofLastHours()}
     and (company, resource) in (select * from unnest($1::text[], $2::text[]))
   order by company, resource, at`
})
/** An hour of one resource: the records that its runs inserted, updated or deleted, its highest age, and that divided by its target. */
export type ResourceHour = Statement.RowOf<typeof resourceHoursStatement>

/** The last 24 hours of these resources. */
export const readResourceHours = (
  resources: ReadonlyArray<{ readonly company: string; readonly resource: string }>
): Sql.Query<ReadonlyArray<ResourceHour>> =>
  Statement.run(resourceHoursStatement, [
    resources.map(({ company }) => company),
    resources.map(({ resource }) => resource)
  ])

export const lastTroubleStatement = Statement.make({
  name: "find the last trouble of an hour",
  params: ["text[]", "timestamptz"],
  columns: { at: "timestamptz?", isLate: "bool" },
  text: `select max(at) as at, coalesce(bool_or(lateness_max > 1), false) as "isLate" from tributary.activity
   where resolution = 'minute' and at >= $2::timestamptz and at < $2::timestamptz + interval '1 hour'
     and company in (select unnest($1::text[])) and (lateness_max > 1 or failed_runs > 0 or gaps > 0)`
})

/**
 * The last minute of this hour in which a run of these companies failed, a resource was late or a gap was open; and whether
 * a resource was late in one of them. Of more than 300 resources, minutes do not have what was late.
 */
export const readLastTrouble = (names: ReadonlyArray<string>, hour: Date) =>
  Statement.run(lastTroubleStatement, [names, hour])
