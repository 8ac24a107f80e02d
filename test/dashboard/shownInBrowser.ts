/** The warehouse of `shown.ts` and its pages in Chromium, without a server. */
import { Context, Effect, Layer } from "effect"
import type { Browser, BrowserContextOptions } from "playwright-core"
import { type Answer, application, origin } from "../support/application.ts"
import { openBrowser, type Visit, visit } from "../support/browser.ts"
import { layerWarehouse } from "../support/postgres.ts"
import { fill } from "./shown.ts"

export const opened = Effect.acquireRelease(
  Effect.promise(() => openBrowser()),
  (browser) => Effect.promise(() => browser.close())
)

const stillScript = `Object.defineProperty(Document.prototype, "visibilityState", { get: () => "hidden" })`

export interface VisitOptions extends BrowserContextOptions {
  /** The pages neither refresh nor move their ages. */
  readonly isStill?: boolean
}

/** Opens a visit with a session that may act; it is closed with the scope, and fails then if there were problems. */
export const visited = (
  browser: Browser,
  { answer, cookie }: { readonly answer: Answer; readonly cookie: string },
  { isStill = false, ...options }: VisitOptions = {}
) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const look = await visit(browser, origin, options, answer)
      const [name = "", value = ""] = cookie.split("=")
      await look.context.addCookies([{ name, value, url: origin }])
      if (isStill) await look.context.addInitScript({ content: stillScript })
      return look
    }),
    (look) => Effect.promise(() => look.close())
  )

export class Shown extends Context.Service<
  Shown,
  {
    readonly companies: Effect.Success<ReturnType<typeof fill>>
    readonly browser: Browser
    readonly pages: { readonly answer: Answer; readonly cookie: string }
    /** A visit that stands still, for all tests of a file. */
    readonly look: Visit
  }
>()("test/Shown") {}

export const shownInBrowser = Layer.effect(
  Shown,
  Effect.gen(function* () {
    const companies = yield* fill()
    const pages = yield* application(companies)
    const browser = yield* opened
    return { companies, browser, pages, look: yield* visited(browser, pages, { isStill: true }) }
  })
).pipe(Layer.provideMerge(layerWarehouse))
