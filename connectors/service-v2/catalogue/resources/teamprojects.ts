/** Projects: inferred (L3, L4) from the references by code; needs the projects module. */
import { id, string } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const teamprojects = resource({
  path: "teamprojects",
  area: "projects",
  purpose: "projects",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), string("code", 30, { note: "the key" }), commonFields()],
  filters: [exact("code")],
  modifiedSince: true,
  key: { field: "code" },
  required: ["code"],
  feature: "projects"
})
