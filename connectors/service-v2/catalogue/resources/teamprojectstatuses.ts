/** Statuses of project tasks: inferred (L3, L4) from teamprojectstatus; needs the projects module. */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const teamprojectstatuses = resource({
  path: "teamprojectstatuses",
  area: "projects",
  purpose: "statuses of project tasks",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), string("name", 100), commonFields()],
  filters: [partial("name")],
  modifiedSince: true,
  key: { field: "name", unique: false },
  feature: "projects"
})
