/** All views over several seeds of demo data and over history: today's views, and the as-of views at every past moment. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { layerWarehouse } from "../../support/postgres.ts"
import { accounting } from "./figures/accounting.ts"
import { compareMoments } from "./moments.ts"
import { momentsOf, today } from "./trading.ts"

const days = [today, "2026-02-28", "2026-03-01", "2026-01-31", "2024-02-29", "2031-01-01"]

layer(layerWarehouse, { excludeTestServices: true, timeout: "60 seconds" })("the views", (it) => {
  for (const seed of [1, 2, 3]) {
    it.effect(`contain the figures of seed ${seed} at every moment of its history`, () =>
      Effect.gen(function* () {
        const moments = yield* momentsOf(seed)
        const rows = yield* compareMoments(
          moments,
          days,
          () => true,
          ({ time, position }) => [time, `position ${position}`]
        )
        for (const name of Object.keys(accounting)) {
          assert.isAbove(Math.max(...rows.map((found) => found[name]!)), 0, name)
        }
      })
    )
  }
})
