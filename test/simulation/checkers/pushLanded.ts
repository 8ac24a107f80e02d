/** P6: a pushed record is in the warehouse at once, and its history has its origin. */
import { type PushCheckerOf, rowOf, describeRow } from "./PushChecker.ts"

export const pushLanded: PushCheckerOf = ({ planned }) => ({
  name: "push landed",
  holds:
    "P6: right after a push, before any sync, every record that was written or adopted is in the warehouse, landed by the push",
  pushed: ({ rows, tables, scanned }) => {
    for (const one of planned) {
      const row = rowOf(rows, one)
      if (row === undefined || row.state !== "done") continue
      const name = `${one.company}/${one.resource}`
      const stored = row.recordId === null ? undefined : tables.get(name)?.get(row.recordId)
      if (row.recordId === null) return `${describeRow(one)}: ${row.outcome}, and its id is not known`
      if (stored === undefined)
        return `${describeRow(one)}: ${row.outcome} as ${row.recordId}, which is not in the warehouse`
      if (stored.deleted) return `${describeRow(one)}: ${row.outcome} as ${row.recordId}, which is called deleted`
      if (stored.origin !== "push" && !scanned.has(name))
        return `${describeRow(one)}: ${row.recordId} was landed by ${stored.origin}, and only the push has read it`
    }
    return null
  }
})
