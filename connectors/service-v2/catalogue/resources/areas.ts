/**
 * Areas: AREAS-01..09. applicationfee is stored with 6 decimals and returned with 4 (F-03). No entrydate and no
 * lastchangedate, so that there is no modifiedsince. The key ignores case (F-05).
 */
import { cancel, externalid, id, money, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"

export const areas = resource({
  path: "areas",
  area: "setup",
  purpose: "areas",
  basis: "documented",
  operations: "L C B R U D",
  fields: [
    id(),
    string("name", 100, { note: "the key" }),
    money("applicationfee", { dp: 6, shown: 4, note: "stored with 6 decimals, returned with 4" }),
    cancel(),
    externalid()
  ],
  filters: [partial("name")],
  key: { field: "name", caseSensitive: false },
  required: ["name"]
})
