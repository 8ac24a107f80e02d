/** The views about operations over three seeds of demo data, now and as of every past moment. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { layerWarehouse } from "../../support/postgres.ts"
import { follow } from "./operating.ts"

layer(layerWarehouse, { excludeTestServices: true, timeout: "120 seconds" })("the models of operations", (it) => {
  for (const seed of [1, 2, 3]) {
    const title = `equal the figures of the records, now and as of past moments (demo data of seed ${seed})`
    it.effect(
      title,
      () =>
        Effect.gen(function* () {
          const { moments, different } = yield* follow(seed)
          assert.isAtLeast(different, moments - 1)
        }),
      120_000
    )
  }
})
