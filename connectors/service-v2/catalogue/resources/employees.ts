/**
 * Employees: inferred (L4), read-only and minimal (SCOPE-20); needs the payroll module. Their number is capped
 * (LIM-11).
 */
import { id, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const employees = resource({
  path: "employees",
  area: "payroll",
  purpose: "employees, read-only and minimal",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 100), string("code", 20), commonFields()],
  filters: [exact("code"), partial("name")],
  modifiedSince: true,
  personal: true,
  feature: "payroll",
  capped: true
})
