/** Invariants as a user meets them: by `sync` and `status`, with the built-in rules and one of the configuration. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../support/world.ts"

interface Status {
  readonly invariants: ReadonlyArray<{
    readonly name: string
    readonly open: number
    readonly unconfirmed: number
    readonly failed: number
    readonly evaluated: number
  }>
}

describe("invariants", () => {
  it.live(
    "hold for the demo data; a violation is confirmed by the second sync, and ends by itself",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const status = Effect.map(
            world.run(["status", "--json"]),
            ({ stdout }) => (JSON.parse(stdout) as Status).invariants
          )
          const sync = Effect.map(world.run(["sync"]), ({ code, stderr }) => {
            assert.strictEqual(code, 0, stderr)
            return stderr
          })
          assert.notInclude(yield* sync, "violate")
          const first = yield* status
          assert.isAtLeast(first.length, 5)
          for (const one of first) {
            assert.deepInclude(one, { open: 0, unconfirmed: 0, failed: 0, evaluated: 1 }, one.name)
          }
          assert.match((yield* world.run(["status"])).stdout, /invariants: 5 not violated/)

          const rule = (name: string, sql: string) =>
            `  - name: ${name}\n    statement: No odd total.\n    sql: "${sql}"\n`
          const select =
            "select _company_id as company_id, 'invoices' as resource, id, 'odd' as detail from {{invoices}}"
          world.configure(
            `invariants:\n${rule("no_odd_totals", `${select} where invoicetotal = 777`)}${rule("bad", "select nothing from {{invoices}}")}`
          )
          const [{ id }] = (yield* world.query<{ id: string }>(
            "select min(id)::text as id from erp.invoices where voucherid is not null"
          )) as readonly [{ id: string }]
          const [before] = yield* world.query<{ total: string }>(
            `select invoicetotal::text as total from erp.invoices where id = ${id}`
          )
          const put = (invoicetotal: string) =>
            world.control("POST", "/records", {
              company: 1,
              resource: "invoices",
              records: [{ id: Number(id), invoicetotal }]
            })
          yield* put("777")
          assert.notInclude(yield* sync, "violates", "unconfirmed")
          const noted = yield* sync
          assert.include(noted, "1 record violates invoice_lines_add_up: The lines of an invoice add up to its total.")
          assert.include(noted, "1 record violates no_odd_totals: No odd total.")
          assert.include(noted, 'the invariant bad cannot be evaluated: column "nothing" does not exist')
          const { stdout } = yield* world.run(["status"])
          assert.match(stdout, /invariants: 2 violated, 1 failed, 4 not violated/)
          const [, command] = /see them with tributary query "(select [^"]*'no_odd_totals'[^"]*)"/.exec(stdout) ?? []
          const listed = yield* world.run(["query", command!, "--json"])
          assert.include(listed.stdout, `"resource":"invoices","record_id":${id},"detail":"odd"`)
          assert.notInclude(yield* sync, "violates", "an idle sync evaluates nothing")

          yield* put(before!.total)
          world.configure("")
          assert.notInclude(yield* sync, "violate")
          assert.deepStrictEqual(
            (yield* status).map(({ open, unconfirmed }) => open + unconfirmed),
            [0, 0, 0, 0, 0]
          )
          const ended = yield* world.query<{ detail: string }>(
            "select detail from tributary.violations where ended_at is not null and opened_at is not null"
          )
          assert.lengthOf(ended, 1)
          assert.include(ended[0]!.detail, "has the total 777.0000, but its")
        })
      ),
    180_000
  )
})
