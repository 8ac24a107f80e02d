/** What privacy rules exclude, hash or mask is nowhere in the warehouse, whatever happened while they changed. */
import { type CheckerOf } from "./Checker.ts"
import { isWithheld } from "./Kept.ts"

export const withheld: CheckerOf = ({ plan }) => ({
  name: "withheld",
  holds:
    "when every process has the newest privacy rules and a sync has ended, no table has a value that these exclude, hash or mask",
  healed: ({ written }) => {
    for (const [table, { names, resource, text }] of written)
      if (isWithheld(plan.later.rules, resource, names))
        return `${table} has ${text}, which is the value of ${names.join(".")} of ${resource.path}`
    return null
  }
})
