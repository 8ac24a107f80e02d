/** Inventory counts: named by RES-02, fields inferred (L4). */
import { date, externalid, id, list, pair, qty, ref, string } from "../fields.ts"
import { exact, resource, write } from "../resource.ts"
import { commonFields } from "./common.ts"

const location = pair("inventorylocation", "inventorylocations", {
  by: "locationcode",
  length: 20,
  note: "inventory location by id or locationcode"
})
const countdate = date("countdate")
const status = string("status", 20)
const item = ref("itemid", "items")
const counted = qty("counted", { note: "quantity found" })

export const inventorycounts = resource({
  path: "inventorycounts",
  area: "items",
  purpose: "physical and cycle count batches with their counted lines",
  basis: "named",
  operations: "L C R",
  businessDate: { field: "countdate" },
  fields: [
    id(),
    location,
    countdate,
    status,
    list("lines", [item, counted], { note: "the counted lines" }),
    commonFields()
  ],
  filters: [exact("inventorylocationid", "status")],
  modifiedSince: true,
  create: [
    ...location.map((half) => write(half, { required: half.name === "inventorylocationid" })),
    write(countdate, { note: "default today" }),
    write(status),
    write(externalid()),
    write(list("lines", []), {
      note: "the counted lines",
      lines: [item, counted].map((field) => write(field, { required: true, sets: null }))
    })
  ]
})
