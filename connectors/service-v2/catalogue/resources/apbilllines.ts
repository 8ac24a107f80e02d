/**
 * Coding lines of vendor bills: APBILLLINES-01..21, write shape WRITE-17..20. No cancel, entrydate or lastchangedate.
 *
 * glaccount has 20 characters in the record and 60 in the write shape; answers show the text as it was sent (I-23). The
 * documents call glcategoryid id-only beside a glcategory; it is read as a pair (I-24). The target of invreceiveid is
 * not in the catalogue: the value is stored as given (I-29). description cannot be written (APBILLLINES-18).
 */
import { externalid, id, integer, money, number, pair, ref, string } from "../fields.ts"
import { exact, partial, resource, write } from "../resource.ts"

const notResolved = "id of a record that this catalogue does not hold; stored as given"

export const apbilllines = resource({
  path: "apbilllines",
  area: "bills",
  purpose: "coding lines of vendor bills",
  basis: "documented",
  operations: "L C B R",
  businessDate: { through: "apbillid" },
  fields: [
    id(),
    ref("apbillid", "apbills"),
    money("amount"),
    pair("glaccount", "glaccounts", { by: "name", length: 20, note: "ledger account by id or name" }),
    integer("invreceiveid", { note: notResolved }),
    ref("jobid", "jobs"),
    pair("glcategory", "glcategories", { by: "code", length: 20, note: "category code" }),
    pair("costcode", "costcodes", { by: "code", length: 20, note: "cost code by id or code" }),
    string("description", 100),
    integer("isretainer", { note: "1 when withheld retainage" }),
    number("curratenumber", { dp: 10 }),
    externalid()
  ],
  // No parent: a line changes its bill (WRITE-19), but lists have no filter by bill (APBILLLINES-17). A job does not
  // change with its coding lines.
  filters: [exact("jobid"), partial("description")],
  create: [
    write(ref("apbillid", "apbills"), { required: true, note: "must be an UNPOSTED bill" }),
    ...pair("glaccount", "glaccounts", { by: "name", length: 60, note: "account by id or exact name" }).map((half) =>
      write(half, { required: half.name === "glaccountid" })
    ),
    write(money("amount"), { required: true, note: "cannot take the distribution past the bill total" }),
    write(ref("jobid", "jobs"), { note: "job to cost to" }),
    write(ref("costcodeid", "costcodes")),
    write(externalid())
  ],
  // The bill after the write: its total, the coded amount and the rest (WRITE-19, I-05).
  answers: ["billtotal", "distributed", "undistributed"]
})
