/** Customer-portal logins: named by RES-08, fields inferred (L4). Credentials are never returned. */
import { boolean, id, pair, string } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const b2busers = resource({
  path: "b2busers",
  area: "customers",
  purpose: "customer-portal logins",
  basis: "named",
  operations: "L C R U D",
  fields: [
    id(),
    pair("customer", "customers", { by: "customercode", length: 30, note: "customer by id or customercode" }),
    string("login", 50, { note: "the key" }),
    string("email", 50),
    boolean("enabled"),
    commonFields()
  ],
  filters: [exact("customerid", "login")],
  modifiedSince: true,
  personal: true,
  key: { field: "login" },
  required: ["customerid", "login"]
})
