/**
 * Vendor bills: inferred (L2) from apbillid and the answer of POST /apbilllines. Posted once voucherid is set
 * (STATE-11).
 */
import { date, id, money, pair, ref } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const apbills = resource({
  path: "apbills",
  area: "bills",
  purpose: "vendor bills; children: apbilllines",
  basis: "inferred",
  operations: "L C R",
  businessDate: { field: "billdate" },
  fields: [
    id(),
    pair("vendor", "vendors", { by: "vendorcode", length: 30, note: "vendor by id or vendorcode" }),
    date("billdate", { note: "accounting date it posts under" }),
    money("billtotal"),
    money("distributed", { readOnly: true, note: "sum of the lines" }),
    money("undistributed", { readOnly: true, note: "billtotal minus distributed" }),
    ref("voucherid", "vouchers", { readOnly: true, note: "ledger voucher; empty while the bill is unposted" }),
    commonFields()
  ],
  filters: [exact("vendorid")],
  modifiedSince: true,
  required: ["vendorid", "billtotal"],
  specials: [{ method: "POST", name: "post", scope: "bills:write", purpose: "posts an unposted bill to the ledger" }]
})
