/**
 * Access to the pages in a real browser: without a password only on this machine, elsewhere with one, and never by a
 * form of another site's page.
 */
import { createServer, request as httpRequest } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser } from "playwright-core"
import { afterAll, assert, beforeAll, describe, inject, it } from "vitest"
import { desk, openBrowser, overflow, picture, smallPhone, until, violations, visit } from "../support/browser.ts"
import { openOperator, type Operator, type ServeProcess } from "../support/operator.ts"

const password = "correct horse <battery> & staple"

let operator: Operator
let open: ServeProcess
let locked: ServeProcess
let browser: Browser

beforeAll(async () => {
  ;[operator, browser] = await Promise.all([openOperator(inject("postgresUrl")), openBrowser()])
  open = await operator.serve()
  locked = await operator.serve({ listen: "127.0.0.1:0", env: { TRIBUTARY_DASHBOARD_PASSWORD: password } })
  await until(
    "the tasks exist",
    () => operator.query<{ n: number }>("select count(*)::int as n from tributary.tasks"),
    ([row]) => (row?.n ?? 0) > 0
  )
})
afterAll(async () => {
  await browser?.close()
  await operator?.close()
})

/** A request with headers that no browser would send. */
const raw = (
  url: string,
  headers: Readonly<Record<string, string>>,
  sent: { readonly method: string; readonly body?: string } = { method: "GET" }
) =>
  new Promise<{ readonly status: number; readonly text: string; readonly headers: Readonly<Record<string, unknown>> }>(
    (resolve, reject) => {
      const clientRequest = httpRequest(url, { method: sent.method, headers }, (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => (text += chunk.toString()))
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }))
      })
      clientRequest.once("error", reject)
      clientRequest.end(sent.body)
    }
  )

const pausedTasks = async () => {
  const [row] = await operator.query<{ n: number }>(
    "select count(*)::int as n from tributary.tasks where paused_at is not null"
  )
  return row?.n
}

describe("the dashboard without a password", () => {
  it("shows its pages, sets no cookie and sends restrictive headers", async () => {
    const look = await visit(browser, open.url)
    const response = await look.page.goto("/")
    assert.strictEqual(response?.status(), 200)
    const headers = await response!.allHeaders()
    assert.match(headers["content-security-policy"] ?? "", /default-src 'none'/)
    assert.match(headers["content-security-policy"] ?? "", /frame-ancestors 'none'/)
    assert.notInclude(headers["content-security-policy"] ?? "", "unsafe")
    assert.strictEqual(headers["cache-control"], "no-store")
    assert.strictEqual(headers["x-content-type-options"], "nosniff")
    assert.match(headers["referrer-policy"] ?? "", /no-referrer|same-origin/)
    assert.isUndefined(headers["x-powered-by"])
    assert.deepStrictEqual(await look.context.cookies(), [])
    assert.strictEqual(await look.page.getByRole("button", { name: /log ?out/i }).count(), 0)
    await look.close()
  })

  it("rejects foreign host names and forwarded requests", async () => {
    const foreign = await raw(open.url, { host: "rebound.example.com" })
    assert.include([400, 403, 421], foreign.status)
    assert.notInclude(foreign.text, "customers")
    for (const header of ["x-forwarded-for", "forwarded", "via"]) {
      const passedOn = await raw(open.url, { [header]: "for=203.0.113.7" })
      assert.strictEqual(passedOn.status, 403, header)
      assert.match(passedOn.text, /password/, "it contains a remedy")
      assert.notInclude(passedOn.text, "customers")
    }
  })

  it("rejects a form from another site's page", async () => {
    const before = await pausedTasks()
    const target = `${open.url}/do/pause`
    const stranger = createServer((_, response) => {
      response.setHeader("content-type", "text/html")
      response.end(
        `<form method="post" action="${target}"><input name="company" value="north"><input name="resource" value="customers"><input name="form_token" value="guessed"><button>Win a prize</button></form>`
      )
    })
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", () => resolve()))
    const { port } = stranger.address() as AddressInfo
    const look = await visit(browser, `http://127.0.0.1:${port}`)
    look.expect(/^requests http/)
    look.expect(/status of 403/)
    await look.go("/")
    const [response] = await Promise.all([
      look.page.waitForResponse(target),
      look.page.getByRole("button", { name: "Win a prize" }).click()
    ])
    assert.strictEqual(response.status(), 403)
    await look.close()
    await new Promise<void>((resolve) => stranger.close(() => resolve()))

    const body = "company=north&resource=customers"
    const form = { "content-type": "application/x-www-form-urlencoded" }
    const { origin } = new URL(open.url)
    // A program on this machine, without the form token of our pages and with a guessed one.
    for (const sent of [body, `${body}&form_token=guessed`]) {
      const answer = await raw(
        target,
        { ...form, origin, "sec-fetch-site": "same-origin" },
        { method: "POST", body: sent }
      )
      assert.strictEqual(answer.status, 403, answer.text)
    }
    assert.strictEqual(await pausedTasks(), before)
  })
})

