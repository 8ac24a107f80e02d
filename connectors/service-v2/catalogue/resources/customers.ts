/** Companies invoiced: named by RES-05, fields inferred (L2). customercode is the human key; creation is capped. */
import { id, money, pair, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const customers = resource({
  path: "customers",
  area: "customers",
  purpose: "companies invoiced: terms, credit limit",
  basis: "named",
  operations: "L C B R U D",
  fields: [
    id(),
    string("customercode", 30, { note: "the key" }),
    string("name", 100),
    money("creditlimit"),
    pair("invoiceterm", "invoiceterms", { by: "verbal", length: 30, note: "payment terms by id or verbal" }),
    pair("salesman", "salesmen", { by: "name", length: 50, note: "salesperson by id or name" }),
    commonFields()
  ],
  filters: [exact("customercode", "salesmanid", "invoicetermid"), partial("name")],
  modifiedSince: true,
  key: { field: "customercode" },
  required: ["customercode"],
  capped: true,
  specials: [{ method: "GET", name: "balance", scope: "customers:read", purpose: "what the customer owes" }]
})
