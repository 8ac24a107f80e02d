/**
 * Every page in a real browser, on a desktop and a phone, light and dark: its status, content, accessibility and
 * layout, without requests to other hosts.
 *
 * `SCREENSHOTS=folder npm run test:browser` writes a screenshot of each page to that folder.
 */
import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, inject, it } from "vitest"
import {
  desk,
  openBrowser,
  overflow,
  phone,
  picture,
  smallPhone,
  until,
  type Visit,
  violations,
  visit
} from "../support/browser.ts"
import {
  barred,
  deadEvent,
  failing,
  late,
  oddCustomer,
  openOperatorWithServe,
  pushedExternalId,
  type Operator,
  type ServeProcess
} from "../support/operator.ts"

let operator: Operator
let served: ServeProcess
let browser: Browser
let look: Visit

beforeAll(async () => {
  ;[{ operator, served }, browser] = await Promise.all([openOperatorWithServe(inject("postgresUrl")), openBrowser()])
  look = await visit(browser, served.link)
})
afterAll(async () => {
  try {
    await look?.close()
  } finally {
    await browser?.close()
    await operator?.close()
  }
})

const one = async (text: string): Promise<string> => {
  const [row] = await operator.query<{ id: string }>(text)
  if (row === undefined) throw new Error(`no row for ${text}`)
  return row.id
}

interface Case {
  readonly name: string
  readonly path: () => Promise<string>
  /** Texts that the page must contain. */
  readonly says: ReadonlyArray<string | RegExp>
  readonly status?: number
}

const at = (path: string) => () => Promise.resolve(path)
const lastRun =
  "select max(id)::text as id from tributary.runs where company_id = 1 and resource = 'customers' and lane = 'live'"

/** Gives a customer five more versions: changes of an amount and of a long text, a deletion, and its return. */
const changedCustomer = async (): Promise<string> => {
  const id = await one("select id::text as id from erp.customers where name like 'Harbour%'")
  const changes: ReadonlyArray<readonly [op: string, set: string]> = [
    ["update", "creditlimit = 1250.5000, name = 'Harbour & Daughters'"],
    ["update", "creditlimit = 1250.5000"],
    ["update", "creditlimit = 123456789012.3400, name = repeat('Pays late. Call before the next shipment. ', 12)"],
    ["delete", "_deleted_at = tributary.now()"],
    ["insert", "_deleted_at = null, name = '<b>Back</b> again', cancel = true"]
  ]
  for (const [op, set] of changes) {
    await operator.query(
      "insert into erp_history.customers__superseded select c.*, tributary.now() from erp.customers c where id = $1",
      [id]
    )
    await operator.query(
      `update erp.customers set ${set}, _version = _version + 1, _op = $2, _origin = 'scan', _observed_at = tributary.now() where id = $1`,
      [id, op]
    )
  }
  return id
}

