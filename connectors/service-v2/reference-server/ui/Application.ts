/**
 * The web pages of the reference server, without sockets.
 *
 * Promise: pages work without a script and load nothing from other hosts. A page that fails shows no internals.
 */
import { Hono } from "hono"
import { deleteCookie, getCookie, setCookie } from "hono/cookie"
import type { Context } from "hono"
import { etag } from "hono/etag"
import * as Assets from "../../../../src/web/Assets.ts"
import { forbidStoring, restrictBrowsers, serveAsset } from "../../../../src/web/Headers.ts"
import { visible } from "../../../../src/web/Escape.ts"
import { html } from "../../../../src/web/Html.ts"
import { layout } from "../../../../src/web/Layout.ts"
import { writeTimes } from "../../../../src/web/Times.ts"
import type { Answer, Request as ServerRequest } from "../http/Message.ts"
import { microsPerSecond } from "../time.ts"
import { nameGrammar, pathOf, splitWorld } from "../worlds/Worlds.ts"
import type { Worlds } from "../worlds/Worlds.ts"
import { formProblem, pageProblem } from "./Guard.ts"
import type { ControlReply, Page, PageRequest, PageStatus, Redirect, Route } from "./Page.ts"
import { page, PageError, root } from "./Page.ts"
import { menu, routes } from "./Routes.ts"

export interface PagesOptions {
  readonly worlds: Worlds
  /** The control plane, without its pages. */
  readonly control: (request: ServerRequest) => Answer
  /** Whether every request of the control plane has a token, so that any Host may be asked for. */
  readonly hasControlToken: boolean
  /** The token of forms; null accepts none. */
  readonly formToken: string | null
}

const formBytesMax = 64 * 1024
const noticeCookie = "reference_server_said"
const noticeSeconds = 60

const site = { name: "Reference server", root: `${root}/`, menu }

const errorPage = (status: PageStatus, title: string, sentence: string): Page =>
  page({
    title,
    status,
    section: null,
    body: html`<h1>${title}</h1>
      <p>${sentence}</p>`
  })

const titles = {
  400: "Not possible like this",
  403: "Not allowed",
  404: "Not found",
  409: "Not possible now",
  413: "Too large",
  415: "Not a form"
} as const

const refusal = (status: keyof typeof titles, sentence: string): Page => errorPage(status, titles[status], sentence)

/** `world` is the name of the world whose pages are requested; null is the main one. */
type Bindings = { Bindings: { readonly request: ServerRequest; readonly world: string | null } }
type Exchange = Context<Bindings>

/**
 * The page as one of a world: its links, forms and assets are below the address of the world. Values are escaped, so that
 * only the attributes of the templates match. A name that no world can have is not inserted.
 */
