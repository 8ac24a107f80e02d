/** Deletion of old rows in batches, each of them a small transaction. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import { control } from "../postgres/Tables.ts"

export const batchRows = 5_000

/** The warehouse's time this long ago, to the microsecond. */
export const cutoff = (age: Duration.Duration): Sql.Query<string> =>
  Effect.map(
    Query.first(control.selectNoFrom((of) => of.cast<string>(Query.nowPlus(-Duration.toMillis(age)), "text").as("at"))),
    (row) => row!.at
  )

/** Repeats a statement that deletes a batch until it finds no more. Returns the number of deleted rows. */
export const batches = Effect.fnUntraced(function* (batch: Sql.Query<ReadonlyArray<unknown>>) {
  let all = 0
  for (;;) {
    const { length } = yield* batch
    all += length
    if (length < batchRows) return all
  }
})

/** The parameter and the column of a statement that deletes a batch of rows that ended before a time. */
export const deletesOld = { params: ["timestamptz"], columns: { id: "int8" } } as const
