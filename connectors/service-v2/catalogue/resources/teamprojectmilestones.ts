/** Milestones of projects: inferred (L3, L4) from teamprojectmilestoneid; needs the projects module. */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const teamprojectmilestones = resource({
  path: "teamprojectmilestones",
  area: "projects",
  purpose: "milestones of projects",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), string("title", 255), commonFields()],
  filters: [partial("title")],
  modifiedSince: true,
  feature: "projects"
})
