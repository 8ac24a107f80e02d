/**
 * Counters of runs that ended, and of their records.
 *
 * Promise: a counter counts the runs that ended since this process began. It never falls, whatever retention removes.
 */
import * as Effect from "effect/Effect"
import { counter } from "./Metrics.ts"
import * as Statement from "../postgres/Statement.ts"

const runStatuses = ["done", "quarantined", "failed", "abandoned"] as const
const changes = ["inserted", "updated", "unchanged", "deleted", "quarantined"] as const

/** Runs are counted this long after their end, so that no run is missed whose end is committed later. */
const settleSeconds = 2

export const settledStatement = Statement.make({
  name: "read the time until which runs are counted",
  columns: { at: "text" },
  text: `select (tributary.now() - interval '${settleSeconds} seconds')::text as at`
})

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

/** Counts runs of these companies from the first read on. */
export const make = (names: ReadonlyArray<string>) => {
  const totals = new Map(
    names.map((name) => [
      name,
      { runs: new Map<string, number>(), records: new Map<(typeof changes)[number], number>() }
    ])
  )
  let since: string | null = null
  const add = <Key>(to: Map<Key, number>, key: Key, value: number) => to.set(key, (to.get(key) ?? 0) + value)
  const metrics = () => [
    counter(
      "tributary_runs_ended_total",
      "Runs of all processes that ended since this process began, by status.",
      [...totals].flatMap(([company, { runs }]) =>
        runStatuses.map((status) => ({ labels: { company, status }, value: runs.get(status) ?? 0 }))
      )
    ),
    counter(
      "tributary_records_total",
      "Records of those runs, by change.",
      [...totals].flatMap(([company, { records }]) =>
        changes.map((change) => ({ labels: { company, change }, value: records.get(change) ?? 0 }))
      )
    )
  ]
  return Effect.gen(function* () {
    const [now] = yield* Statement.run(settledStatement)
    const until = now!.at
    const rows = since === null ? [] : yield* Statement.run(endedStatement, [since, until])
    since = until
    for (const row of rows) {
      const total = totals.get(row.company)
      if (total === undefined) continue
      add(total.runs, row.status, row.runs)
      for (const change of changes) add(total.records, change, row[change])
    }
    return metrics()
  })
}
