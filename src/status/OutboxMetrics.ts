/**
 * What the warehouse knows of the outbox, for `/metrics`.
 *
 * Promise: cheap however much was pushed: only what waits, is being sent, was refused, is open or of the last minute is
 * looked at, each by an index.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { cached, type Metric } from "./CachedMetrics.ts"
import { outcomes } from "./Outbox.ts"

interface Row {
  readonly company: string
  readonly waiting: number
  readonly oldest: number
  readonly refused: number
  readonly calls: number
  readonly failing: number
  /** Records of the last minute by outcome; one that had none is absent. */
  readonly settled: Readonly<Record<string, number>>
}

const read = (companies: ReadonlyArray<string>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<Row>(
      `select c.company, w.waiting, w.oldest, r.refused, k.calls, k.failing, s.settled
         from jsonb_array_elements_text($1::jsonb) as c(company)
         cross join lateral (
           select count(*)::float8 as waiting,
                  coalesce(extract(epoch from tributary.now() - min(created_at)), 0)::float8 as oldest
             from tributary.outbox o where o.company = c.company and o.state in ('pending', 'in_flight')) w
         cross join lateral (
           select count(*)::float8 as refused from tributary.outbox o where o.company = c.company and o.state = 'rejected') r
         cross join lateral (
           select count(*)::float8 as calls, (count(*) filter (where failed_attempts > 0))::float8 as failing
             from tributary.push_requests p where p.company = c.company and p.state = 'open') k
         cross join lateral (
           select coalesce(json_object_agg(outcome, records), '{}') as settled from (
             select coalesce(outcome, 'refused') as outcome, count(*) as records from tributary.outbox o
              where o.company = c.company and o.state in ('done', 'rejected')
                and o.resolved_at > (select tributary.now() - interval '1 minute') group by 1) g) s`,
      [JSON.stringify(companies)]
    )
  )

const figuresOf = (rows: ReadonlyArray<Row>): ReadonlyArray<Metric> => {
  const gauge = (name: string, help: string, of: (row: Row) => number): Metric => ({
    name: `tributary_${name}`,
    help,
    type: "gauge",
    samples: rows.map((row) => ({ labels: { company: row.company }, value: of(row) }))
  })
  return [
    gauge("outbox_waiting", "Records to be written to the source and not settled.", ({ waiting }) => waiting),
    gauge("outbox_oldest_seconds", "How long the oldest of them has waited.", ({ oldest }) => oldest),
    gauge("outbox_refused", "Records that were refused, for a person.", ({ refused }) => refused),
    {
      name: "tributary_push_records_last_minute",
      help: "Records settled within the last minute, by what became of them.",
      type: "gauge",
      samples: rows.flatMap(({ company, settled }) =>
        [...outcomes, "refused"].map((outcome) => ({ labels: { company, outcome }, value: settled[outcome] ?? 0 }))
      )
    },
    gauge("push_calls_open", "Requests that write and whose outcome is not known yet.", ({ calls }) => calls),
    gauge("push_calls_failing", "Those of them that the source has not answered plainly.", ({ failing }) => failing)
  ]
}

/** Of these companies. */
export const make = (
  companies: ReadonlyArray<string>
): Effect.Effect<Effect.Effect<ReadonlyArray<Metric>>, never, SqlClient.SqlClient> =>
  cached(Effect.map(read(companies), figuresOf))
