/** The places and the axis of a chart by hour, at each hour of a day. */
import { assert, describe, it } from "vitest"
import type { Tick } from "../../src/web/Chart.ts"
import { hourTicks, placesOf, sinceFirst } from "../../src/web/Hours.ts"

/** The width of a chart on a phone of 320, and of its labels, in pixels. */
const [chart, character] = [217, 6.9]

/** From where to where a label reaches: it begins at the left border, ends at the right one, or stands in the middle. */
const extentOf = ({ share, label }: Tick): readonly [number, number] => {
  const width = (label === "now" ? 3 : 5) * character
  const left = share * chart - (share < 0.04 ? 0 : share > 0.96 ? width : width / 2)
  return [left, left + width]
}

const placesAt = (hour: number, count: number, known: ReadonlyArray<{ readonly at: Date }> = []) =>
  placesOf(known, new Date(Date.UTC(2026, 10, 28, hour, 59, 59, 999)), count)

describe("the hours of a chart", () => {
  it.each(Array.from({ length: 24 }, (_, hour) => hour))(
    "are those of the clock until %s:59, with labels apart",
    (hour) => {
      for (let count = 6; count <= 48; count++) {
        const places = placesAt(hour, count)
        assert.lengthOf(places, count)
        assert.strictEqual(places.at(-1)!.at.getTime(), Date.UTC(2026, 10, 28, hour))
        assert.strictEqual(places[0]!.at.getTime(), Date.UTC(2026, 10, 28, hour - count + 1))
        const labels = hourTicks(places).map(extentOf)
        assert.isAtLeast(labels.length, count % 24 === 0 ? 4 : 2)
        for (const [index, [left]] of labels.entries()) {
          if (index > 0) assert.isAtLeast(left - labels[index - 1]![1], 2, `label ${index} of ${count} hours`)
        }
      }
    }
  )

  it("begin with the first one that has data, and are six at least", () => {
    const lengthOf = (...hours: ReadonlyArray<number>) =>
      sinceFirst(
        placesAt(
          23,
          24,
          hours.map((hour) => ({ at: new Date(Date.UTC(2026, 10, 28, hour)) }))
        )
      ).length
    assert.deepStrictEqual([lengthOf(0, 20), lengthOf(9, 20), lengthOf(22), lengthOf()], [24, 15, 6, 24])
  })
})
