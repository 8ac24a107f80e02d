/**
 * The headers of pages, and the static files.
 *
 * Promise: a browser loads nothing from other hosts, runs no script of a page's text, shows a page in no frame, and
 * stores no page.
 */
import type { Context, MiddlewareHandler } from "hono"
import { secureHeaders } from "hono/secure-headers"
import type { Assets } from "./Assets.ts"

/** The restrictions of what a browser may do with a page. */
export const restrictBrowsers = (hasTls: boolean): MiddlewareHandler =>
  secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'", "data:"],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      frameAncestors: ["'none'"],
      baseUri: ["'none'"]
    },
    // With `no-referrer`, browsers send `Origin: null` with a form, which is not accepted.
    referrerPolicy: "same-origin",
    xFrameOptions: "DENY",
    strictTransportSecurity: hasTls ? "max-age=31536000" : false
  })

export const forbidStoring: MiddlewareHandler = async (exchange, next) => {
  await next()
  if (!exchange.res.headers.has("Cache-Control")) exchange.res.headers.set("Cache-Control", "no-store")
}

/**
 * Answers `/…/:version/:name`. During a rolling update, a page of another version gets the file of this one: it looks
 * nearly right until it is loaded again. That answer must not be stored under the other version.
 */
export const serveAsset =
  (assets: Assets) =>
  (exchange: Context): Response => {
    const asset = assets.read(exchange.req.param("name") ?? "")
    if (asset === undefined) return exchange.text("There is nothing here.\n", 404)
    const isCurrent = exchange.req.param("version") === assets.version
    return exchange.body(asset.text, 200, {
      "Content-Type": asset.type,
      "Cache-Control": isCurrent ? "public, max-age=31536000, immutable" : "no-store"
    })
  }
