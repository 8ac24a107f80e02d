import { assert, describe, layer } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { ServerFault } from "../../../src/connector/SourceError.ts"
import { tableOf } from "../../../src/model/Table.ts"
import * as TablePlan from "../../../src/model/TablePlan.ts"
import { syncResource } from "../../../src/pipeline/SyncResource.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import { layerSql } from "../../support/postgres.ts"
import { failing, pages, record, scripted, things } from "../../support/tiny.ts"
const table = tableOf(things)
const warehouse = Layer.effectDiscard(Effect.andThen(Migrations.migrate(), TablePlan.apply([table]))).pipe(Layer.provideMerge(layerSql))
const at = (n: number) => `2026-01-01T00:00:${String(n).padStart(2, "0")}.000000Z`
const thing = (n: number) => record(things, { id: String(n), name: `n${n}`, lastchangedate: at(n) })
const base = { companyId: 1n, table, full: false, acceptDeletions: false, batchRecordsMax: 5000 }
describe("scratch", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("pg", (it) => {
    it.effect("a row read by the backfill before the live scan began, landed after it opened", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const all = [1, 2, 3].map((n) => ({ records: [thing(n)], syncedThrough: at(10) }))
        const read = yield* Deferred.make<void>()
        const open = yield* Deferred.make<void>()
        // The backfill's first page: answered (beganAt), and handed over only when the live run is open.
        const back = scripted(1n, pages(...all))
        const slow = { ...back.connector, page: (r: Parameters<typeof back.connector.page>[0]) =>
          Effect.flatMap(back.connector.page(r), (page) => r.token === null
            ? Effect.as(Effect.andThen(Deferred.succeed(read, undefined), Deferred.await(open)), page) : Effect.succeed(page)) }
        const b = yield* Effect.forkChild(syncResource({ ...base, connector: slow, backfill: { since: null, until: null } }))
        yield* Deferred.await(read)
        const live = scripted(1n, (r) => {
          if (r.token === "p2") throw failing(new ServerFault({ status: 500, code: "x", retryAfterMs: null }))
          return pages(...all)(r)
        })
        // Live opens on an empty table; its first page waits until the backfill has landed all of its own.
        const gated = { ...live.connector, page: (r: Parameters<typeof live.connector.page>[0]) =>
          r.token === null ? Effect.gen(function* () { yield* Deferred.succeed(open, undefined); yield* Fiber.await(b); return yield* live.connector.page(r) }) : live.connector.page(r) }
        const first = yield* syncResource({ ...base, connector: gated })
        console.log("back", (yield* Fiber.join(b)).status, "live", first.status, first.kind)
        live.script = (r) => r.since === null ? pages(...all)(r) : { records: [], next: null, syncedThrough: at(20) }
        const second = yield* syncResource({ ...base, connector: live.connector })
        console.log("resumed", second.resumed, second.kind, second.totals)
        const rows = yield* sql<{ id: bigint; gone: boolean }>`select id, _deleted_at is not null as gone from erp.things order by id`
        console.log(rows)
        assert.isTrue(rows.every(({ gone }) => !gone))
      })
    )
  })
})
