/** Draws on a job: inferred (L4, SCOPE-18); needs the jobs module. */
import { id, money, ref } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const jobdraws = resource({
  path: "jobdraws",
  area: "jobs",
  purpose: "draws on a construction job",
  basis: "inferred",
  operations: "L C R U D",
  businessDate: { field: "entrydate" },
  fields: [id(), ref("jobid", "jobs"), money("amount"), commonFields()],
  filters: [exact("jobid")],
  modifiedSince: true,
  required: ["jobid"],
  feature: "jobs"
})
