/** I12: a landing survives a crash. The next run resumes after the last landed page. */
import { type CheckerOf } from "./Checker.ts"

export const progress: CheckerOf = ({ losses }) => {
  const pages = new Map<string, number>()
  const completed = new Map<string, string>()
  const reasons = new Map<string, string | null>()
  let { ledgers } = losses
  return {
    name: "progress",
    holds:
      "I12: a landing that does not complete its scan leaves the scan open, so that repeated crashes cannot prevent its end; one that the mass-delete guard stops moves no position",
    landed: ({ subject: { company, resource, marks }, runs }) => {
      // A restored control plane has earlier positions, and uses ids of runs again.
      if (losses.ledgers !== ledgers) {
        ledgers = losses.ledgers
        for (const memory of [pages, completed, reasons]) memory.clear()
      }
      for (const mark of marks) {
        const lane = `${company}/${resource.path}/${mark.lane}`
        const before = completed.get(lane)
        completed.set(lane, mark.completedAt)
        const reasonBefore = reasons.get(lane)
        reasons.set(lane, mark.fullScanReason)
        for (const run of runs) {
          if (run.lane !== mark.lane) continue
          const pagesBefore = pages.get(run.id) ?? 0
          pages.set(run.id, run.pages)
          if (run.pages === pagesBefore || (run.kind !== "full" && run.kind !== "incremental") || run.lane !== "live")
            continue
          // A scan that reached its end and was stopped by the mass-delete guard begins again at its first page.
          const isDoubted = mark.fullScanReason?.includes("mass-delete guard") === true
          // A resumed scan that the guard does not stop leaves an earlier reason unchanged.
          const isNewlyDoubted = isDoubted && mark.fullScanReason !== reasonBefore
          if (isNewlyDoubted && before !== undefined && mark.completedAt !== before) {
            return `${lane}: run ${run.id} was stopped by the mass-delete guard, and the checkpoint says that it has read the resource`
          }
          // The reason of a restored source replaces that of the guard.
          const isStale = mark.fullScanReason?.includes("older versions") === true
          if (mark.scanKind === null && mark.completedAt === before && !isDoubted && !isStale) {
            return `${lane}: run ${run.id} landed page ${run.pages} of a scan, and no position is left to resume from`
          }
        }
      }
      return null
    }
  }
}
