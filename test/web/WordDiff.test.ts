/** The words that differ between two texts. */
import { assert, describe, it } from "vitest"
import { type Part, wordDiff } from "../../src/web/WordDiff.ts"

const marked = (parts: ReadonlyArray<Part>): string =>
  parts.map(({ isChanged, text }) => (isChanged ? `[${text}]` : text)).join("")

const shown = (before: string, after: string): readonly [string, string] | null => {
  const diff = wordDiff(before, after)
  if (diff === null) return null
  for (const [parts, text] of [
    [diff.before, before],
    [diff.after, after]
  ] as const) {
    assert.strictEqual(parts.map((part) => part.text).join(""), text, "no character is lost")
  }
  const same = (parts: ReadonlyArray<Part>) =>
    parts
      .filter(({ isChanged }) => !isChanged)
      .map(({ text }) => text)
      .join("")
      .replaceAll(/\s+/g, "")
  assert.strictEqual(same(diff.before), same(diff.after), "the rest is equal")
  return [marked(diff.before), marked(diff.after)]
}

describe("the words that differ", () => {
  it("are marked, and the rest is in both texts", () => {
    assert.deepStrictEqual(
      shown("Deliver to the back door before noon.", "Deliver to the front door after noon, please."),
      ["Deliver to the [back] door [before] noon.", "Deliver to the [front] door [after] noon[, please]."]
    )
    assert.deepStrictEqual(shown("one two three four", "one four"), ["one [two three ]four", "one four"])
    assert.deepStrictEqual(shown("a b c", "a b c"), ["a b c", "a b c"])
    assert.deepStrictEqual(shown("Größe 10 cm, blau", "Größe 12 cm, blau"), [
      "Größe [10] cm, blau",
      "Größe [12] cm, blau"
    ])
    assert.deepStrictEqual(shown("x x", "x x x"), ["x x", "x x[ x]"])
  })

  it("are one part with the white space between them", () => {
    assert.deepStrictEqual(shown("pay the old big invoice of May", "pay the invoice of May"), [
      "pay the [old big ]invoice of May",
      "pay the invoice of May"
    ])
  })

  it("are not sought in texts with little in common, or in long ones", () => {
    assert.isNull(shown("nothing of this text", "is equal elsewhere, whatever one compares"))
    const words = (size: number, seed: number) =>
      Array.from({ length: size }, (_, index) => `w${(index * seed) % 997}`).join(" ")
    assert.isNull(wordDiff(words(20_000, 7), words(20_000, 11)), "100 kB")
    assert.isNull(wordDiff(words(3_000, 7), words(3_000, 11)), "too many pairs of words")
    // One word of a text of 15 kB is found, since its beginning and end are equal.
    const long = words(3_000, 7)
    assert.deepStrictEqual(
      wordDiff(`${long} old ${long}`.slice(0, 19_000), `${long} new ${long}`.slice(0, 19_000))?.after.filter(
        (part) => part.isChanged
      ),
      [{ isChanged: true, text: "new" }]
    )
  })
})
