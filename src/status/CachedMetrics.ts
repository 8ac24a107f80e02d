/**
 * Metrics that are read from the warehouse, for `/metrics`.
 *
 * Promise: the warehouse is read at most every few seconds, and concurrent requests share one read. It never fails and
 * never blocks for long: metrics that cannot be read are left out.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"

/** A metric as Prometheus defines it. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: "counter" | "gauge"
  readonly samples: ReadonlyArray<{ readonly labels?: Readonly<Record<string, string>>; readonly value: number }>
}

const cacheMs = 5_000
const timeoutMs = 2_000

const metricOf =
  (type: Metric["type"]) =>
  (name: string, help: string, samples: Metric["samples"]): Metric => ({ name, help, type, samples })
export const gauge = metricOf("gauge")
export const counter = metricOf("counter")

/** Reads the metrics again when the cached ones are older than {@link cacheMs}. */
export const cached = <E>(
  read: Effect.Effect<ReadonlyArray<Metric>, E, SqlClient.SqlClient>
): Effect.Effect<Effect.Effect<ReadonlyArray<Metric>>, never, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.cachedWithTTL(
      read.pipe(
        Effect.provideService(SqlClient.SqlClient, sql),
        Effect.timeoutOrElse({ duration: timeoutMs, orElse: () => Effect.succeed([]) }),
        Effect.orElseSucceed(() => [])
      ),
      cacheMs
    )
  )
