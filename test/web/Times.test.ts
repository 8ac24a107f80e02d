/** Times of pages: their forms in zones of whole and half hours, and the texts that are no times. */
import { assert, describe, it } from "vitest"
import { ago } from "../../src/web/Components.ts"
import { html } from "../../src/web/Html.ts"
import { clock, exactly, instant, minute, second, writeTimes, zoneName, zoneOf } from "../../src/web/Times.ts"

const at = new Date("2026-11-27T22:33:55.123Z")
const micros = "2026-11-27T22:33:55.123456Z"

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

  it("follows daylight saving time, and has no hour 24", () => {
    const summer = new Date("2026-07-01T22:00:00Z")
    assert.strictEqual(writeTimes(second(summer), "Europe/Berlin"), "2026-07-02 00:00:00")
    // The hour of the clock change occurs twice; the exact time tells the two apart.
    const text = (hour: string) => writeTimes(String(instant(`2026-10-25T${hour}:30:00Z`)), "Europe/Berlin")
    assert.include(text("00"), ">2026-10-25 02:30:00<")
    assert.include(text("01"), ">2026-10-25 02:30:00<")
    assert.include(text("01"), 'title="2026-10-25 02:30:00 Europe/Berlin, 2026-10-25 01:30:00 UTC"')
  })

  it("is valid in an element, an attribute and a title of a chart", () => {
    const page = html`<svg aria-label="${`at ${clock(at)}`}"><title>${clock(at)}: 5 runs</title></svg>`
    assert.strictEqual(
      writeTimes(String(page), "Asia/Kolkata"),
      '<svg aria-label="at 04:03"><title>04:03: 5 runs</title></svg>'
    )
  })

  it("shows its exact instant with all digits, and gets the focus", () => {
    const text = writeTimes(String(instant(micros)), "Asia/Kolkata")
    assert.include(text, `datetime="${micros}"`)
    assert.include(text, 'title="2026-11-28 04:03:55.123456 Asia/Kolkata, 2026-11-27 22:33:55.123456 UTC"')
    assert.include(text, 'tabindex="0"')
    assert.include(writeTimes(String(instant(micros)), "UTC"), 'title="2026-11-27 22:33:55.123456 UTC"')
  })

  it("can be left out where it is an age, so that ages do not count as changes", () => {
    const text = (seconds: number) => String(ago(at, new Date(at.getTime() + seconds * 1000)))
    assert.include(writeTimes(text(5), "UTC"), ">5 s ago<")
    assert.notStrictEqual(writeTimes(text(5), "UTC"), writeTimes(text(9), "UTC"))
    assert.strictEqual(writeTimes(text(5), "UTC", false), writeTimes(text(9), "UTC", false))
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
