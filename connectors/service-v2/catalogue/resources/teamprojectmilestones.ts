/** Milestones of projects: inferred (L3, L4) from teamprojectmilestoneid; needs the projects module. */
import { id, string } from "../../../../src/catalogue/Field.ts"
import { partial, resource } from "../../../../src/catalogue/Resource.ts"
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