const withinWorld = (text: string, world: string | null): string =>
  world === null || !nameGrammar.test(world)
    ? text
    : text.replace(/\b(href|action|src)="\/ui\//g, `$1="${pathOf(world)}${root}/`)

/** The current world, and the page that lists all. */
const worldLink = (world: string | null) =>
  html`<a class="world" href="${root}/scenarios">World: ${world ?? "main"}</a>`

const isRefresh = (exchange: Exchange): boolean => exchange.req.header("hx-request") === "true"

const show = async (exchange: Exchange, assets: Assets.Assets, shown: Page): Promise<Response> => {
  const notice = isRefresh(exchange) ? undefined : getCookie(exchange, noticeCookie)
  if (notice !== undefined) deleteCookie(exchange, noticeCookie, { path: "/" })
  const text = layout({
    site,
    title: shown.title,
    section: shown.section,
    breadcrumbs: [],
    numbers: {},
    body: shown.body,
    isLive: shown.isLive === true,
    notice: notice ?? null,
    tools: worldLink(exchange.env.world),
    hasMenu: true,
    foot: "Service API v2, reference server · times are those of its clock, in UTC",
    now: null,
    assets
  })
  exchange.header("Tributary-Assets", assets.version)
  return exchange.html(withinWorld(writeTimes(String(await text), "UTC"), exchange.env.world), shown.status ?? 200)
}

const redirectTo = (exchange: Exchange, { to, notice }: Redirect): Response => {
  setCookie(exchange, noticeCookie, notice, { path: "/", httpOnly: true, sameSite: "Strict", maxAge: noticeSeconds })
  return exchange.redirect(`${pathOf(exchange.env.world)}${to}`, 303)
}

/** The fields of an accepted form, or the page that refuses it. */
const readForm = ({ body, headers, ...request }: ServerRequest, formToken: string | null): URLSearchParams | Page => {
  if (headers["content-type"]?.split(";")[0]?.trim().toLowerCase() !== "application/x-www-form-urlencoded") {
    return refusal(415, "Only forms are accepted here.")
  }
  if ((body?.length ?? 0) > formBytesMax) return refusal(413, `A form has at most ${formBytesMax / 1024} KB.`)
  const form = new URLSearchParams(Buffer.from(body ?? []).toString())
  const problem = formProblem({ ...request, body, headers }, form.get("form_token"), formToken)
  return problem === null ? form : refusal(403, problem)
}

const callOf =
  (control: PagesOptions["control"], { request, world }: Bindings["Bindings"]): PageRequest["call"] =>
  async (method, path, body) => {
    const asked = {
      method,
      // Worlds are made by the main one.
      url: `${path.startsWith("/worlds") ? "" : pathOf(world)}${path}`,
      headers: { "content-type": "application/json", host: request.headers["host"] },
      body: body === undefined ? null : Buffer.from(JSON.stringify(body))
    }
    const first = control(asked)
    const answer = first.pending === undefined ? first : await first.pending
    const text = answer.chunks === undefined ? answer.body : [...answer.chunks].join("")
    const reply: ControlReply = { status: answer.status, body: text === "" ? {} : (JSON.parse(text) as unknown) }
    return reply
  }

const handleRoute = async (
  { worlds, control, formToken }: PagesOptions,
  assets: Assets.Assets,
  route: Route,
  exchange: Exchange
): Promise<Response> => {
  const form = route.method === "POST" ? readForm(exchange.env.request, formToken) : new URLSearchParams()
  if (!(form instanceof URLSearchParams)) return show(exchange, assets, form)
  try {
    const { world: worldName } = exchange.env
    const world = worlds.find(worldName)
    if (world === undefined) throw new PageError(404, `There is no world ${visible(String(worldName))}.`)
    const answer = await route.handle({
      world,
      worldName,
      worlds,
      now: new Date((world.clock.now() / microsPerSecond) * 1000),
      path: exchange.req.param(),
      query: new URL(exchange.req.url).searchParams,
      form,
      formToken,
      call: callOf(control, exchange.env)
    })
    return answer._tag === "Redirect" ? redirectTo(exchange, answer) : await show(exchange, assets, answer)
  } catch (error) {
    if (!(error instanceof PageError)) throw error
    return show(exchange, assets, refusal(error.status, error.message))
  }
}

const makeApp = (options: PagesOptions): Hono<Bindings> => {
  const assets = Assets.load(`${root}/assets`)
  const app = new Hono<Bindings>()
  app.use(restrictBrowsers(false))
  app.use(forbidStoring)
  app.use(etag())
  app.use(async (exchange, next) => {
    const problem = pageProblem(exchange.env.request, options.hasControlToken)
    return problem === null ? next() : show(exchange, assets, refusal(403, problem))
  })
  app.get(`${root}/assets/:version/:name`, serveAsset(assets))
  app.get(root, (exchange) => exchange.redirect(`${pathOf(exchange.env.world)}${root}/`, 308))
  for (const route of routes) {
    app.on(route.method, `${root}${route.path}`, (exchange) => handleRoute(options, assets, route, exchange))
  }
  app.notFound((exchange) => show(exchange, assets, refusal(404, "No page has this address.")))
  app.onError((error, exchange) => {
    options.worlds.main.onDefect(error)
    return show(
      exchange,
      assets,
      errorPage(500, "Internal error", "The page could not be made; the server's output has the reason.")
    )
  })
  return app
}

const headersOf = (headers: ServerRequest["headers"]): Headers => {
  const made = new Headers()
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) made.set(name, value)
  return made
}

const answerOf = async (response: Response): Promise<Answer> => ({
  status: response.status,
  headers: Object.fromEntries(response.headers),
  body: "",
  bytes: new Uint8Array(await response.arrayBuffer()),
  wire: null
})

/** Answers requests of browsers. */
export const make = (options: PagesOptions): ((request: ServerRequest) => Promise<Answer>) => {
  const app = makeApp(options)
  return async (request) => {
    const { name: world, url } = splitWorld(request.url)
    // The address of a request decides nothing; its Host is checked by the first handler.
    const asked = new Request(`http://127.0.0.1${url}`, {
      method: request.method,
      headers: headersOf(request.headers)
    })
    return answerOf(await app.fetch(asked, { request, world }))
  }
}
