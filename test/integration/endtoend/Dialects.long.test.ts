/**
 * Syncs against servers that interpret open points of the documentation differently. The sync detects the dialect or is
 * configured for it, and loses no record.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../../support/world.ts"

const resources = ["salesmen", "invoiceterms", "orders", "invoicelines", "payments", "shipments"]

const dialects: ReadonlyArray<readonly [title: string, dialect: object, configuration: string]> = [
  [
    "odd page sizes, shuffled ties and keys, unknown fields",
    { pageSizes: 7, tieOrder: 3, keyOrder: 5, extraFields: 9 },
    ""
  ],
  ["a bare array", { itemsKey: "bare" }, ""],
  ["another key and links", { itemsKey: "records", paging: "link" }, ""],
  ["numbered pages", { paging: "page" }, "paging: { mode: page }\n"],
  ["offsets", { paging: "offset" }, "paging: { mode: offset }\n"],
  ["days as timestamps", { dateForm: "timestamp" }, ""],
  ["times in whole seconds", { dateForm: "seconds" }, ""],
  ["an exclusive modifiedsince, no ETag", { modifiedSince: "exclusive", etag: false }, ""],
  ["no synced_through", { syncedThrough: false }, ""],
  ["compressed answers, and a limit that is clamped", { compression: true, limit: "clamped" }, ""],
  ["offsets, and a limit that is ignored", { paging: "offset", limit: "ignored" }, "paging: { mode: offset }\n"],
  ["numbered pages without a limit", { paging: "page", limit: "unknown" }, "paging: { mode: page }\n"]
]

describe("a sync", () => {
  it.live(
    "ends with a warehouse equal to the source for every dialect of the server",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          for (const [title, dialect, configuration] of dialects) {
            yield* Effect.scoped(
              Effect.gen(function* () {
                const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
                yield* world.control("PUT", "/dialect", dialect)
                world.configure(`budget: { requests_per_minute: unlimited }\n${configuration}`)
                const sync = Effect.gen(function* () {
                  const { code, stderr } = yield* world.run(["sync", ...resources])
                  assert.strictEqual(code, 0, `${title}: ${stderr}`)
                  for (const resource of resources) {
                    const { differences, source } = yield* world.compare(resource)
                    assert.deepStrictEqual(differences.slice(0, 3), [], `${title}: ${resource}`)
                    assert.isAbove(source, 3, `${title}: ${resource}`)
                  }
                })
                yield* sync
                yield* world.control("POST", "/records", {
                  company: 1,
                  resource: "salesmen",
                  records: [
                    { id: 1, phone1: "changed" },
                    { name: `new in ${title}`.slice(0, 50), cancel: true }
                  ]
                })
                yield* sync
              })
            )
          }
        })
      ),
    { timeout: 300_000 }
  )
})
