/** Syncs from a source that refuses: the resources of a missing scope stop with the remedy, and a pause outlives a kill. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { makeWorld, type World } from "../../support/world.ts"

const quick = "budget: { requests_per_minute: unlimited }\nrequests: { timeout_seconds: 1, attempts_max: 12 }\n"

const equal = (world: World, resources: ReadonlyArray<string>) =>
  Effect.forEach(resources, (resource) =>
    Effect.map(world.compare(resource), (comparison) => {
      assert.deepStrictEqual(comparison.differences.slice(0, 5), [], resource)
      return comparison.source
    })
  )

describe("a sync from a faulty source", () => {
  it.live(
    "ends with code 3 for a refused token or scope and reports the remedy",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const narrow = yield* Effect.promise(() => world.reference.token(1, ["setup:read"]))
          const some = yield* world.run(["sync", "salesmen", "payments", "invoiceterms", "--json"], {
            SERVICE_API_TOKEN: narrow
          })
          assert.strictEqual(some.code, 3)
          assert.include(some.stderr, "insufficient_scope")
          assert.include(some.stderr, "give the token the scope payments:read")
          yield* equal(world, ["salesmen", "invoiceterms"])

          yield* world.control("POST", "/tokens/revoke", { token: narrow })
          const none = yield* world.run(["sync", "salesmen"], { SERVICE_API_TOKEN: narrow })
          assert.strictEqual(none.code, 3)
          assert.include(none.stderr, "the token was revoked: issue a new one")
          const unknown = yield* world.run(["sync", "salesmen"], { SERVICE_API_TOKEN: "no-such-token" })
          assert.strictEqual(unknown.code, 3)
          assert.include(unknown.stderr, "does not know this token")
          assert.notInclude(unknown.stderr + unknown.stdout, "no-such-token")
        })
      ),
    { timeout: 60_000 }
  )

  it.live(
    "waits for Retry-After, also in the process that follows a killed one",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "scale", "--rows", "1500"], company: 1 })
          world.configure(quick)
          const retryAfterSeconds = 3
          const refuseOnce = (after: number) =>
            world.control("POST", "/faults", {
              rules: [
                {
                  path: "/invoicelines",
                  after,
                  kind: "status",
                  status: 429,
                  headers: { "Retry-After": String(retryAfterSeconds) },
                  times: 1
                }
              ]
            })
          /** The seconds without requests after each 429, by the server's clock. */
          const pauses = Effect.map(world.control("GET", "/requests"), (journal) => {
            const { requests } = journal as {
              readonly requests: ReadonlyArray<{ readonly time: string; readonly status: number | null }>
            }
            return requests.flatMap(({ time, status }, place) => {
              const next = requests[place + 1]
              return status === 429 && next !== undefined ? [(Date.parse(next.time) - Date.parse(time)) / 1000] : []
            })
          })
          yield* refuseOnce(2)
          const first = yield* world.run(["sync", "invoicelines", "--json"])
          assert.strictEqual(first.code, 0, first.stderr)
          const firstPauses = yield* pauses
          assert.lengthOf(firstPauses, 1)
          assert.isAtLeast(firstPauses[0]!, retryAfterSeconds)

          yield* refuseOnce(0)
          const killedCommand = world.command(["sync", "invoicelines", "--full", "--json"])
          // Waits until the shared rate budget contains both refusals.
          yield* world
            .query("select 1 from tributary.budgets where rate_limited_count >= 2")
            .pipe(Effect.repeat({ until: (rows) => rows.length > 0, schedule: Schedule.spaced("10 millis") }))
          killedCommand.child.kill("SIGKILL")
          yield* Effect.promise(() => killedCommand.done)
          const next = yield* world.run(["sync", "invoicelines", "--json"])
          assert.strictEqual(next.code, 0, next.stderr)
          const bothPauses = yield* pauses
          assert.lengthOf(bothPauses, 2)
          assert.isAtLeast(bothPauses[1]!, retryAfterSeconds)
          yield* equal(world, ["invoicelines"])
        })
      ),
    { timeout: 60_000 }
  )
})
