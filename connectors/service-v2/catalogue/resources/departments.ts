/** Departments: inferred (L4, SCOPE-20); needs the payroll module. */
import { id, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const departments = resource({
  path: "departments",
  area: "payroll",
  purpose: "departments",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 100), string("code", 20), commonFields()],
  filters: [exact("code"), partial("name")],
  modifiedSince: true,
  feature: "payroll"
})
