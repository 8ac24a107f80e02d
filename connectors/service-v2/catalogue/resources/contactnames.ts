/** Contacts on a customer or ship-to: named by RES-07, fields inferred (L4). */
import { id, pair, ref, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const contactnames = resource({
  path: "contactnames",
  area: "customers",
  purpose: "named contacts on a customer or ship-to",
  basis: "named",
  operations: "L C R U D",
  fields: [
    id(),
    pair("customer", "customers", { by: "customercode", length: 30, note: "customer by id or customercode" }),
    ref("shiptoid", "shiptos"),
    string("firstname", 50),
    string("lastname", 50),
    string("email", 50),
    string("phone", 20),
    commonFields()
  ],
  filters: [exact("customerid", "shiptoid"), partial("lastname")],
  modifiedSince: true,
  personal: true,
  required: ["customerid"]
})
