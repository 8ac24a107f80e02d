/**
 * `tributary push`: its output, its effect on the source, and its exit code. `test/integration/outbox` and
 * `test/simulation` test its guarantees under faults.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../support/world.ts"

interface PushReport {
  readonly status: string
  readonly given: number
  readonly known: number
  readonly calls: { readonly sent: number; readonly batches: number }
}

const reportOf = (run: { readonly stdout: string }) => JSON.parse(run.stdout) as PushReport

describe("tributary push", () => {
  it.live(
    "sends nothing while a record is invalid, reports each outcome and sets the exit code",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const file = (name: string, text: string) => writeFileSync(join(world.folder, name), text)
          const unreachable = { DATABASE_URL: "postgres://none:nothing@127.0.0.1:1/none" }
          const reader = yield* Effect.promise(() => world.reference.token(1, ["customers:read"]))
          file(
            "bad.csv",
            "externalid,customercode,name,creditlimit\nT-1,TEST01,One,1.00001\nT-2,TEST02,Two,x\nT-1,TEST03,Three,3\n"
          )
          file(
            "good.csv",
            "externalid,customercode,name,creditlimit,invoiceterm\nT-1,TEST01,One,1.50,\nT-2,TEST02,Two,2,Net 3O\nT-3,TEST03,Three,3,\n"
          )

          const [bad, unscoped] = yield* Effect.all(
            [
              // A dry run needs no warehouse.
              world.run(["push", "customers", "--from", "bad.csv", "--dry-run"], unreachable),
              world.run(["push", "customers", "--from", "good.csv"], { SERVICE_API_TOKEN: reader })
            ],
            { concurrency: 2 }
          )
          assert.strictEqual(bad.code, 2)
          assert.strictEqual(bad.stdout, "")
          assert.deepStrictEqual(bad.stderr.split("\n"), [
            "line 2, creditlimit: holds at most 4 decimals and is never rounded here; 1.00001 has 5",
            'line 3, creditlimit: must be a plain decimal such as "12.50", not "x"',
            "tributary: there are 2 problems in the input",
            ""
          ])
          assert.strictEqual(unscoped.code, 3)
          assert.include(unscoped.stderr, "customers: the token lacks the scope customers:write")
          assert.deepStrictEqual(yield* world.query("select 1 from tributary.pushes"), [])

          const pushed = yield* world.run(["push", "customers", "--from", "good.csv"])
          assert.strictEqual(pushed.code, 4, pushed.stderr)
          assert.match(
            pushed.stdout,
            /^push \d+ to customers of main is done: 2 created, 1 refused \(1 batch; [^)]+\)\n$/
          )
          assert.include(pushed.stderr, "line 3, externalid T-2: unknown_value, invoiceterm: ")
          const push = /^push (\d+)/.exec(pushed.stdout)![1]!
          assert.include(pushed.stderr, `tributary push export-refused ${push} --to refused.ndjson`)
          // Pushed records are in the warehouse immediately.
          assert.deepStrictEqual(
            yield* world.query(
              "select externalid, creditlimit::text, _origin from erp.customers where externalid ~ '^T-' order by 1"
            ),
            [
              { externalid: "T-1", creditlimit: "1.5000", _origin: "push" },
              { externalid: "T-3", creditlimit: "3.0000", _origin: "push" }
            ]
          )

          const again = yield* world.run(["push", "customers", "--from", "good.csv", "--json"])
          assert.strictEqual(again.code, 4, "a record that was rejected before is still missing at the source")
          assert.deepInclude(reportOf(again), { status: "done", given: 3, known: 3, calls: { sent: 0, batches: 0 } })
          assert.deepInclude(JSON.parse(again.stdout), {
            knownOpen: { sending: 0, refused: 1, different: 0, pushes: [Number(push)] }
          })
        })
      ),
    { timeout: 120_000 }
  )
})
