/**
 * Hours on a service order: the path is quoted (SPECIAL-09), fields inferred (J-08); status 2 is documented (STATE-15).
 */
import { date, id, integer, qty, ref, string, values } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const serviceordertimes = resource({
  path: "serviceordertimes",
  area: "orders",
  purpose: "hours on a service order",
  basis: "named",
  operations: "L C R U D",
  businessDate: { field: "date" },
  fields: [
    id(),
    ref("orderid", "orders", { note: "must be a service order" }),
    qty("hours"),
    date("date"),
    ref("worktypeid", "worktypes"),
    ref("genuserid", "users"),
    string("note", 255),
    integer("status", {
      readOnly: true,
      values: values({ 0: "open", 1: "approved", 2: "billed: converted to an order line" })
    }),
    commonFields()
  ],
  filters: [exact("orderid", "genuserid", "status")],
  modifiedSince: true,
  required: ["orderid", "hours"]
})
