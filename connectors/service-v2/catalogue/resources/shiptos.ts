/** Delivery addresses on a customer: named by RES-06, fields inferred (L2, from shipto_mismatch). */
import { id, pair, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const shiptos = resource({
  path: "shiptos",
  area: "customers",
  purpose: "delivery addresses on a customer",
  basis: "named",
  operations: "L C R U D",
  fields: [
    id(),
    pair("customer", "customers", { by: "customercode", length: 30, note: "customer by id or customercode" }),
    string("name", 100),
    string("address", 100),
    string("address2", 100),
    string("city", 50),
    string("state", 20),
    string("zip", 15),
    string("country", 20),
    commonFields()
  ],
  filters: [exact("customerid"), partial("name")],
  modifiedSince: true,
  required: ["customerid"]
})
