/** P1: every pushed record is written at the source exactly once, and pushes write nothing else. */
import { type PushCheckerOf, rowOf, describeRow } from "./PushChecker.ts"

export const pushOnce: PushCheckerOf = ({ planned, effects, others }) => ({
  name: "push once",
  holds:
    "P1: at the source, every record that was pushed was created, changed or cancelled exactly once, and no other was",
  done: ({ sending, changes }) => {
    for (const { op, version } of changes) {
      const where = `${sending.company}/${sending.resource} ${version.id}`
      if (sending.method !== "POST" && op === "insert") return `${sending.method} has made ${where}`
      if (sending.method !== "POST") continue
      const { externalid } = version.values
      if (op !== "insert") return `a create has changed ${where}`
      const one = planned.find(
        (row) =>
          row.operation === "create" &&
          row.company === sending.company &&
          row.resource === sending.resource &&
          row.externalid === externalid
      )
      if (one === undefined)
        return `${where} was created, and no record was planned for it (externalid ${String(externalid)})`
      const made = effects.flatMap((effect) =>
        effect.sending.company === one.company &&
        effect.sending.resource === one.resource &&
        effect.sending.method === "POST"
          ? effect.changes.filter(
              (change) => change.op === "insert" && change.version.values["externalid"] === externalid
            )
          : []
      )
      if (made.length > 1)
        return `${describeRow(one)}: created ${made.length} times, as ${made.map((change) => change.version.id).join(" and ")}`
      if (others.has(`${one.company}/${one.resource}/${one.externalid}`))
        return `${describeRow(one)}: created as ${version.id} although other people had created it before`
    }
    return null
  },
  pushed: ({ rows }) => {
    for (const one of planned) {
      const row = rowOf(rows, one)
      if (row === undefined || one.operation === "create") continue
      const isCancel = one.operation === "cancel"
      const times = effects.filter(
        ({ sending, changes }) =>
          sending.company === one.company &&
          sending.resource === one.resource &&
          sending.method === (isCancel ? "DELETE" : "PATCH") &&
          (isCancel
            ? changes.some(({ version }) => String(version.id) === row.recordId)
            : (sending.body ?? "").includes(`"${one.sets!.value}"`))
      ).length
      if (times > 1) return `${describeRow(one)}: done ${times} times`
      if (row.outcome === "updated" && times === 0) return `${describeRow(one)}: called updated, and it never was`
      if (row.outcome === "unchanged" && times > 0 && !isCancel)
        return `${describeRow(one)}: called unchanged, and a push changed it`
    }
    return null
  }
})
