/** All views over several seeds of demo data and over history: today's views, and the as-of views at every past moment. */
import { assert } from "@effect/vitest"
import { layerCatalogue } from "../../support/demo.ts"
import { figures } from "./figures.ts"
import { compareMoments } from "./moments.ts"
import { today } from "./operating.ts"
import { momentsOf } from "./trading.ts"
import { suite } from "../../support/suite.ts"

const days = [today, "2026-02-28", "2026-03-01", "2026-01-31", "2024-02-29", "2031-01-01"]

suite("the views", layerCatalogue, (test) => {
  for (const seed of [1, 2, 3]) {
    test(`contain the figures of seed ${seed} at every moment of its history`, function* () {
      const moments = yield* momentsOf(seed)
      const rows = yield* compareMoments(moments, days, ({ time, position }) => [time, `position ${position}`])
      for (const name of Object.keys(figures)) {
        assert.isAbove(Math.max(...rows.map((found) => found[name]!)), 0, name)
      }
    })
  }
})
