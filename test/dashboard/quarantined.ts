/** A company of the reference server with one record in quarantine. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { saveCompany } from "../support/companies.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { type Table, tableOf } from "../../src/warehouse/Table.ts"
import * as TablePlan from "../../src/warehouse/TablePlan.ts"
import { syncResource } from "../../src/sync/SyncResource.ts"
import { atOnce, makeSource, warehouse } from "./asking.ts"

const paths = ["salesmen", "orderdeposits"]
export const tables = new Map<string, Table>(paths.map((path) => [path, tableOf(serviceV2.resources.get(path)!)]))

export const stand = Layer.effectDiscard(TablePlan.apply([...tables.values()])).pipe(Layer.provideMerge(warehouse))

let companies = 500

/** A new company. The name of its salesman 2 cannot be stored in Postgres. */
export const makeStand = Effect.fnUntraced(function* () {
  const source = makeSource()
  const sql = yield* SqlClient.SqlClient
  const id = (companies += 1)
  const name = `company ${id}`
  const company = yield* source.company(name, source.token({ company: id }), { tables: Effect.succeed(tables) })
  yield* saveCompany(name, BigInt(id))
  const control = (method: string, path: string, body?: unknown) =>
    Effect.sync(() => assert.isBelow(source.control(method, path, body).status, 300))
  const put = (resource: string, records: ReadonlyArray<object>) =>
    control("POST", "/records", { company: id, resource, records })
  yield* put("salesmen", [
    { id: 1, name: "Ada" },
    { id: 2, name: "a NUL \u0000 inside" }
  ])
  const sync = (full: boolean) =>
    atOnce(
      syncResource(
        { companyId: BigInt(id), connector: company.connector, table: tables.get("salesmen")! },
        { batchRecordsMax: 2_500, mode: { full } }
      )
    )
  assert.strictEqual((yield* sync(false)).status, "quarantined")
  const [entry] = yield* sql<{ id: bigint }>`select id from tributary.quarantine where company_id = ${id}`
  const post = { id: String(entry!.id) }
  const rows = sql<{ id: bigint; name: string }>`
    select id, name from erp.salesmen where _company_id = ${id} and _deleted_at is null order by id`
  return { id, name, sql, company, control, put, entry: entry!.id, post, rows, sync, source }
})
