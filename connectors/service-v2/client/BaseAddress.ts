/**
 * The address of the API, and the limit of where the token may be sent.
 *
 * Promise: the token is sent only to the configured origin, below the configured path, over https or to this machine. A
 * page link cannot change that.
 */
import * as Data from "effect/Data"

/** Invalid options of the connector: names the setting and what to do. */
export class ClientConfigError extends Data.TaggedError("ClientConfigError")<{
  /** The setting, as the options name it. */
  readonly setting: string
  readonly problem: string
  readonly remedy: string
}> {
  override get message(): string {
    return `${this.setting}: ${this.problem}; ${this.remedy}`
  }
}

/** A checked base address. */
export interface BaseAddress {
  readonly origin: string
  /** The path without a trailing slash; empty when the API is at the root. */
  readonly path: string
  /** The whole address of a path below the base. */
  readonly at: (path: string) => string
  /**
   * The path and query below the base that a link names; null when the link leaves the base. A relative link is
   * resolved against `page`, the page that contains it, given as a path below the base.
   */
  readonly below: (link: string, page: string) => string | null
}

/** Whether the host is this machine: 127/8, `::1`, `localhost`. */
const isLoopback = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host)

/** Checks the base address. */
export const parse = (baseUrl: string, allowHttp: boolean): BaseAddress | ClientConfigError => {
  const wrong = (problem: string, remedy: string) => new ClientConfigError({ setting: "baseUrl", problem, remedy })
  const example = "give the address up to the API's own path, for example https://erp.example.com/!/api/v2"
  if (!URL.canParse(baseUrl)) return wrong("is not an address", example)
  const url = new URL(baseUrl)
  if (url.username !== "" || url.password !== "") {
    return wrong(
      "carries credentials",
      "remove them: only the token identifies the company, and it is never part of an address"
    )
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return wrong("is not an https address", example)
  if (url.protocol === "http:" && !allowHttp && !isLoopback(url.hostname)) {
    return wrong(
      `is plain http, which would send the token to ${url.host} in clear text`,
      "use https, or set allow_http if you accept that"
    )
  }
  if (url.search !== "" || url.hash !== "") return wrong("carries a query or a fragment", example)
  const path = url.pathname.replace(/\/+$/, "")
  const { origin } = url
  const at = (below: string) => `${origin}${path}${below}`
  return {
    origin,
    path,
    at,
    below: (link, page) => {
      if (!URL.canParse(link, at(page))) return null
      const target = new URL(link, at(page))
      const inside = target.origin === origin && target.pathname.startsWith(`${path}/`)
      if (!inside || target.username !== "" || target.password !== "") return null
      return `${target.pathname.slice(path.length)}${target.search}`
    }
  }
}
