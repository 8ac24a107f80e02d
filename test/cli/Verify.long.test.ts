/**
 * `tributary verify` and `tributary explain`: help, streams, JSON and exit codes. `test/integration/verify` tests what
 * they find.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../support/world.ts"

interface Verified {
  readonly equal: boolean
  readonly code: number
  readonly requests: number
  readonly companies: ReadonlyArray<{
    readonly companyId: number
    readonly resources: ReadonlyArray<{
      readonly resource: string
      readonly status: string
      readonly different: number
      readonly missing: number
      readonly findings: ReadonlyArray<{
        readonly id: string
        readonly kind: string
        readonly notYetSynced: boolean
        readonly fields: ReadonlyArray<{ readonly field: string; readonly source: string; readonly warehouse: string }>
      }>
    }>
  }>
}

describe("tributary verify and explain", () => {
  it.live(
    "end with the documented exit code for differences, unknown records and refused requests",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const [help, explainHelp, early, synced] = yield* Effect.all([
            world.run(["verify", "--help"]),
            world.run(["explain", "--help"]),
            world.run(["explain", "invoices", "1"]),
            world.run(["sync", "invoices", "customers"])
          ])
          assert.include(help.stdout, "tributary verify --sample 200")
          assert.include(explainHelp.stdout, "tributary explain RESOURCE 17")
          assert.strictEqual(early.code, 1)
          assert.include(early.stderr, "nothing has been synced yet")
          assert.strictEqual(synced.code, 0, synced.stderr)

          const equal = yield* world.run(["verify", "invoices", "--resource", "customers"])
          assert.strictEqual(equal.code, 0, equal.stderr)
          assert.match(equal.stdout, /Equal: [\d,]+ records of 2 resources, every value, both ways \(\d+ requests\)/)

          const [row] = yield* world.query<{ id: string }>("select min(id)::text as id from erp.invoices")
          yield* world.query(`update erp.invoices set invoicetotal = invoicetotal + 0.0001 where id = ${row!.id}`)
          const json = yield* world.run(["verify", "invoices", "--json"])
          assert.strictEqual(json.code, 4)
          assert.strictEqual(json.stderr, "")
          const report = JSON.parse(json.stdout) as Verified
          assert.deepInclude(report, { equal: false, code: 4 })
          const [resource] = report.companies[0]!.resources
          assert.deepInclude(resource!, { resource: "invoices", status: "unequal", different: 1, missing: 0 })
          const [finding] = resource!.findings
          assert.deepInclude(finding!, { id: row!.id, kind: "different", notYetSynced: false })
          assert.strictEqual(finding!.fields[0]!.field, "invoicetotal")
          assert.match(finding!.fields[0]!.warehouse, /^"[\d.]+1"$/)

          const repaired = yield* world.run(["verify", "invoices", "--repair"])
          assert.strictEqual(repaired.code, 0, repaired.stderr)
          assert.include(repaired.stdout, "repair: 1 read again, 1 repaired, 0 left")

          const explained = yield* world.run(["explain", "invoices", row!.id])
          assert.strictEqual(explained.code, 0, explained.stderr)
          assert.include(explained.stdout, `invoices ${row!.id} in company 1: exists, 2 versions`)
          assert.match(explained.stdout, /invoicetotal +"[\d.]+1" → "[\d.]+0"/)
          const machine = yield* world.run(["explain", "invoices", row!.id, "--company", "1", "--json"])
          const { explanations } = JSON.parse(machine.stdout) as { explanations: ReadonlyArray<{ versions: unknown }> }
          assert.lengthOf(explanations[0]!.versions as Array<unknown>, 2)
          const missingRecord = yield* world.run(["explain", "invoices", "999999999"])
          assert.strictEqual(missingRecord.code, 1)
          assert.include(missingRecord.stderr, "has no version of invoices 999999999")

          assert.strictEqual((yield* world.run(["verify", "--sample", "0"])).code, 1)
          yield* world.control("POST", "/faults", {
            rules: [{ path: "/invoices", kind: "status", status: 403, code: "insufficient_scope" }]
          })
          const refused = yield* world.run(["verify", "invoices"])
          assert.strictEqual(refused.code, 3)
          assert.include(refused.stdout, "what to do: give the token the scope")
        })
      ),
    { timeout: 90_000 }
  )
})
