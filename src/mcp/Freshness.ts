/**
 * The freshness and the open delivery gaps of resources, as every answer has them.
 *
 * Promise: the least current come first, and a number tells how many are left out.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import type { FreshnessRow, GapRow } from "./Answer.ts"
import { idOf } from "./Answer.ts"

/** The resources whose path or table has a name in `$1`; all where it is null. */
const isOf = `($1::text[] is null or resource = any(array(
             select coalesce(s.api_name, t.name) from unnest($1::text[]) t(name)
               left join tributary.sql_names s on s.scope = '' and s.sql_name = t.name)))
           and ($2::text is null or company = $2)`

export const freshnessStatement = Statement.make({
  name: "read the freshness of resources",
  params: ["text[]?", "text?", "int8"],
  columns: {
    company: "text?",
    companyId: "int8?",
    resource: "text",
    freshAt: "timestamptz?",
    ...Statement.columns("float8?", "age", "target"),
    isLate: "bool",
    total: "int4"
  },
  text: `select company, company_id as "companyId", resource, fresh_at as "freshAt", extract(epoch from age)::float8 as age,
                extract(epoch from target)::float8 as target, is_late as "isLate", (count(*) over ())::int4 as total
           from tributary.freshness where ${isOf}
          order by is_late desc, fresh_at nulls first, company, resource limit $3`
})

export const openGapsStatement = Statement.make({
  name: "read the open gaps of resources",
  params: ["text[]?", "text?", "int8"],
  columns: {
    ...Statement.columns("text", "company", "resource", "cause", "detail"),
    ...Statement.columns("timestamptz?", "beganAt", "endedAt"),
    lastError: "text?",
    total: "int4"
  },
  text: `select company, resource, cause, detail, began_at as "beganAt", ended_at as "endedAt", last_error as "lastError",
                (count(*) over ())::int4 as total
           from tributary.delivery_gaps where closed_at is null and ${isOf}
          order by detected_at desc, company, resource limit $3`
})

const rowsDefault = 20

/** Which resources an answer was read from. */
export interface Scope {
  /** Paths or names of tables; null is all. */
  readonly resources: ReadonlyArray<string> | null
  readonly company?: string | null
  readonly rowsMax?: number
}

const seconds = (value: number | null): number | null => (value === null ? null : Math.round(value * 10) / 10)
const instant = (value: Date | null): string | null => value?.toISOString() ?? null

/** Reads both, with `run` as the session that read the data. */
export const read = <E, R>(run: Statement.Run<E, R>, { resources, company = null, rowsMax = rowsDefault }: Scope) =>
  Effect.gen(function* () {
    const given = [resources, company, rowsMax] as const
    const freshness = yield* run(freshnessStatement, given)
    const gaps = yield* run(openGapsStatement, given)
    return {
      freshness: freshness.map((row): FreshnessRow => ({
        company: row.company ?? "",
        company_id: row.companyId === null ? null : idOf(row.companyId),
        resource: row.resource,
        fresh_at: instant(row.freshAt),
        age_seconds: seconds(row.age),
        target_seconds: seconds(row.target),
        is_late: row.isLate
      })),
      open_gaps: gaps.map((row): GapRow => ({
        company: row.company,
        resource: row.resource,
        cause: row.cause,
        detail: row.detail,
        began_at: instant(row.beganAt),
        ended_at: instant(row.endedAt),
        last_error: row.lastError
      })),
      remarks: [
        ...leftOut("freshness", freshness.length, freshness[0]?.total ?? 0),
        ...leftOut("open_gaps", gaps.length, gaps[0]?.total ?? 0)
      ]
    }
  })

const leftOut = (what: string, shown: number, total: number): ReadonlyArray<string> =>
  total > shown
    ? [`${what} shows ${shown} of ${total}; the tool of that name with a company or resource shows others`]
    : []
