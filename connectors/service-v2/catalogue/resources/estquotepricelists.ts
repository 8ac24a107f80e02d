/**
 * Price lists of estimating quotes: ESTQUOTEPRICELISTS-01..25. The targets of stdsizeid and point2id are not in the
 * catalogue: the values are stored as given (I-29).
 */
import {
  cancel,
  entrydate,
  externalid,
  id,
  integer,
  lastchangedate,
  money,
  number,
  pair,
  qty,
  string,
  text
} from "../fields.ts"
import { partial, resource } from "../resource.ts"

const notResolved = "id of a record that this catalogue does not hold; stored as given"

export const estquotepricelists = resource({
  path: "estquotepricelists",
  area: "estimating",
  purpose: "price lists of estimating quotes",
  basis: "documented",
  operations: "L C B",
  fields: [
    id(),
    integer("stdsizeid", { note: notResolved }),
    pair("worktype", "worktypes", { by: "name", length: 100, note: "work type by id or name" }),
    string("name", 50),
    cancel(),
    entrydate({ readOnly: true, typed: false }),
    lastchangedate(),
    integer("maxinkside1"),
    integer("maxinkside2"),
    money("trimchargepermpercut", { dp: 2 }),
    money("trimmincharge", { dp: 2 }),
    qty("qtyperbox", { dp: 0 }),
    text("notes"),
    integer("point2id", { note: notResolved }),
    money("covereach_blackinandout", { dp: 5 }),
    money("covereach_coloroutblackin", { dp: 5 }),
    money("covereach_colorinandout", { dp: 5 }),
    money("costper_nocover", { dp: 5 }),
    money("covereach_colorinblackout", { dp: 5 }),
    integer("noinkcharge", { note: "1 means no separate ink charge" }),
    number("scrap_percent", { dp: 2 }),
    integer("scrap_sheets_max"),
    externalid()
  ],
  filters: [partial("name")],
  modifiedSince: true,
  feature: "estimating"
})
