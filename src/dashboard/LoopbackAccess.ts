/**
 * Access without a password: for this machine only, and for reading.
 *
 * Promise: the connection comes from loopback, the Host is a loopback name with this port, and no header says that a proxy
 * passed the request on. So no foreign name can be made to point here. A proxy that adds no header looks like a person at
 * this machine; therefore every change needs a session as well.
 */
import { type AccessDecision, type AccessRequest, refused } from "./AccessDecision.ts"

export interface LoopbackAccess {
  readonly port: number
  /** Values of the Host header that are answered. */
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

/** Headers by which a proxy says that it passes on the request of another machine. */
const proxyHeaders = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"]

const isLoopback = (address: string): boolean => /^(?:::ffff:)?127\.\d+\.\d+\.\d+$/.test(address) || address === "::1"

const refuseProxy = (evidence: string): AccessDecision =>
  refused(
    403,
    `A proxy passed this request on (${evidence}), so that others may reach these pages: set a password ` +
      "(dashboard.password_env, or TRIBUTARY_DASHBOARD_PASSWORD)."
  )

/** Grants reading to this machine. */
export const decide = ({ port, hosts }: LoopbackAccess, request: AccessRequest): AccessDecision => {
  if (request.address === undefined || !isLoopback(request.address)) {
    return refused(
      403,
      "Without a password these pages are only for this machine. Set one (dashboard.password_env, or " +
        "TRIBUTARY_DASHBOARD_PASSWORD) to see them from another."
    )
  }
  const header = proxyHeaders.find((name) => request.header(name) !== undefined)
  if (header !== undefined) return refuseProxy(header)
  if (request.httpVersion === "1.0") return refuseProxy("HTTP/1.0")
  if (!hosts.has(request.header("host")?.toLowerCase() ?? "")) {
    return refused(
      403,
      `Without a password these pages are only answered as http://127.0.0.1:${port} or http://localhost:${port}.`
    )
  }
  // A link on another site may lead here. Nothing else there may request a page, because a page may ask the source.
  const site = request.header("sec-fetch-site")
  const isNavigation =
    request.header("sec-fetch-mode") === "navigate" && request.header("sec-fetch-dest") === "document"
  if ((site === "cross-site" || site === "same-site") && !isNavigation) {
    return refused(403, "Another site asked for this page, and is not answered.")
  }
  return { _tag: "Granted", by: "loopback", session: "" }
}
