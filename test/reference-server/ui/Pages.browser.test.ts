/**
 * The web pages of the reference server in a real browser, on a desktop and a phone, light and dark: content,
 * accessibility, layout, actions with and without JavaScript.
 *
 * `SCREENSHOTS=folder npm run test:browser` writes a screenshot of each page to that folder.
 */
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser, Page } from "playwright-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { listener } from "../../../connectors/service-v2/reference-server/http/listener.ts"
import {
  desk,
  openBrowser,
  overflow,
  phone,
  picture,
  smallPhone,
  type Visit,
  violations,
  visit
} from "../../support/browser.ts"
import { visited, type Visited } from "./visited.ts"

let site: Visited
let server: Server
let address: string
let browser: Browser
let look: Visit

beforeAll(async () => {
  ;[site, browser] = await Promise.all([visited(), openBrowser()])
  const sleep = () => Promise.resolve()
  const { control } = site.served
  server = listener(
    { bodyBytesMax: 1_000_000, draw: () => null, answer: control, hold: () => () => {}, sleep },
    (error) => site.defects.push(error)
  )
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  site.control("POST", "/snapshots", { name: "before" })
  site.control("POST", "/worlds", { name: "other", from: "before" })
  look = await visit(browser, address)
})
afterAll(async () => {
  try {
    await look?.close()
    assert.deepStrictEqual(site.defects, [])
  } finally {
    await browser?.close()
    server?.closeAllConnections()
    server?.close()
  }
})

const numberOf = (code: string) => {
  const entries = site.served.world.journal.all()
  return entries.find(({ refusal }) => refusal?.code === code)?.seq ?? 0
}

interface Case {
  readonly name: string
  readonly path: () => string
  /** Texts that the page must contain. */
  readonly says: ReadonlyArray<string | RegExp>
  readonly status?: number
}

const at = (path: string) => () => path

const cases: ReadonlyArray<Case> = [
  {
    name: "requests",
    path: at("/ui/"),
    says: ["invalid_precision", "CODE-08", "GET /orders?limit=5", /no answer|503/]
  },
  { name: "requests-refused", path: at("/ui/requests?status=refused"), says: ["rule_violation"] },
  {
    name: "request-refused",
    path: () => `/ui/requests/${numberOf("invalid_precision")}`,
    says: ["rejected, never rounded", "FIELD-06", "at most 4 decimals", "D-04"]
  },
  {
    name: "request-batch",
    path: () => `/ui/requests/${site.served.world.journal.all().find(({ items }) => items.length > 0)?.seq ?? 0}`,
    says: ["duplicate", "Refused items"]
  },
  { name: "records", path: at("/ui/records"), says: ["customers", "invoicelines"] },
  { name: "resource", path: at("/ui/records/1/customers"), says: [/HOSTILE|<script>/] },
  {
    name: "record",
    path: () => `/ui/records/1/customers/${String(site.customer["id"])}`,
    says: ["Version 2", "creditlimit", "<script>alert"]
  },
  { name: "tokens", path: at("/ui/tokens"), says: ["reader", "revoked", "expired"] },
  { name: "subscriptions", path: at("/ui/subscriptions"), says: ["https://receiver.example/hook", "active"] },
  { name: "deliveries", path: at("/ui/deliveries"), says: ["customers.created", "delivered", "failed"] },
  { name: "delivery", path: at("/ui/deliveries/1"), says: ["Svc-Signature", "customers.created"] },
  { name: "clock", path: at("/ui/clock"), says: ["2026-03-16", "stopped"] },
  { name: "faults", path: at("/ui/faults"), says: ["/stages", "at most 1 time"] },
  { name: "settings", path: at("/ui/settings"), says: ["Limits", "Dialect", "Companies"] },
  { name: "scenarios", path: at("/ui/scenarios"), says: ["Reset", "other", "before", "late-rows"] },
  { name: "world", path: at("/worlds/other/ui/records"), says: ["customers"] },
  { name: "facts", path: at("/ui/facts?search=decimal"), says: ["FIELD-05", "implemented"] },
  { name: "fact", path: at("/ui/facts/CODE-08"), says: ["rejected, never rounded", "invalid_precision"] },
  { name: "decision", path: at("/ui/facts/A-05"), says: ["our choice"] },
  { name: "confirm", path: at("/ui/confirm/reset?data=demo"), says: ["cannot be undone", "Cancel"] },
  { name: "nothing", path: at("/ui/nothing"), says: [/no page/i], status: 404 }
]