const cases: ReadonlyArray<Case> = [
  {
    name: "overview",
    path: at("/"),
    says: [
      "north",
      "south",
      "customers",
      failing,
      barred,
      late,
      /Not all is well/,
      /began .* ago/,
      /1\s+failing/,
      /1\s+paused/,
      /1\s+in quarantine/,
      /2\s+refused pushes/,
      /What needs a person/,
      /Next:\s+report the request id/,
      /Health by company/
    ]
  },
  { name: "company", path: at("/companies/south"), says: [failing, barred, /Health by area/, /Pause all/] },
  {
    name: "resources",
    path: at("/resources"),
    says: ["north", "south", failing, /the service failed \(500\)/, late, "No schedule runs it.", /of 2 h/, /Sync now/]
  },
  { name: "resources-late", path: at("/resources?state=late"), says: [late, /Late\s+\d/] },
  { name: "resources-company", path: at("/resources?company=north&order=resource"), says: ["customers", /Pause all/] },
  {
    name: "resource",
    path: at("/companies/north/customers"),
    says: [
      "customers",
      "north",
      /every 80 min/,
      /cursor/i,
      /sync now/i,
      /backfill/i,
      /pause/i,
      /columns, \d+ of them unused/
    ]
  },
  {
    name: "resource-failing",
    path: at(`/companies/south/${failing}`),
    says: [failing, /the service failed \(500\)/, /report the request id/]
  },
  { name: "resource-paused", path: at("/companies/north/payments"), says: [/paused/i, /an operator/, /resume/i] },
  { name: "runs", path: at("/runs"), says: ["customers", failing, /failed/i] },
  {
    name: "run",
    path: async () => `/runs/${await one(lastRun)}`,
    says: ["customers", /requests/i, /retries/i, /rows|records/i]
  },
  {
    name: "run-full",
    path: async () =>
      `/runs/${await one("select min(id)::text as id from tributary.runs where company_id = 1 and resource = 'customers' and phases is not null")}`,
    says: ["Requests in flight", "The phases as figures", /200/, "Landing"]
  },
  {
    name: "run-failed",
    path: async () =>
      `/runs/${await one(`select max(id)::text as id from tributary.runs where resource = '${failing}'`)}`,
    says: [failing, /the service failed \(500\)/, /report the request id/]
  },
  { name: "budget", path: at("/budget"), says: ["north", "south", /3,?000/] },
  {
    name: "webhooks",
    path: at("/webhooks"),
    says: [/localhost:\d+\/hooks\/north/, "customers.created", deadEvent, /orders\.updated|missing/]
  },
  {
    name: "deliveries",
    path: async () =>
      `/webhooks/north/${await one("select subscription_id as id from tributary.subscriptions where company = 'north'")}/deliveries`,
    says: ["customers.created", "204"]
  },
  {
    name: "event",
    path: async () =>
      `/webhooks/event?company=north&event=${await one("select event_id as id from tributary.inbox where company = 'north' and state = 'done' order by id desc limit 1")}`,
    says: ["signature verified", "tributary.inbox", /version \d|nothing new/, /History of the record/]
  },
  {
    name: "event-dead",
    path: at(`/webhooks/event?company=south&event=${deadEvent}`),
    says: ["dead letter", /Last error/, "Replay"]
  },
  { name: "outbox-rows", path: at("/outbox/rows"), says: [pushedExternalId, /refused/, "created"] },
  {
    name: "outbox-row",
    path: async () =>
      `/outbox/rows/${await one("select min(id)::text as id from tributary.outbox where state = 'done'")}`,
    says: ["by a push", "new.csv", /HTTP 20\d/, /version \d/]
  },
  {
    name: "outbox-row-refused",
    path: async () =>
      `/outbox/rows/${await one("select min(id)::text as id from tributary.outbox where state = 'rejected' and push_id is null")}`,
    says: [/unknown_value/, /invoiceterm/, "What to do:", "Try again"]
  },
  { name: "outbox", path: at("/outbox"), says: ["new.csv", "customers", /1 refused/] },
  {
    name: "outbox-refused",
    path: async () => `/outbox/refused?push=${await one("select max(id)::text as id from tributary.pushes")}`,
    says: [/unknown_value/, /invoiceterm/, pushedExternalId, /npx tributary push retry \d+ --refused/]
  },
  { name: "quarantine", path: at("/quarantine"), says: ["customers", String(oddCustomer.id), /NUL/] },
  {
    name: "quarantine-entry",
    path: async () => `/quarantine/${await one("select id from tributary.quarantine where resolved_at is null")}`,
    says: [String(oddCustomer.id), /NUL/, /retry/i, /Odd \\u0000 <script>/]
  },
  { name: "invariants", path: at("/invariants"), says: [/invariant/i] },
  { name: "records", path: at("/records"), says: [/company/i, /external id/i] },
  { name: "records-found", path: at("/records?q=10"), says: [/\d+ records/, "customers 10", "exists"] },
  {
    name: "record",
    path: async () =>
      `/records?company=north&resource=customers&id=${await one("select id from erp.customers where name like 'Lighthouse%'")}`,
    says: ["Lighthouse <b>Ltd</b>", /By\s+(webhook|scan)/]
  },
  {
    name: "record-changed",
    path: async () => `/records?company=north&resource=customers&id=${await changedCustomer()}`,
    says: ["created again", "deleted", "the same values", "123456789012.3400", "<b>Back</b> again", "cancelled"]
  },
  {
    name: "record-order",
    path: async () =>
      `/records?company=north&resource=orders&id=${await one("select orderid::text as id from erp.orderlines where _company_id = 1 and orderid in (select i.orderid from erp.invoices i join erp.payments p on p.invoiceid = i.id) group by 1 order by count(*) desc limit 1")}`,
    says: ["It refers to", "Records that refer to it", "orderlines", "invoices", "payments", /created/]
  },
  {
    name: "confirm-sync",
    path: at("/confirm/sync?company=north&resource=customers"),
    says: ["customers", "north", /cancel/i]
  },
  {
    name: "confirm-backfill",
    path: at("/confirm/backfill?company=north&resource=customers"),
    says: ["customers", /cancel/i]
  },
  { name: "nothing", path: at("/companies/north/nothing"), says: [/no |not /i], status: 404 }
]

