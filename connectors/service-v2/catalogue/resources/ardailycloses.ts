/**
 * End-of-day close records: ARDAILYCLOSES-01..25. The field is spelt depositeamount (ARDAILYCLOSES-23). entrydate is
 * not read-only and may be written on create (F-12); there is no lastchangedate, so that there is no modifiedsince.
 */
import { cancel, date, entrydate, externalid, id, money, pair, string, text } from "../fields.ts"
import { exact, resource } from "../resource.ts"

export const ardailycloses = resource({
  path: "ardailycloses",
  area: "payments",
  purpose: "end-of-day close records",
  basis: "documented",
  operations: "L C B",
  businessDate: { field: "closedate" },
  fields: [
    id(),
    pair("inventorylocation", "inventorylocations", {
      by: "locationcode",
      length: 20,
      note: "inventory location by id or locationcode"
    }),
    date("closedate", { typed: false }),
    money("actualcash"),
    money("actualchecks"),
    money("cashdrawerfloat"),
    money("depositeamount"),
    money("actualcc"),
    money("overshort"),
    money("gl_cash"),
    money("gl_cc"),
    money("gl_checks"),
    money("sys_cash"),
    money("sys_cc"),
    money("sys_checks"),
    text("currencybreakdown"),
    string("currency", 10),
    entrydate({ typed: false }),
    cancel(),
    externalid()
  ],
  // No parent: closing a day does not change its location (ARDAILYCLOSES-02).
  filters: [exact("inventorylocationid")]
})
