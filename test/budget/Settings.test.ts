import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { load } from "../../src/configuration/Configuration.ts"

const budgetOf = (yaml: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tributary-budget-"))),
    (folder) => {
      const config = join(folder, "tributary.yaml")
      writeFileSync(config, yaml)
      return Effect.map(load({ config }, {}), ({ requestsPerMinute, budgetScope }) => [requestsPerMinute, budgetScope])
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

describe("the configured rate budget", () => {
  it.effect("is 500 per token, less the reserve, at least one, or unlimited", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* budgetOf("{}"), [500, "token"])
      assert.deepStrictEqual(yield* budgetOf("budget: { reserve_percent: 10 }"), [450, "token"])
      assert.deepStrictEqual(
        yield* budgetOf("budget: { requests_per_minute: 600, reserve_percent: 15, scope: install }"),
        [510, "install"]
      )
      assert.deepStrictEqual(yield* budgetOf("budget: { requests_per_minute: 1, reserve_percent: 90 }"), [1, "token"])
      assert.deepStrictEqual(yield* budgetOf("budget: { requests_per_minute: unlimited, reserve_percent: 20 }"), [
        null,
        "token"
      ])
      assert.strictEqual((yield* Effect.flip(budgetOf("budget: { reserve_percent: 91 }")))._tag, "ConfigurationError")
    })
  )
})
