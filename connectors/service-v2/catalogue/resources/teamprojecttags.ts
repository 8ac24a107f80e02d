/** Tags for project tasks: inferred (L3, L4) from teamprojecttag; needs the projects module. */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const teamprojecttags = resource({
  path: "teamprojecttags",
  area: "projects",
  purpose: "tags for project tasks",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), string("name", 100), commonFields()],
  filters: [partial("name")],
  modifiedSince: true,
  key: { field: "name", unique: false },
  feature: "projects"
})
