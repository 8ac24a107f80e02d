/** The time of the warehouse, in milliseconds since 1970. */
import * as Effect from "effect/Effect"
import * as Sql from "./Sql.ts"
import * as Statement from "./Statement.ts"

export const nowStatement = Statement.make({
  name: "read the warehouse's clock",
  columns: { nowMs: "float8" },
  text: `select ${Sql.epochMs("tributary.now()")} as "nowMs"`
})

export const readNowMs: Sql.Query<number> = Effect.map(Statement.run(nowStatement), ([row]) => row!.nowMs)
