/** The pages of an installation with 1,200 companies in a real browser: layout, accessibility, and the way to a company. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as CountCompanies from "../../src/tasks/CountCompanies.ts"
import { desk, openBrowser, overflow, phone, picture, violations, visit } from "../support/browser.ts"
import { companyName, fillFleet, fingerprintOf } from "../support/fleet.ts"
import { shownCompany, showing } from "../support/pages.ts"
import { layerWarehouse } from "../support/postgres.ts"

const many = 1_200
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
  "many-outbox": "/outbox",
  "many-quarantine": "/quarantine",
  "many-invariants": "/invariants?invariant=rule-1",
  "many-budget": "/budget",
  "many-endpoints": "/endpoints"
}

layer(layerWarehouse, { excludeTestServices: true, timeout: "120 seconds" })("many companies in a browser", (it) => {
  it.effect("fit and are accessible on each page, and each part leads to its companies", () =>
    Effect.gen(function* () {
      yield* fillFleet(many, 8)
      while ((yield* CountCompanies.countDue()).some(({ isNew }) => isNew));
      const url = yield* showing(companies)
      const browser = yield* Effect.acquireRelease(
        Effect.promise(() => openBrowser()),
        (opened) => Effect.promise(() => opened.close())
      )
      const look = yield* Effect.acquireRelease(
        Effect.promise(() => visit(browser, url)),
        (opened) => Effect.promise(() => opened.close())
      )
      yield* Effect.promise(async () => {
        const { page, go } = look
        const wrong: Array<string> = []
        for (const [name, path] of Object.entries(pages)) {
          assert.strictEqual(await go(path), 200, path)
          for (const colorScheme of ["light", "dark"] as const) {
            await page.emulateMedia({ colorScheme })
            for (const [device, size] of Object.entries({ desk, phone })) {
              await page.setViewportSize(size)
              const problems = [...(await overflow(page)), ...(await violations(page))]
              wrong.push(...problems.map((problem) => `${name} ${device} ${colorScheme}: ${problem}`))
              await picture(page, `${name}-${device}-${colorScheme}`)
            }
          }
          await page.setViewportSize(desk)
        }
        assert.deepStrictEqual(wrong, [])

        // From the picture to the companies, and from one of them to its failing resource.
        await go("/")
        await page.locator("svg.shares a").first().click()
        await page.waitForURL(/state=failing/)
        const rows = page.locator("main tbody tr")
        assert.strictEqual(await rows.count(), 12)
        await rows.first().getByRole("link").first().click()
        await page.waitForURL(/companies\/c\d{5}$/)
        await go("/")
        await page.getByRole("searchbox", { name: "Company" }).fill("c0119")
        await page.keyboard.press("Enter")
        await page.waitForURL(/text=c0119/)
        assert.strictEqual(await page.getByRole("main").getByRole("rowheader").count(), 10)
      })
    }).pipe(Effect.scoped)
  )
})
