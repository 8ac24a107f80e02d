/** An excessive Retry-After with real processes: its display, and the command that ends the pause. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../../support/world.ts"

describe("a pause with an excessive Retry-After", () => {
  it.live(
    "is limited, shown with its origin, and ended by budget release",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          world.configure("requests: { retry_after_max_seconds: 5 }\n")
          for (const seconds of ["31536000", "99999999999999999999"]) {
            yield* world.control("POST", "/faults", {
              rules: [
                {
                  path: "/customers",
                  kind: "status",
                  status: 503,
                  headers: { "Retry-After": seconds, "content-type": "text/html" },
                  body: "<html>maintenance</html>",
                  times: 1
                }
              ]
            })
            const cut = yield* world.run(["sync", "customers", "orders"])
            assert.strictEqual(cut.code, 5, cut.stdout + cut.stderr)
            yield* world.control("DELETE", "/faults")
            const [row] = yield* world.query<{ seconds: number }>(
              "select extract(epoch from retry_after_at - tributary.now())::float8 as seconds from tributary.budgets"
            )
            assert.isAbove(row!.seconds, 0)
            assert.isAtMost(row!.seconds, 60)

            const pausedRun = yield* world.run(["sync", "orders"])
            assert.strictEqual(pausedRun.code, 5)
            const pauseReason = /GET \/customers was answered 503 by something between here and the service/
            assert.match(pausedRun.stdout + pausedRun.stderr, pauseReason)
            assert.match(pausedRun.stdout + pausedRun.stderr, /tributary budget release/)
            assert.notInclude(pausedRun.stdout + pausedRun.stderr, "429")
            const budget = yield* world.run(["budget"])
            assert.match(budget.stdout, pauseReason)
            assert.match(budget.stdout, /nothing is sent until/)
            const json = JSON.parse((yield* world.run(["budget", "--json"])).stdout) as {
              companies: Array<{ budget: { pausedBy: { origin: string; status: number } } }>
            }
            assert.deepInclude(json.companies[0]!.budget.pausedBy, { origin: "intermediary", status: 503 })
            assert.match((yield* world.run(["status"])).stdout, pauseReason)

            assert.match((yield* world.run(["budget", "release"])).stdout, /released/)
            const again = yield* world.run(["sync", "customers", "orders"])
            assert.strictEqual(again.code, 0, again.stdout + again.stderr)
          }
        })
      ),
    { timeout: 120_000 }
  )
})
