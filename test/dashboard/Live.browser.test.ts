/**
 * The live pages: they update without a reload, keep focus and open elements, report an unreachable server, and work by
 * keyboard.
 */
import { assert, describe, it } from "vitest"
import { desk, phone, until, type Visit, visit } from "../support/browser.ts"
import { openOperatorWithServe } from "../support/operator.ts"
import { openInBrowser } from "../support/operatorInBrowser.ts"

const { operator, served: first, browser } = await openInBrowser(openOperatorWithServe)
let served = first

/** The focused element, as a screen reader names it. */
const focused = (look: Visit) =>
  look.page.evaluate<string>(
    `((one) => one === null || one === document.body ? "" : (one.getAttribute("aria-label") ?? (one.textContent.trim() || one.getAttribute("name") || one.tagName)).replace(/\\s+/g, " "))(document.activeElement)`
  )

/** A page that took long is refreshed once a minute; this machine may be busy. */
const refreshSecondsMax = 65
/** A test waits for up to two such refreshes, and for the start of a process. */
const timeout = 240_000

/** Marks the document, so that a reload is noticed. */
const mark = (look: Visit) => look.page.evaluate("window.sameDocument = true")
const isMarked = (look: Visit) => look.page.evaluate<boolean>("window.sameDocument === true")

