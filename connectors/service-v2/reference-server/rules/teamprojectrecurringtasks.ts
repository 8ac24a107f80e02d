/** Recurring tasks: days of the week and of the month have ranges; no check combines several fields (I-28). */
import { ApiError } from "../ApiError.ts"
import type { Value } from "../json.ts"
import { patchOf } from "./body.ts"
import { change, insert } from "./records.ts"
import type { Rules } from "./Rules.ts"

const ranges = [
  ["dayofweek", 0, 6],
  ["dayofmonth", 1, 31]
] as const

const refuseOutside = (patch: Readonly<Record<string, Value>>) => {
  for (const [field, least, most] of ranges) {
    const value = patch[field]
    if (typeof value !== "number" || (value >= least && value <= most)) continue
    throw new ApiError("invalid_enum", `${field} must be from ${least} to ${most}`, { field })
  }
}

export const teamprojectrecurringtasks: Rules = {
  create: (context, resource, body) => {
    const patch = patchOf(resource, "create", body)
    refuseOutside(patch)
    return { version: insert(context, resource.path, patch, body) }
  },
  update: (context, task, body) => {
    const patch = patchOf(task.table.resource, "update", body)
    refuseOutside(patch)
    return { version: change(context, task, patch, body) }
  }
}
