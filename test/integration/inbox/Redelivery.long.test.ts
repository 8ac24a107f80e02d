/** A repeated delivery of an event that retention has deleted (R8): it is processed again and changes no row. */
import { assert, describe, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import * as InboxRetention from "../../../src/retention/InboxRetention.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import * as Ingest from "../../../src/ingest/Ingest.ts"
import { bodyOf, signatureOf } from "../../support/deliveries.ts"
import { makeStand, one, stand, states } from "./working.ts"
import { answer } from "../../support/storing.ts"

const t = 1_800_000_000
const secret = "whsec_redelivered"

describe("a repeated delivery", () => {
  layer(stand, { excludeTestServices: true, timeout: "60 seconds" })("after the retention of its event", (it) => {
    it.effect("is stored and processed again without changing a row", () =>
      Effect.gen(function* () {
        const { id, name, sql, put, drain, inbox, requests } = yield* makeStand(["salesmen"])
        const store = yield* InboxWriter.make()
        const receiver = yield* Ingest.make({
          reader: deliveryReader,
          keyring: { of: () => [Redacted.make(secret)], most: () => 1, refresh: Effect.succeed(true) },
          inbox: store,
          settings: { tolerance: Duration.infinity, aheadMax: Duration.infinity }
        })
        const deliver = (body: string) =>
          Effect.map(
            answer(receiver, {
              company: name,
              signatures: [signatureOf(secret, t, body)],
              body: new TextEncoder().encode(body)
            }),
            ({ status }) => status
          )
        const rows = sql.unsafe<{ readonly name: string }>(
          `select xmin::text, * from erp.salesmen where _company_id = $1`,
          [BigInt(id)]
        )
        const [first] = yield* put("salesmen", [one(1, "a")])
        const body = bodyOf("evt_again", { type: "salesmen.updated", companyid: id, data: first })
        assert.strictEqual(yield* deliver(body), 204)
        yield* drain
        yield* put("salesmen", [one(1, "b")])
        assert.strictEqual(
          yield* deliver(bodyOf("evt_later", { type: "salesmen.updated", companyid: id, data: { id: 1 } })),
          204
        )
        yield* drain
        const landedRows = yield* rows
        assert.deepStrictEqual(
          landedRows.map((row) => row.name),
          ["b"]
        )
        assert.strictEqual(yield* deliver(body), 204)
        assert.deepInclude(store.stats(), { stored: 2, known: 1 })

        yield* sql`update tributary.inbox set resolved_at = resolved_at - interval '31 days' where company = ${name}`
        assert.strictEqual((yield* InboxRetention.remove({ retention: Duration.days(30) })).events, 2)
        yield* requests
        assert.strictEqual(yield* deliver(body), 204)
        assert.deepInclude(store.stats(), { stored: 3, known: 1 })
        assert.deepStrictEqual(states(yield* inbox), ["pending"])
        yield* drain
        assert.deepStrictEqual(states(yield* inbox), ["done"])
        // The event is older than the row of the warehouse, so no request was made.
        assert.deepStrictEqual(yield* requests, [])
        assert.deepStrictEqual(yield* rows, landedRows)
      })
    )
  })
})
