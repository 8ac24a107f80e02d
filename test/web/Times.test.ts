/** Times of pages: their forms in zones of whole and half hours, and the texts that are no times. */
import { assert, describe, it } from "vitest"
import { ago } from "../../src/web/Components.ts"
import { html, type Html } from "../../src/web/Html.ts"
import {
  clock,
  dayAfter,
  dayIn,
  exactly,
  instant,
  minute,
  second,
  startOfDay,
  writeTimes,
  zoneName,
  zoneOf
} from "../../src/web/Times.ts"

const written = async (made: Html, zone: string, hasMoving = true) =>
  writeTimes((await made).toString(), zone, hasMoving)

const at = new Date("2026-11-27T22:33:55.123Z")
const micros = "2026-11-27T22:33:55.123456Z"

describe("a day of the reader", () => {
  it.each([
    ["UTC", "2026-11-28", "2026-11-28T00:00:00.000Z", 24],
    ["Asia/Kolkata", "2026-11-28", "2026-11-27T18:30:00.000Z", 24],
    ["Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00.000Z", 23],
    ["Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00.000Z", 25],
    // The clock goes from 00:00 to 01:00, so that the day begins at 01:00.
    ["Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00.000Z", 23],
    // The hour from 00:00 occurs twice; the day begins with the first.
    ["America/Havana", "2026-11-01", "2026-11-01T04:00:00.000Z", 25]
  ])("of %s, %s, begins at %s and has %s hours", (zone, day, since, hours) => {
    const begin = startOfDay(zone, day)
    assert.strictEqual(begin.toISOString(), since)
    assert.strictEqual((startOfDay(zone, dayAfter(day)).getTime() - begin.getTime()) / 3_600_000, hours)
    assert.strictEqual(dayIn(zone, begin), day)
    assert.strictEqual(dayIn(zone, new Date(begin.getTime() - 1)), dayAfter(day, -1))
  })
})

describe("a time of a page", () => {
  it.each([
    ["UTC", "22:33|2026-11-27 22:33|2026-11-27 22:33:55|2026-11-27 22:33:55.123456|UTC"],
    ["Europe/Berlin", "23:33|2026-11-27 23:33|2026-11-27 23:33:55|2026-11-27 23:33:55.123456|Europe/Berlin"],
    ["Asia/Kolkata", "04:03|2026-11-28 04:03|2026-11-28 04:03:55|2026-11-28 04:03:55.123456|Asia/Kolkata"],
    ["America/St_Johns", "19:03|2026-11-27 19:03|2026-11-27 19:03:55|2026-11-27 19:03:55.123456|America/St_Johns"]
  ])("is written in the zone %s with the same width", (zone, expected) => {
    const text = [clock(at), minute(at), second(at), exactly(micros), zoneName].join("|")
    assert.strictEqual(writeTimes(text, zone), expected)
  })

  it("follows daylight saving time, and has no hour 24", async () => {
    assert.strictEqual(writeTimes(second(new Date("2026-07-01T22:00:00Z")), "Europe/Berlin"), "2026-07-02 00:00:00")
    // The hour of the clock change occurs twice; the exact time tells the two apart.
    const text = (hour: string) => written(instant(`2026-10-25T${hour}:30:00Z`), "Europe/Berlin")
    assert.include(await text("00"), ">2026-10-25 02:30:00<")
    assert.include(await text("01"), ">2026-10-25 02:30:00<")
    assert.include(await text("01"), 'title="2026-10-25 02:30:00 Europe/Berlin, 2026-10-25 01:30:00 UTC"')
  })

  it("is valid in an element, an attribute and a title of a chart", async () => {
    const page = html`<svg aria-label="${`at ${clock(at)}`}"><title>${clock(at)}: 5 runs</title></svg>`
    assert.strictEqual(
      await written(page, "Asia/Kolkata"),
      '<svg aria-label="at 04:03"><title>04:03: 5 runs</title></svg>'
    )
  })

  it("shows its exact instant with all digits, and gets the focus", async () => {
    const text = await written(instant(micros), "Asia/Kolkata")
    assert.include(text, `datetime="${micros}"`)
    assert.include(text, 'title="2026-11-28 04:03:55.123456 Asia/Kolkata, 2026-11-27 22:33:55.123456 UTC"')
    assert.include(text, 'tabindex="0"')
    assert.include(await written(instant(micros), "UTC"), 'title="2026-11-27 22:33:55.123456 UTC"')
  })

  it("can be left out where it is an age, so that ages do not count as changes", async () => {
    const text = (seconds: number, hasMoving: boolean) =>
      written(ago(at, new Date(at.getTime() + seconds * 1000)), "UTC", hasMoving)
    assert.include(await text(5, true), ">5 s ago<")
    assert.notStrictEqual(await text(5, true), await text(9, true))
    assert.strictEqual(await text(5, false), await text(9, false))
  })

  it("is never text of other origin", () => {
    const forged = clock(at).replace(/(?<=^.)[\w-]{12}/, "AAAAAAAAAAAA")
    assert.notStrictEqual(forged, clock(at))
    assert.strictEqual(writeTimes(forged, "Asia/Kolkata"), forged)
  })

  it.each([undefined, "", "Mars/Base", "UTC; path=/", "<script>", "a".repeat(100), "toString"])(
    "is in UTC for the zone %s",
    (reported) => {
      assert.strictEqual(zoneOf(reported), "UTC")
    }
  )
  it.each(["Europe/Berlin", "Asia/Kolkata", "America/Argentina/Buenos_Aires", "Etc/GMT+3"])("knows %s", (reported) => {
    assert.strictEqual(zoneOf(reported), reported)
  })
})
