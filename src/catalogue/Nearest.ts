/** Names that are spelt like one that does not exist. */

const comparedMax = 64

/** The Levenshtein distance of two names, without regard to case. */
export const distance = (one: string, other: string): number => {
  const left = one.slice(0, comparedMax).toLowerCase()
  const right = other.toLowerCase()
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

const suggestedMax = 3

/** A question about the names that a wrong one may mean; null where none is near. */
export const didYouMean = (name: string, names: Iterable<string>): string | null => {
  const allowed = Math.max(2, Math.floor(name.length / 3))
  const near = [...names]
    .map((one) => ({ one, far: distance(name, one) }))
    .filter(({ far }) => far <= allowed)
    .sort((a, b) => a.far - b.far || a.one.localeCompare(b.one))
    .slice(0, suggestedMax)
    .map(({ one }) => one)
  return near.length === 0 ? null : `did you mean ${near.join(" or ")}?`
}
