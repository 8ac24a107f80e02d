/** I6: nothing is written by a run that was taken over. */
import { type CheckerOf } from "./Checker.ts"

/** As the ledger tells of a run that was found without a process. */
const vanished = "its process is gone"

export const fence: CheckerOf = ({ plan, losses }) => {
  // The locks of a process are on a session of their own: it may end while a run waits for the source and goes on later.
  const losesLocks = (["D8", "C3", "D1", "D2", "D5"] as const).some((name) => plan.on.has(name))
  const gone = new Set<string>()
  const seen = new Map<string, number>()
  const highest = new Map<string, bigint>()
  /** The run that took a lane over last, as far as was known before: of the highest fence, and of these the newest. */
  const newest = new Map<string, { readonly id: bigint; readonly fence: bigint }>()
  let { ledgers } = losses
  return {
    name: "fence",
    holds:
      "I6: no run lands after a later one has taken the resource over; the fence never goes back; a run is called abandoned only when a later one has taken over, by itself when it was stopped, or when nobody goes on with it",
    landed: ({ subject: { company, resource, marks }, runs }) => {
      // Fences and ids of runs begin again where a restored control plane was; from there they only grow.
      if (losses.ledgers !== ledgers) {
        ledgers = losses.ledgers
        for (const known of [gone, seen, highest, newest]) known.clear()
      }
      for (const mark of marks) {
        const lane = `${company}/${resource.path}/${mark.lane}`
        // What was known before this moment: whoever waited for the row may have raised the fence right after it.
        const known = highest.get(lane) ?? 0n
        if (mark.fence < known) return `${lane}: the fence went back to ${mark.fence}`
        highest.set(lane, mark.fence)
        const knownRun = newest.get(lane)
        const own = runs.filter((run) => run.lane === mark.lane)
        for (const { id, fence: held } of own) {
          const last = newest.get(lane)
          // A run gets its number after its fence: one that was taken over in between has the higher number.
          if (last === undefined || held > last.fence || (held === last.fence && BigInt(id) > last.id))
            newest.set(lane, { id: BigInt(id), fence: held })
        }
        for (const run of own) {
          const isSaid = run.error?.startsWith("stopped: ") === true || run.error?.startsWith(vanished) === true
          if (run.status === "abandoned" && !isSaid && BigInt(run.id) === newest.get(lane)!.id) {
            return `${lane}: run ${run.id} is called abandoned, and nobody has taken over from its fence ${run.fence}`
          }
        }
        for (const run of own) {
          const before = seen.get(run.id)
          seen.set(run.id, run.pages)
          const wasGone = gone.has(run.id)
          if (run.error?.startsWith(vanished) === true) gone.add(run.id)
          if (before === undefined ? run.pages === 0 : run.pages === before) continue
          // One that has lost its lock, as it may in a long pause too, cannot be told from one that is gone.
          if (wasGone && !losesLocks) return `${lane}: run ${run.id} landed after it was said to be gone`
          if (knownRun !== undefined && run.fence <= knownRun.fence && BigInt(run.id) < knownRun.id) {
            return `${lane}: run ${run.id} landed although run ${knownRun.id} had taken over`
          }
          if (run.fence < known) {
            return `${lane}: run ${run.id} landed with fence ${run.fence} when the fence was ${known}`
          }
        }
      }
      return null
    }
  }
}
