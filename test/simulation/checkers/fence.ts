/** I6: a run whose lane was acquired by a later run writes nothing. */
import { type CheckerOf } from "./Checker.ts"

/** The error of a run in the ledger whose process was found to be gone. */
const vanished = "its process is gone"

export const fence: CheckerOf = ({ plan, losses }) => {
  // The locks of a process are on a separate session. The process closes it after a statement that failed, or that had no
  // answer for 15 s. A service that processes events for the first time ends the session of another service. A run that
  // waits for the source then has no lock, and continues later.
  const losesLocks =
    (["D8", "C3", "D1", "D2", "D4", "D5", "D6", "D12"] as const).some((name) => plan.on.has(name)) ||
    (plan.hooks !== "off" && plan.processes > 1)
  const gone = new Set<string>()
  const seen = new Map<string, number>()
  const highest = new Map<string, bigint>()
  /** The run that acquired a lane last, as known before: the newest run with the highest fence. */
  const newest = new Map<string, { readonly id: bigint; readonly fence: bigint }>()
  let { ledgers } = losses
  return {
    name: "fence",
    holds:
      "I6: no run lands after a later one has acquired the resource; the fence never goes back; a run is called abandoned only when a later one has acquired the lane, when it was stopped, or when no process continues it",
    landed: ({ subject: { company, resource, marks }, runs }) => {
      // After a restore of the control plane, fences and ids of runs begin again at the copy. From there they only
      // grow.
      if (losses.ledgers !== ledgers) {
        ledgers = losses.ledgers
        for (const memory of [gone, seen, highest, newest]) memory.clear()
      }
      for (const mark of marks) {
        const lane = `${company}/${resource.path}/${mark.lane}`
        // The fence known before this moment: a process that waited for the row may have raised the fence right after
        // it.
        const knownFence = highest.get(lane) ?? 0n
        if (mark.fence < knownFence) return `${lane}: the fence went back to ${mark.fence}`
        highest.set(lane, mark.fence)
        const knownRun = newest.get(lane)
        const own = runs.filter((run) => run.lane === mark.lane)
        for (const { id, fence: runFence } of own) {
          const last = newest.get(lane)
          // A run gets its id after its fence. A run that was superseded in between has the higher id.
          if (last === undefined || runFence > last.fence || (runFence === last.fence && BigInt(id) > last.id))
            newest.set(lane, { id: BigInt(id), fence: runFence })
        }
        for (const run of own) {
          const isSaid = run.error?.startsWith("stopped: ") === true || run.error?.startsWith(vanished) === true
          if (run.status === "abandoned" && !isSaid && BigInt(run.id) === newest.get(lane)!.id) {
            return `${lane}: run ${run.id} is called abandoned, and no later run has acquired the lane since fence ${run.fence}`
          }
        }
        for (const run of own) {
          const before = seen.get(run.id)
          seen.set(run.id, run.pages)
          const wasGone = gone.has(run.id)
          if (run.error?.startsWith(vanished) === true) gone.add(run.id)
          if (before === undefined ? run.pages === 0 : run.pages === before) continue
          // A run that has lost its lock, also in a long pause, looks the same as one whose process is gone.
          if (wasGone && !losesLocks) return `${lane}: run ${run.id} landed after its process was reported as gone`
          if (knownRun !== undefined && run.fence <= knownRun.fence && BigInt(run.id) < knownRun.id) {
            return `${lane}: run ${run.id} landed although run ${knownRun.id} had acquired the lane`
          }
          if (run.fence < knownFence) {
            return `${lane}: run ${run.id} landed with fence ${run.fence} when the fence was ${knownFence}`
          }
        }
      }
      return null
    }
  }
}
