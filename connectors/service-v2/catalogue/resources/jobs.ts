/** Construction jobs: inferred (L4) from jobid; needs the jobs module. */
import { id, pair, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const jobs = resource({
  path: "jobs",
  area: "jobs",
  purpose: "construction jobs",
  basis: "inferred",
  operations: "L C R U D",
  fields: [
    id(),
    string("name", 100),
    pair("customer", "customers", { by: "customercode", length: 30, note: "customer by id or customercode" }),
    commonFields()
  ],
  filters: [exact("customerid"), partial("name")],
  modifiedSince: true,
  feature: "jobs"
})
