/**
 * What the pages do in Chromium, without a server and at the test's own time: they refresh, keep what the reader does,
 * report an unreachable server, and work by keyboard and on paper.
 */
import type { Page } from "playwright-core"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, application } from "../support/application.ts"
import { desk, type Visit } from "../support/browser.ts"
import { pagesNow, sql } from "../support/postgres.ts"
import { Shown, shownInBrowser, visited, type VisitOptions } from "./shownInBrowser.ts"
import { suite } from "../support/suite.ts"

const isRefresh = (headers: Readonly<Record<string, string>>) => headers["hx-request"] === "true"

/** A visit whose time only the test moves. */
const timed = Effect.fnUntraced(function* (options: VisitOptions = {}, answer?: Answer) {
  const { browser, pages } = yield* Shown
  const look = yield* visited(browser, answer === undefined ? pages : { ...pages, answer }, options)
  yield* Effect.promise(async () => {
    await look.page.clock.install({ time: new Date(Date.parse(pagesNow) - 1_000) })
    await look.page.clock.pauseAt(new Date(pagesNow))
  })
  return look
})

/**
 * The time of the page passes. A request of the page takes none of it: its answer arrives before the time continues, so
 * that the order of answers and ticks does not depend on the machine.
 */
const pass = async (page: Page, ms: number): Promise<void> => {
  for (let left = ms; left > 0; left -= 1_000) {
    await page.clock.runFor(Math.min(left, 1_000))
    await page.locator(".htmx-request").waitFor({ state: "detached" })
  }
}

/** The time passes, in which the page is refreshed. Returns the status of the first answer. */
const refreshed = async (page: Page, ms = 2_100): Promise<number> => {
  const [answer] = await Promise.all([
    page.waitForResponse((response) => isRefresh(response.request().headers())),
    pass(page, ms)
  ])
  return answer.status()
}

/** Marks the document, so that a reload is noticed. */
const mark = ({ page }: Visit) => page.evaluate("window.sameDocument = true")
const isMarked = ({ page }: Visit) => page.evaluate<boolean>("window.sameDocument === true")

/** The requests of refreshes so far. */
const countRefreshes = ({ page }: Visit) => {
  const state = { count: 0 }
  page.on("request", (request) => (state.count += isRefresh(request.headers()) ? 1 : 0))
  return state
}

const sqlOf = (text: string) => sql.unsafe(text)

