/** Pay types: inferred (L4); needs the payroll module. */
import { id, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const prpaytypes = resource({
  path: "prpaytypes",
  area: "payroll",
  purpose: "payroll pay types",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 100), string("code", 20), commonFields()],
  filters: [exact("code"), partial("name")],
  modifiedSince: true,
  personal: true,
  feature: "payroll"
})