describe("every page", () => {
  it.each(cases)("responds, fits and is accessible: $name", async ({ name, path, says, status = 200 }) => {
    const { page, go } = look
    if (status !== 200) look.expect(new RegExp(`status of ${status}`))
    await page.setViewportSize(desk)
    await page.emulateMedia({ colorScheme: "light" })
    assert.strictEqual(await go(path()), status)
    assert.strictEqual(await page.getByRole("heading", { level: 1 }).count(), 1, "one heading of the first level")
    assert.strictEqual(await page.getByRole("main").count(), 1)
    const text = (await page.getByRole("main").textContent()) ?? ""
    for (const expected of says) {
      if (typeof expected === "string") assert.include(text, expected)
      else assert.match(text, expected)
    }
    assert.notInclude(await page.content(), site.secret)
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
        await picture(page, `server-${name}-${device}-${colorScheme}`)
      }
    }
    await page.setViewportSize(desk)
    assert.deepStrictEqual(wrong, [])
    assert.deepStrictEqual(look.problems(), [])
  })

  it("is linked from the menu, which marks the current page", async () => {
    const { page, go } = look
    await go("/ui/")
    for (const name of [
      "Records",
      "Tokens",
      "Subscriptions",
      "Deliveries",
      "Clock",
      "Faults",
      "Settings",
      "Scenarios",
      "Facts",
      "Requests"
    ]) {
      await page.getByRole("navigation").first().getByRole("link", { name, exact: true }).click()
      await page.waitForURL(name === "Requests" ? /\/ui\/$/ : new RegExp(`/ui/${name.toLowerCase()}$`))
      assert.deepStrictEqual(await page.locator("nav [aria-current=page]").allInnerTexts(), [name])
    }
  })

  it("has no motion under prefers-reduced-motion", async () => {
    const { page, go } = look
    await page.emulateMedia({ reducedMotion: "reduce" })
    await go("/ui/")
    const moving = await page.evaluate<number>(
      `[...document.querySelectorAll("*")].filter((one) => parseFloat(getComputedStyle(one).transitionDuration) > 0.1).length`
    )
    assert.strictEqual(moving, 0)
    await page.emulateMedia({ reducedMotion: null })
  })
})

it("the journal shows a new request by itself, and keeps what a person types", async () => {
  const { page, go } = look
  await go("/ui/")
  await page.getByLabel("Method and path").fill("half a wor")
  site.call("GET", "/areas?limit=3")
  await page.getByText("GET /areas?limit=3").first().waitFor()
  assert.strictEqual(await page.getByLabel("Method and path").inputValue(), "half a wor")
})

const submitClock = async (page: Page) => {
  await page.getByRole("button", { name: "Advance 1 hour" }).click()
  await page.getByText(/The clock shows/).waitFor()
}

describe("the actions", () => {
  it("work by keyboard alone", async () => {
    const { page, go } = look
    await go("/ui/clock")
    await page.getByRole("button", { name: "Advance 1 minute" }).focus()
    await page.keyboard.press("Enter")
    await page.getByText(/The clock shows/).waitFor()
    await page.keyboard.press("Tab")
    assert.strictEqual(await page.locator(":focus").innerText(), "Skip to the content")
  })

  it("work without JavaScript", async () => {
    const plain = await visit(browser, address, { javaScriptEnabled: false })
    const { page } = plain
    await plain.go("/ui/clock")
    await submitClock(page)
    await plain.go("/ui/faults")
    await page.getByLabel("path").fill("/zones")
    await page.getByRole("button", { name: "Add", exact: true }).click()
    await page.getByText(/The fault is armed/).waitFor()
    await page.getByRole("link", { name: "Clear all faults" }).click()
    await page.getByRole("button", { name: "Clear them" }).click()
    await page.getByText("No fault is armed any more.").waitFor()
    await plain.close()
  })
})
