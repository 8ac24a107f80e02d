/** Journal sets: inferred (L4, SCOPE-16) from gl_set_unbalanced and gl_set_too_short. */
import { date, externalid, id, list, money, pair, ref, string } from "../fields.ts"
import { exact, resource, write } from "../resource.ts"
import { commonFields } from "./common.ts"

const transactiondate = date("transactiondate", { note: "accounting date it posts under" })
const description = string("description", 255)
const lines = [
  ...pair("glaccount", "glaccounts", { by: "name", length: 60, note: "ledger account by id or name" }),
  money("amount", { note: "signed" }),
  description
]

export const gltransactions = resource({
  path: "gltransactions",
  area: "gltransactions",
  purpose: "raw journal entries, one record per journal set",
  basis: "inferred",
  operations: "L C R",
  businessDate: { field: "transactiondate" },
  fields: [
    id(),
    transactiondate,
    description,
    ref("voucherid", "vouchers", { readOnly: true, note: "ledger voucher of the set" }),
    list("lines", lines, { note: "at least two lines whose amounts sum to zero" }),
    commonFields()
  ],
  filters: [exact("voucherid", "transactiondate")],
  modifiedSince: true,
  create: [
    write(transactiondate, { note: "default today" }),
    write(description),
    write(externalid()),
    // Not marked required: a set without lines has fewer than two, and RULE-02 has its own code for that.
    write(list("lines", []), {
      note: "at least two lines whose amounts sum to zero",
      lines: lines.map((field) =>
        write(field, { required: ["glaccountid", "amount"].includes(field.name), sets: null })
      )
    })
  ]
})
