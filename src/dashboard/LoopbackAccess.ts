/**
 * Access without a password: for this machine only, and for reading.
 *
 * Promise: the connection comes from loopback, the Host is a loopback name with this port, and no header says that a
 * proxy passed the request on. So a foreign name that resolves to this machine is refused. A proxy that adds no header
 * looks like a browser on this machine; therefore every change needs a session as well.
 */
import { type AccessDecision, type AccessRequest, refused } from "./AccessDecision.ts"

export interface LoopbackAccess {
  readonly port: number
  /** The accepted values of the Host header. */
  readonly hosts: ReadonlySet<string>
}

export const make = (host: string, port: number): LoopbackAccess => {
  const name = host.includes(":") ? `[${host}]` : host
  return {
    port,
    hosts: new Set(
      ["localhost", "127.0.0.1", "[::1]", name].flatMap((one) => [
        `${one}:${port}`,
        ...(port === 80 || port === 443 ? [one] : [])
      ])
    )
  }
}

/** Headers that a proxy adds when it forwards a request. */
const proxyHeaders = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"]

const isLoopback = (address: string): boolean => /^(?:::ffff:)?127\.\d+\.\d+\.\d+$/.test(address) || address === "::1"

const refuseProxy = (evidence: string): AccessDecision =>
  refused(
    403,
    `A proxy forwarded this request (${evidence}), so that other machines may reach these pages: set a password ` +
      "(dashboard.password_env, or TRIBUTARY_DASHBOARD_PASSWORD)."
  )

/** Grants reading to this machine. */
export const decide = ({ port, hosts }: LoopbackAccess, request: AccessRequest): AccessDecision => {
  if (request.address === undefined || !isLoopback(request.address)) {
    return refused(
      403,
      "Without a password these pages are only for this machine. Set a password (dashboard.password_env, or " +
        "TRIBUTARY_DASHBOARD_PASSWORD) to open them from another machine."
    )
  }
  const header = proxyHeaders.find((name) => request.header(name) !== undefined)
  if (header !== undefined) return refuseProxy(header)
  if (request.httpVersion === "1.0") return refuseProxy("HTTP/1.0")
  if (!hosts.has(request.header("host")?.toLowerCase() ?? "")) {
    return refused(
      403,
      `Without a password these pages are only served at http://127.0.0.1:${port} or http://localhost:${port}.`
    )
  }
  // A link on another site may lead here. Its other requests are refused, because a page may send requests to the
  // source.
  const site = request.header("sec-fetch-site")
  const isNavigation =
    request.header("sec-fetch-mode") === "navigate" && request.header("sec-fetch-dest") === "document"
  if ((site === "cross-site" || site === "same-site") && !isNavigation) {
    return refused(403, "Another site requested this page, which is not allowed.")
  }
  return { _tag: "Granted", by: "loopback", session: "" }
}
