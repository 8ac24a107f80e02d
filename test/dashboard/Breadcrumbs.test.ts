/** The breadcrumbs of every page, from its address. */
import { assert, describe, it } from "vitest"
import { crumbsOf, levelOf } from "../../src/dashboard/Breadcrumbs.ts"
import { menu } from "../../src/dashboard/Menu.ts"
import { routes } from "../../src/dashboard/Routes.ts"

const trail = (to: string): ReadonlyArray<string> => crumbsOf(levelOf(to), to).map(({ text }) => text)
const links = (to: string): ReadonlyArray<string> =>
  crumbsOf(levelOf(to), to)
    .slice(0, -1)
    .map((crumb) => crumb.to)

const pages = routes.filter(({ method, path }) => method === "GET" && !path.startsWith("/confirm/"))

describe("the breadcrumbs", () => {
  it("lead from the menu to the page", () => {
    const expected: Readonly<Record<string, string>> = {
      "/companies/north": "Overview › north",
      "/companies/a%2Fb/x%20y": "Overview › a/b › x y",
      "/records?company=north&resource=invoices&id=26": "Overview › north › invoices › 26",
      "/records?company=north&resource=orders&id=1&list=lines.orderid":
        "Overview › north › orders › 1 › Related records",
      "/records?resource=invoices&id=26": "Records › invoices 26",
      "/runs/12": "Runs › Run 12",
      "/webhooks/event?company=north&event=e1": "Webhooks › Events › e1",
      "/webhooks/north/s1/deliveries": "Webhooks › north › Delivery log of s1",
      "/outbox/rejected?push=3": "Outbox › Push 3 › Rejected records",
      "/outbox/rejected?company=north&resource=orders": "Outbox › Rejected records of orders",
      "/quarantine/5?whole=1": "Quarantine › Entry 5 › The whole record",
      "/processes/p1": "Processes › p1"
    }
    for (const [to, text] of Object.entries(expected)) assert.strictEqual(trail(to).join(" › "), text, to)
  })

  it("are on every page below the menu, and link to pages that exist", () => {
    const patterns = pages.map(({ path }) => new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`))
    for (const { path } of pages) {
      const to = path.replaceAll(/:\w+/g, "1")
      if (menu.some((entry) => entry.path === path)) continue
      assert.isAbove(trail(to).length, 1, path)
      for (const link of links(to)) {
        const { pathname } = new URL(link, "http://page")
        assert.isTrue(
          patterns.some((pattern) => pattern.test(pathname)),
          `${path}: ${link}`
        )
      }
    }
  })

  it("show a hostile name escaped, and stay within the pages", () => {
    const to = `/companies/${encodeURIComponent("//evil.example\u202e")}/things`
    assert.deepStrictEqual(trail(to), ["Overview", "//evil.example\\u{202e}", "things"])
    for (const link of links(to)) assert.strictEqual(new URL(link, "http://page").host, "page")
    assert.deepStrictEqual(trail("/companies/%E0%A4%A"), ["Overview", "%E0%A4%A"])
  })
})