describe("a live page", { timeout }, () => {
  it("updates automatically, and keeps focus, selection and scroll position", async () => {
    const look = await visit(browser, await served.link(), { viewport: { width: 1280, height: 420 } })
    const { page, go } = look
    await go("/resources")
    await mark(look)
    const row = page.getByRole("row").filter({ hasText: "invoicelines" }).first()
    const link = row.getByRole("link", { name: "invoicelines", exact: true })
    await link.focus()
    await page.evaluate("window.scrollTo(0, 150)")
    const scrolled = await page.evaluate<number>("window.scrollY")
    assert.isAbove(scrolled, 0, "the page can scroll")
    assert.notMatch(await row.innerText(), /paused/i)

    await operator.query(
      "update tributary.tasks set paused_at = tributary.now(), paused_by = 'a colleague' where company = 'north' and resource = 'invoicelines'"
    )
    await until(
      "the page shows the pause",
      () => row.innerText(),
      (text) => /paused/i.test(text),
      refreshSecondsMax
    )
    assert.include(await focused(look), "invoicelines")
    // New badges can make rows above a little higher. The scroll position is the same otherwise.
    assert.approximately(await page.evaluate<number>("window.scrollY"), scrolled, 60)
    await operator.query(
      "update tributary.tasks set paused_at = null, paused_by = null where company = 'north' and resource = 'invoicelines'"
    )
    await until(
      "the page shows the resource as resumed",
      () => row.innerText(),
      (text) => !/paused/i.test(text),
      refreshSecondsMax
    )
    assert.isTrue(await isMarked(look), "the page was not reloaded")
    await look.close()
  })

  it("shows a change at the source soon after its event", async () => {
    const look = await visit(browser, await served.link())
    await look.go("/webhooks")
    await mark(look)
    const name = `evt of ${await operator.customer("Seen live")}`
    await operator.reference.control("POST", "/cycle")
    const [before] = await until(
      "the event is stored",
      () =>
        operator.query<{ event_id: string; record_id: string }>(
          "select event_id, record_id from tributary.inbox where company = 'north' order by id desc limit 1"
        ),
      ([row]) => name.endsWith(String(row?.record_id))
    )
    await until(
      "the page shows the event",
      () => look.page.getByRole("main").innerText(),
      (text) =>
        text.includes(before!.event_id) ||
        text.includes(`customers ${before!.record_id}`) ||
        text.includes(before!.record_id),
      refreshSecondsMax
    )
    assert.isTrue(await isMarked(look))
    await look.close()
  })

  it("follows a run to its end", async () => {
    const look = await visit(browser, await served.link())
    const newest = async () => {
      const [row] = await operator.query<{ id: string; status: string }>(
        "select r.id::text, r.status from tributary.runs r where company_id = 1 and resource = 'orders' and lane = 'live' order by r.id desc limit 1"
      )
      return row!
    }
    const before = await newest()
    await operator.slowly("orders", 8_000)
    await operator.query(
      "update tributary.tasks set requested_at = tributary.now(), requested_by = 'a test' where company = 'north' and resource = 'orders' and kind = 'sync'"
    )
    // A delivery gap, too, leads to a run; one that finds nothing has a row only when it is done.
    const { id } = await until("the run starts", newest, (run) => run.id !== before.id && run.status === "running")
    await look.go(`/runs/${id}`)
    await mark(look)
    const state = look.page.locator("main .badge").first()
    assert.match(await state.innerText(), /running/i)
    await until(
      "the run ends",
      () => state.innerText(),
      (text) => /\bdone\b/i.test(text),
      refreshSecondsMax
    )
    assert.isTrue(await isMarked(look))
    await look.close()
  })

  it("keeps opened details and a form that is being filled in", async () => {
    const look = await visit(browser, await served.link())
    const { page, go } = look
    await go("/budget?company=north")
    // Beside it, figures of a pause can appear.
    const details = page.locator("#budget-table")
    await details.locator("summary").click()
    assert.isNotNull(await details.getAttribute("open"))
    const answers: Array<number> = []
    page.on("response", (response) => answers.push(response.status()))
    await until(
      "the page refreshed",
      async () => answers.length,
      (n) => n >= 2,
      refreshSecondsMax
    )
    assert.isNotNull(await details.getAttribute("open"), "still open")

    await go("/companies/north/customers")
    const since = page.getByLabel(/since|from/i).first()
    if ((await since.count()) > 0) {
      await since.fill("2026-01-0")
      const answerCount = answers.length
      await until(
        "the page refreshed",
        async () => answers.length,
        (n) => n >= answerCount + 2,
        refreshSecondsMax
      )
      assert.strictEqual(await since.inputValue(), "2026-01-0")
    }
    await look.close()
  })

  it("sends no request while its tab is hidden", async () => {
    const look = await visit(browser, await served.link())
    const { page, go } = look
    await go("/")
    // Simulates a hidden tab. A real window would hide it behind another tab.
    await page.evaluate(
      `Object.defineProperty(document, "hidden", { get: () => true }); Object.defineProperty(document, "visibilityState", { get: () => "hidden" }); document.dispatchEvent(new Event("visibilitychange"))`
    )
    let requestCount = 0
    page.on("request", () => (requestCount += 1))
    await page.waitForTimeout(5_000)
    assert.isAtMost(requestCount, 1, "at most the request in flight")
    await look.close()
  })

  it("reports that a script could not be loaded", async () => {
    const look = await visit(browser, await served.link())
    look.expect(/Failed to load resource/)
    await look.page.route("**/idiomorph.js", (route) => route.abort())
    await look.go("/resources")
    await look.page.getByText("This page is not refreshed: a part of it could not be loaded.").waitFor()
    await look.close()
  })

  it("reports that the server is unreachable, and resumes afterwards", async () => {
    const { port } = new URL(served.url)
    const look = await visit(browser, await served.link())
    look.expect(/Failed to load resource|ERR_CONNECTION|status of 503|htmx:/)
    const { page, go } = look
    await go("/resources")
    await mark(look)
    assert.strictEqual(await served.stop(), 0)
    const banner = page
      .getByRole("status")
      .or(page.getByRole("alert"))
      .filter({ hasText: /not answer|cannot be refreshed/i })
    await banner.first().waitFor({ timeout: refreshSecondsMax * 1_000 })
    // The last content stays readable.
    assert.include(await page.getByRole("main").innerText(), "customers")

    served = await operator.serve({ dashboard: `127.0.0.1:${port}` })
    await until(
      "the banner disappears",
      () => banner.count().then(async (n) => n > 0 && (await banner.first().isVisible())),
      (shown) => !shown,
      30
    )
    await operator.query(
      "update tributary.tasks set paused_at = tributary.now(), paused_by = 'a colleague' where company = 'south' and resource = 'orders'"
    )
    await until(
      "the page is live again",
      () => page.getByRole("row").filter({ hasText: "orders" }).filter({ hasText: "south" }).innerText(),
      (text) => /paused/i.test(text),
      refreshSecondsMax
    )
    assert.isTrue(await isMarked(look), "the page was not reloaded")
    await look.close()
  })
})

