/**
 * The frame of the pages in a real browser: breadcrumbs, the numbers of the menu, and what a page does when servers of two
 * versions answer in turn.
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as WriteActivity from "../../src/tasks/WriteActivity.ts"
import { openBrowser, overflow, phone, until, type Visit, violations, visit } from "../support/browser.ts"
import { seed, shownCompany, showing } from "../support/pages.ts"
import { layerWarehouse } from "../support/postgres.ts"

const companies = [shownCompany("north", 1n), shownCompany("south", 2n)]
const resources = ["things", "widgets"]

const warehouse = Layer.effectDiscard(
  seed(
    [
      ["north", 1],
      ["south", 2]
    ],
    resources,
    40
  )
).pipe(Layer.provideMerge(layerWarehouse))

const opened = Effect.acquireRelease(
  Effect.promise(() => openBrowser()),
  (browser) => Effect.promise(() => browser.close())
)

const visited = (url: string) =>
  Effect.gen(function* () {
    const browser = yield* opened
    return yield* Effect.acquireRelease(
      Effect.promise(() => visit(browser, url)),
      (look) => Effect.promise(() => look.close())
    )
  })

/**
 * Two servers of different versions behind one address. The second one is the first, with another version in everything
 * that it answers; each has the assets of both, as behind a shared cache.
 */
