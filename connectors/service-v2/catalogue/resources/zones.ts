/** Zones: inferred (L4); static, so that there is no lastchangedate and no modifiedsince (SCOPE-23). */
import { cancel, entrydate, externalid, id, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"

export const zones = resource({
  path: "zones",
  area: "reference",
  purpose: "zones",
  basis: "inferred",
  operations: "L R",
  fields: [
    id(),
    string("code", 20, { note: "the key" }),
    string("name", 100),
    cancel(),
    entrydate({ readOnly: true }),
    externalid()
  ],
  filters: [exact("code"), partial("name")],
  key: { field: "code" }
})
