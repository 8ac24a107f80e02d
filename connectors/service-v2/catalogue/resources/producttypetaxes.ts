/** Taxes on product types. It has lastchangedate, but its row offers no modifiedsince (I-03). */
import { cancel, entrydate, externalid, id, lastchangedate, number, pair, string, text } from "../fields.ts"
import { partial, resource } from "../resource.ts"

export const producttypetaxes = resource({
  path: "producttypetaxes",
  area: "tax",
  purpose: "taxes on product types",
  basis: "documented",
  operations: "L C B R U D",
  fields: [
    id(),
    string("name", 255),
    number("taxrate", { dp: 6 }),
    pair("glaccount", "glaccounts", { by: "name", length: 20, note: "ledger account by id or name" }),
    cancel(),
    entrydate({ readOnly: true, typed: false }),
    lastchangedate(),
    text("states"),
    externalid()
  ],
  filters: [partial("name")]
})
