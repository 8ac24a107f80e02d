/** Definitions of custom fields: named by RES-03, fields inferred (L2); the area is read as setup (C-10). */
import { id, string, text } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const customfields = resource({
  path: "customfields",
  area: "setup",
  purpose: "definitions of the install's custom fields",
  basis: "named",
  operations: "L R",
  fields: [
    id(),
    string("name", 100),
    text("acceptedvalues", { note: "accepted values, separated by commas; empty accepts any" }),
    string("resource", 100, { note: "path of the owning resource" }),
    commonFields()
  ],
  filters: [exact("resource"), partial("name")],
  modifiedSince: true
})
