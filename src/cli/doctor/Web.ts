/**
 * One request to an address from this machine: its name, its certificate, its clock.
 *
 * Promise: the request has no token, and no redirect is followed. Of an untrusted certificate only the reason for the
 * distrust is used.
 */
import { lookup } from "node:dns/promises"
import * as http from "node:http"
import * as https from "node:https"
import { TLSSocket } from "node:tls"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"

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
          : "trust its authority by a file: NODE_EXTRA_CA_CERTS=<file.pem>; or use a certificate of a known authority"
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

const certificateOf = (response: http.IncomingMessage): Certificate | null => {
  if (!(response.socket instanceof TLSSocket)) return null
  const { valid_to: validTo, issuer } = response.socket.getPeerCertificate()
  if (validTo === undefined) return null
  const name = issuer?.O ?? issuer?.CN
  return { validTo: Date.parse(validTo), issuer: Array.isArray(name) ? (name[0] ?? "unknown") : (name ?? "unknown") }
}

/** One request; the body is not read. */
export const reach = Effect.fn("Web.reach")(function* (address: string): Effect.fn.Return<Reachable, Unreachable> {
  const url = new URL(address)
  const clock = yield* Clock.Clock
  // The name is looked up first, so that the request that compares the clocks is as short as possible.
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1")
  yield* Effect.tryPromise({
    try: () => lookup(host),
    catch: (error) => failureOf(url, error instanceof Error ? error : new Error(String(error)))
  })
  return yield* Effect.callback<Reachable, Unreachable>((resume) => {
    const beganAt = clock.currentTimeMillisUnsafe()
    const request = (url.protocol === "https:" ? https : http).get(
      url,
      { agent: false, headers: { accept: "*/*", "user-agent": "tributary" } },
      (response) => {
        const endedAt = clock.currentTimeMillisUnsafe()
        const date = Date.parse(response.headers.date ?? "")
        const tookMs = endedAt - beganAt
        resume(
          Effect.succeed({
            status: response.statusCode ?? 0,
            location: response.headers.location ?? null,
            // The header is cut to whole seconds, so half a second is added.
            aheadMs: Number.isNaN(date) ? null : date + 500 - (beganAt + endedAt) / 2,
            uncertainMs: 500 + tookMs / 2,
            tookMs,
            certificate: certificateOf(response)
          })
        )
        response.destroy()
      }
    )
    request.on("error", (error) => resume(Effect.fail(failureOf(url, error))))
    return Effect.sync(() => {
      request.destroy()
    })
  })
})
