/**
 * Nothing that decides rests on a session that is behind.
 *
 * A close, a closed violation, an export and a push from a query begin their snapshot by `src/warehouse/ReaderMark.ts`, and
 * this checker sees what such snapshots showed. Deletions are not among them: they are decided on the landing's own session,
 * which is the owner's, and `equal` and `genuine` see each of them.
 */
import type { CheckerOf } from "./Checker.ts"

export const behind: CheckerOf = () => ({
  name: "behind",
  holds: "a decision is made on rows that have everything that was committed before its mark, or it is not made",
  decided: ({ isBehind, refusal, committed, shown, current }) => {
    if (shown === null)
      return isBehind ? null : `a session with everything that was committed before the mark was refused: ${refusal}`
    for (const [key, version] of committed) {
      const seen = shown.get(key)
      if (seen === undefined || seen < version)
        return `a decision saw ${seen === undefined ? "no row" : `version ${seen}`} of ${key}, and version ${version} was committed before its mark`
    }
    for (const [key, version] of shown) {
      if (version > (current.get(key) ?? 0))
        return `a decision saw version ${version} of ${key}, and the warehouse has ${current.get(key) ?? "no row"}`
    }
    return null
  }
})
