/**
 * Warehouses with the tables of the whole catalogue and the views of all models: empty, or with the demo records of the
 * reference server; and a loader of server records that is not the product's.
 */
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../connectors/service-v2/models/index.ts"
import { modelDatasetsOf } from "../../src/warehouse/Model.ts"
import { datasetsDefault, tableOf } from "../../src/warehouse/Table.ts"
import * as TablePlan from "../../src/warehouse/TablePlan.ts"
import * as Views from "../../src/warehouse/Views.ts"
import type { Books, Json } from "../integration/models/figures/records.ts"
import { server } from "../reference-server/support.ts"
import { makeTemplate, migrated, sql, warehouseFrom } from "./postgres.ts"

/** Reads the books of a company from a response to `GET /state`, one record per line. */
export const booksOf = (
  company: number,
  resources: ReadonlyArray<string>,
  state: (company: number, resource: string) => ReadonlyArray<string>
): Books & { readonly lines: ReadonlyMap<string, ReadonlyArray<string>> } => {
  const lines = new Map(resources.map((resource) => [resource, state(company, resource)]))
  const parsed = new Map([...lines].map(([resource, texts]) => [resource, texts.map((one) => JSON.parse(one) as Json)]))
  return { company, lines, of: (resource) => parsed.get(resource)! }
}

/** Makes the warehouse's tables equal to these records. Rows of missing records become tombstones, as after a sync. */
export const land = Effect.fnUntraced(function* (company: number, lines: ReadonlyMap<string, ReadonlyArray<string>>) {
  for (const [resource, texts] of lines) {
    const table = tableOf(serviceV2.resources.get(resource)!)
    const columns = table.columns.map((column) => column.sql)
    const records = `[${texts.join(",")}]`
    yield* sql.unsafe(
      `insert into ${table.current} ("_company_id", ${columns.join(", ")}, "_origin", "_observed_at")
       select $1, ${columns.map((column) => `r.${column}`).join(", ")}, 'scan', now()
         from jsonb_array_elements($2::text::jsonb) e cross join lateral jsonb_populate_record(null::${table.current}, e) r
       on conflict ("_company_id", "id") do update set
         ${columns.map((column) => `${column} = excluded.${column}`).join(", ")}, "_deleted_at" = null`,
      [company, records]
    )
    yield* sql.unsafe(
      `update ${table.current} set "_deleted_at" = now() where "_company_id" = $1 and "_deleted_at" is null
         and id <> all (array(select (e ->> 'id')::bigint from jsonb_array_elements($2::text::jsonb) e))`,
      [company, records]
    )
    yield* sql.unsafe(`analyze ${table.current}`)
  }
})

const catalogue = makeTemplate(
  "test_catalogue",
  migrated,
  Effect.gen(function* () {
    yield* TablePlan.apply([...serviceV2.resources.values()].map((resource) => tableOf(resource)))
    for (const datasets of modelDatasetsOf(datasetsDefault)) yield* Views.apply(readModels(), datasets)
  })
)

/** A server in process, and the records of its companies 1 and 2. */
export const demoServer = (seed = 1) => {
  const served = server({ data: "demo", seed })
  const linesOf = (company: number, resource: string) =>
    served
      .control("GET", `/state?company=${company}&resource=${resource}`)
      .text.split("\n")
      .filter((line) => line !== "")
  return { served, linesOf }
}

/** Every table and view, and no record. */
export const layerCatalogue = warehouseFrom(catalogue)

/** With the records of the companies 1 and 2 of {@link demoServer}. */
export const layerDemo = warehouseFrom(
  makeTemplate(
    "test_demo",
    catalogue,
    Effect.suspend(() => {
      const { linesOf } = demoServer()
      return Effect.forEach([1, 2], (company) =>
        land(company, booksOf(company, [...serviceV2.resources.keys()], linesOf).lines)
      )
    })
  )
)
