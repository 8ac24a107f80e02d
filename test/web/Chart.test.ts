/** The places and the axis of a chart by hour, at each hour of a day. */
import { assert, describe, it } from "vitest"
import { hoursUntil, hourTicks, type Tick } from "../../src/web/Chart.ts"

/** The width of a chart on a phone of 320, and of its labels, in pixels. */
const [chart, character] = [217, 6.9]

/** From where to where a label reaches: it begins at the left border, ends at the right one, or stands in the middle. */
const extentOf = ({ share, label }: Tick): readonly [number, number] => {
  const width = (label === "now" ? 3 : 5) * character
  const left = share * chart - (share < 0.04 ? 0 : share > 0.96 ? width : width / 2)
  return [left, left + width]
}

describe("the hours of a chart", () => {
  it.each(Array.from({ length: 24 }, (_, hour) => hour))(
    "are those of the clock until %s:59, with labels apart",
    (hour) => {
      const now = new Date(Date.UTC(2026, 10, 28, hour, 59, 59, 999))
      for (const [count, every] of [
        [24, 6],
        [48, 12]
      ] as const) {
        const hours = hoursUntil(now, count)
        assert.lengthOf(hours, count)
        assert.strictEqual(hours.at(-1)!.getTime(), Date.UTC(2026, 10, 28, hour))
        assert.strictEqual(hours[0]!.getTime(), Date.UTC(2026, 10, 28, hour - count + 1))
        const labels = hourTicks(hours, every).map(extentOf)
        assert.isAtLeast(labels.length, 4)
        for (const [index, [left]] of labels.entries()) {
          if (index > 0) assert.isAtLeast(left - labels[index - 1]![1], 2, `label ${index} of ${count} hours`)
        }
      }
    }
  )
})
