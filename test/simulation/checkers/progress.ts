/** I12: whoever dies after a landing has not worked in vain: what was landed is where the next one goes on. */
import { type CheckerOf } from "./Checker.ts"

export const progress: CheckerOf = () => {
  const pages = new Map<string, number>()
  const completed = new Map<string, string>()
  return {
    name: "progress",
    holds:
      "I12: a landing that does not complete its scan leaves the scan open, so that crash after crash it comes to its end",
    landed: ({ subject: { company, resource, marks }, runs }) => {
      for (const mark of marks) {
        const lane = `${company}/${resource.path}/${mark.lane}`
        const before = completed.get(lane)
        completed.set(lane, mark.completedAt)
        for (const run of runs) {
          if (run.lane !== mark.lane) continue
          const known = pages.get(run.id) ?? 0
          pages.set(run.id, run.pages)
          if (run.pages === known || (run.kind !== "full" && run.kind !== "incremental") || run.lane !== "live")
            continue
          if (mark.scanKind === null && mark.completedAt === before) {
            return `${lane}: run ${run.id} landed page ${run.pages} of a scan, and nothing is left to go on from`
          }
        }
      }
      return null
    }
  }
}
