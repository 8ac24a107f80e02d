/**
 * The metrics of events and delivery gaps.
 *
 * Promise: the cost of a read does not depend on the size of the inbox. An index finds pending events, dead letters,
 * events of the last minute and open gaps.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Statement from "../postgres/Statement.ts"
import { cached, gauge, type Metric } from "./CachedMetrics.ts"

export const readStatement = Statement.make({
  name: "read the metrics of the inbox",
  params: ["jsonb"],
  columns: { company: "text", waiting: "float8", oldest: "float8", dead: "float8", done: "float8", gaps: "float8" },
  text: `select c.company, p.waiting, p.oldest,
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
               from tributary.inbox_status s where s.company = c.company and s.state = 'pending') p`
})
type Row = Statement.RowOf<typeof readStatement>

const metricsOf = (rows: ReadonlyArray<Row>): ReadonlyArray<Metric> => {
  const metric = (name: string, help: string, of: (row: Row) => number) =>
    gauge(
      `tributary_webhook_${name}`,
      help,
      rows.map((row) => ({ labels: { company: row.company }, value: of(row) }))
    )
  return [
    metric("events_waiting", "Events accepted and not yet processed.", ({ waiting }) => waiting),
    metric("events_oldest_seconds", "The age of the oldest of them.", ({ oldest }) => oldest),
    metric("events_done_last_minute", "Events processed within the last minute.", ({ done }) => done),
    metric("events_dead", "Dead letters, which a person has to replay.", ({ dead }) => dead),
    metric(
      "gaps_open",
      "Resources with an open delivery gap: events may have been dropped, and no later read is complete.",
      ({ gaps }) => gaps
    )
  ]
}

/** The metrics of these companies. */
export const make = (
  companies: ReadonlyArray<string>
): Effect.Effect<Effect.Effect<ReadonlyArray<Metric>>, never, SqlClient.SqlClient> =>
  cached(Effect.map(Statement.run(readStatement, [JSON.stringify(companies)]), metricsOf))
