/**
 * Every page in a real browser, on a desktop and a phone, light and dark: its status, content, accessibility and
 * layout, without requests to other hosts.
 *
 * `SCREENSHOTS=folder npm run test:browser` writes a screenshot of each page to that folder.
 */
import { assert, describe, it } from "vitest"
import { routes } from "../../src/dashboard/Routes.ts"
import { desk, narrow, overflow, phone, picture, smallPhone, until, violations, visit } from "../support/browser.ts"
import { openOperatorWithHistory } from "../support/history.ts"
import { historyChecks } from "../support/historyChecks.ts"
import { failing, late } from "../support/operator.ts"
import { openInBrowser } from "../support/operatorInBrowser.ts"
import { pageCases } from "../support/pageCases.ts"

const { operator, served, browser, openVisit } = await openInBrowser(openOperatorWithHistory)
const look = await openVisit()

describe("the history that the pages show", () => {
  it.each(historyChecks)("agrees with itself: $name", async ({ contradictions }) => {
    assert.deepStrictEqual(await contradictions(operator), [])
  })
})

describe("every page", () => {
  it.each(pageCases)("responds, fits and is accessible: $name", async ({ name, path, says, status = 200 }) => {
    const { page, go } = look
    if (status !== 200) look.expect(new RegExp(`status of ${status}`))
    await page.setViewportSize(desk)
    await page.emulateMedia({ colorScheme: "light" })
    const address = await path(operator)
    assert.strictEqual(await go(address), status)

    assert.strictEqual(await page.getByRole("heading", { level: 1 }).count(), 1, "one heading of the first level")
    assert.match(await page.title(), /Tributary/)
    assert.strictEqual(await page.getByRole("main").count(), 1)
    assert.strictEqual(await page.getByRole("navigation").first().getByRole("link", { name: "Overview" }).count(), 1)
    const text = (await page.getByRole("main").textContent()) ?? ""
    for (const expected of says) {
      if (typeof expected === "string") assert.include(text, expected)
      else assert.match(text, expected)
    }
    for (const secret of ["whsec_", "postgres://", "Bearer "]) assert.notInclude(await page.content(), secret)

    const wrong: Array<string> = []
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme })
      for (const [device, size] of [
        ["desk", desk],
        ["phone", phone],
        ["small phone", smallPhone]
      ] as const) {
        await page.setViewportSize(size)
        wrong.push(...(await overflow(page)).map((problem) => `${device} ${colorScheme}: ${problem}`))
        if (device === "desk") wrong.push(...(await narrow(page)).map((problem) => `${device}: ${problem}`))
        if (device === "small phone") continue
        wrong.push(...(await violations(page)).map((problem) => `${device} ${colorScheme}: ${problem}`))
        await picture(page, `${name}-${device}-${colorScheme}`)
      }
    }
    await page.setViewportSize(desk)
    assert.deepStrictEqual(wrong, [])
    assert.deepStrictEqual(look.problems(), [])
  })

  it("has a case in this list", async () => {
    const paths: Array<string> = []
    for (const { path, status = 200 } of pageCases) {
      if (status === 200) paths.push(new URL(await path(operator), served.url).pathname)
    }
    const missing = routes
      .filter(({ method }) => method === "GET")
      .map(({ path }) => path)
      .filter((route) => {
        const pattern = new RegExp(`^${route.replaceAll(/:\w+/g, "[^/]+")}$`)
        return !paths.some((path) => pattern.test(path))
      })
    assert.deepStrictEqual(missing, [], "pages without a case in test/support/pageCases.ts")
  })

  it("is linked from the menu, which marks the current page", async () => {
    const { page, go } = look
    await go("/")
    for (const name of ["Resources", "Runs", "Budget", "Webhooks", "Outbox", "Quarantine", "Records", "Overview"]) {
      await page
        .getByRole("navigation")
        .first()
        .getByRole("link", { name: new RegExp(`^${name}`) })
        .click()
      await page.waitForURL(name === "Overview" ? /\/$/ : new RegExp(`/${name.toLowerCase()}$`))
      const current = await page.locator("nav [aria-current=page]").allInnerTexts()
      assert.match(current.join(), new RegExp(`^${name}[^,]*$`))
    }
  })

  it("prints without menu and buttons, in dark ink", async () => {
    const { page, go } = look
    await page.emulateMedia({ media: "print", colorScheme: "dark" })
    await go("/companies/north/customers")
    assert.isFalse(await page.getByRole("navigation").first().isVisible(), "the menu is not printed")
    const ink = await page.evaluate<string>("getComputedStyle(document.body).color")
    const [red = 255, green = 255, blue = 255] = (ink.match(/\d+/g) ?? []).map(Number)
    assert.isBelow(Math.max(red, green, blue), 100, `the text color is ${ink}`)
    await page.emulateMedia({ media: null, colorScheme: null })
  })

  it("has no motion under prefers-reduced-motion", async () => {
    const { page, go } = look
    await page.emulateMedia({ reducedMotion: "reduce" })
    await go("/")
    const moving = await page.evaluate<number>(
      `[...document.querySelectorAll("*")].filter((one) => {
        const { animationName, animationDuration, transitionDuration } = getComputedStyle(one)
        return (animationName !== "none" && parseFloat(animationDuration) > 0.1) || parseFloat(transitionDuration) > 0.1
      }).length`
    )
    assert.strictEqual(moving, 0)
    await page.emulateMedia({ reducedMotion: null })
  })

  it("shows the budget of the last hour as an accessible chart", async () => {
    const { page, go } = look
    await until(
      "a sample exists",
      () => operator.query<{ n: number }>("select count(*)::int as n from tributary.budget_usage"),
      ([row]) => (row?.n ?? 0) > 0
    )
    await go("/budget")
    const chart = page.getByRole("img").first()
    await chart.waitFor()
    assert.isAbove(
      ((await chart.getAttribute("aria-label")) ?? (await chart.locator("title").first().textContent()) ?? "").length,
      10
    )
    assert.isAbove((await page.getByRole("table").count()) + (await page.locator("details table").count()), 0)
  })

  it("has an overview of little more than two screens with readable lines, and a table that fits", async () => {
    const { page, go } = look
    await page.setViewportSize(desk)
    await go("/")
    const widths = await page.evaluate<ReadonlyArray<number>>(
      `[...document.querySelectorAll("main li p, main figcaption")].filter((one) => one.offsetParent).map((one) => one.offsetWidth / parseFloat(getComputedStyle(one).fontSize))`
    )
    assert.isAbove(widths.length, 10)
    assert.isAbove(Math.min(...widths), 10, "ems of the narrowest text")
    assert.isBelow(await page.evaluate<number>("document.documentElement.scrollHeight"), 2_100)
    for (const path of ["/resources", "/resources?company=north", "/resources?state=late"]) {
      await go(path)
      const [inside, outside] = await page.evaluate<readonly [number, number]>(
        `(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])(document.querySelector(".compact .table"))`
      )
      assert.isAtMost(inside, outside, path)
    }
  })

  it("leads from the overview to a resource, by its tile and by its problem", async () => {
    const { page, go } = look
    await go("/")
    const main = page.getByRole("main")
    await main.locator(".tiles a[href='/companies/north/invoicelines']").click()
    await page.waitForURL(/companies\/north\/invoicelines$/)
    await go("/")
    await main.getByRole("link", { name: "report the request id to the operator of the service" }).first().click()
    await page.waitForURL(/companies\/(north|south)\/\w+$|resources\?.*state=failing/)
    await go("/")
    await main.getByRole("link", { name: /\d+ resources as a table/ }).click()
    await page.waitForURL(/resources$/)
  })

  it("lists the resources, worst first, with row counts and next runs", async () => {
    const { page, go } = look
    await go("/resources")
    const rows = page.getByRole("table").getByRole("row")
    assert.match(await rows.nth(1).innerText(), /failing/)
    await go("/resources?company=north&text=customers")
    const row = rows.filter({ has: page.getByRole("link", { name: "customers", exact: true }) })
    const [rowCount] = await operator.query<{ n: number }>(
      "select count(*)::int as n from erp.customers where _company_id = 1 and _deleted_at is null"
    )
    await until(
      "row counts exist",
      () => row.innerText(),
      (text) => text.includes(rowCount!.n.toLocaleString("en-US"))
    )
    assert.match(await row.innerText(), /in \d+ (min|h|s)|running now|due/, "its next run")
    await go(`/resources?company=north&text=${late}&state=late`)
    assert.match(
      await rows.getByRole("link", { name: `Sync now ${late} of north`, exact: true }).innerText(),
      /Sync now/
    )
  })

  it.each([true, false])("filters and sorts the resources by keyboard, with scripts: %s", async (hasScripts) => {
    const found = await visit(browser, await served.link(), { javaScriptEnabled: hasScripts })
    const { page, go } = found
    await go("/resources")
    const names = () => page.locator("tbody th > a:first-child").allInnerTexts()
    const heading = page.getByRole("columnheader", { name: "Resource" })
    await heading.getByRole("link").focus()
    await page.keyboard.press("Enter")
    await page.waitForURL(/order=resource$/)
    assert.strictEqual(await heading.getAttribute("aria-sort"), "ascending")
    const up = await names()
    assert.deepStrictEqual(up, up.toSorted())
    await heading.getByRole("link").focus()
    await page.keyboard.press("Enter")
    await page.waitForURL(/order=-resource$/)
    const down = await names()
    assert.deepStrictEqual(down, down.toSorted().toReversed())
    assert.notStrictEqual(down[0], up[0])

    const main = page.getByRole("main")
    await main.getByRole("searchbox", { name: "Name" }).fill(late)
    await page.keyboard.press("Enter")
    await page.waitForURL(new RegExp(`text=${late}`))
    const matching = [...new Set(await names())]
    assert.include(matching, late)
    assert.deepStrictEqual(
      matching,
      matching.filter((name) => name.includes(late))
    )
    await go("/resources")
    await main.getByRole("combobox", { name: "Company" }).selectOption("south")
    await main.getByRole("button", { name: "Show" }).press("Enter")
    await page.waitForURL(/company=south/)
    assert.strictEqual(await page.locator("tbody th > a:first-child:not([href^='/companies/south/'])").count(), 0)
    await main.getByRole("link", { name: /^Failing/ }).press("Enter")
    await page.waitForURL(/state=failing/)
    assert.include(await names(), failing)
    await found.close()
  })
})

