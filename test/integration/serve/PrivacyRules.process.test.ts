/** Processes with different privacy rules: the older ones change nothing, and say what to do. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { liveTest } from "../../support/live.ts"
import { makeWorld } from "../../support/world.ts"

const rules = "resources:\n  vendors: { exclude: [name] }\n"
const settings = (more: string) =>
  `companies:\n  - { name: north, token_env: SERVICE_API_TOKEN, resources: [vendors] }\n${more}dashboard: { listen: off }\nwebhooks: { listen: 127.0.0.1:0 }\n`

describe("processes with different privacy rules", () => {
  liveTest("the older one ends with code 2, and only a person goes back to its rules", function* () {
    const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
    const names = Effect.map(
      world.query<{ names: number }>("select count(to_jsonb(v) ->> 'name')::int as names from erp.vendors v"),
      ([row]) => row!.names
    )
    const run = Effect.fnUntraced(function* (more: string, ...args: ReadonlyArray<string>) {
      world.configure(settings(more))
      return yield* world.run(args)
    })
    assert.strictEqual((yield* run("", "sync")).code, 0)
    const all = yield* names
    assert.isAbove(all, 0)
    assert.strictEqual((yield* run(rules, "sync")).code, 0)
    assert.strictEqual(yield* names, 0)
    for (const command of ["sync", "serve"]) {
      const { code, stderr } = yield* run("", command)
      assert.strictEqual(code, 2, stderr)
      assert.match(stderr, /vendors: the privacy rules of this process are older ones, which others have replaced/)
      assert.match(stderr, /run tributary schema apply/)
    }
    assert.strictEqual(yield* names, 0)
    const plan = yield* run("", "schema", "plan")
    assert.match(plan.stdout, /^-- vendors: the privacy rules of this process are older ones/m)
    assert.notMatch(plan.stdout + plan.stderr, /damaged/)
    assert.strictEqual((yield* run("", "schema", "apply")).code, 0)
    assert.strictEqual((yield* run("", "sync")).code, 0)
    assert.strictEqual(yield* names, all)
  })
})
