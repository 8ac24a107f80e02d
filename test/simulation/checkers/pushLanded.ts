/** P6: a pushed record is in the warehouse at once, and its history has its origin. */
import { type PushCheckerOf, rowOf, told } from "./PushChecker.ts"

export const pushLanded: PushCheckerOf = ({ wanted }) => ({
  name: "push landed",
  holds:
    "P6: right after a push, before any sync, every record that was written or adopted is in the warehouse, landed by the push",
  pushed: ({ rows, tables, scanned }) => {
    for (const one of wanted) {
      const row = rowOf(rows, one)
      if (row === undefined || row.state !== "done") continue
      const name = `${one.company}/${one.resource}`
      const held = row.recordId === null ? undefined : tables.get(name)?.get(row.recordId)
      if (row.recordId === null) return `${told(one)}: ${row.outcome}, and its id is not known`
      if (held === undefined) return `${told(one)}: ${row.outcome} as ${row.recordId}, which is not in the warehouse`
      if (held.deleted) return `${told(one)}: ${row.outcome} as ${row.recordId}, which is called deleted`
      if (held.origin !== "push" && !scanned.has(name))
        return `${told(one)}: ${row.recordId} was landed by ${held.origin}, and only the push has read it`
    }
    return null
  }
})
