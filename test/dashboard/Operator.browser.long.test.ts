/**
 * An operator in Chromium at a real `tributary serve`: logs in and out, acts by forms with and without scripts, and sees
 * what happens without a reload.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "vitest"
import { until, type Visit, visit } from "../support/browser.ts"
import { deadEvent, insertedExternalId, oddCustomer, pushedExternalId } from "../support/operator.ts"
import { openInBrowser } from "../support/operatorInBrowser.ts"

const password = "correct horse <battery> & staple"

const { operator, served, browser } = await openInBrowser()

const one = async (text: string): Promise<unknown> => {
  const [row] = await operator.query<{ value: unknown }>(text)
  return row?.value
}
const task = (what: string, resource: string, kind = "sync") =>
  `select ${what} as value from tributary.tasks where company = 'north' and resource = '${resource}' and kind = '${kind}'`
const resolvedAt = (table: string, where: string) =>
  `select resolved_at::text as value from tributary.${table} where ${where}`

interface ActionCase {
  readonly what: string
  readonly from: string | (() => Promise<string>)
  /** The link to the confirmation, and the button there. */
  readonly action: RegExp
  readonly fill?: (look: Visit) => Promise<void>
  /** A value that the action changes. */
  readonly changes: string
  readonly isScriptless?: boolean
}

const actions: ReadonlyArray<ActionCase> = [
  {
    what: "syncs a resource",
    from: "/companies/north/customers",
    action: /^sync now/i,
    changes: "select count(*) as value from tributary.runs where company_id = 1 and resource = 'customers'"
  },
  {
    what: "syncs a resource without a script",
    from: "/companies/north/invoicelines",
    action: /^sync now/i,
    changes: "select count(*) as value from tributary.runs where company_id = 1 and resource = 'invoicelines'",
    isScriptless: true
  },
  {
    what: "reads everything",
    from: "/companies/north/orders",
    action: /full scan/i,
    changes:
      "select count(*) as value from tributary.runs where company_id = 1 and resource = 'orders' and kind = 'full' and status = 'done'"
  },
  {
    what: "reads a range again",
    from: "/companies/north/invoices",
    action: /backfill/i,
    fill: ({ page }) => page.getByLabel(/since|from/i).fill("2024-01-01"),
    changes: task("finished_at is not null and status = 'done'", "invoices", "backfill")
  },
  {
    what: "pauses a resource",
    from: "/companies/north/items",
    action: /^pause/i,
    changes: task("paused_at is null", "items")
  },
  {
    what: "resumes a resource",
    from: "/companies/north/items",
    action: /^resume/i,
    changes: task("paused_at is null", "items")
  },
  {
    what: "replays a dead letter",
    from: `/webhooks/event?company=south&event=${deadEvent}`,
    action: /replay/i,
    changes: resolvedAt("inbox", `event_id = '${deadEvent}'`)
  },
  {
    what: "sends a refused row of the outbox again",
    from: async () =>
      `/outbox/rows/${String(await one(`select id::text as value from tributary.outbox where externalid = '${insertedExternalId}'`))}`,
    action: /^retry/i,
    changes: resolvedAt("outbox", `externalid = '${insertedExternalId}'`)
  },
  {
    what: "sends the refused rows of a push again",
    from: async () =>
      `/outbox/pushes/${String(await one(`select push_id::text as value from tributary.outbox where externalid = '${pushedExternalId}'`))}`,
    action: /^retry/i,
    changes: resolvedAt("outbox", `externalid = '${pushedExternalId}'`)
  },
  {
    what: "fetches a repaired record from quarantine",
    from: async () => {
      const records = [{ ...oddCustomer, name: "Repaired Ltd." }]
      await operator.reference.control("POST", "/records", { company: 1, resource: "customers", records })
      return `/quarantine/${String(await one("select min(id)::text as value from tributary.quarantine where resolved_at is null"))}`
    },
    action: /retry|read (?:it )?again/i,
    changes: "select count(*) as value from tributary.quarantine where resolved_at is null"
  }
]

