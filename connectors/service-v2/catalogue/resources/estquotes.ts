/** Estimating quotes: inferred (L4, SCOPE-13); needs the estimating module. */
import { date, id, money, pair } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const estquotes = resource({
  path: "estquotes",
  area: "estimating",
  purpose: "quotes from the estimating module",
  basis: "inferred",
  operations: "L C R U D",
  businessDate: { field: "quotedate" },
  fields: [
    id(),
    pair("customer", "customers", { by: "customercode", length: 30, note: "customer by id or customercode" }),
    date("quotedate"),
    money("total"),
    commonFields()
  ],
  filters: [exact("customerid")],
  modifiedSince: true,
  required: ["customerid"],
  feature: "estimating"
})
