/**
 * Which requests may see the pages, and which may send a form.
 *
 * Promise: without a control token the Host is a loopback name, so that a foreign name that resolves to this machine is
 * refused. With one, `http/access.ts` refuses every request without it. A form is
 * accepted only from these pages: its Origin is this server, its Sec-Fetch-Site is not another site, and it has the token
 * that only these pages show.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import type { Request } from "../http/Message.ts"

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i

/** Why a request is refused; null when it may see a page. */
export const pageProblem = ({ headers }: Request, hasControlToken: boolean): string | null => {
  if (!hasControlToken && !loopbackHost.test(headers["host"] ?? ""))
    return "These pages are only served at a loopback address."
  const site = headers["sec-fetch-site"]
  const isNavigation = headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document"
  return (site === "cross-site" || site === "same-site") && !isNavigation
    ? "Another site requested this page, which is not allowed."
    : null
}

const isEqual = (one: string, other: string): boolean =>
  timingSafeEqual(createHash("sha256").update(one).digest(), createHash("sha256").update(other).digest())

/** Why a form is refused; null when it comes from a page of this server. */
export const formProblem = ({ headers }: Request, given: string | null, expected: string | null): string | null => {
  const origin = headers["origin"]
  const site = headers["sec-fetch-site"]
  const host = headers["host"] ?? ""
  const isOwn =
    (origin === `http://${host}` || origin === `https://${host}`) && (site === undefined || site === "same-origin")
  if (!isOwn) return "This form did not come from these pages."
  return expected !== null && given !== null && isEqual(given, expected)
    ? null
    : "This form is out of date, because the server was started again. Go back, reload the page, and send it again."
}
