/** The writable fields in the message about an unknown one, the most likely first. */
import type { WriteColumns } from "./WriteSchema.ts"

/** The Levenshtein distance of two names. */
const distance = (left: string, right: string): number => {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const current = [i]
    for (let j = 1; j <= right.length; j++) {
      const changed = previous[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1)
      current.push(Math.min(changed, previous[j]! + 1, current[j - 1]! + 1))
    }
    previous = current
  }
  return previous[right.length]!
}

const comparedMax = 64

/** Lists the writable fields: the one that sets the field of this name, then the others by their spelling. */
export const listFields = (name: string, columns: WriteColumns, others: ReadonlyArray<string>): string => {
  const lower = name.slice(0, comparedMax).toLowerCase()
  const ranked = [...columns.values()]
    .map((column) => ({
      name: column.name,
      rank: column.sets === name ? -1 : distance(lower, column.name.toLowerCase())
    }))
    .sort((a, b) => a.rank - b.rank)
  const names = [...ranked.map((column) => column.name), ...others]
  return names.length === 0 ? "nothing is" : `these are: ${names.join(", ")}`
}
