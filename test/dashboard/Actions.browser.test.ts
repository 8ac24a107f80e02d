/**
 * The actions of the pages: each is confirmed first, can be cancelled, and reports its result, with and without
 * JavaScript.
 */
import type { Page } from "playwright-core"
import { assert, describe, it } from "vitest"
import { until, type Visit, visit } from "../support/browser.ts"
import {
  deadEvent,
  insertedExternalId,
  oddCustomer,
  openOperatorWithServe,
  pushedExternalId
} from "../support/operator.ts"
import { openInBrowser } from "../support/operatorInBrowser.ts"

const { operator, served, browser, openVisit } = await openInBrowser(openOperatorWithServe)
const look = await openVisit()

interface TaskRow {
  readonly paused_at: Date | null
  readonly full_requested: boolean
  readonly since: string | null
  readonly until: string | null
  readonly finished_at: Date | null
  readonly status: string | null
}

const task = async (resource: string, kind = "sync", company = "north"): Promise<TaskRow | undefined> => {
  const [row] = await operator.query<TaskRow>(
    "select * from tributary.tasks where company = $1 and resource = $2 and kind = $3",
    [company, resource, kind]
  )
  return row
}

const runsOf = async (resource: string, lane = "live") => {
  const [row] = await operator.query<{ n: number; kind: string | null }>(
    `select count(*)::int as n, (array_agg(kind order by id desc))[1] as kind from tributary.runs
      where company_id = 1 and resource = $1 and lane = $2 and status = 'done'`,
    [resource, lane]
  )
  return row!
}

/** A link or button in the main part of the page. */
const control = (page: Page, name: RegExp) => {
  const main = page.getByRole("main")
  return main.getByRole("link", { name }).or(main.getByRole("button", { name })).first()
}

/** The message that the page shows once after an action. */
const noticeText = async (page: Page): Promise<string> => {
  const place = page.getByRole("status").filter({ hasText: /\w/ })
  await place.first().waitFor()
  return place.first().innerText()
}

