/**
 * Where the API is, and where the token may therefore go.
 *
 * Promise: the token is sent to the configured origin, below the configured path, over https or to this machine, and
 * nowhere else, whatever a page link says.
 */
import * as Data from "effect/Data"

/** The connector cannot be made from what was configured; says which setting and what to do. */
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
  /** The path without a slash at its end; empty when the API is at the root. */
  readonly path: string
  /** The whole address of a path below the base. */
  readonly at: (path: string) => string
  /**
   * The path and query below the base that a link names; null when it leaves the base. A relative link is relative to
   * the page that named it, itself given as a path below the base.
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
  if (!URL.canParse(baseUrl)) return wrong("is no address", example)
  const url = new URL(baseUrl)
  if (url.username !== "" || url.password !== "") {
    return wrong("carries credentials", "remove them: the token alone identifies, and it is never part of an address")
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return wrong("is no https address", example)
  if (url.protocol === "http:" && !allowHttp && !isLoopback(url.hostname)) {
    return wrong(
      `is plain http, over which the token would travel to ${url.host} in clear text`,
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
