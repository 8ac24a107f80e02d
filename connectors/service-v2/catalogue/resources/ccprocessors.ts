/** Card processors: inferred (L3); a static read-only table (CCACCOUNTS-10), so that there is no lastchangedate. */
import { cancel, entrydate, externalid, id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"

export const ccprocessors = resource({
  path: "ccprocessors",
  area: "banking",
  purpose: "card processors",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 100, { note: "the key" }), cancel(), entrydate({ readOnly: true }), externalid()],
  filters: [partial("name")],
  key: { field: "name" }
})
