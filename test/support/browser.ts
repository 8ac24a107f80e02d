/**
 * A real browser for tests of the pages: the Chromium of the machine, driven by playwright-core.
 *
 * Promise: every request to another origin, every error on the console, every exception and every breach of the content
 * security policy is kept for {@link Visit.problems}. {@link Visit.close} fails if unexpected problems are left.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
  type Route
} from "playwright-core"

const places = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]

/** Starts it. The caller closes it. */
export const openBrowser = async (): Promise<Browser> => {
  const executablePath = places.find((path) => path !== undefined && existsSync(path))
  if (executablePath === undefined) {
    throw new Error(
      "these tests need Chromium: install it with apt-get install -y chromium, or set CHROMIUM=/path/to/it"
    )
  }
  return chromium.launch({
    executablePath,
    // Its sandbox does not run as root.
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : []
  })
}

export const desk = { width: 1280, height: 900 }
export const phone = { width: 390, height: 844 }
export const smallPhone = { width: 360, height: 740 }

// Texts, because code that runs in the page uses a document, whose types this program does not have.
const reportBreaches = `document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
  console.error("breach of the content security policy: " + violatedDirective + " " + blockedURI)
})`

/** One visit to the pages. The link that `serve` prints opens a session. */
export interface Visit {
  readonly page: Page
  readonly context: BrowserContext
  /** The unexpected problems since the last call. */
  readonly problems: () => ReadonlyArray<string>
  /** From now on, a problem that matches is expected. */
  readonly expect: (problem: RegExp) => void
  /** Opens a path of the page and returns the status. */
  readonly go: (path: string) => Promise<number>
  /** Closes the visit. Fails if there were problems. */
  readonly close: () => Promise<void>
}

/** Answers a request of the browser in process; where that fails, as a server that cannot be reached. */
const fulfilBy = (answer: (request: Request) => Promise<Response>) => async (route: Route) => {
  const request = route.request()
  const body = request.postDataBuffer()
  const cookies = await route.request().frame().page().context().cookies(request.url())
  const { "accept-encoding": _, ...others } = request.headers()
  const headers = { ...others, cookie: cookies.map(({ name, value }) => `${name}=${value}`).join("; ") }
  const sent = body === null ? {} : { body: new Uint8Array(body) }
  const asked = new Request(request.url(), { method: request.method(), headers, ...sent })
  const answered = await answer(asked).catch(() => null)
  if (answered === null) return route.abort()
  await route.fulfill({
    status: answered.status,
    headers: Object.fromEntries(answered.headers),
    body: Buffer.from(await answered.arrayBuffer())
  })
}

/** Opens a visit. With `answer`, every request is answered in process, and no server is needed. */
export const visit = async (
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  answer?: (request: Request) => Promise<Response>
): Promise<Visit> => {
  const { origin, pathname } = new URL(url)
  const context = await browser.newContext({ viewport: desk, baseURL: origin, timezoneId: "UTC", ...options })
  context.setDefaultTimeout(60_000)
  const unexpected: Array<string> = []
  const expected: Array<RegExp> = []
  const report = (problem: string) => {
    if (!expected.some((one) => one.test(problem))) unexpected.push(problem)
  }
  context.on("request", (request) => {
    const address = new URL(request.url())
    if (address.protocol !== "data:" && address.origin !== origin) report(`requests ${request.url()}`)
  })
  context.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning")
      report(`${message.type()} on the console: ${message.text()} (${message.location().url})`)
  })
  context.on("weberror", (error) => report(`exception: ${error.error().message}`))
  if (options.javaScriptEnabled !== false) {
    await context.addInitScript({ content: reportBreaches })
  }
  if (answer !== undefined) await context.route(() => true, fulfilBy(answer))
  const page = await context.newPage()
  if (pathname === "/open") await page.goto(url)
  return {
    page,
    context,
    problems: () => [...new Set(unexpected.splice(0))],
    expect: (problem) => void expected.push(problem),
    go: async (path) => {
      const response = await page.goto(new URL(path, url).href)
      if (response === null) throw new Error(`${path} answered nothing`)
      return response.status()
    },
    close: async () => {
      await context.close()
      if (unexpected.length > 0) throw new Error(`problems of the pages:\n${[...new Set(unexpected)].join("\n")}`)
    }
  }
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