describe("the search for a record", () => {
  it.each([true, false])(
    "leads from any page to the record and to related ones, with scripts: %s",
    async (hasScripts) => {
      const found = await visit(browser, await served.link(), { javaScriptEnabled: hasScripts })
      const { page, go } = found
      const [invoice] = await operator.query<{ id: string; invoicenumber: string; orderid: string }>(
        "select id, invoicenumber, orderid from erp.invoices where _company_id = 1 and orderid is not null and id in (select invoiceid from erp.payments) and invoicenumber not in (select invoicenumber from erp.invoices where _company_id <> 1) order by id limit 1"
      )
      await go("/budget")
      const box = page.getByRole("banner").getByRole("searchbox")
      await box.fill(invoice!.invoicenumber)
      await box.press("Enter")
      await page.waitForURL(new RegExp(`resource=invoices&id=${invoice!.id}$`))
      const main = page.getByRole("main")
      assert.include(await main.getByRole("heading", { level: 1 }).innerText(), invoice!.invoicenumber)
      await main.getByRole("link", { name: new RegExp(`^orders ${invoice!.orderid}`) }).click()
      await page.waitForURL(new RegExp(`resource=orders&id=${invoice!.orderid}$`))
      await main.getByRole("link", { name: new RegExp(`^invoices ${invoice!.id}`) }).click()
      await page.waitForURL(/resource=invoices/)
      await main
        .getByRole("link", { name: /^payments/ })
        .first()
        .click()
      await page.waitForURL(/resource=payments/)
      await main.getByRole("link", { name: /^run / }).first().click()
      await page.waitForURL(/\/runs\/\d+$/)
      await found.close()
    }
  )
})
