/** Payment terms, one table for the whole install: INVOICETERMS-01..15, C-11. The key ignores case (F-05). */
import { boolean, cancel, externalid, id, integer, lastchangedate, number, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"

export const invoiceterms = resource({
  path: "invoiceterms",
  area: "setup",
  purpose: "payment terms, shared install-wide",
  basis: "documented",
  operations: "L C B R U D",
  fields: [
    id(),
    string("verbal", 30, { note: "the key" }),
    integer("netduedays"),
    number("discountpercent", { dp: 3 }),
    integer("discountdays"),
    boolean("ar", { note: "available on receivables" }),
    boolean("ap", { note: "available on payables" }),
    cancel(),
    externalid(),
    lastchangedate()
  ],
  filters: [partial("verbal")],
  modifiedSince: true,
  key: { field: "verbal", caseSensitive: false },
  required: ["verbal"],
  shared: true
})
