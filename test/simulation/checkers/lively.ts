/** I12: after healing, every run finishes, and a run that reports done is right. */
import { type CheckerOf, keyOf } from "./Checker.ts"
import { differences } from "./equal.ts"

export const lively: CheckerOf = (setting) => ({
  name: "lively",
  holds:
    "I12: after healing every run ends done, or quarantined where records really cannot be landed; a run reports done only when it is true",
  healed: (final) => {
    for (const { company, resource, status, reason } of final.said) {
      const table = `${company}/${resource}`
      const hasOdd = [...final.odd].some((key) => key.startsWith(`${table}/`))
      const different = [...differences(setting, final).keys()].some(
        (key) => key.startsWith(`${table}/`) && !final.excused.has(key)
      )
      if (status === "done" && different) return `${table} reports done and is not equal`
      if (status === "done") continue
      if (status === "quarantined" && (hasOdd || final.isDisputed)) continue
      return `${table} ended ${status} although everything was healed: ${reason ?? "no reason"}`
    }
    for (const { company, resource, marks, quarantine } of final.subjects) {
      for (const { lane, scanKind } of marks) {
        if (scanKind !== null) return `${company}/${resource.path}: a scan of lane ${lane} is still open`
      }
      for (const { id, reason } of quarantine) {
        const key = keyOf(company, resource.path, id ?? "")
        // A record that was removed without a trace stays in quarantine until a full scan does not find it.
        if (id !== null && !final.full && final.excused.has(key)) continue
        if (id === null || !final.odd.has(key)) {
          return `${company}/${resource.path}/${id} is still in quarantine: ${reason}`
        }
      }
    }
    return null
  }
})
