/**
 * The form of the pages: the reader's time zone, exact instants by keyboard and touch, moving ages, the cost of an open
 * page, header, print, and a screen without motion.
 */
import type { Page } from "playwright-core"
import { assert, describe, it } from "vitest"
import { narrow, phone, picture, smallPhone, until, visit } from "../support/browser.ts"
import { openOperatorWithServe } from "../support/operator.ts"
import { openInBrowser } from "../support/operatorInBrowser.ts"

const { operator, served, browser } = await openInBrowser(openOperatorWithServe)

const zoneOf = (page: Page) => page.locator("footer").innerText()
const run = async (): Promise<{ readonly id: string; readonly at: string }> => {
  const [row] = await operator.query<{ id: string; at: string }>(
    "select id::text, to_char(started_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') as at from tributary.runs where company_id = 1 and finished_at is not null order by id limit 1"
  )
  return row!
}
/** An instant in a zone, by another implementation than that of the pages. */
const localText = (page: Page, at: string) =>
  page.evaluate<string>(
    `((at) => { const two = (n) => String(n).padStart(2, "0"); return at.getFullYear() + "-" + two(at.getMonth() + 1) + "-" + two(at.getDate()) + " " + two(at.getHours()) + ":" + two(at.getMinutes()) + ":" + two(at.getSeconds()) })(new Date("${at}"))`
  )

describe("times", () => {
  it.each([
    ["Europe/Berlin", "Europe/Berlin"],
    // A browser may report the earlier name of a zone.
    ["Asia/Kolkata", "Asia/Calcutta"],
    ["America/St_Johns", "America/St_Johns"]
  ])("are in the zone of the reader, from the first page on: %s", async (timezoneId, name) => {
    const look = await visit(browser, await served.link(), { timezoneId })
    const { page, go } = look
    const { id, at } = await run()
    await go(`/runs/${id}`)
    // The first page of this browser is in UTC; its script requests it in the zone.
    await until(
      "the zone of the page",
      () => zoneOf(page),
      (text) => text.includes(`Times are in ${name}`)
    )
    const expected = `${await localText(page, at)}${at.slice(19, 23)}`
    assert.include(await page.getByRole("main").innerText(), expected)

    // Every other page is in the zone at once, its charts too.
    await go("/")
    assert.include(await zoneOf(page), `Times are in ${name}`)
    const ticks = await page.locator("svg.chart text").allInnerTexts()
    const minutes = await page.evaluate<number>("(new Date().getTimezoneOffset() + 1440) % 60")
    const clocks = ticks.flatMap((text) => /\b\d\d:(\d\d)\b/.exec(text)?.[1] ?? [])
    if (clocks.length > 0) assert.include(clocks, String((60 - minutes) % 60).padStart(2, "0"))
    assert.notMatch(await page.getByRole("main").innerText(), /\bUTC\b/)

    // A refresh keeps the zone.
    let answers = 0
    page.on("response", (response) => (answers += response.url().endsWith("/") ? 1 : 0))
    await until(
      "a refresh",
      async () => answers,
      (count) => count > 0,
      70
    )
    assert.include(await zoneOf(page), `Times are in ${name}`)
    await look.close()
  })

  it("are in UTC without a script, with the exact instant as a title", async () => {
    const look = await visit(browser, await served.link(), { timezoneId: "Asia/Kolkata", javaScriptEnabled: false })
    const { page, go } = look
    const { id, at } = await run()
    await go(`/runs/${id}`)
    assert.include(await zoneOf(page), "Times are in UTC")
    const text = at.replace("T", " ").replace("Z", "")
    assert.include(await page.getByRole("main").innerText(), text)
    assert.strictEqual(await page.locator("main time").first().getAttribute("title"), `${text} UTC`)
    await look.close()
  })

  /** What is shown beside the focused time, and whether it is within the window. */
  const shown = (page: Page) =>
    page.evaluate<{ readonly text: string; readonly isVisible: boolean } | null>(`(() => {
      const time = document.activeElement
      if (!(time instanceof HTMLTimeElement)) return null
      const style = getComputedStyle(time, "::after")
      return { text: style.content, isVisible: style.display !== "none" && style.position === "fixed" }
    })()`)

  it("show the exact instant on keyboard focus, and arrow keys move between the times of a table", async () => {
    const look = await visit(browser, await served.link(), { timezoneId: "Europe/Berlin" })
    const { page, go } = look
    await go("/runs")
    await until(
      "the zone of the page",
      () => zoneOf(page),
      (text) => text.includes("Europe/Berlin")
    )
    for (let steps = 0; steps < 200 && (await shown(page)) === null; steps += 1) await page.keyboard.press("Tab")
    const first = await shown(page)
    assert.match(
      first!.text,
      /^"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ Europe\/Berlin, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ UTC"/
    )
    assert.isTrue(first!.isVisible)
    const place = () =>
      page.evaluate<number>(`[...document.querySelectorAll("main time")].indexOf(document.activeElement)`)
    const before = await place()
    await page.keyboard.press("ArrowDown")
    assert.isAbove(await place(), before)
    await page.keyboard.press("ArrowUp")
    assert.strictEqual(await place(), before)
    // The table is one stop, however many times it has.
    const stops = await page.evaluate<ReadonlyArray<number>>(
      `[...document.querySelectorAll(".table")].map((table) => table.querySelectorAll('time[tabindex="0"]').length)`
    )
    assert.isAtMost(Math.max(...stops), 1)
    await page.keyboard.press("Escape")
    assert.isNull(await shown(page))
    await look.close()
  })

  it("show the exact instant on touch", async () => {
    const look = await visit(browser, await served.link(), { viewport: phone, hasTouch: true, isMobile: true })
    const { page, go } = look
    await go(`/runs/${(await run()).id}`)
    await page.locator("main time").first().tap()
    assert.match((await shown(page))!.text, /^"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ UTC"/)
    await look.close()
  })
})

