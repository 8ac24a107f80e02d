/** A repeated push of a file whose outbox rows were deleted: the source gets no duplicate. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Retention from "../../../src/retention/Retention.ts"
import { attributesOf, collector } from "../../support/collector.ts"
import { makeWorld } from "../../support/world.ts"

const retentionPeriod = Duration.days(90)
const count = 60

interface PushResult {
  readonly given: number
  readonly known: number
  readonly counts: Readonly<Record<string, number>>
}

it.live(
  "a push after outbox retention adopts the records of the same file and creates none again",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
        const { url, spans } = yield* collector
        const warehouse = sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(world.databaseUrl))))
        const line = (at: number) =>
          JSON.stringify({ externalid: `K-${at}`, customercode: `K${at}`, name: `Number ${at}` })
        writeFileSync(join(world.folder, "new.ndjson"), Array.from({ length: count }, (_, at) => line(at)).join("\n"))
        const push = Effect.map(
          world.run(["push", "customers", "--from", "new.ndjson", "--json"], {
            OTEL_EXPORTER_OTLP_ENDPOINT: url,
            OTEL_EXPORTER_OTLP_PROTOCOL: "http/json"
          }),
          ({ code, stdout, stderr }) => {
            assert.strictEqual(code, 0, stderr)
            return JSON.parse(stdout) as PushResult
          }
        )
        const recordCount = Effect.map(
          Effect.promise(() => world.reference.lines("/state?company=1&resource=customers")),
          (lines) => lines.filter((text) => text.includes('"K-')).length
        )
        assert.strictEqual((yield* push).counts["created"], count)
        const call = spans().find(({ name }) => name === "push.call")
        assert.include(attributesOf(call!), {
          "tributary.company": "main",
          "tributary.resource": "customers",
          "tributary.operation": "batch",
          "tributary.records": String(count)
        })
        const httpSpan = spans().find(({ parentSpanId }) => parentSpanId === call!.spanId)
        assert.strictEqual(attributesOf(httpSpan!)["http.request.method"], "POST")
        assert.strictEqual((yield* push).known, count, "while its rows exist the push is known")

        yield* world.query(
          "update tributary.outbox set created_at = created_at - interval '100 days', resolved_at = resolved_at - interval '100 days'"
        )
        yield* world.query("update tributary.pushes set finished_at = finished_at - interval '100 days'")
        const settings = {
          runs: retentionPeriod,
          quarantine: retentionPeriod,
          outbox: retentionPeriod,
          events: retentionPeriod
        }
        const removed = yield* Retention.pass(settings).pipe(Effect.provide(warehouse), Effect.orDie)
        assert.strictEqual(removed.outbox, count)
        assert.isAbove(removed.pushes, 0)

        const again = yield* push
        assert.deepStrictEqual(
          {
            given: again.given,
            known: again.known,
            created: again.counts["created"],
            adopted: again.counts["adopted"]
          },
          { given: count, known: 0, created: 0, adopted: count }
        )
        assert.strictEqual(yield* recordCount, count)
      })
    ),
  { timeout: 120_000 }
)
