/**
 * Email templates: EMAILTEMPLATES-01..12. No lastchangedate, so that there is no modifiedsince (EMAILTEMPLATES-11..12).
 * The key ignores case.
 */
import { cancel, externalid, id, string, text } from "../fields.ts"
import { partial, resource } from "../resource.ts"

export const emailtemplates = resource({
  path: "emailtemplates",
  area: "setup",
  purpose: "email templates",
  basis: "documented",
  operations: "L C B R U",
  fields: [
    id(),
    string("action", 20, { note: "the key, case-insensitive" }),
    string("name", 200),
    string("subject", 255),
    text("body"),
    cancel(),
    externalid()
  ],
  filters: [partial("name", "action")],
  key: { field: "action", caseSensitive: false },
  required: ["action"]
})
