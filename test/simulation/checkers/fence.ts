/** I6: nothing is written by a run that was taken over. */
import { type CheckerOf } from "./Checker.ts"

export const fence: CheckerOf = () => {
  const seen = new Map<string, number>()
  const highest = new Map<string, bigint>()
  /** The newest run of a lane that was known before. */
  const newest = new Map<string, bigint>()
  return {
    name: "fence",
    holds: "I6: no run lands after a later one has taken the resource over; the fence never goes back",
    landed: ({ subject: { company, resource, marks }, runs }) => {
      for (const mark of marks) {
        const lane = `${company}/${resource.path}/${mark.lane}`
        // What was known before this moment: whoever waited for the row may have raised the fence right after it.
        const known = highest.get(lane) ?? 0n
        if (mark.fence < known) return `${lane}: the fence went back to ${mark.fence}`
        highest.set(lane, mark.fence)
        const knownRun = newest.get(lane) ?? 0n
        const own = runs.filter((run) => run.lane === mark.lane)
        for (const run of own) if (BigInt(run.id) > (newest.get(lane) ?? 0n)) newest.set(lane, BigInt(run.id))
        for (const run of own) {
          const before = seen.get(run.id)
          seen.set(run.id, run.pages)
          if (before === undefined ? run.pages === 0 : run.pages === before) continue
          if (BigInt(run.id) < knownRun) return `${lane}: run ${run.id} landed although run ${knownRun} had taken over`
          if (run.fence < known) {
            return `${lane}: run ${run.id} landed with fence ${run.fence} when the fence was ${known}`
          }
        }
      }
      return null
    }
  }
}