const makeRolling = (upstream: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const own = /name="assets" content="([^"]+)"/.exec(await (await fetch(upstream)).text())![1]!
      const other = own.replace(/./g, "z")
      const state = { pick: (): "own" | "other" => "own", pages: 0, refreshes: 0 }
      const proxy = http.createServer((request, response) => {
        const isAsset = request.url!.startsWith("/assets/")
        const isRefresh = request.headers["hx-request"] === "true"
        if (isRefresh) state.refreshes += 1
        else if (!isAsset) state.pages += 1
        const version = state.pick() === "own" ? own : other
        const headers = Object.fromEntries(
          ["hx-request", "cookie", "accept"].flatMap((name) => {
            const value = request.headers[name]
            return typeof value === "string" ? [[name, value]] : []
          })
        )
        const answered = async () => {
          const answer = await fetch(new URL(request.url!.replace(other, own), upstream), {
            headers,
            redirect: "manual"
          })
          const text = await answer.text()
          response.writeHead(answer.status, {
            "content-type": answer.headers.get("content-type") ?? "",
            "tributary-assets": version,
            "tributary-refresh-ms": "2000"
          })
          response.end(isAsset ? text : text.replaceAll(own, version))
        }
        void answered()
      })
      await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
      return { proxy, state, url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` }
    }),
    ({ proxy }) =>
      Effect.promise(async () => {
        proxy.closeAllConnections()
        await new Promise((resolve) => proxy.close(resolve))
      })
  )

const mark = (look: Visit) => look.page.evaluate("window.sameDocument = true")
const isMarked = (look: Visit) => look.page.evaluate<boolean>("window.sameDocument === true")

layer(warehouse, { excludeTestServices: true, timeout: "180 seconds" })("the frame in a browser", (it) => {
  it.effect("leads back by breadcrumbs, with the keyboard and on a phone", () =>
    Effect.gen(function* () {
      const url = yield* showing(companies)
      const look = yield* visited(url)
      yield* Effect.promise(async () => {
        const { page, go } = look
        const breadcrumbs = page.getByRole("navigation", { name: "Breadcrumb" })
        await go("/companies/north/things")
        assert.deepStrictEqual(await breadcrumbs.getByRole("listitem").allInnerTexts(), ["Overview", "north", "things"])
        assert.strictEqual(await breadcrumbs.locator("[aria-current=page]").innerText(), "things")
        await breadcrumbs.getByRole("link", { name: "north" }).focus()
        await page.keyboard.press("Enter")
        await page.waitForURL(/\/companies\/north$/)

        await page.setViewportSize(phone)
        look.expect(/status of 404/)
        assert.strictEqual(await go("/companies/north/nothing-here-with-a-long-name"), 404)
        const list = (await breadcrumbs.getByRole("list").boundingBox())!
        assert.isBelow(list.height, 40, "one line")
        assert.deepStrictEqual(await overflow(page), [])
        assert.deepStrictEqual(await violations(page), [])
        const link = breadcrumbs.getByRole("link", { name: "north" })
        assert.isAtLeast((await link.boundingBox())!.height, 24, "high enough to touch")
        await link.click()
        await page.waitForURL(/\/resources\?company=north$/)
        await go("/")
        assert.strictEqual(await breadcrumbs.count(), 0, "nothing that the menu says")
      })
    }).pipe(Effect.scoped)
  )

  it.effect("counts what is open in the menu, without a reload and without moving it", () =>
    Effect.gen(function* () {
      const url = yield* showing(companies)
      const look = yield* visited(url)
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from tributary.quarantine`
      const menu = look.page.getByRole("navigation", { name: "Pages" })
      const places = () =>
        look.page.evaluate<string>(
          `[...document.querySelectorAll(".menu a")].map((one) => one.getBoundingClientRect()).map(({ x, width }) => x + "+" + width).join()`
        )
      yield* Effect.promise(async () => {
        await look.go("/")
        await mark(look)
        assert.strictEqual(await menu.getByRole("link", { name: "Quarantine", exact: true }).count(), 1)
      })
      const before = yield* Effect.promise(places)
      yield* sql`
        insert into tributary.quarantine (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
        select 1, 'things', n::text, null, 'unreadable', n::text, 1, 'GET /things', tributary.now(), tributary.now() from generate_series(1, 3) n`
      yield* Effect.promise(async () => {
        await menu.getByRole("link", { name: "Quarantine 3 open", exact: true }).waitFor({ timeout: 65_000 })
        assert.strictEqual(await places(), before)
        assert.isTrue(await isMarked(look), "the page was not reloaded")
        assert.deepStrictEqual(await violations(look.page), [])
      })
      yield* sql`
        insert into tributary.quarantine (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
        select 1, 'things', n::text, null, 'unreadable', n::text, 1, 'GET /things', tributary.now(), tributary.now() from generate_series(4, 200) n`
      yield* Effect.promise(async () => {
        await menu.getByRole("link", { name: "Quarantine more than 99 open", exact: true }).waitFor({ timeout: 65_000 })
        assert.strictEqual(await places(), before)
      })
    }).pipe(Effect.scoped)
  )

  it.effect("has every menu entry, and readable charts, in a window of medium width and on paper", () =>
    Effect.gen(function* () {
      const url = yield* showing(companies)
      yield* WriteActivity.writeActivity(() => [])
      const look = yield* visited(url)
      yield* Effect.promise(async () => {
        const { page, go } = look
        for (const width of [720, 1000, 1100]) {
          await page.setViewportSize({ width, height: 800 })
          await go("/")
          const problems = await page.evaluate<ReadonlyArray<string>>(`(() => {
            const boxOf = (one) => one.getBoundingClientRect()
            const labels = [...document.querySelectorAll("svg.axis")].map((axis) => [...axis.querySelectorAll("text")])
            if (labels.flat().length < 4) return ["no axis"]
            return [
              ...[...document.querySelectorAll(".menu a")].filter((one) => boxOf(one).right > innerWidth).map((one) => "cut: " + one.textContent),
              ...labels.flatMap((of) => of.slice(1).filter((one, index) => boxOf(one).left < boxOf(of[index]).right).map((one) => "over another label: " + one.textContent)),
              ...[...document.querySelectorAll(".charts > figure:not(:has(svg))")].filter((one) => boxOf(one).height > 120).map((one) => "empty: " + one.textContent)
            ]
          })()`)
          assert.deepStrictEqual(problems, [], `${width} pixels`)
          assert.deepStrictEqual(await overflow(page), [])
        }
        await page.emulateMedia({ media: "print" })
        const printed = await page.evaluate<ReadonlyArray<string>>(
          `[...document.querySelectorAll(".keys li")].map((one) => getComputedStyle(one, "::before").printColorAdjust)`
        )
        assert.deepStrictEqual([...new Set(printed)], ["exact"], "the colours of the legend are printed")
      })
    }).pipe(Effect.scoped)
  )

  it.effect("reloads a page once during a rolling update, while two versions answer in turn", () =>
    Effect.gen(function* () {
      const { state, url } = yield* makeRolling(yield* showing(companies))
      const look = yield* visited(url)
      yield* Effect.promise(async () => {
        await look.go("/runs")
        // The other version answers every second request, so that a reload leads to either version.
        let turns = 0
        state.pick = () => ((turns += 1) % 2 === 0 ? "other" : "own")
        const { pages } = state
        await until(
          "the pages of both versions were refreshed",
          async () => state.refreshes,
          (refreshes) => refreshes >= 12,
          90
        )
        assert.strictEqual(state.pages - pages, 1, "one reload for the new version")
        assert.strictEqual(await look.page.getByRole("heading", { level: 1 }).innerText(), "Runs")
      })
    }).pipe(Effect.scoped)
  )

  it.effect("does not reload a page that the reader uses", () =>
    Effect.gen(function* () {
      const { state, url } = yield* makeRolling(yield* showing(companies))
      const look = yield* visited(url)
      yield* Effect.promise(async () => {
        await look.go("/runs")
        await mark(look)
        state.pick = () => "other"
        const { refreshes } = state
        await until(
          "three answers of the new version",
          async () => {
            await look.page.keyboard.press("Shift")
            return state.refreshes - refreshes
          },
          (answers) => answers >= 3,
          60
        )
        assert.isTrue(await isMarked(look), "the page was not reloaded")
        await look.page.waitForEvent("load", { timeout: 60_000 })
        assert.isFalse(await isMarked(look), "the page is reloaded when the reader does nothing")
      })
    }).pipe(Effect.scoped)
  )
})
