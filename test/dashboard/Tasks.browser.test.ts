/**
 * Ten tasks of operators and controllers, each from the overview by visible links alone, with at most three clicks. A
 * search counts as one click.
 */
import type { Locator } from "playwright-core"
import { assert, describe, it } from "vitest"
import { until } from "../support/browser.ts"
import { creditCustomer, openOperatorWithHistory } from "../support/history.ts"
import { failing, oddCustomer, pushedExternalId } from "../support/operator.ts"
import { openInBrowser } from "../support/operatorInBrowser.ts"

const clicksMax = 3

const { operator, openVisit } = await openInBrowser(openOperatorWithHistory)
const look = await openVisit()

/** A person at the overview, who sees what is visible only. */
const begin = async () => {
  const { page, go } = look
  await go("/")
  const main = page.getByRole("main")
  let clicks = 0
  const count = () => {
    clicks += 1
    assert.isAtMost(clicks, clicksMax, "clicks")
  }
  const click = async (link: Locator) => {
    count()
    const before = page.url()
    await link.filter({ visible: true }).first().click()
    await page.waitForURL((url) => url.href !== before)
  }
  return {
    main,
    click,
    // An entry may have a number.
    menu: (name: string) =>
      click(
        page
          .getByRole("navigation")
          .first()
          .getByRole("link", { name: new RegExp(`^${name}`) })
      ),
    /** Follows a tile of the health of a company. */
    tile: (company: string, name: RegExp) =>
      click(
        main
          .getByRole("listitem")
          .filter({ has: page.getByRole("link", { name: company, exact: true }) })
          .getByRole("link", { name })
      ),
    search: async (text: string) => {
      count()
      const box = page.getByRole("banner").getByRole("searchbox")
      await box.fill(text)
      const before = page.url()
      await box.press("Enter")
      await page.waitForURL((url) => url.href !== before)
    },
    /** Waits until the visible text of the page contains each of these. */
    reads: async (...answers: ReadonlyArray<string | RegExp>) => {
      for (const answer of answers) {
        await until(
          `the answer ${String(answer)} on ${page.url()}`,
          () => main.innerText(),
          (text) => (typeof answer === "string" ? text.includes(answer) : answer.test(text)),
          10
        )
      }
    }
  }
}

const one = async <Row extends object>(text: string): Promise<Row> => {
  const [row] = await operator.query<Row>(text)
  if (row === undefined) throw new Error(`no row for ${text}`)
  return row
}

describe("a person with at most three clicks", () => {
  it("sees why invoices is late at company north", async () => {
    const { tile, reads } = await begin()
    await tile("north", /^invoices /)
    await reads(/late by/, /the service failed \(HTTP 502\)/i, "What to do")
  })

  it("lists the payments that yesterday's webhooks brought", async () => {
    const { menu, main, click, reads } = await begin()
    const payments = await operator.query<{ id: string }>(
      `select record_id as id from tributary.inbox where event_type = 'payments.created'
          and received_at >= date_trunc('day', tributary.now(), 'UTC') - interval '1 day' and received_at < date_trunc('day', tributary.now(), 'UTC')`
    )
    assert.isNotEmpty(payments)
    await menu("Webhooks")
    await click(main.getByRole("link", { name: /^Yesterday/ }))
    await reads("payments.created", ...payments.map(({ id }) => new RegExp(`payments\\s+${id}`)))
  })

  it("sees what was pushed and rejected, and why", async () => {
    const { menu, reads } = await begin()
    await menu("Outbox")
    await reads(pushedExternalId, "unknown_value", /invoiceterm matches no active record/)
  })

  it("sees since when a resource is failing, and the answer of the source", async () => {
    const { tile, main, click, reads } = await begin()
    await tile("south", new RegExp(`^${failing} `))
    await reads(/\d+ runs in a row did not succeed, the first\s+\d+ h ago/)
    await click(main.getByRole("link", { name: /^Run \d+/ }))
    await reads(/The service failed \(HTTP 500\)/, /Requests\s+2 \(1 retry\)/, /500: the service failed, 1 retry/)
  })

  it("sees how a customer's credit limit changed, and by what", async () => {
    const { search, reads } = await begin()
    const { customercode } = await creditCustomer(operator)
    await search(customercode)
    await reads(customercode, ...["10,000", "15,000", "12,500.5", "20,000", "18,000"].map((value) => new RegExp(value)))
    await reads(/By webhook/, "customers.updated", /By push/, /By scan/)
  })

  it("finds the invoice of an order, and whether it is paid", async () => {
    const { search, main, click, reads } = await begin()
    const order = await one<{ externalid: string; invoice: string; total: string }>(
      `select o.externalid, i.id::text as invoice, i.invoicetotal::text as total from erp.orders o join erp.invoices i on i.orderid = o.id and i._company_id = o._company_id
        where o._company_id = 1 and o.externalid is not null and i.invoicepaid = i.invoicetotal and i.invoicetotal > 0 order by i.id limit 1`
    )
    await search(order.externalid)
    await click(main.getByRole("link", { name: new RegExp(`^invoices ${order.invoice}\\b`) }))
    await reads("invoicepaid", "invoicetotal", order.total.replace(/\B(?=(?:\d{3})+\.)/g, ","))
  })

  it("sees which process restarted last night", async () => {
    const { menu, reads } = await begin()
    await menu("Processes")
    await reads(/etl-1, pid 4127[^]*lost/, /running[^]*[89] h ago/)
  })

  it("sees that the source paused us, and how long", async () => {
    const { menu, reads } = await begin()
    await menu("Budget")
    await reads(/Source pauses in the last 24 hours: 3\d min in all/)
  })

  it("sees which records are in quarantine, and what to do", async () => {
    const { menu, main, click, reads } = await begin()
    await menu("Quarantine")
    await reads(String(oddCustomer.id), /NUL/)
    await click(main.getByRole("link", { name: new RegExp(String(oddCustomer.id)) }))
    await reads(/NUL/, /Retry/, /What to do/i)
  })

  it("sees which fields of a resource are unused or new", async () => {
    const { tile, reads } = await begin()
    await tile("north", /^customers /)
    await reads(/\d+ columns, [1-9]\d* of them unused|[1-9]\d* columns without a value/, "loyaltytier")
  })
})
