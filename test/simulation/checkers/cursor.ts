/** I3 and I4: the cursor is never ahead of the data, in any snapshot that a second session reads. */
import { type CheckerOf, keyOf, microsOf } from "./Checker.ts"

const instantOf = (cursor: string): number | null => {
  const match = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?Z$/.exec(cursor)
  if (match === null) return null
  return Date.parse(`${match[1]}Z`) * 1000 + Number((match[2] ?? "").slice(0, 6).padEnd(6, "0"))
}

export const cursor: CheckerOf = ({ plan, source, canonical, overBound, losses, earliestOf }) => {
  const passed = new Map<string, string>()
  return {
    name: "cursor",
    holds:
      "I3, I4: everything up to the stored cursor that the source showed when it issued the cursor is in the warehouse or in quarantine",
    landed: ({ subject: { company, resource, marks, rows, quarantine } }) => {
      const mark = marks.find(({ lane }) => lane === "live")
      if (mark === undefined || mark.cursor === null) return null
      const table = `${company}/${resource.path}`
      // The cursor of a lost table proves nothing until a run that began after the loss succeeds.
      const loss = losses.latest(company, resource.path)
      if (loss?.isRepaired === false) return null
      const position = `${mark.cursor} ${loss?.count ?? 0}`
      if (passed.get(table) === position) return null
      const issued = source.issuedCursors.get(mark.cursor)
      const issuedAt = issued ?? instantOf(mark.cursor)
      if (issuedAt === null) return `${table}: the source never issued the cursor ${mark.cursor}`
      const limit = instantOf(mark.cursor)!
      /** The newest version of each record that was visible then. */
      const visible = new Map<string, number>()
      const history = source.history(company, resource.path)
      history.forEach((version, index) => {
        if (version.at < issuedAt) visible.set(version.id, index)
      })
      const stampIndex = resource.fields.findIndex(({ name }) => name === resource.roles.modifiedAt)
      const inQuarantine = new Set(quarantine.map(({ id }) => id))
      for (const [id, index] of visible) {
        const version = history[index]!
        if (version.op === "delete" || version.stamp === null || version.stamp > limit) continue
        if (inQuarantine.has(id)) continue
        const key = keyOf(company, resource.path, id)
        if (overBound.has(key) || losses.deletedByHand.has(key)) continue
        // Removed since then: a read of its page can no longer find it.
        if (history.some((later, place) => place > index && later.id === id && later.op === "delete")) continue
        const row = rows.get(id)
        if (row === undefined) return `${key} (stamp ${version.stamp}) is missing, and the cursor is ${mark.cursor}`
        const isThere = history.some(
          (later, place) =>
            place >= index &&
            later.id === id &&
            (row.deleted ? later.op === "delete" : canonical(company, resource, later.text).whole === row.value.whole)
        )
        if (isThere) continue
        // Two reads that overlap may show two versions with one stamp. Nothing shows which is later. The next run,
        // which reads back by the overlap, finds the later one.
        const isReadAgain =
          version.stamp > limit - plan.overlap &&
          version.at >= earliestOf(microsOf(row.observedAt)) &&
          canonical(company, resource, version.text).fields[stampIndex] === row.value.fields[stampIndex]
        if (!isReadAgain)
          return `${key} is older than the cursor ${mark.cursor} promises: the version of commit ${version.seq} is missing`
      }
      passed.set(table, position)
      return null
    }
  }
}
