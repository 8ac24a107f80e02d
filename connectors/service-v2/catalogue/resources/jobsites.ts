/** Sites of a job: inferred (L4, SCOPE-18); needs the jobs module. */
import { id, ref, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const jobsites = resource({
  path: "jobsites",
  area: "jobs",
  purpose: "sites of a construction job",
  basis: "inferred",
  operations: "L C R U D",
  fields: [id(), ref("jobid", "jobs"), string("address", 100), commonFields()],
  filters: [exact("jobid"), partial("address")],
  modifiedSince: true,
  required: ["jobid"],
  feature: "jobs"
})