suite("a page", shownInBrowser, (test) => {
  describe("that is open", () => {
    test("is refreshed in place, with focus, scroll position, open details and input", function* () {
      const look = yield* timed({ viewport: { width: 1280, height: 420 } })
      const { page, go } = look
      const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "orders", exact: true }) })
      const focused = () => page.evaluate<string>("document.activeElement.textContent.trim()")
      yield* Effect.promise(async () => {
        await go("/resources?company=north")
        await mark(look)
        await row.getByRole("link", { name: "orders", exact: true }).focus()
        await page.evaluate("window.scrollTo(0, 120)")
      })
      yield* sqlOf(
        "update tributary.tasks set paused_at = tributary.now() where company = 'north' and resource = 'orders'"
      )
      yield* Effect.promise(async () => {
        const scrolled = await page.evaluate<number>("window.scrollY")
        await refreshed(page)
        await row.getByText("paused").first().waitFor()
        assert.strictEqual(await focused(), "orders")
        assert.approximately(await page.evaluate<number>("window.scrollY"), scrolled, 60)
        assert.isTrue(await isMarked(look))
      })
      yield* sqlOf("update tributary.tasks set paused_at = null where company = 'north' and resource = 'orders'")
      yield* Effect.promise(async () => {
        await go("/budget?company=north")
        const details = page.locator("#budget-table")
        await details.locator("summary").click()
        await refreshed(page)
        assert.isNotNull(await details.getAttribute("open"))
        await go("/confirm/backfill?company=north&resource=customers")
        const refreshes = countRefreshes(look)
        await pass(page, 60_000)
        assert.strictEqual(refreshes.count, 0, "a form is never refreshed")
      })
    })

    test("counts what is open in the menu, and does not move the menu", function* () {
      const look = yield* timed()
      const { page, go } = look
      const menu = page.getByRole("navigation", { name: "Pages" })
      const places = () =>
        page.evaluate<string>(
          `[...document.querySelectorAll(".menu a")].map((one) => one.getBoundingClientRect()).map(({ x, width }) => x + "+" + width).join()`
        )
      const [row] = yield* sqlOf("select count(*)::int as n from tributary.quarantine where resolved_at is null")
      const open = (row as { readonly n: number }).n
      yield* Effect.promise(() => go("/"))
      const before = yield* Effect.promise(places)
      yield* sqlOf(
        `insert into tributary.quarantine (company_id, resource, record_id, reason, bytes, run_id, source, first_seen_at, last_seen_at)
           select 1, 'orders', 'more ' || n, 'odd', n::text, 1, 'GET /orders', tributary.now(), tributary.now() from generate_series(1, 3) n`
      )
      yield* Effect.promise(async () => {
        await refreshed(page)
        await menu.getByRole("link", { name: `Quarantine ${open + 3} to resolve`, exact: true }).waitFor()
        assert.strictEqual(await places(), before)
      })
      yield* sqlOf("delete from tributary.quarantine where record_id like 'more %'")
    })

    test("is unchanged for the server while only ages change, and keeps them moving", function* () {
      const { page, go } = yield* timed()
      yield* Effect.promise(async () => {
        await go("/processes")
        await refreshed(page)
        assert.strictEqual(await refreshed(page), 304)
        await page.evaluate(`(() => {
            const time = document.querySelector("main time")
            time.dateTime = new Date(Date.parse(document.getElementById("main").dataset.now) - 30_000).toISOString()
            time.textContent = "30 s ago"
          })()`)
        const age = async () => {
          await pass(page, 1_000)
          return Number(/^(\d+) s ago$/.exec(await page.locator("main time").first().innerText())?.[1])
        }
        const before = await age()
        await pass(page, 10_000)
        assert.strictEqual(await age(), before + 11)
      })
    })

    test("is requested no sooner than the server says, soon after input, and not while it is hidden", function* () {
      const { companies } = yield* Shown
      const { answer } = yield* application(companies, 28)
      const look = yield* timed({}, answer)
      const { page, go } = look
      yield* Effect.promise(async () => {
        await go("/quarantine")
        const refreshes = countRefreshes(look)
        await refreshed(page)
        await pass(page, 6_000)
        assert.strictEqual(refreshes.count, 1, "28 ms of work: 7 s until the next one")
        await refreshed(page, 2_000)
        await page.keyboard.press("Shift")
        await refreshed(page, 4_000)
        const { count } = refreshes
        await page.evaluate(
          `Object.defineProperty(document, "visibilityState", { get: () => "hidden" }); document.dispatchEvent(new Event("visibilitychange"))`
        )
        await pass(page, 120_000)
        assert.strictEqual(refreshes.count, count)
      })
    })

    test("reports a server that does not answer, and continues afterwards", function* () {
      const { pages } = yield* Shown
      const state = { isAway: false }
      const look = yield* timed({}, (request) =>
        state.isAway ? Promise.reject(new Error("away")) : pages.answer(request)
      )
      const { page, go } = look
      look.expect(/Failed to load resource|ERR_FAILED|htmx:/)
      yield* Effect.promise(async () => {
        await go("/resources")
        await mark(look)
        const notice = page.locator("#notice")
        state.isAway = true
        await pass(page, 2_100)
        await notice.filter({ hasText: "does not answer" }).waitFor()
        assert.include(await page.getByRole("main").innerText(), "customers", "the last state stays")
        state.isAway = false
        await refreshed(page)
        await notice.filter({ hasText: "does not answer" }).waitFor({ state: "hidden" })
        assert.isTrue(await isMarked(look))
      })
    })

    test("is reloaded once for a new version, when the reader does nothing", function* () {
      const { pages } = yield* Shown
      const state = { isNew: false }
      const look = yield* timed({}, async (request) => {
        const answer = await pages.answer(request)
        if (state.isNew) answer.headers.set("tributary-assets", "another")
        return answer
      })
      const { page, go } = look
      yield* Effect.promise(async () => {
        await go("/runs")
        await mark(look)
        state.isNew = true
        await pass(page, 5_000)
        await page.keyboard.press("Shift")
        await refreshed(page)
        assert.isTrue(await isMarked(look), "the reader uses it")
        await Promise.all([page.waitForEvent("load"), pass(page, 10_000)])
        assert.isFalse(await isMarked(look))
        await mark(look)
        await pass(page, 30_000)
        assert.isTrue(await isMarked(look), "once")
      })
    })

    test("has the times of the reader's zone from the first refresh on", function* () {
      for (const [timezoneId, shown] of [
        ["Europe/Berlin", "2026-11-28 05:37:12"],
        // A browser may report the earlier name of a zone.
        ["Asia/Kolkata", "2026-11-28 10:07:12"]
      ] as const) {
        const { page, go } = yield* timed({ timezoneId })
        const [run] = yield* sqlOf(
          "select max(id)::text as id from tributary.runs where company_id = 1 and retries > 0"
        )
        yield* Effect.promise(async () => {
          await go(`/runs/${(run as { readonly id: string }).id}`)
          await pass(page, 2_100)
          const exact = timezoneId === "Europe/Berlin" ? "Europe/Berlin" : "Asia/"
          await page.locator("#zone").filter({ hasText: exact }).waitFor()
          await page.getByRole("main").getByText(shown).first().waitFor()
        })
      }
    })
  })

  describe("by keyboard and touch", () => {
    test("skips to the content, and gives every control the focus, visibly", function* () {
      const {
        look: { page, go }
      } = yield* Shown
      yield* Effect.promise(async () => {
        await page.setViewportSize(desk)
        for (const path of ["/resources", "/companies/north/customers", "/quarantine", "/records", "/budget"]) {
          await go(path)
          await page.keyboard.press("Tab")
          assert.match(await page.evaluate<string>("document.activeElement.textContent"), /skip/i)
          await page.keyboard.press("Enter")
          await page.keyboard.press("Tab")
          assert.isTrue(await page.evaluate<boolean>(`document.querySelector("main").contains(document.activeElement)`))
          // The same as 400 presses of Tab: each element that Tab reaches takes the focus and shows it.
          const without = await page.evaluate<ReadonlyArray<string>>(`
              [...document.querySelectorAll("main a[href], main button, main input:not([type=hidden]), main select, main summary")]
                .filter((one) => one.checkVisibility() && one.tabIndex >= 0)
                .filter((one) => {
                  one.focus({ focusVisible: true })
                  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one)
                  return document.activeElement !== one || ((outlineStyle === "none" || outlineWidth === "0px") && boxShadow === "none")
                })
                .map((one) => one.outerHTML.slice(0, 100))`)
          assert.deepStrictEqual(without, [], path)
        }
      })
    })

    test("shows the exact instant of a time, and moves between the times of a table by arrow keys", function* () {
      const { page, go } = yield* timed()
      /** What is shown beside the focused time, if it is within the window. */
      const shown = () =>
        page.evaluate<string | null>(`(() => {
            const time = document.activeElement
            if (!(time instanceof HTMLTimeElement)) return null
            const { content, display, position } = getComputedStyle(time, "::after")
            return display !== "none" && position === "fixed" ? content : null
          })()`)
      const place = () =>
        page.evaluate<number>(`[...document.querySelectorAll("main time")].indexOf(document.activeElement)`)
      yield* Effect.promise(async () => {
        await go("/runs")
        for (let steps = 0; steps < 200 && (await place()) < 0; steps += 1) await page.keyboard.press("Tab")
        assert.match((await shown())!, /^"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? UTC"/)
        const before = await place()
        await page.keyboard.press("ArrowDown")
        assert.isAbove(await place(), before)
        await page.keyboard.press("ArrowUp")
        assert.strictEqual(await place(), before)
        const stops = await page.evaluate<ReadonlyArray<number>>(
          `[...document.querySelectorAll(".table")].map((table) => table.querySelectorAll('time[tabindex="0"]').length)`
        )
        assert.isAtMost(Math.max(...stops), 1, "a table is one stop")
        await page.keyboard.press("Escape")
        assert.isNull(await shown())
      })
    })
  })

  describe("in other forms", () => {
    test("is printed without controls, with tables that fit and colours that are named", function* () {
      const {
        look: { page, go }
      } = yield* Shown
      yield* Effect.promise(async () => {
        await page.emulateMedia({ media: "print", colorScheme: "dark" })
        // The printable width of A4 at 96 dots an inch, less the margins.
        await page.setViewportSize({ width: 681, height: 1000 })
        for (const path of ["/", "/runs", "/webhooks", "/budget"]) {
          await go(path)
          const wrong = await page.evaluate<ReadonlyArray<string>>(`[
              ...[...document.querySelectorAll("table, svg.chart, pre")]
                .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)
                .map((one) => "cut: " + one.outerHTML.slice(0, 80)),
              ...[...document.querySelectorAll("header, nav, form, button, .button, .skip")]
                .filter((one) => one.checkVisibility())
                .map((one) => "printed: " + one.outerHTML.slice(0, 80)),
              ...[...document.querySelectorAll(".keys li")]
                .filter((one) => getComputedStyle(one, "::before").printColorAdjust !== "exact")
                .map((one) => "no colour: " + one.textContent),
              ...(/rgb\\((\\d\\d?), (\\d\\d?), (\\d\\d?)\\)/.test(getComputedStyle(document.body).color) ? [] : ["light ink"])
            ]`)
          assert.deepStrictEqual(wrong, [], path)
        }
        await page.emulateMedia({ media: null, colorScheme: null })
        await page.setViewportSize(desk)
      })
    })

    test("works without a script, in UTC, and reports a script that cannot be loaded", function* () {
      const { browser, pages } = yield* Shown
      const plain = yield* visited(browser, pages, { javaScriptEnabled: false, timezoneId: "Asia/Kolkata" })
      yield* Effect.promise(async () => {
        await plain.go("/resources?company=north")
        await plain.page.getByRole("main").getByRole("link", { name: "orders", exact: true }).first().click()
        await plain.page.waitForURL(/companies\/north\/orders$/)
        assert.include(await plain.page.locator("footer").innerText(), "UTC")
        await plain.page
          .getByRole("link", { name: /^sync now/i })
          .first()
          .click()
        await plain.page.waitForURL(/confirm\/sync/)
        await plain.page.getByRole("link", { name: /cancel/i }).click()
        await plain.page.waitForURL(/companies\/north\/orders$/)
      })
      const broken = yield* visited(browser, {
        ...pages,
        answer: (request) =>
          request.url.endsWith("idiomorph.js") ? Promise.reject(new Error("away")) : pages.answer(request)
      })
      broken.expect(/Failed to load resource/)
      yield* Effect.promise(async () => {
        await broken.go("/resources")
        await broken.page.locator("#notice").filter({ hasText: "could not be loaded" }).waitFor()
      })
    })
  })
})
