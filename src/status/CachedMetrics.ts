/**
 * Figures that the warehouse is asked for, for `/metrics`.
 *
 * Promise: however often they are wanted, the warehouse is asked at most every few seconds, and several who want them at
 * once share one question. It never fails and nobody waits long: what cannot be told is left out.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"

/** As Prometheus is told it. */
export interface Metric {
  readonly name: string
  readonly help: string
  readonly type: "counter" | "gauge"
  readonly samples: ReadonlyArray<{ readonly labels?: Readonly<Record<string, string>>; readonly value: number }>
}

const everyMs = 5_000
const patienceMs = 2_000

/** Asks anew when the last answer is old. */
export const cached = <E>(
  question: Effect.Effect<ReadonlyArray<Metric>, E, SqlClient.SqlClient>
): Effect.Effect<Effect.Effect<ReadonlyArray<Metric>>, never, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.cachedWithTTL(
      question.pipe(
        Effect.provideService(SqlClient.SqlClient, sql),
        Effect.timeoutOrElse({ duration: patienceMs, orElse: () => Effect.succeed([]) }),
        Effect.orElseSucceed(() => [])
      ),
      everyMs
    )
  )
