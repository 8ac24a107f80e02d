/** The time of the warehouse. */
import * as Effect from "effect/Effect"
import * as Query from "./Query.ts"
import type * as Sql from "./Sql.ts"

/** In milliseconds since 1970. */
export const readNowMs: Sql.Query<number> = Effect.map(
  Query.first(Query.k<object>().selectNoFrom(Query.epochMs<Date>(Query.now).as("at"))),
  (row) => row!.at
)

/** In RFC 3339, to the microsecond. */
export const readInstant: Sql.Query<string> = Effect.map(
  Query.first(Query.k<object>().selectNoFrom(Query.instant<Date>(Query.now).as("at"))),
  (row) => row!.at
)