describe("an operator", () => {
  it.each(actions)(
    "$what, after a confirmation that can be cancelled",
    async ({ from, action, fill, changes, isScriptless }) => {
      const look = await visit(browser, await served.link(), { javaScriptEnabled: isScriptless !== true })
      const { page, go } = look
      const main = page.getByRole("main")
      const path = typeof from === "string" ? from : await from()
      const before = await one(changes)
      const confirm = async () => {
        await main
          .getByRole("link", { name: action })
          .or(main.getByRole("button", { name: action }))
          .first()
          .click()
        await page.waitForURL(/\/confirm\//)
      }
      await go(path)
      await confirm()
      await page.getByRole("link", { name: /cancel/i }).click()
      await page.waitForURL((url) => !url.pathname.startsWith("/confirm/"))
      assert.deepStrictEqual(await one(changes), before)
      await go(path)
      await confirm()
      await fill?.(look)
      await main.getByRole("button").first().click()
      await page.waitForURL((url) => !/^\/(?:confirm|do)\//.test(url.pathname))
      await page.getByRole("status").filter({ hasText: /\w/ }).first().waitFor()
      await until(
        `${path} has another value`,
        () => one(changes),
        (value) => value !== before && value !== null && value !== false,
        60
      )
      await look.close()
    }
  )

  it("sees a change at the source after its event, and a run to its end, without a reload", async () => {
    const look = await visit(browser, await served.link())
    await look.go("/webhooks")
    await look.page.evaluate("window.sameDocument = true")
    const id = await operator.customer("Seen live")
    await operator.reference.control("POST", "/cycle")
    await look.page.getByRole("main").getByText(`customers ${id}`).first().waitFor({ timeout: 65_000 })
    assert.isTrue(await look.page.evaluate<boolean>("window.sameDocument === true"))
    await look.close()
  })

  it("sees the delivery log of the source", async () => {
    const look = await visit(browser, await served.link())
    await look.go("/webhooks?company=north")
    await look.page.locator("main a[href*='/deliveries']").first().click()
    await look.page.getByRole("main").getByText("customers.created").first().waitFor()
    await look.close()
  })
})

describe("access", () => {
  it("without a password is refused to a form of another site", async () => {
    const paused = "select count(*) as value from tributary.tasks where paused_at is not null"
    const before = await one(paused)
    const target = `${served.url}/do/pause`
    const stranger = createServer((_, response) => {
      response.setHeader("content-type", "text/html")
      response.end(
        `<form method="post" action="${target}"><input name="company" value="north"><input name="resource" value="customers"><input name="form_token" value="guessed"><button>Win a prize</button></form>`
      )
    })
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", () => resolve()))
    const look = await visit(browser, `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`)
    look.expect(/^requests http|status of 403/)
    await look.go("/")
    const [response] = await Promise.all([
      look.page.waitForResponse(target),
      look.page.getByRole("button", { name: "Win a prize" }).click()
    ])
    assert.strictEqual(response.status(), 403)
    assert.strictEqual(await one(paused), before)
    await look.close()
    await new Promise<void>((resolve) => stranger.close(() => resolve()))
  })

  it("with a password needs it, and ends with the logout", async () => {
    const locked = await operator.serve({ listen: "127.0.0.1:0", env: { TRIBUTARY_DASHBOARD_PASSWORD: password } })
    const look = await visit(browser, locked.url)
    look.expect(/status of 401/)
    const { page, context } = look
    await page.goto("/runs")
    assert.match(page.url(), /\/login/)
    const enter = async (word: string) => {
      await page.getByLabel(/password/i).fill(word)
      await page.keyboard.press("Enter")
    }
    await enter("not the one")
    await page.getByRole("alert").or(page.getByRole("status")).filter({ hasText: /\w/ }).first().waitFor()
    await page.goto("/")
    assert.match(page.url(), /\/login/)
    await enter(password)
    await page.getByRole("navigation").first().getByRole("link", { name: "Overview" }).waitFor()
    const cookies = await context.cookies()
    assert.isNotEmpty(cookies)
    for (const cookie of cookies) {
      assert.deepInclude(cookie, { httpOnly: true, sameSite: "Strict" })
      assert.notInclude(decodeURIComponent(cookie.value), "battery")
    }
    assert.notInclude(await page.content(), "battery")
    await page.getByRole("button", { name: "Log out", exact: true }).click()
    await page.getByRole("button", { name: "Log out here" }).click()
    await page.waitForURL(/\/login/)
    await context.addCookies(cookies)
    await page.goto("/budget")
    assert.match(page.url(), /\/login/, "a copy of the cookies of a closed session")
    await look.close()
    assert.notInclude(locked.stderr(), "battery")
    await locked.stop()
  })
})