describe("the dashboard by keyboard", () => {
  it("skips to the content, moves in order, and pauses a resource", async () => {
    const look = await visit(browser, await served.link())
    const { page, go } = look
    await go("/resources")
    await page.keyboard.press("Tab")
    assert.match(await focused(look), /skip/i)
    assert.isTrue(
      await page.evaluate<boolean>(
        `((box) => box.width > 20 && box.height > 10 && box.left >= 0 && box.top >= 0)(document.activeElement.getBoundingClientRect())`
      ),
      "the skip link is visible when it has the focus"
    )
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    assert.isTrue(
      await page.evaluate<boolean>(`document.querySelector("main").contains(document.activeElement)`),
      `the next element is in the main part, not ${await focused(look)}`
    )

    // Moves to a resource, to its action, and through the confirmation.
    const reach = async (target: RegExp, stepsMax = 300) => {
      for (let steps = 0; steps < stepsMax; steps += 1) {
        if (target.test(await focused(look))) {
          const outline = await page.evaluate<string>(
            `((style) => style.outlineStyle + " " + style.outlineWidth + " " + style.boxShadow)(getComputedStyle(document.activeElement))`
          )
          assert.notMatch(outline, /^(none .*|\w+ 0px) none$/, `${await focused(look)} shows its focus`)
          return
        }
        await page.keyboard.press("Tab")
      }
      throw new Error(`${target.source} cannot be reached with Tab; the focus is at ${await focused(look)}`)
    }
    await reach(/^invoices$/)
    await page.keyboard.press("Enter")
    await page.waitForURL(/companies\/north\/invoices/)
    await reach(/^pause/i)
    await page.keyboard.press("Enter")
    await page.waitForURL(/confirm\/pause/)
    await reach(/^pause/i)
    await page.keyboard.press("Enter")
    await until(
      "the resource is paused",
      () =>
        operator.query<{ paused_at: Date | null }>(
          "select paused_at from tributary.tasks where company = 'north' and resource = 'invoices'"
        ),
      ([row]) => row?.paused_at !== null
    )
    await page
      .getByText(/paused/i)
      .first()
      .waitFor()
    await look.close()
  })

  it("moves focus through the whole page and out of it", async () => {
    const look = await visit(browser, await served.link())
    const { page, go } = look
    for (const path of ["/resources", "/companies/north/customers", "/quarantine", "/records", "/budget"]) {
      await go(path)
      // A refresh may add and remove elements meanwhile.
      await page.evaluate("window.stops = new Set()")
      let isThrough = false
      for (let steps = 0; steps < 400 && !isThrough; steps += 1) {
        await page.keyboard.press("Tab")
        isThrough = await page.evaluate<boolean>(
          "stops.has(document.activeElement) || !stops.add(document.activeElement)"
        )
      }
      assert.isTrue(isThrough, path)
      const controls = await page.evaluate<number>(
        `[...document.querySelectorAll("main a[href], main button, main input:not([type=hidden]), main select, main summary")].filter((one) => one.checkVisibility()).length`
      )
      assert.isAtLeast(await page.evaluate<number>("stops.size"), controls, `${path}: every control gets the focus`)
    }
    await look.close()
  })
})

describe("the dashboard on a phone", () => {
  it("offers every page and action by touch", async () => {
    const look = await visit(browser, await served.link(), { viewport: phone, hasTouch: true, isMobile: true })
    const { page, go } = look
    await go("/")
    await page.getByRole("button", { name: "Menu" }).tap()
    await page.getByRole("navigation").first().getByRole("link", { name: "Records" }).tap()
    await page.waitForURL(/records/)
    await go("/companies/north/customers")
    const sync = page
      .getByRole("link", { name: /sync now/i })
      .or(page.getByRole("button", { name: /sync now/i }))
      .first()
    const box = await sync.boundingBox()
    assert.isAtLeast(box?.height ?? 0, 24, "high enough to touch")
    await sync.tap()
    await page.waitForURL(/confirm\/sync/)
    await page.getByRole("link", { name: /cancel/i }).tap()
    await page.waitForURL(/companies\/north\/customers/)
    await page.setViewportSize(desk)
    await look.close()
  })
})
