/** Unusual values, from the response of the source to the rows of the warehouse. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../../support/world.ts"

it.live(
  "a sync of unusual values stores them unchanged, or quarantines them with reason and bytes while other records land",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const world = yield* makeWorld({ data: ["--data", "empty"], company: 5 })
        const long = "ä🧾".repeat(127) + "z"
        const records: ReadonlyArray<string> = [
          `{"id":1,"totalprice":"0.1000","description":"0.1 with 4 decimals"}`,
          `{"id":2,"totalprice":"1234567890123456.7891","description":"20 digits"}`,
          `{"id":3,"totalprice":"-17.5000","qty":"-0.000001","description":"negative"}`,
          `{"id":4,"description":""}`,
          `{"id":5,"description":null}`,
          `{"id":6,"description":"it's \\"quoted\\" \\\\ back\\tslash\\nnew line \\\\N"}`,
          `{"id":7,"description":"🧾 crème brûlée 漢字 \\u202e"}`,
          `{"id":8,"description":${JSON.stringify(long)}}`,
          `{"id":9,"description":"unknown","surcharge":1.10,"big":12345678901234567890,"nested":{"rate":0.30}}`,
          `{"id":10,"description":"a NUL \\u0000 inside"}`,
          `{"id":11,"description":"a lone surrogate \\ud800 inside"}`,
          `{"id":12,"description":"after them"}`
        ]
        const response = yield* Effect.promise(() =>
          fetch(`${world.reference.controlUrl}/records`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: `{"company":5,"resource":"invoicelines","records":[${records.join(",")}]}`
          })
        )
        assert.isTrue(response.ok, yield* Effect.promise(() => response.text()))

        const { code, stderr } = yield* world.run(["sync", "invoicelines"])
        assert.strictEqual(code, 4, stderr)
        assert.include(stderr, "2 records are in quarantine")

        const rows = yield* world.query<{ id: bigint; description: string | null; totalprice: string | null }>(
          "select id, description, totalprice::text from erp.invoicelines order by id"
        )
        assert.deepStrictEqual(
          rows.map((row) => Number(row.id)),
          [1, 2, 3, 4, 5, 6, 7, 8, 9, 12]
        )
        const described = new Map(rows.map((row) => [Number(row.id), row.description]))
        assert.strictEqual(rows[0]!.totalprice, "0.1000")
        assert.strictEqual(rows[1]!.totalprice, "1234567890123456.7891")
        assert.strictEqual(rows[2]!.totalprice, "-17.5000")
        assert.strictEqual(described.get(4), "")
        assert.isNull(described.get(5))
        assert.strictEqual(described.get(6), 'it\'s "quoted" \\ back\tslash\nnew line \\N')
        assert.strictEqual(described.get(7), "🧾 crème brûlée 漢字 \u202e")
        assert.strictEqual(described.get(8), long)
        const [extra] = yield* world.query<{ extra: string; qty: string }>(
          "select _extra::text as extra, (select qty::text from erp.invoicelines where id = 3) as qty from erp.invoicelines where id = 9"
        )
        assert.deepStrictEqual(extra, {
          extra: '{"big": 12345678901234567890, "nested": {"rate": 0.30}, "surcharge": 1.10}',
          qty: "-0.000001"
        })
        const quarantine = yield* world.query<{ record_id: string; field: string; reason: string; bytes: string }>(
          "select record_id, field, reason, bytes from tributary.quarantine where resolved_at is null order by record_id"
        )
        assert.deepStrictEqual(
          quarantine.map(({ record_id, field }) => [record_id, field]),
          [
            ["10", "description"],
            ["11", "description"]
          ]
        )
        assert.match(quarantine[0]!.reason, /NUL/)
        assert.match(quarantine[1]!.reason, /surrogate/)
        assert.include(quarantine[0]!.bytes, "a NUL \\u0000 inside")
        assert.match(quarantine[1]!.bytes, /a lone surrogate \\ud800 inside/i)
        const comparison = yield* world.compare("invoicelines")
        assert.deepStrictEqual(comparison.differences, [
          { id: "10", kind: "missing", fields: [] },
          { id: "11", kind: "missing", fields: [] }
        ])

        // After a repair at the source the records land, and the quarantine is empty.
        yield* world.control("POST", "/records", {
          company: 5,
          resource: "invoicelines",
          records: [
            { id: 10, description: "repaired" },
            { id: 11, description: "repaired too" }
          ]
        })
        const repairedSync = yield* world.run(["sync", "invoicelines"])
        assert.strictEqual(repairedSync.code, 0, repairedSync.stderr)
        assert.deepStrictEqual((yield* world.compare("invoicelines")).differences, [])
      })
    ),
  { timeout: 60_000 }
)