/** Opens the confirmation of an action, returns its text, cancels it, opens it again and confirms. */
const act = async (
  { page, go }: Visit,
  from: string,
  action: RegExp,
  confirm: RegExp,
  fill?: (page: Page) => Promise<void>
): Promise<string> => {
  await go(from)
  await control(page, action).click()
  await page.waitForURL(/\/confirm\//)
  const text = await page.getByRole("main").innerText()
  await page.getByRole("link", { name: /cancel/i }).click()
  await page.waitForURL((url) => !url.pathname.startsWith("/confirm/"))
  await control(page, action).click()
  await page.waitForURL(/\/confirm\//)
  await fill?.(page)
  await page.getByRole("main").getByRole("button", { name: confirm }).click()
  await page.waitForURL((url) => !/^\/(?:confirm|do)\//.test(url.pathname))
  return text
}

describe("the page of a resource", () => {
  it("requests a sync", async () => {
    const id = await operator.customer("Waits for the button")
    const text = await act(look, "/companies/north/customers", /^sync now/i, /sync/i)
    assert.include(text, "customers")
    assert.include(text, "north")
    assert.match(await noticeText(look.page), /^Requested: customers of north/)
    await until(
      "the record is landed",
      () => operator.query(`select 1 from erp.customers where _company_id = 1 and id = ${id}`),
      (rows) => rows.length === 1
    )
    // The message is shown once.
    await look.page.reload()
    assert.strictEqual(
      await look.page
        .getByRole("status")
        .filter({ hasText: /requested/i })
        .count(),
      0
    )
  })

  it("changes nothing if the action is cancelled", async () => {
    const before = await runsOf("orderlines")
    await look.go("/companies/north/orderlines")
    await control(look.page, /^sync now/i).click()
    await look.page.waitForURL(/\/confirm\/sync/)
    await look.page.getByRole("link", { name: /cancel/i }).click()
    await look.page.waitForURL(/companies\/north\/orderlines/)
    assert.deepStrictEqual(await runsOf("orderlines"), before)
    assert.isNull(
      (
        await operator.query<{ requested_at: Date | null }>(
          "select requested_at from tributary.tasks where company = 'north' and resource = 'orderlines' and kind = 'sync'"
        )
      )[0]!.requested_at
    )
  })

  it("requests a full scan", async () => {
    const before = await runsOf("orders")
    await act(look, "/companies/north/orders", /full scan/i, /everything|full|read/i)
    const after = await until(
      "a full run exists",
      () => runsOf("orders"),
      ({ n, kind }) => n > before.n && kind === "full"
    )
    assert.strictEqual(after.kind, "full")
  })

  it("requests a backfill after checking its range", async () => {
    const { page, go } = look
    await go("/confirm/backfill?company=north&resource=invoices")
    look.expect(/status of 400/)
    await page.getByLabel(/since|from/i).fill("the other day")
    await page
      .getByRole("main")
      .getByRole("button", { name: /backfill|read/i })
      .click()
    await page
      .getByText(/the other day|RFC 3339|date/i)
      .first()
      .waitFor()
    assert.isUndefined(await task("invoices", "backfill"), "no backfill was requested")

    await go("/confirm/backfill?company=north&resource=invoices")
    await page.getByLabel(/since|from/i).fill("2024-01-01")
    await page.getByLabel(/until|^to\b/i).fill("2025-06-30T12:00:00Z")
    await page
      .getByRole("main")
      .getByRole("button", { name: /backfill|read/i })
      .click()
    await page.waitForURL((url) => !/^\/(?:confirm|do)\//.test(url.pathname))
    const done = await until(
      "the backfill exists",
      () => task("invoices", "backfill"),
      (row) => row !== undefined && row.finished_at !== null
    )
    assert.strictEqual(done?.status, "done")
    assert.match(done?.since ?? "", /^2024-01-01T00:00:00/)
    assert.match(done?.until ?? "", /^2025-06-30T12:00:00/)
    assert.strictEqual((await runsOf("invoices", "backfill")).n, 1)
  })

  it("pauses and resumes the resource", async () => {
    await act(look, "/companies/north/items", /^pause/i, /pause/i)
    await until(
      "the resource is paused",
      () => task("items"),
      (row) => row !== undefined && row.paused_at !== null
    )
    await look.go("/resources?company=north")
    const row = look.page.getByRole("row").filter({ hasText: "items" }).first()
    assert.match(await row.innerText(), /paused/i)
    await act(look, "/companies/north/items", /^resume/i, /resume/i)
    await until(
      "the resource is resumed",
      () => task("items"),
      (row) => row?.paused_at === null
    )
  })
})

describe("the page of a company", () => {
  it("requests a sync of all its resources", async () => {
    const began = async () =>
      (
        await operator.query<{ at: Date | null }>(
          `select started_at as at from tributary.tasks
            where company = 'south' and kind = 'sync' and resource in ('customers', 'items', 'orders')`
        )
      ).map(({ at }) => at?.getTime() ?? 0)
    const before = Math.max(...(await began()))
    const { page, go } = look
    await go("/companies/south")
    await page
      .getByRole("main")
      .getByRole("link", { name: /^sync all.*south/i })
      .click()
    await page.waitForURL(/confirm/)
    assert.include(await page.getByRole("main").innerText(), "south")
    await page.getByRole("main").getByRole("button", { name: /sync/i }).click()
    await until("every resource has a run", began, (all) => all.length === 3 && all.every((at) => at > before))
  })

  it("pauses and resumes all its resources", async () => {
    const paused = async () =>
      (
        await operator.query<{ resource: string }>(
          "select resource from tributary.tasks where company = 'south' and kind = 'sync' and paused_at is not null"
        )
      ).length
    const { page, go } = look
    await go("/resources?company=south")
    await page.locator("main a[href*='/confirm/pause-company'][href*='south']").first().click()
    await page.waitForURL(/confirm\/pause-company/)
    assert.include(await page.getByRole("main").innerText(), "south")
    await page.getByRole("main").getByRole("button", { name: /pause/i }).click()
    await until("every resource is paused", paused, (n) => n === 5)
    await go("/resources?company=south")
    await page.locator("main a[href*='/confirm/resume-company'][href*='south']").first().click()
    await page.waitForURL(/confirm\/resume-company/)
    await page
      .getByRole("main")
      .getByRole("button", { name: /resume/i })
      .click()
    await until("every resource is resumed", paused, (n) => n === 0)
  })
})

describe("the webhooks page", () => {
  const event = async () => {
    const [row] = await operator.query<{ state: string; attempts: number; resolved_at: Date | null }>(
      "select state, attempts, resolved_at from tributary.inbox where event_id = $1",
      [deadEvent]
    )
    return row!
  }

  it("replays one dead letter or all of them", async () => {
    const before = await event()
    assert.strictEqual(before.state, "dead_letter")
    const { page, go } = look
    await go("/webhooks")
    await page.locator("main a[href*='/confirm/replay']").first().click()
    await page.waitForURL(/confirm\/replay/)
    await page
      .getByRole("main")
      .getByRole("button", { name: /replay/i })
      .click()
    // The token still lacks the scope, so the retried event becomes a dead letter again.
    const after = await until(
      "the event was retried",
      event,
      ({ resolved_at }) => resolved_at !== null && resolved_at.getTime() !== before.resolved_at?.getTime()
    )
    assert.strictEqual(after.state, "dead_letter")
    await go("/webhooks")
    await page.locator("main a[href*='/confirm/replay']").filter({ hasText: /all/i }).first().click()
    await page.waitForURL(/confirm\/replay/)
    await page
      .getByRole("main")
      .getByRole("button", { name: /replay/i })
      .click()
    await until(
      "the event was retried once more",
      event,
      ({ resolved_at }) => resolved_at !== null && resolved_at.getTime() !== after.resolved_at?.getTime()
    )
  })

  it("pauses, resumes and tests a subscription at the source", async () => {
    const state = async () => {
      const [row] = await operator.query<{ state: string }>(
        "select state from tributary.subscriptions where company = 'north' and state <> 'deleted'"
      )
      return row?.state
    }
    const { page, go } = look
    const press = async (what: string, button: RegExp) => {
      await go("/webhooks?company=north")
      await page.locator(`main a[href*='/confirm/subscription-${what}']`).first().click()
      await page.waitForURL(new RegExp(`confirm/subscription-${what}`))
      await page.getByRole("main").getByRole("button", { name: button }).click()
      await page.waitForURL((url) => !/^\/(?:confirm|do)\//.test(url.pathname))
    }
    await press("pause", /pause/i)
    await until("the subscription is paused", state, (now) => now === "paused")
    await press("resume", /resume/i)
    await until("the subscription is active", state, (now) => now === "active")
    await press("test", /test|send/i)
    assert.match(await noticeText(page), /delivered: the receiver answered 204/)
  })

  it("shows the source's own delivery log on request", async () => {
    const { page, go } = look
    await go("/webhooks?company=north")
    await page.locator("main a[href*='/deliveries']").first().click()
    await page.waitForURL(/deliveries/)
    assert.include(await page.getByRole("main").innerText(), "customers.created")
  })
})

describe("the quarantine page", () => {
  const open = () =>
    operator.query<{ id: string }>(
      "select id from tributary.quarantine where resolved_at is null and resource = 'customers'"
    )

  it("fetches a record again and resolves its entry once it is repaired", async () => {
    const { page } = look
    const [entry] = await open()
    const path = `/quarantine/${entry!.id}`
    await act(look, path, /retry|read (?:it )?again/i, /retry|read/i)
    assert.match(await noticeText(page), /still refused: name: .*NUL/)
    assert.lengthOf(await open(), 1)

    await operator.reference.control("POST", "/records", {
      company: 1,
      resource: "customers",
      records: [{ ...oddCustomer, name: "Repaired Ltd." }]
    })
    await act(look, path, /retry|read (?:it )?again/i, /retry|read/i)
    await until("the record left the quarantine", open, (rows) => rows.length === 0)
    const [row] = await operator.query<{ name: string }>(`select name from erp.customers where id = ${oddCustomer.id}`)
    assert.strictEqual(row?.name, "Repaired Ltd.")
    assert.match(await noticeText(page), /landed.*left quarantine/)
  })
})

describe("the outbox page", () => {
  it("retries a rejected row", async () => {
    const tried = async () => {
      const [row] = await operator.query<{ state: string; attempts: number; resolved_at: Date | null }>(
        "select state, attempts, resolved_at from tributary.outbox where externalid = $1",
        [insertedExternalId]
      )
      return row!
    }
    const before = await tried()
    assert.strictEqual(before.state, "rejected")
    const { page, go } = look
    await go("/outbox")
    await page.locator("main a[href*='/confirm/push-retry'][href*='resource=']").first().click()
    await page.waitForURL(/confirm\/push-retry/)
    await page
      .getByRole("main")
      .getByRole("button", { name: /retry|again|send/i })
      .click()
    await until(
      "the row was sent again",
      tried,
      ({ state, resolved_at }) => state === "rejected" && resolved_at?.getTime() !== before.resolved_at?.getTime()
    )
  })
})

describe("the page of a push", () => {
  it("says why a row was refused, and sends it again", async () => {
    const { page, go } = look
    const main = page.getByRole("main")
    const [push] = await operator.query<{ id: string }>(
      "select push_id::text as id from tributary.outbox where externalid = $1",
      [pushedExternalId]
    )
    const resolved = () =>
      operator.query<{ state: string; at: Date | null }>(
        "select state, resolved_at as at from tributary.outbox where externalid = $1",
        [pushedExternalId]
      )
    const [before] = await resolved()
    await go("/outbox")
    await main.getByRole("link", { name: push!.id, exact: true }).click()
    await page.waitForURL(/outbox\/pushes/)
    const text = await main.innerText()
    assert.match(text, /finished, not all/)
    assert.match(text, /1 record was refused:\s+unknown_value/)
    assert.match(text, /invoiceterm matches no active record/)
    await act(look, `/outbox/pushes/${push!.id}`, /^retry/i, /retry/i)
    await until(
      "the row was sent and refused again",
      resolved,
      ([row]) => row!.state === "rejected" && row!.at?.getTime() !== before!.at?.getTime()
    )
    await until(
      "the push is finished again",
      async () => {
        await go(`/outbox/pushes/${push!.id}`)
        return main.innerText()
      },
      (shown) => /finished, not all/.test(shown)
    )
    await main.locator("a[href^='/outbox/rows/']").first().click()
    await page.waitForURL(/outbox\/rows\/\d+/)
  })
})

describe("the record page", () => {
  it("finds a record by id, with every version and its source", async () => {
    const { page, go } = look
    await operator.reference.control("POST", "/records", {
      company: 1,
      resource: "customers",
      records: [{ ...oddCustomer, name: "Renamed Ltd." }]
    })
    await act(look, "/companies/north/customers", /^sync now/i, /sync/i)
    await until(
      "the change is landed",
      () => operator.query<{ name: string }>(`select name from erp.customers where id = ${oddCustomer.id}`),
      ([row]) => row?.name === "Renamed Ltd."
    )
    await go("/records")
    const form = page.getByRole("main")
    await form.getByLabel(/company/i).selectOption("north")
    await form.getByLabel(/number/i).fill(`customers ${oddCustomer.id}`)
    await form.getByRole("button").first().click()
    await page.waitForURL(/id=9001/)
    const text = (await form.textContent()) ?? ""
    for (const expected of ["Repaired Ltd.", "Renamed Ltd.", "name"]) assert.include(text, expected)
    await go("/records?company=north&resource=customers&id=none")
    assert.match(await form.innerText(), /none|number/)
  })
})

describe("the dashboard without JavaScript", () => {
  it("works the same by loading pages", async () => {
    const plain = await visit(browser, await served.link(), { javaScriptEnabled: false })
    for (const path of [
      "/",
      "/resources",
      "/companies/north",
      "/companies/north/customers",
      "/runs",
      "/budget",
      "/webhooks",
      "/outbox",
      "/quarantine",
      "/invariants",
      "/records"
    ]) {
      assert.strictEqual(await plain.go(path), 200, path)
      assert.isAbove((await plain.page.getByRole("main").innerText()).length, 40, path)
    }
    await plain.go("/resources")
    await plain.page.getByRole("main").getByRole("link", { name: "invoicelines", exact: true }).first().click()
    const before = await runsOf("invoicelines")
    await act(plain, "/companies/north/invoicelines", /^sync now/i, /sync/i)
    await until(
      "a run exists",
      () => runsOf("invoicelines"),
      ({ n }) => n > before.n
    )
    await plain.page.reload()
    const newest = plain.page.locator("main a[href^='/runs/']").first()
    await newest.click()
    await plain.page.waitForURL(/\/runs\/\d+/)
    await plain.close()
  })
})
