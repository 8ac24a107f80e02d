/** The page sizes of sources in the warehouse: kept for the next process, and not needed for a sync. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { PageSizes } from "../../../src/connector/PageSizes.ts"
import * as PageSizeStore from "../../../src/sync/PageSizeStore.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"

const size = { accepted: 250, refused: 1_000, triedAt: Date.UTC(2026, 0, 1) }
const less = { ...size, accepted: 100, refused: 250 }

/** Runs as a process of its own, which has nothing in memory. */
const asProcess = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, PageSizeStore.layer, { local: true })
const sizesOf = (address: string) => Effect.flatMap(PageSizes, (sizes) => sizes.of(address))

suite("the page sizes of a source", layerWarehouse, (test) => {
  test("are known to the next process, for all resources and for those that accept less", function* () {
    yield* asProcess(
      Effect.gen(function* () {
        const sizes = yield* sizesOf("https://one")
        assert.isNull(yield* sizes.of("items"))
        yield* sizes.store("items", size)
        yield* sizes.store("orders", less)
        assert.strictEqual(yield* sizesOf("https://one"), sizes, "all connectors share them")
      })
    )
    yield* asProcess(
      Effect.gen(function* () {
        const sizes = yield* sizesOf("https://one")
        assert.deepStrictEqual(yield* sizes.of("orders"), less)
        assert.deepStrictEqual(yield* sizes.of("vendors"), size)
        assert.isNull(yield* (yield* sizesOf("https://two")).of("orders"))
        yield* sizes.store("vendors", { ...size, accepted: 500 })
      })
    )
    const last = yield* asProcess(Effect.flatMap(sizesOf("https://one"), (sizes) => sizes.of("items")))
    assert.strictEqual(last?.accepted, 500)
  })

  test("do not fail a sync while the warehouse refuses them", function* () {
    yield* sql`alter table tributary.page_sizes rename to away`
    yield* asProcess(
      Effect.gen(function* () {
        const sizes = yield* sizesOf("https://one")
        yield* sizes.store("items", size)
        assert.deepStrictEqual(yield* sizes.of("items"), size)
      })
    )
    yield* sql`alter table tributary.away rename to page_sizes`
  })
})
