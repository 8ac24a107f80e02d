/**
 * Pages in Chromium without a server: their status, layout, accessibility and console, on a desk and a phone, in light and
 * dark. The pages whose views are functions of a model are shown by `Models.browser.test.ts`.
 *
 * `SCREENSHOTS=folder` writes a picture of each view to that folder.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { desk, narrow, overflow, phone, picture, violations } from "../support/browser.ts"
import { patterns } from "./models.ts"
import { addressOf, views } from "./shown.ts"
import { Shown, shownInBrowser } from "./shownInBrowser.ts"
import { suite } from "../support/suite.ts"

const ofModels = patterns.map((pattern) => new RegExp(`^${pattern.replaceAll(/:\w+/g, "[^/]+")}$`))
const isOfModel = (path: string): boolean => ofModels.some((pattern) => pattern.test(path.replace(/\?.*/, "")))

suite("a view", shownInBrowser, (test) => {
  for (const view of views.filter(({ path }) => !isOfModel(path))) {
    test(`fits, and is accessible: ${view.name}`, function* () {
      const path = yield* addressOf(view)
      const {
        look: { page, go, expect, problems }
      } = yield* Shown
      yield* Effect.promise(async () => {
        const { status = 200 } = view
        if (status !== 200) expect(new RegExp(`status of ${status}`))
        await page.emulateMedia({ colorScheme: "light" })
        await page.setViewportSize(desk)
        assert.strictEqual(await go(path), status)
        assert.strictEqual(await page.getByRole("heading", { level: 1 }).count(), 1)
        assert.strictEqual(await page.getByRole("main").count(), 1)
        const wrong: Array<string> = []
        for (const [device, viewport] of Object.entries({ phone, desk })) {
          await page.setViewportSize(viewport)
          wrong.push(...(await overflow(page)), ...(await violations(page)))
          if (device === "desk") wrong.push(...(await narrow(page)))
          await picture(page, `${view.name}-${device}-light`)
        }
        // In dark, only colours differ.
        await page.emulateMedia({ colorScheme: "dark" })
        wrong.push(...(await violations(page, ["color-contrast"])))
        await picture(page, `${view.name}-desk-dark`)
        assert.deepStrictEqual([...wrong, ...problems()], [])
      })
    })
  }
})