describe("the dashboard with a password", () => {
  it("requires the password, rejects a wrong one, and logs in and out", async () => {
    const look = await visit(browser, locked.url)
    look.expect(/status of 401/)
    const { page, context } = look
    await page.goto("/runs")
    assert.match(page.url(), /\/login/)
    assert.notInclude(await page.content(), "customers")
    const field = page.getByLabel(/password/i)
    assert.strictEqual(await field.getAttribute("type"), "password")
    assert.strictEqual(await field.getAttribute("autocomplete"), "current-password")

    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme })
      assert.deepStrictEqual(await violations(page), [], colorScheme)
      await picture(page, `login-${colorScheme}`)
    }
    await page.setViewportSize(smallPhone)
    assert.deepStrictEqual(await overflow(page), [])
    await page.setViewportSize(desk)

    await field.fill("not the one")
    await page.keyboard.press("Enter")
    await page
      .getByText(/wrong|not the password|does not match/i)
      .first()
      .waitFor()
    assert.deepStrictEqual(
      (await context.cookies()).filter(({ httpOnly }) => !httpOnly),
      []
    )
    assert.match(page.url(), /\/login/)
    await page.goto("/")
    assert.match(page.url(), /\/login/, "still logged out")

    await page.getByLabel(/password/i).fill(password)
    await page.getByRole("button", { name: /log ?in|sign in/i }).click()
    await page.getByRole("navigation").first().getByRole("link", { name: "Overview" }).waitFor()
    const cookies = await context.cookies()
    assert.isAbove(cookies.length, 0)
    for (const cookie of cookies) {
      assert.isTrue(cookie.httpOnly, cookie.name)
      assert.strictEqual(cookie.sameSite, "Strict", cookie.name)
      assert.notInclude(decodeURIComponent(cookie.value), "battery")
    }
    assert.strictEqual((await page.goto("/budget"))?.status(), 200)
    assert.notInclude(await page.content(), "battery")

    await page.getByRole("button", { name: "Log out", exact: true }).click()
    await page.getByRole("button", { name: "Log out here" }).click()
    await page.waitForURL(/\/login/)
    await page.goto("/budget")
    assert.match(page.url(), /\/login/)
    // A copied cookie is invalid after the logout, and so is an altered one.
    const [session] = cookies.toSorted((a, b) => b.value.length - a.value.length)
    await context.addCookies([session!])
    await page.goto("/budget")
    assert.match(page.url(), /\/login/, "a copy of the cookie of a closed session")
    await context.addCookies([{ ...session!, value: `${session!.value.slice(0, -2)}xx` }])
    await page.goto("/budget")
    assert.match(page.url(), /\/login/, "an altered cookie")
    await look.close()
  })

  it("lets programs read with the bearer token, and change nothing", async () => {
    const made = await operator.run(["serve", "tokens", "add", "program"])
    const bearer = { authorization: `Bearer ${made.stdout.split("\n")[0]}` }
    assert.strictEqual((await raw(locked.url, bearer)).status, 200)
    const wrong = await raw(locked.url, { authorization: "Bearer wrong" })
    assert.strictEqual(wrong.status, 401)
    const before = await pausedTasks()
    const { origin } = new URL(locked.url)
    const answer = await raw(
      `${locked.url}/do/pause`,
      { ...bearer, origin, "content-type": "application/x-www-form-urlencoded" },
      { method: "POST", body: "company=north&resource=customers" }
    )
    assert.strictEqual(answer.status, 403)
    assert.strictEqual(await pausedTasks(), before)
  })

  it("writes no password to its log", () => {
    assert.notInclude(locked.stderr(), "battery")
    assert.notInclude(open.stderr(), "battery")
  })
})
