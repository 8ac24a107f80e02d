/** I12: whoever dies after a landing has not worked in vain: what was landed is where the next one goes on. */
import { type CheckerOf } from "./Checker.ts"

export const progress: CheckerOf = ({ losses }) => {
  const pages = new Map<string, number>()
  const completed = new Map<string, string>()
  const reasons = new Map<string, string | null>()
  let { ledgers } = losses
  return {
    name: "progress",
    holds:
      "I12: a landing that does not complete its scan leaves the scan open, so that crash after crash it comes to its end; one that is not believed moves no position",
    landed: ({ subject: { company, resource, marks }, runs }) => {
      // A restored control plane holds earlier positions, and gives ids of runs again.
      if (losses.ledgers !== ledgers) {
        ledgers = losses.ledgers
        for (const known of [pages, completed, reasons]) known.clear()
      }
      for (const mark of marks) {
        const lane = `${company}/${resource.path}/${mark.lane}`
        const before = completed.get(lane)
        completed.set(lane, mark.completedAt)
        const reasonBefore = reasons.get(lane)
        reasons.set(lane, mark.fullWanted)
        for (const run of runs) {
          if (run.lane !== mark.lane) continue
          const known = pages.get(run.id) ?? 0
          pages.set(run.id, run.pages)
          if (run.pages === known || (run.kind !== "full" && run.kind !== "incremental") || run.lane !== "live")
            continue
          // A scan that came to its end and is not believed is begun again at its first page.
          const isDoubted = mark.fullWanted?.includes("mass-delete guard") === true
          // A resumed scan that is believed leaves an earlier reason as it stood.
          const isNewlyDoubted = isDoubted && mark.fullWanted !== reasonBefore
          if (isNewlyDoubted && before !== undefined && mark.completedAt !== before) {
            return `${lane}: run ${run.id} is not believed, and the checkpoint says that it has read the resource`
          }
          if (mark.scanKind === null && mark.completedAt === before && !isDoubted) {
            return `${lane}: run ${run.id} landed page ${run.pages} of a scan, and nothing is left to go on from`
          }
        }
      }
      return null
    }
  }
}