describe("an open page", () => {
  it("is unchanged for the server while only ages change, and keeps them moving", async () => {
    const look = await visit(browser, await served.link())
    const { page, go } = look
    const { id } = await run()
    await go(`/runs/${id}`)
    const statuses: Array<number> = []
    page.on("response", (response) => statuses.push(response.status()))
    // The first answer replaces the page; later ones find it unchanged.
    await until(
      "an answer without a change",
      async () => statuses,
      (all) => all.includes(304),
      70
    )
    // Half a minute ago, so that the age has seconds whatever the speed of this machine is.
    await page.evaluate(`(() => {
      const time = document.querySelector("main time")
      time.dateTime = new Date(Date.now() - 30_000).toISOString()
      time.textContent = "30 s ago"
    })()`)
    await until(
      "the age moves",
      () => page.locator("main time").first().innerText(),
      (text) => /^3[2-9] s ago$/.test(text),
      10
    )
    await look.close()
  })

  it("is requested no sooner than the server says", async () => {
    const look = await visit(browser, await served.link())
    const { page, go } = look
    const times: Array<number> = []
    await page.route("**/quarantine", async (route) => {
      const response = await route.fetch()
      const refreshMs = times.length < 2 ? "7000" : "60000"
      await route.fulfill({ response, headers: { ...response.headers(), "tributary-refresh-ms": refreshMs } })
    })
    await go("/quarantine")
    page.on("request", (request) => {
      if (request.url().endsWith("/quarantine")) times.push(performance.now())
    })
    await until(
      "two refreshes",
      async () => times.length,
      (count) => count >= 2,
      30
    )
    assert.isAtLeast(times[1]! - times[0]!, 6_800)
    // After input, the newest state is requested soon.
    await page.keyboard.press("Shift")
    await until(
      "a refresh after input",
      async () => times.length,
      (count) => count >= 3,
      30
    )
    await page.unrouteAll({ behavior: "wait" })
    await look.close()
  })
})

describe("a first view", () => {
  it.each(["/", "/runs", "/webhooks", "/budget", "/companies/north/customers"])(
    "transfers less than 200 kB with an empty cache: %s",
    async (path) => {
      const look = await visit(browser, await served.link())
      // Another browser with the same session.
      const context = await browser.newContext({ storageState: await look.context.storageState() })
      const other = await context.newPage()
      const sizes: Array<Promise<number>> = []
      other.on("requestfinished", (request) =>
        sizes.push(
          request.sizes().then(({ responseBodySize, responseHeadersSize }) => responseBodySize + responseHeadersSize)
        )
      )
      await other.goto(new URL(path, served.url).href, { waitUntil: "networkidle" })
      const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
      console.log(
        `${path}: ${sizes.length} files, ${bytes} bytes; the page is ${(await other.content()).length} characters`
      )
      assert.isAtLeast(sizes.length, 5)
      assert.isBelow(bytes, 200_000)
      await context.close()
      await look.close()
    }
  )
})

describe("a text", () => {
  it("is no column of letters: the check of each page finds one", async () => {
    const look = await visit(browser, await served.link())
    const { page, go } = look
    await go("/quarantine")
    assert.deepStrictEqual(await narrow(page), [])
    await page.evaluate(`(() => {
      const heading = document.querySelector("h1")
      heading.textContent = "Records in quarantine of every company"
      heading.style.width = "1ch"
      heading.style.overflowWrap = "anywhere"
    })()`)
    assert.match((await narrow(page)).join(), /^\d+ lines for: Records in quarantine/)
    await look.close()
  })
})

