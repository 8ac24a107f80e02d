/**
 * One request to an address from this machine: its name, its certificate, its clock.
 *
 * Promise: the request has no token, and no redirect is followed. Of an untrusted certificate only the reason for the
 * distrust is used.
 */
import { lookup } from "node:dns/promises"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { request } from "undici"
import type { Network } from "../../configuration/Network.ts"
import * as Client from "../../http/Client.ts"
import { ProxyFailed } from "../../http/Proxies.ts"

export interface Certificate {
  /** In milliseconds since 1970. */
  readonly validTo: number
  readonly issuer: string
}

export interface Reachable {
  readonly status: number
  readonly location: string | null
  /** The server's clock minus ours, in milliseconds, give or take `uncertainMs`; null when it sends no time. */
  readonly aheadMs: number | null
  readonly uncertainMs: number
  readonly tookMs: number
  /** Null over plain http. */
  readonly certificate: Certificate | null
}

/** A failure to reach the address. The reason decides the remedy. */
export class Unreachable extends Data.TaggedError("Unreachable")<{
  readonly reason: "name" | "certificate" | "protocol" | "connection"
  readonly detail: string
  readonly remedy: string
}> {}

const isExpired = (code: string): boolean => code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID"

const certificateCodes =
  /^(?:CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)/

const codeOf = (error: NodeJS.ErrnoException): string => {
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error
  return inner instanceof Error && "code" in inner && typeof inner.code === "string" ? inner.code : ""
}

const failureOf = (url: URL, error: NodeJS.ErrnoException): Unreachable => {
  const code = codeOf(error)
  const detail =
    code === "" || error.message.includes(code) ? error.message || code : `${code}: ${error.message || code}`
  if (error instanceof ProxyFailed && !certificateCodes.test(code)) {
    return new Unreachable({ reason: "connection", detail: error.message, remedy: error.remedy })
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return new Unreachable({
      reason: "name",
      detail: `the name ${url.hostname} is not known (${code})`,
      remedy: "check the spelling of the address, and the name server of this machine"
    })
  }
  if (certificateCodes.test(code)) {
    return new Unreachable({
      reason: "certificate",
      detail: `the certificate of ${url.host} is not accepted (${code}: ${error.message})`,
      remedy: isExpired(code)
        ? "renew the certificate there, or set this machine's clock right"
        : code === "ERR_TLS_CERT_ALTNAME_INVALID"
          ? "use the name that the certificate is for"
          : "trust its authority by a file: requests.ca_file, or NODE_EXTRA_CA_CERTS=<file.pem>; or use a certificate of a known authority"
    })
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL") || code.startsWith("HPE_")) {
    return new Unreachable({
      reason: "protocol",
      detail: `${url.host} does not speak ${url.protocol === "https:" ? "TLS" : "http"} (${code})`,
      remedy: "check the port, and whether the address begins with https"
    })
  }
  return new Unreachable({
    reason: "connection",
    detail: `${url.host} cannot be reached (${detail})`,
    remedy: "check host and port, whether the service is up, and the firewall between"
  })
}

const certificateOf = (socket: TLSSocket): Certificate | null => {
  const { valid_to: validTo, issuer } = socket.getPeerCertificate()
  if (validTo === undefined) return null
  const name = issuer?.O ?? issuer?.CN
  return { validTo: Date.parse(validTo), issuer: Array.isArray(name) ? (name[0] ?? "unknown") : (name ?? "unknown") }
}

/** The channel on which undici reports its connections. */
const connected = "undici:client:connected"

/** The certificate of the last connection to an address, until the end of the scope. */
const observeCertificate = Effect.fnUntraced(function* ({ host }: URL) {
  let certificate: Certificate | null = null
  const observe = (message: unknown) => {
    const { connectParams, socket } = message as { connectParams: { readonly host: string }; readonly socket: Socket }
    if (connectParams.host === host && socket instanceof TLSSocket) certificate = certificateOf(socket)
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => subscribe(connected, observe)),
    () => Effect.sync(() => unsubscribe(connected, observe))
  )
  return Effect.sync(() => certificate)
})

/** One request; the body is not read. The caller has the time limit. */
export const reach = Effect.fn("Web.reach")(function* (
  address: string,
  { proxies, secureContext }: Pick<Network, "proxies" | "secureContext">
): Effect.fn.Return<Reachable, Unreachable, Scope.Scope> {
  const url = new URL(address)
  const clock = yield* Clock.Clock
  const attempt = <A>(run: (signal: AbortSignal) => Promise<A>) =>
    Effect.tryPromise({
      try: run,
      catch: (error) => failureOf(url, error instanceof Error ? error : new Error(String(error)))
    })
  // The name is looked up first, so that the request that compares the clocks is as short as possible.
  if (proxies === null) yield* attempt(() => lookup(url.hostname.replace(/^\[(.*)\]$/, "$1")))
  const tls = secureContext === null ? {} : { secureContext }
  const dispatcher = yield* Client.makeDispatcher({ proxies, tls, connectTimeout: Duration.minutes(1) })
  const certificate = yield* observeCertificate(url)
  const beganAt = clock.currentTimeMillisUnsafe()
  const { statusCode, headers, body } = yield* attempt((signal) =>
    request(url, { dispatcher, signal, headers: { accept: "*/*", "user-agent": "tributary" } })
  )
  const endedAt = clock.currentTimeMillisUnsafe()
  body.on("error", () => {}).destroy()
  const date = Date.parse([headers["date"]].flat()[0] ?? "")
  const tookMs = endedAt - beganAt
  return {
    status: statusCode,
    location: [headers["location"]].flat()[0] ?? null,
    // The header is cut to whole seconds, so half a second is added.
    aheadMs: Number.isNaN(date) ? null : date + 500 - (beganAt + endedAt) / 2,
    uncertainMs: 500 + tookMs / 2,
    tookMs,
    certificate: yield* certificate
  }
}, Effect.scoped)
