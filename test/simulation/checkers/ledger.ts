/** The ledger of runs is true: its counts equal the versions that the runs landed. */
import { type CheckerOf, type Run } from "./Checker.ts"

export const ledger: CheckerOf = ({ losses }) => ({
  name: "ledger",
  holds:
    "for every run: inserted, updated and deleted are the versions that name it; records = inserted + updated + unchanged + quarantined; none is left running",
  healed: (final) => {
    const brought = new Map<string, { insert: number; update: number; delete: number }>()
    for (const subject of final.subjects) {
      const { company, resource } = subject
      const hasHoles = losses.hasHoles(company, resource.path)
      const seen = new Set<string>()
      for (const { id, runId, op, value } of final.history(subject)) {
        // A row that was restored without its history may be in the history too. Its run has counted it once.
        const name = `${id} ${runId} ${op} ${value.whole}`
        if (hasHoles && seen.has(name)) continue
        seen.add(name)
        const key = runId ?? "none"
        let counts = brought.get(key)
        if (counts === undefined) brought.set(key, (counts = { insert: 0, update: 0, delete: 0 }))
        counts[op as "insert" | "update" | "delete"]++
      }
    }
    const handmade = new Set([...losses.deletedByHand].map((key) => key.slice(0, key.lastIndexOf("/"))))
    const mayBeLost = ({ id, company, resource }: Run): boolean =>
      BigInt(id) <= (losses.latest(company, resource)?.lastRun ?? 0n) || handmade.has(`${company}/${resource}`)
    if (brought.has("none")) return "a version names no run"
    for (const run of final.runs) {
      const name = `run ${run.id} (${run.resource}, ${run.kind}, ${run.status})`
      const counts = brought.get(run.id) ?? { insert: 0, update: 0, delete: 0 }
      brought.delete(run.id)
      // A row that returns after its tombstone is an update in the ledger and an insert in the history. Versions that a
      // loss removed no longer name a run. No further versions can exist. A version may name a run that a restored
      // ledger no longer has, or another run that got its id since.
      if (BigInt(run.id) <= losses.lastRunBefore) {
        if (run.status === "running") return `${name} is left running`
        continue
      }
      if (mayBeLost(run)) {
        if (run.inserted + run.updated < counts.insert + counts.update || run.deleted < counts.delete)
          return `${name} counts less than the versions that name it`
      } else if (run.inserted + run.updated !== counts.insert + counts.update) {
        return `${name} counts ${run.inserted} inserted and ${run.updated} updated; ${counts.insert + counts.update} versions name it`
      }
      if (!mayBeLost(run) && run.deleted !== counts.delete)
        return `${name} counts ${run.deleted} deleted; ${counts.delete} tombstones name it`
      if (run.inserted + run.updated + run.unchanged > run.records) return `${name}: its counts exceed its records`
      if (run.inserted + run.updated + run.unchanged + run.quarantined < run.records)
        return `${name}: its counts do not add up`
      const isScan = run.kind === "full" || run.kind === "incremental"
      if (isScan && (run.status === "done" || run.status === "quarantined") && run.pages === 0) {
        return `${name} landed no page and is called ${run.status}`
      }
      if (run.status === "running") return `${name} is left running`
    }
    for (const id of brought.keys())
      if (BigInt(id) > losses.lastRunBefore) return `versions name run ${id}, which the ledger does not know`
    return null
  }
})