describe("the header", () => {
  it.each([
    ["desk", { width: 1280, height: 900 }, 100],
    ["phone", phone, 60],
    ["small phone", smallPhone, 60]
  ] as const)("takes little of a %s", async (_, viewport, heightMax) => {
    const look = await visit(browser, await served.link(), { viewport })
    const { page, go } = look
    await go("/records")
    const box = await page.getByRole("banner").boundingBox()
    assert.isAtMost(box!.height, heightMax)
    assert.isTrue(await page.getByRole("banner").getByRole("searchbox").isVisible())
    await page.getByRole("button", { name: "Log out", exact: true }).click()
    assert.isTrue(await page.getByRole("button", { name: "Log out everywhere" }).isVisible())
    await page.keyboard.press("Escape")
    assert.isFalse(await page.getByRole("button", { name: "Log out everywhere" }).isVisible())
    if (heightMax === 60) {
      await page.getByRole("button", { name: "Menu" }).click()
      assert.deepStrictEqual(await page.locator("nav [aria-current=page]").allInnerTexts(), ["Records"])
    }
    assert.isTrue(await page.locator("nav [aria-current=page]").isVisible())
    await look.close()
  })
})

describe("a page on paper", () => {
  it("has tables that fit, charts, and no controls", async () => {
    const look = await visit(browser, await served.link())
    const { page, go } = look
    await page.emulateMedia({ media: "print", colorScheme: "dark" })
    // The printable width of A4 at 96 dots an inch, less the margins.
    await page.setViewportSize({ width: 681, height: 1000 })
    for (const path of ["/", "/runs", "/webhooks", "/budget", `/runs/${(await run()).id}`]) {
      await go(path)
      const wrong = await page.evaluate<ReadonlyArray<string>>(`[
        ...[...document.querySelectorAll("table, svg.chart, pre")]
          .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)
          .map((one) => "cut: " + (one.querySelector("caption, title")?.textContent.trim() ?? one.tagName)),
        ...[...document.querySelectorAll("header, nav, form, button, .button, .skip")]
          .filter((one) => one.checkVisibility())
          .map((one) => "printed: " + one.outerHTML.slice(0, 80)),
        ...[...document.querySelectorAll("tbody tr:has(th)")]
          .filter((one) => one.checkVisibility() && getComputedStyle(one).display !== "table-row")
          .map(() => "a row is no row")
      ]`)
      assert.deepStrictEqual(wrong, [], path)
      await picture(page, `print${path.replaceAll("/", "-")}`)
    }
    await look.close()
  })
})

describe("a small screen", () => {
  const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

  it("is not exceeded by the longest name of a company, nor by the text spacing of a reader", async () => {
    const look = await visit(browser, await served.link(), { viewport: { width: 320, height: 640 } })
    const { page, go } = look
    for (const path of ["/webhooks", "/webhooks/events", "/outbox/rows", "/quarantine", "/resources"]) {
      await go(path)
      await page.evaluate(
        `for (const place of document.querySelectorAll(".filters a, select option")) place.textContent = "W".repeat(64)`
      )
      assert.isAtMost(await page.evaluate<number>(overflow), 0, path)
    }
    for (const path of ["/", "/companies/north"]) {
      await go(path)
      await page.evaluate(`(() => {
        const sheet = new CSSStyleSheet()
        sheet.replaceSync("* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important }")
        document.adoptedStyleSheets = [sheet]
      })()`)
      assert.isAtMost(await page.evaluate<number>(overflow), 0, path)
    }
    await look.close()
  })

  it("shows with forced colours which choice and which page is the current one", async () => {
    const look = await visit(browser, await served.link(), { forcedColors: "active" })
    const { page, go } = look
    await go("/webhooks/events")
    const styles = (selector: string, property: string) =>
      page.evaluate<ReadonlyArray<string>>(
        `[...new Set([...document.querySelectorAll("${selector}")].map((one) => getComputedStyle(one)["${property}"]))]`
      )
    assert.deepStrictEqual(await styles(".filters [aria-current]", "outlineStyle"), ["solid"])
    assert.deepStrictEqual(await styles(".filters a:not([aria-current])", "outlineStyle"), ["none"])
    const [current, others] = await Promise.all([
      styles(".menu [aria-current]", "borderBottomColor"),
      styles(".menu a:not([aria-current])", "borderBottomColor")
    ])
    assert.lengthOf(others, 1)
    assert.notDeepEqual(current, others)
    assert.deepStrictEqual(others, await styles("body", "backgroundColor"))
    await look.close()
  })
})
