/** The pages of an installation with many companies in a real browser: layout, accessibility, and the way to a company. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as CountCompanies from "../../src/tasks/CountCompanies.ts"
import { application } from "../support/application.ts"
import { desk, overflow, phone, picture, violations } from "../support/browser.ts"
import { companyName, fillFleet, fingerprintOf } from "../support/fleet.ts"
import { shownCompany } from "../support/pages.ts"
import { layerWarehouse } from "../support/postgres.ts"
import { opened, visited } from "./shownInBrowser.ts"

const many = 240
const companies = Array.from({ length: many }, (_, index) => ({
  ...shownCompany(companyName(index + 1), BigInt(index + 1)),
  fingerprint: fingerprintOf(index + 1)
}))

const pages = {
  companies: "/",
  "companies-late": "/?state=late&order=lateness",
  "companies-sign": "/?sign=dead_letters",
  "many-processes": "/processes",
  "many-events": "/webhooks/events?time=hour",
  "many-webhooks": "/webhooks",
  "many-quarantine": "/quarantine",
  "many-endpoints": "/endpoints"
}

layer(layerWarehouse, { timeout: "120 seconds" })("many companies in a browser", (it) => {
  it.effect(
    "fit and are accessible on each page, and each part leads to its companies",
    () =>
      Effect.gen(function* () {
        yield* fillFleet(many, 8)
        while ((yield* CountCompanies.countDue()).some(({ isNew }) => isNew));
        const look = yield* visited(yield* opened, yield* application(companies), { isStill: true })
        yield* Effect.promise(async () => {
          const { page, go } = look
          const wrong: Array<string> = []
          for (const [name, path] of Object.entries(pages)) {
            assert.strictEqual(await go(path), 200, path)
            for (const [device, size] of Object.entries({ phone, desk })) {
              await page.setViewportSize(size)
              const problems = [...(await overflow(page)), ...(device === "desk" ? await violations(page) : [])]
              wrong.push(...problems.map((problem) => `${name} ${device}: ${problem}`))
              await picture(page, `${name}-${device}`)
            }
          }
          assert.deepStrictEqual(wrong, [])

          // From the picture to the companies, and from one of them to its failing resource.
          await go("/")
          await page.locator(".strip a").first().click()
          await page.waitForURL(/state=failing/)
          const rows = page.locator("main tbody tr")
          assert.strictEqual(await rows.count(), 2)
          await rows.first().getByRole("link").first().click()
          await page.waitForURL(/companies\/c\d{5}$/)
          await go("/")
          await page.getByRole("searchbox", { name: "Company" }).fill("c0011")
          await page.keyboard.press("Enter")
          await page.waitForURL(/text=c0011/)
          assert.strictEqual(await page.getByRole("main").getByRole("rowheader").count(), 10)
        })
      }).pipe(Effect.scoped),
    300_000
  )
})
