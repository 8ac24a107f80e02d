/**
 * The proxies of outgoing requests.
 *
 * Promise: user and password of a proxy are `Redacted` from the moment they are read, and no failure has them.
 */
import * as Redacted from "effect/Redacted"

export interface Proxies {
  /** The address of the proxy for https addresses; null reaches them directly. */
  readonly https: Redacted.Redacted | null
  /** The same for http addresses. */
  readonly http: Redacted.Redacted | null
  /** The hosts that are reached directly, as NO_PROXY lists them. */
  readonly noProxy: string
}

/** A request that failed on the way through a proxy. */
export class ProxyFailed extends Error {
  /** A code as those of Node's network errors. */
  readonly code: string
  /** Host and port of the proxy. */
  readonly proxy: string
  readonly remedy: string
  constructor({ message, code, proxy, remedy }: Pick<ProxyFailed, "message" | "code" | "proxy" | "remedy">) {
    super(message)
    this.code = code
    this.proxy = proxy
    this.remedy = remedy
  }
}

/** The names and addresses of this machine, which are always reached directly. */
const loopback = ["localhost", "127.0.0.1", "::1"]

export const expectedAddress = "expected the address of a proxy, such as http://proxy.example.com:3128"

const canDecode = (text: string): boolean => {
  try {
    return decodeURIComponent(text) !== ""
  } catch {
    return false
  }
}

/** The address of an HTTP proxy, with user and password where it needs them; null for any other text. */
export const addressOf = (text: string): URL | null => {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`)
  const isProxy = url !== null && /^https?:$/.test(url.protocol) && url.pathname === "/" && url.search === ""
  return isProxy && canDecode(`${url.username}:${url.password}`) ? url : null
}

const redacted = (url: URL) => Redacted.make(url.href, { label: "address of the proxy" })

/** One proxy for all addresses but those of this machine. */
export const proxiesOf = (url: URL): Proxies => ({
  https: redacted(url),
  http: redacted(url),
  noProxy: loopback.join(",")
})

/** The proxies of the variables, in upper or lower case; null without one. A mistake repeats no value. */
export const proxiesOfVariables = (
  variable: (name: string) => string | undefined,
  problems: Array<string>
): Proxies | null => {
  const read = (name: string) => variable(name.toLowerCase()) ?? variable(name)
  const readAddress = (name: string) => {
    const text = read(name)
    const url = text === undefined ? null : addressOf(text)
    if (text !== undefined && url === null) problems.push(`${name}: ${expectedAddress}`)
    return url === null ? null : redacted(url)
  }
  const http = readAddress("HTTP_PROXY")
  const https = readAddress("HTTPS_PROXY") ?? http
  const direct = (read("NO_PROXY") ?? "").split(/[,\s]+/).filter((host) => host !== "")
  return https === null ? null : { https, http, noProxy: [...loopback, ...direct].join(",") }
}
