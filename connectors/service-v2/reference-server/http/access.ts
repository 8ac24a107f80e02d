/**
 * Who may reach the listeners: addresses, TLS, and the token of the control plane.
 *
 * Promise: a combination that would show a token or the control plane to other machines is refused with its reason. The
 * control plane on loopback answers only requests for a loopback name, so that no web page reaches it by DNS rebinding.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import { isIP } from "node:net"
import * as Redacted from "effect/Redacted"
import { isPage } from "../ui/Entry.ts"
import type { Answer, Request } from "./Message.ts"
import { json } from "./Message.ts"

export interface NetworkOptions {
  /** The address on which the API listens; default 127.0.0.1. */
  readonly host?: string | undefined
  /** The address on which the control plane listens; default 127.0.0.1. */
  readonly controlHost?: string | undefined
  /** The token that every control call must have; default none. */
  readonly controlToken?: Redacted.Redacted | undefined
  /** TLS of both listeners: `self-signed`, or the files of a certificate and its key in PEM. Default: plain HTTP. */
  readonly tls?: "self-signed" | { readonly cert: string | undefined; readonly key: string | undefined } | undefined
  /** Whether tokens may be sent over plain HTTP beyond loopback; default false. */
  readonly allowHttp?: boolean | undefined
  /** The address of the API in its answers, without `/!/api/v2`, where clients reach it by another one. */
  readonly advertiseUrl?: string | undefined
}

export const loopback = "127.0.0.1"

const tokenLengthMin = 16

/** The name without port and brackets. */
export const bareHost = (host: string): string => host.replace(/^\[(.*)\]$/, "$1").toLowerCase()

export const isLoopback = (host: string): boolean => {
  const bare = bareHost(host)
  return bare === "localhost" || bare === "::1" || (isIP(bare) === 4 && bare.startsWith("127."))
}

/** Whether the address stands for every interface. */
export const isWildcard = (host: string): boolean => ["0.0.0.0", "::"].includes(bareHost(host))

const advertisedProblem = (address: string): string | null => {
  const url = URL.canParse(address) ? new URL(address) : null
  const isPlain =
    url !== null && /^https?:$/.test(url.protocol) && `${url.search}${url.hash}${url.username}${url.password}` === ""
  return isPlain ? null : "the advertised address must be http://host or https://host, with a port and a path if needed"
}

const tokenProblem = (token: string): string | null =>
  token.length >= tokenLengthMin && /^[A-Za-z0-9\-._~+/]+=*$/.test(token)
    ? null
    : `the control token must have at least ${tokenLengthMin} letters, digits or -._~+/`

/** Why the options are refused; null when they are safe. */
export const networkProblem = (options: NetworkOptions): string | null => {
  const { host = loopback, controlHost = loopback, controlToken, tls, allowHttp = false, advertiseUrl } = options
  if (host === "" || controlHost === "") return `an address is empty: leave it out for ${loopback}`
  if (typeof tls === "object" && tls.key === undefined) return "there is a certificate without a key: give both files"
  if (typeof tls === "object" && tls.cert === undefined) return "there is a key without a certificate: give both files"
  if (!isLoopback(controlHost) && controlToken === undefined) {
    return `the control plane on ${controlHost} would obey other machines: set REFERENCE_SERVER_CONTROL_TOKEN, or keep it on ${loopback}`
  }
  if (tls === undefined && !allowHttp) {
    const unsafe = [host, controlHost].find((one) => !isLoopback(one))
    if (unsafe !== undefined) {
      return `tokens would be sent to ${unsafe} over plain HTTP: use TLS, or allow HTTP if the network is trusted`
    }
  }
  if (controlToken !== undefined) {
    const problem = tokenProblem(Redacted.value(controlToken))
    if (problem !== null) return problem
  }
  return advertiseUrl === undefined ? null : advertisedProblem(advertiseUrl)
}

const refused = (status: number, message: string, headers: Readonly<Record<string, string>> = {}): Answer => ({
  status,
  headers: { "Content-Type": json, ...headers },
  body: JSON.stringify({ error: message }),
  wire: null
})

const digest = (text: string) => createHash("sha256").update(text).digest()

/** The name in a Host header, without the port. */
const hostName = (header: string): string => header.replace(/:\d*$/, "")

/** The password that a browser sends; it stands for the control token on pages only, because other sites can make it send one. */
const passwordOf = (authorization: string): string | undefined => {
  const encoded = /^basic +(\S+) *$/i.exec(authorization)?.[1]
  return encoded === undefined ? undefined : /^[^:]*:(.*)$/s.exec(Buffer.from(encoded, "base64").toString("utf8"))?.[1]
}

/** Refuses control calls of other senders; returns null for a call that may be answered. */
export const controlGuard = (controlToken: Redacted.Redacted | undefined): ((request: Request) => Answer | null) => {
  if (controlToken === undefined) {
    return ({ headers: { host } }) =>
      host === undefined || isLoopback(hostName(host))
        ? null
        : refused(403, "without a control token the control plane answers only requests for localhost or 127.0.0.1")
  }
  const expected = digest(Redacted.value(controlToken))
  return ({ url, headers: { authorization = "" } }) => {
    const isForBrowser = isPage(url)
    const given =
      /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? (isForBrowser ? passwordOf(authorization) : undefined)
    if (given !== undefined && timingSafeEqual(digest(given), expected)) return null
    return isForBrowser
      ? refused(401, "the password is the control token", { "WWW-Authenticate": 'Basic realm="reference server"' })
      : refused(401, "send the header Authorization: Bearer <control token>", { "WWW-Authenticate": "Bearer" })
  }
}

/** The answer to `GET /readyz` of both listeners; null for any other request. It needs no token and tells nothing. */
export const readiness = ({ method, url }: Request): Answer | null =>
  url === "/readyz" && (method === "GET" || method === "HEAD")
    ? { status: 200, headers: { "Content-Type": json }, body: '{"ready":true}', wire: null }
    : null

const hostHeader = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/

/** The address by which the sender of a request reached a listener; `fallback` when its Host header names none. */
export const addressOf = ({ headers: { host } }: Request, scheme: string, fallback: string): string =>
  host !== undefined && hostHeader.test(host) ? `${scheme}://${host}` : fallback

/** An address on which a client of this machine reaches a listener. */
export const localAddress = (scheme: string, host: string, port: number): string => {
  const bare = isWildcard(host) ? loopback : bareHost(host)
  return `${scheme}://${isIP(bare) === 6 ? `[${bare}]` : bare}:${port}`
}
