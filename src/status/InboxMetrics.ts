/**
 * The metrics of events and delivery gaps.
 *
 * Promise: cheap, whatever the inbox holds. An index finds pending events, dead letters, events of the last minute and
 * open gaps.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { cached } from "./CachedMetrics.ts"
import type { Metric } from "./Metrics.ts"

interface Row {
  readonly company: string
  readonly waiting: number
  readonly oldest: number
  readonly dead: number
  readonly done: number
  readonly gaps: number
}

const read = (companies: ReadonlyArray<string>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.unsafe<Row>(
      `select c.company, p.waiting, p.oldest,
              (select coalesce(sum(events), 0)::float8 from tributary.inbox_status s
                where s.company = c.company and s.state = 'dead_letter') as dead,
              (select count(*)::float8 from tributary.inbox i
                where i.company = c.company and i.state in ('done', 'skipped')
                  and i.resolved_at > tributary.now() - interval '1 minute') as done,
              (select count(*)::float8 from tributary.delivery_gaps g
                where g.company = c.company and g.closed_at is null) as gaps
         from jsonb_array_elements_text($1::jsonb) as c(company)
         cross join lateral (
           select coalesce(sum(events), 0)::float8 as waiting,
                  coalesce(extract(epoch from tributary.now() - min(oldest_at)), 0)::float8 as oldest
             from tributary.inbox_status s where s.company = c.company and s.state = 'pending') p`,
      [JSON.stringify(companies)]
    )
  )

const metricsOf = (rows: ReadonlyArray<Row>): ReadonlyArray<Metric> => {
  const gauge = (name: string, help: string, of: (row: Row) => number): Metric => ({
    name: `tributary_webhook_${name}`,
    help,
    type: "gauge",
    samples: rows.map((row) => ({ labels: { company: row.company }, value: of(row) }))
  })
  return [
    gauge("events_waiting", "Events accepted and not yet acted on.", ({ waiting }) => waiting),
    gauge("events_oldest_seconds", "How long the oldest of them has waited.", ({ oldest }) => oldest),
    gauge("events_done_last_minute", "Events acted on within the last minute.", ({ done }) => done),
    gauge("events_dead", "Events given up, to be replayed by a person.", ({ dead }) => dead),
    gauge(
      "gaps_open",
      "Resources of which events may have been dropped and that were not yet read again.",
      ({ gaps }) => gaps
    )
  ]
}

/** The metrics of these companies. */
export const make = (
  companies: ReadonlyArray<string>
): Effect.Effect<Effect.Effect<ReadonlyArray<Metric>>, never, SqlClient.SqlClient> =>
  cached(Effect.map(read(companies), metricsOf))
