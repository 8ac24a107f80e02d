/**
 * CRM task statuses: TASKSTATUSES-01..10. cancel=true means cancelled only. No lastchangedate, so that there is
 * no modifiedsince. The key ignores case.
 */
import { cancel, externalid, id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"

export const taskstatuses = resource({
  path: "taskstatuses",
  area: "setup",
  purpose: "CRM task statuses",
  basis: "documented",
  operations: "L C B R U",
  fields: [id(), string("name", 100, { note: "the key, case-insensitive" }), cancel(), externalid()],
  filters: [partial("name")],
  cancelFilter: "only",
  key: { field: "name", caseSensitive: false },
  required: ["name"]
})