describe("every page", () => {
  it.each(cases)("responds, fits and is accessible: $name", async ({ name, path, says, status = 200 }) => {
    const { page, go } = look
    if (status !== 200) look.expect(new RegExp(`status of ${status}`))
    await page.setViewportSize(desk)
    await page.emulateMedia({ colorScheme: "light" })
    const address = await path()
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
        if (device === "small phone") continue
        wrong.push(...(await violations(page)).map((problem) => `${device} ${colorScheme}: ${problem}`))
        await picture(page, `${name}-${device}-${colorScheme}`)
      }
    }
    await page.setViewportSize(desk)
    assert.deepStrictEqual(wrong, [])
    assert.deepStrictEqual(look.problems(), [])
  })

  it("is linked from the menu, which marks the current page", async () => {
    const { page, go } = look
    await go("/")
    for (const name of ["Resources", "Runs", "Budget", "Webhooks", "Outbox", "Quarantine", "Records", "Overview"]) {
      await page.getByRole("navigation").first().getByRole("link", { name, exact: true }).click()
      await page.waitForURL(name === "Overview" ? /\/$/ : new RegExp(`/${name.toLowerCase()}$`))
      assert.deepStrictEqual(await page.locator("nav [aria-current=page]").allInnerTexts(), [name])
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

  it("leads from the overview to a resource, by its tile and by its problem", async () => {
    const { page, go } = look
    await go("/")
    const main = page.getByRole("main")
    await main.locator(".tiles").getByRole("link", { name: "invoicelines fresh" }).click()
    await page.waitForURL(/companies\/north\/invoicelines$/)
    await go("/")
    await main
      .getByRole("listitem")
      .filter({ hasText: `${failing} of south` })
      .getByRole("link")
      .click()
    await page.waitForURL(new RegExp(`companies/south/${failing}$`))
    await go("/")
    await main.getByRole("link", { name: "13 resources as a table" }).click()
    await page.waitForURL(/resources$/)
  })

  it("lists the resources, worst first, with row counts and next runs", async () => {
    const { page, go } = look
    await go("/resources")
    const rows = page.getByRole("table").getByRole("row")
    assert.match(await rows.nth(1).innerText(), new RegExp(`${failing}[^]*south[^]*failing`))
    const row = rows.filter({ hasText: "customers" }).filter({ hasText: "north" })
    const [rowCount] = await operator.query<{ n: number }>(
      "select count(*)::int as n from erp.customers where _company_id = 1 and _deleted_at is null"
    )
    await until(
      "row counts exist",
      () => row.innerText(),
      (text) => text.includes(rowCount!.n.toLocaleString("en-US"))
    )
    assert.match(await row.innerText(), /in \d+ (min|h|s)/, "its next run")
    assert.match(await row.getByRole("link", { name: "Sync now customers of north" }).innerText(), /Sync now/)
  })

  it.each([true, false])("filters and sorts the resources by keyboard, with scripts: %s", async (hasScripts) => {
    const found = await visit(browser, served.link, { javaScriptEnabled: hasScripts })
    const { page, go } = found
    await go("/resources")
    const names = () => page.locator("tbody th > a:first-child").allInnerTexts()
    const heading = page.getByRole("columnheader", { name: "Resource" }).getByRole("link")
    await heading.focus()
    await page.keyboard.press("Enter")
    await page.waitForURL(/order=resource$/)
    assert.strictEqual(
      await page.getByRole("columnheader", { name: "Resource" }).getAttribute("aria-sort"),
      "ascending"
    )
    const up = await names()
    assert.deepStrictEqual(up, up.toSorted())
    await heading.focus()
    await page.keyboard.press("Enter")
    await page.waitForURL(/order=-resource$/)
    assert.deepStrictEqual(await names(), up.toReversed())

    const main = page.getByRole("main")
    await main.getByRole("searchbox", { name: "Name" }).fill(late.slice(0, 3))
    await page.keyboard.press("Enter")
    await page.waitForURL(/text=zon/)
    assert.deepStrictEqual(await names(), [late])
    await go("/resources")
    await main.getByRole("combobox", { name: "Company" }).selectOption("south")
    await main.getByRole("button", { name: "Show" }).press("Enter")
    await page.waitForURL(/company=south/)
    assert.strictEqual((await names()).length, 5)
    await main.getByRole("link", { name: /^Failing/ }).press("Enter")
    await page.waitForURL(/state=failing/)
    assert.deepStrictEqual(await names(), [failing])
    await found.close()
  })
})

describe("the search for a record", () => {
  it.each([true, false])(
    "leads from any page to the record and to related ones, with scripts: %s",
    async (hasScripts) => {
      const found = await visit(browser, served.link, { javaScriptEnabled: hasScripts })
      const { page, go } = found
      const [invoice] = await operator.query<{ id: string; invoicenumber: string; orderid: string }>(
        "select id, invoicenumber, orderid from erp.invoices where _company_id = 1 and orderid is not null and id in (select invoiceid from erp.payments) order by id limit 1"
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