interface Violation {
  readonly id: string
  readonly help: string
  readonly nodes: ReadonlyArray<{ readonly target: ReadonlyArray<unknown>; readonly failureSummary?: string }>
}

const standard = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

/** Violations of WCAG 2.0 to 2.2, levels A and AA, or of these rules, as axe-core finds them; one line each. */
export const violations = async (
  page: Page,
  runOnly: ReadonlyArray<string> = standard
): Promise<ReadonlyArray<string>> => {
  // Over the debugger, to which the page's policy does not apply.
  await page.evaluate(`${axe};undefined`)
  const { violations: found } = (await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(runOnly)}, resultTypes: ["violations"] })`
  )) as { readonly violations: ReadonlyArray<Violation> }
  return found.flatMap(({ id, help, nodes }) =>
    nodes
      .slice(0, 3)
      .map(({ target, failureSummary }) => `${id}: ${help} (${target.join(" ")}) ${failureSummary ?? ""}`)
  )
}

const tooWide = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth <= clientWidth) return []
  const wide = [...document.body.querySelectorAll("*")].filter((one) => {
    if (one.getBoundingClientRect().right <= clientWidth + 0.5) return false
    for (let above = one.parentElement; above !== null && above !== document.body; above = above.parentElement) {
      if (/auto|scroll|hidden|clip/.test(getComputedStyle(above).overflowX)) return false
    }
    return true
  })
  return [
    "the page is " + scrollWidth + " px wide in a window of " + clientWidth + " px",
    ...wide.slice(0, 5).map((one) => one.outerHTML.slice(0, 120))
  ]
})()`

/** Elements that are wider than the window, so that the page itself would scroll sideways. */
export const overflow = (page: Page): Promise<ReadonlyArray<string>> => page.evaluate<ReadonlyArray<string>>(tooWide)

const oneLetterWide = `(() => {
  const found = []
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
    const content = text.textContent.replace(/\\s+/g, " ").trim()
    if (content.length < 20 || !text.parentElement.checkVisibility() || text.parentElement.closest("svg, script, style")) continue
    // Such an element is for screen readers only.
    if ([...function* (one) { for (; one !== null; one = one.parentElement) yield one }(text.parentElement)].some((one) => one.getBoundingClientRect().width <= 1 && getComputedStyle(one).overflowX !== "visible")) continue
    const range = document.createRange()
    range.selectNodeContents(text)
    const lines = new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom))).size
    if (lines > 2 && content.length / lines < 8) found.push(lines + " lines for: " + content.slice(0, 80))
  }
  return found
})()`

/** Visible texts of 20 characters or more whose lines have fewer than eight on average. */
export const narrow = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate<ReadonlyArray<string>>(oneLetterWide)

/** Saves a picture of the whole page in the folder of `SCREENSHOTS`; does nothing without it. */
export const picture = async (page: Page, name: string): Promise<void> => {
  const folder = process.env["SCREENSHOTS"]
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
}

/** Repeats a question until the answer is as expected. The failure contains the last answer. */
export const until = async <A>(
  what: string,
  question: () => Promise<A>,
  isExpected: (answer: A) => boolean,
  seconds = 20
): Promise<A> => {
  const end = performance.now() + seconds * 1000
  for (;;) {
    const answer = await question()
    if (isExpected(answer)) return answer
    if (performance.now() > end)
      throw new Error(
        `${what}: not within ${seconds} s; last: ${JSON.stringify(answer, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))}`
      )
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
