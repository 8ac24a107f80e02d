/** The page with the history of a record, on Postgres. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as SourceGuard from "../../src/sync/SourceGuard.ts"
import { routes } from "../../src/dashboard/pages/Records.ts"
import { tableOf } from "../../src/warehouse/Table.ts"
import * as TablePlan from "../../src/warehouse/TablePlan.ts"
import { syncResource } from "../../src/sync/SyncResource.ts"
import { pages, record, scripted, things } from "../support/tiny.ts"
import { address } from "../../src/web/Escape.ts"
import { ask, holdsHostile, hostile, unconnected, warehouse } from "./asking.ts"

const table = tableOf(things)
const stand = Layer.effectDiscard(TablePlan.apply([table])).pipe(Layer.provideMerge(warehouse))
const companies = [unconnected("main")]
const show = (query: Record<string, string>) => ask(routes, companies, address("/records", query))

layer(stand, { excludeTestServices: true, timeout: "30 seconds" })("the record page", (it) => {
  it.effect("shows every version with its source and its changes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* SourceGuard.saveCompanyId("main", 1n)
      const source = scripted(1n, pages({ records: [] }))
      const sync = Effect.fnUntraced(function* (price: string, minute: number) {
        const lastchangedate = `2026-01-01T00:0${minute}:00Z`
        source.script = pages({
          records: [record(things, { id: "7", name: hostile, price, memo: "m", lastchangedate })],
          syncedThrough: lastchangedate
        })
        const { status } = yield* syncResource(
          { companyId: 1n, connector: source.connector, table },
          { batchRecordsMax: 100 }
        )
        assert.strictEqual(status, "done")
      })
      yield* sync("1.0000", 1)
      yield* sync("2.5000", 2)
      yield* sql`
        insert into tributary.quarantine (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
        values (1, 'things', '7', ${hostile}, ${hostile}, ${hostile}, 1, 'GET /things', tributary.now(), tributary.now())`
      yield* sql`
        insert into tributary.refetch_requests (company_id, resource, field, value, requested_at) values (1, 'things', 'id', '7', tributary.now())`
      const { text, read, title } = yield* show({ company: "main", resource: "things", id: "7" })
      assert.strictEqual(title, "things 7")
      assert.isFalse(holdsHostile(text.replaceAll(/value="[^"]*"/g, "")))
      assert.include(read, "things 7 in company main")
      assert.include(read, "exists , 2 versions")
      assert.match(read, /Version 2 update .* Version 1 insert/)
      // An amount with its original digits.
      assert.match(read, /price &quot;1\.0000&quot; &quot;2\.5000&quot;/)
      assert.include(text, `href="/runs/2"`)
      assert.match(read, /because of id 7 , requested/)
      assert.include(read, "live 2026-01-01T00:02:00Z")
      assert.match(read, /In quarantine .* open/)
      // Without a company, and with the number of a company.
      assert.include((yield* show({ resource: "things", id: "7" })).read, "things 7 in company main")
      assert.include((yield* show({ company: "1", resource: "things", id: "7" })).read, "things 7 in company main")
    })
  )

  it.effect("explains an invalid search in a sentence", () =>
    Effect.gen(function* () {
      const problem = (query: Record<string, string>) =>
        Effect.map(show(query), ({ text }) => /<p class="problem" role="alert">([^<]*)/.exec(text)?.[1])
      assert.isUndefined(yield* problem({}))
      assert.match((yield* problem({ id: "7" }))!, /^Choose a resource/)
      assert.match((yield* problem({ resource: "things" }))!, /^Enter the number/)
      assert.match((yield* problem({ resource: "things", id: "7 or 1=1" }))!, /is not the number of a record/)
      assert.match(
        (yield* problem({ resource: "things", id: "99999999999999999999" }))!,
        /is not the number of a record/
      )
      assert.match(
        (yield* problem({ resource: "things", id: "9999999999999999999" }))!,
        /is not the number of a record/
      )
      assert.match(
        (yield* problem({ resource: "things", id: "-9223372036854775807" }))!,
        /^The warehouse has nothing about/
      )
      assert.match((yield* problem({ resource: hostile, id: "7" }))!, /^The warehouse has no history of/)
      assert.match((yield* problem({ resource: 'things"; drop', id: "7" }))!, /^The warehouse has no history of/)
      assert.match((yield* problem({ resource: "things", id: "7", company: "x" }))!, /^No company “x” is known/)
      const { text } = yield* show({ resource: hostile, id: hostile })
      assert.notInclude(text, "<script>")
    })
  )
})
