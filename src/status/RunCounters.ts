/**
 * Counters of runs that ended, and of their records.
 *
 * Promise: a counter counts the rows of runs that ended since this process began. It never falls, whatever retention
 * removes. Quiet runs share a row, which is counted once between two reads.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { cutoff } from "../retention/Batches.ts"
import * as FleetMetrics from "./FleetMetrics.ts"
import { counter } from "./Metrics.ts"
import * as Statement from "../postgres/Statement.ts"

const runStatuses = ["done", "quarantined", "failed", "abandoned"] as const
const changes = ["inserted", "updated", "unchanged", "deleted", "quarantined"] as const

/** Runs are counted this long after their end, so that no run is missed whose end is committed later. */
const settleTime = Duration.seconds(2)

export const endedStatement = Statement.make({
  name: "count ended runs",
  params: ["timestamptz", "timestamptz"],
  columns: { company: "text", status: "text", ...Statement.columns("float8", "runs", ...changes) },
  text: `select k.company, r.status, count(*)::float8 as runs,
         ${changes.map((change) => `sum(r.${change})::float8 as ${change}`).join(", ")}
    from tributary.runs r join tributary.companies k on k.company_id = r.company_id
   where r.finished_at > $1::timestamptz and r.finished_at <= $2::timestamptz
   group by 1, 2`
})

const allCompanies = "all companies"

/** Counts runs from the first read on; shows those of the companies at the time of a read, or of many together. */
export const make = (current: () => ReadonlyArray<string>) => {
  const runs = new Map<string, number>()
  const records = new Map<string, number>()
  const keyOf = (company: string, of: string) => `${company} ${of}`
  const add = (to: Map<string, number>, key: string, value: number) => to.set(key, (to.get(key) ?? 0) + value)
  let since: string | null = null
  const metrics = (companies: ReadonlyArray<string>, labelsOf: (company: string) => { readonly company?: string }) => [
    counter(
      "tributary_runs_ended_total",
      "Runs of all processes that ended since this process began, by status; runs in a row that found nothing count once.",
      companies.flatMap((company) =>
        runStatuses.map((status) => ({
          labels: { ...labelsOf(company), status },
          value: runs.get(keyOf(company, status)) ?? 0
        }))
      )
    ),
    counter(
      "tributary_records_total",
      "Records of those runs, by change.",
      companies.flatMap((company) =>
        changes.map((change) => ({
          labels: { ...labelsOf(company), change },
          value: records.get(keyOf(company, change)) ?? 0
        }))
      )
    )
  ]
  return Effect.gen(function* () {
    const until = yield* cutoff(settleTime)
    const rows = since === null ? [] : yield* Statement.run(endedStatement, [since, until])
    since = until
    for (const row of rows) {
      for (const company of [row.company, allCompanies]) {
        add(runs, keyOf(company, row.status), row.runs)
        for (const change of changes) add(records, keyOf(company, change), row[change])
      }
    }
    const companies = current()
    return FleetMetrics.isBounded(companies.length)
      ? metrics([allCompanies], () => ({}))
      : metrics(companies, (company) => ({ company }))
  })
}
