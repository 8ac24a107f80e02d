/** P5: a resolved row stays resolved, in every snapshot that a second session sees. */
import type { OutboxRow, PushCheckerOf } from "./PushChecker.ts"

export const pushLedger: PushCheckerOf = () => {
  const settled = new Map<string, OutboxRow>()
  return {
    name: "push ledger",
    holds:
      "P5: a row that is done stays as it is; one that is rejected changes only when it is pushed again; one that is sent has a request",
    committed: ({ rows }) => {
      for (const row of rows) {
        const before = settled.get(row.number)
        if (
          before !== undefined &&
          (before.state !== row.state ||
            before.outcome !== row.outcome ||
            before.code !== row.code ||
            before.recordId !== row.recordId)
        )
          return `row ${row.number} (${row.operation} ${row.externalid ?? row.recordId}) was ${before.state} ${before.outcome ?? before.code} and is ${row.state} ${row.outcome ?? row.code ?? ""}`
        if (row.state === "done" || row.state === "rejected") settled.set(row.number, row)
        if (row.state === "done" && row.outcome === null) return `row ${row.number} is done, and has no outcome`
        if (row.state === "rejected" && (row.code === null || row.reason === null))
          return `row ${row.number} is rejected without a reason`
        if (row.state === "in_flight" && row.call === null) return `row ${row.number} is in flight without a request`
      }
      return null
    }
  }
}
