/** `tributary verify` finds the differences between warehouse and source, and no others. */
import { type CheckerOf, keyOf } from "./Checker.ts"

export const verified: CheckerOf = () => ({
  name: "verified",
  holds: "I8: verify compares a company with its own source, and reports each difference and no other",
  verified: ({ reports, differences }) => {
    const found = new Set<string>()
    for (const { companyId, resource, status, findings, failure } of reports) {
      if (status === "failed") return `${companyId}/${resource} could not be verified: ${failure?.message}`
      for (const { id, kind, quarantined, fields } of findings) {
        const key = keyOf(Number(companyId), resource, id)
        found.add(key)
        if (quarantined === null && !differences.has(key))
          return `${key} is equal, and verify reports it as ${kind} in ${fields.map(({ field }) => field).join(", ")}`
      }
    }
    for (const [key, what] of differences) if (!found.has(key)) return `${key} ${what}, and verify does not report it`
    return null
  }
})
