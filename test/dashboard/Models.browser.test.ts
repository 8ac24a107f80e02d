/**
 * Views of models in Chromium, without a server and a database: layout, accessibility and console, on a desk and a phone, in
 * light and dark.
 *
 * `SCREENSHOTS=folder` writes a picture of each page to that folder.
 */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Hono } from "hono"
import { crumbsOf } from "../../src/dashboard/Breadcrumbs.ts"
import { layout } from "../../src/dashboard/Layout.ts"
import { routes } from "../../src/dashboard/Routes.ts"
import * as Assets from "../../src/web/Assets.ts"
import { restrictBrowsers, serveAsset } from "../../src/web/Headers.ts"
import { writeTimes } from "../../src/web/Times.ts"
import { desk, narrow, overflow, phone, picture, type Visit, violations } from "../support/browser.ts"
import { suite } from "../support/suite.ts"
import { holdsHostile } from "./asking.ts"
import { now, pages, patterns } from "./models.ts"
import { opened, visited } from "./shownInBrowser.ts"

const assets = Assets.load("/assets")

/** The pages by their number, with the real layout, headers and files. */
const app = new Hono()
app.use(restrictBrowsers(false))
app.get("/assets/:version/:name", serveAsset(assets))
app.get("/pages/:number", async (exchange) => {
  const { answer } = pages[Number(exchange.req.param("number"))]!
  if (answer._tag === "Redirect") throw new Error("a redirect")
  const text = await layout({
    title: answer.title,
    section: answer.section,
    breadcrumbs: crumbsOf(answer.level ?? null, "/pages"),
    numbers: { quarantine: 12, webhooks: 4 },
    body: answer.body,
    // A page stands still.
    isLive: false,
    notice: null,
    logOutToken: "token",
    hasMenu: true,
    now,
    version: "1.2.3",
    assets
  })
  return exchange.html(writeTimes(text.toString(), "UTC"))
})

class Look extends Context.Service<Look, Visit>()("test/Look") {}

const looked = Layer.effect(
  Look,
  Effect.flatMap(opened, (browser) =>
    visited(browser, { answer: async (request) => app.fetch(request), cookie: "none=none" }, { isStill: true })
  )
)

suite("the view of a model", looked, (test) => {
  test("is that of a route, and escapes foreign text", function* () {
    const paths = routes.map(({ path }) => path.replace(/^\/confirm\/.*/, "/confirm/:action"))
    assert.deepStrictEqual(
      patterns.filter((pattern) => !paths.includes(pattern)),
      []
    )
    for (const { name, answer } of pages) {
      const body = yield* Effect.promise(async () => (answer._tag === "Page" ? String(await answer.body) : "no page"))
      // Markup in the value of a field is escaped, and is what the reader entered.
      assert.isFalse(holdsHostile(body.replaceAll(/value="[^"]*"/g, "")), name)
    }
  })

  for (const path of new Set(pages.map((one) => one.path))) {
    test(`fits, and is accessible: ${path}`, function* () {
      const { page, go, problems } = yield* Look
      yield* Effect.promise(async () => {
        const wrong: Array<string> = []
        for (const [number, { name, path: of, isVariant }] of pages.entries()) {
          if (of !== path) continue
          const found: Array<string> = []
          await page.emulateMedia({ colorScheme: "light" })
          await page.setViewportSize(phone)
          await go(`/pages/${number}`)
          found.push(...(await overflow(page)))
          await picture(page, `${name.replaceAll(/\W+/g, "-")}-phone`)
          await page.setViewportSize(desk)
          found.push(...(await overflow(page)))
          await picture(page, `${name.replaceAll(/\W+/g, "-")}-desk`)
          if (!isVariant) {
            found.push(...(await narrow(page)), ...(await violations(page)))
            // In dark, only colours differ.
            await page.emulateMedia({ colorScheme: "dark" })
            found.push(...(await violations(page, ["color-contrast"])))
          }
          wrong.push(...[...found, ...problems()].map((problem) => `${name}: ${problem}`))
        }
        assert.deepStrictEqual(wrong, [])
      })
    })
  }
})
