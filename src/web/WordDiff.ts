/**
 * The words that differ between two texts.
 *
 * Promise: the work is bounded. Texts that are long or differ in much have no answer, and are shown whole.
 */

/** A part of one of the texts: also in the other one, or only in this one. */
export interface Part {
  readonly isChanged: boolean
  readonly text: string
}

export interface WordDiff {
  readonly before: ReadonlyArray<Part>
  readonly after: ReadonlyArray<Part>
}

/** Characters of each text. */
const charactersMax = 20_000
/** Pairs of words that are compared between the common beginning and end of the texts. */
const pairsMax = 100_000
/** Texts that share less are shown whole: their parts in common are chance. */
const commonShareMin = 0.3

const wordsOf = (text: string): ReadonlyArray<string> => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []

/** The number of equal elements at the beginning of both lists. */
const commonStart = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): number => {
  const index = one.findIndex((word, place) => word !== other[place])
  return index === -1 ? one.length : index
}

/** For each word of both lists, whether it is outside their longest common subsequence. */
const changesOf = (one: ReadonlyArray<string>, other: ReadonlyArray<string>) => {
  const width = other.length + 1
  const lengths = new Uint32Array((one.length + 1) * width)
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        one[i] === other[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!)
    }
  }
  const changed = { before: one.map(() => true), after: other.map(() => true) }
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) {
      changed.before[i] = false
      changed.after[j] = false
      i += 1
      j += 1
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i += 1
    else j += 1
  }
  return changed
}

/** Neighbours of the same kind as one part; white space between two changes belongs to them. */
const partsOf = (words: ReadonlyArray<string>, changed: ReadonlyArray<boolean>): ReadonlyArray<Part> => {
  const parts: Array<{ isChanged: boolean; text: string }> = []
  for (const [index, text] of words.entries()) {
    const isGap = /^\s+$/.test(text) && changed[index - 1] === true && changed[index + 1] === true
    const isChanged = changed[index]! || isGap
    const last = parts.at(-1)
    if (last?.isChanged === isChanged) last.text += text
    else parts.push({ isChanged, text })
  }
  return parts
}

/** The differences of two texts by words; null where they are too long, or have too little in common. */
export const wordDiff = (before: string, after: string): WordDiff | null => {
  if (Math.max(before.length, after.length) > charactersMax) return null
  const [one, other] = [wordsOf(before), wordsOf(after)]
  const start = commonStart(one, other)
  const end = Math.min(commonStart(one.toReversed(), other.toReversed()), Math.min(one.length, other.length) - start)
  const [left, right] = [one.slice(start, one.length - end), other.slice(start, other.length - end)]
  if (left.length * right.length > pairsMax) return null
  const changed = changesOf(left, right)
  const same = (length: number) => Array.from({ length }, () => false)
  const diff = {
    before: partsOf(one, [...same(start), ...changed.before, ...same(end)]),
    after: partsOf(other, [...same(start), ...changed.after, ...same(end)])
  }
  const common = diff.before.reduce((sum, { isChanged, text }) => sum + (isChanged ? 0 : text.length), 0)
  return common < commonShareMin * Math.max(before.length, after.length) ? null : diff
}
