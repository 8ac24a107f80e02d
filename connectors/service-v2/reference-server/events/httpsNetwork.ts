/**
 * Deliveries over real HTTPS.
 *
 * Promise: every attempt makes its own connection, verified against the trusted certificates. Its address is checked
 * when the connection is made, so that a name that later resolves to a private address gains nothing. The attempt ends
 * within 15 seconds (DLV-02), follows no redirect (H-20), uses no proxy, and reads no more than 500 bytes of the
 * answer. A status that arrived in time counts, even if the rest of the answer does not arrive.
 */
import { lookup as resolveName } from "node:dns"
import type { LookupAddress } from "node:dns"
import type { IncomingMessage } from "node:http"
import { request as httpsRequest } from "node:https"
import { isIP } from "node:net"
import type { LookupFunction } from "node:net"
// Its names are not imported one by one: an older Node, which lacks one, must get as far as the message about its version.
import tls, { type SecureContext } from "node:tls"
import { limits } from "../../catalogue/limits.ts"
import { isPublic } from "./addresses.ts"
import type { Network, Outcome } from "./Network.ts"

export interface HttpsNetworkOptions {
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Waits for the time; rejects when `signal` aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Resolves a name to all its addresses; default: the system's resolver. */
  readonly resolve?: (
    hostname: string,
    callback: (error: Error | null, addresses: ReadonlyArray<LookupAddress>) => void
  ) => void
}

const systemResolve: NonNullable<HttpsNetworkOptions["resolve"]> = (hostname, callback) =>
  resolveName(hostname, { all: true }, (error, addresses) => callback(error, addresses ?? []))

const refusal = (host: string) =>
  new Error(`${host} is not a public address; PUT /limits {"allowPrivateReceivers":true} allows it`)

/** Resolves names for a connection and returns public addresses only. */
const checkedLookup =
  (resolve: NonNullable<HttpsNetworkOptions["resolve"]>, allowPrivate: boolean): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, (error, allAddresses) => {
      const addresses = allowPrivate ? allAddresses : allAddresses.filter(({ address }) => isPublic(address))
      const [first] = addresses
      if (error !== null) callback(error, "", 0)
      else if (first === undefined) callback(refusal(hostname), "", 0)
      else if (options.all === true) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    })
  }

/** One context per list of certificates: creating one reads all root certificates. */
const contexts = new WeakMap<ReadonlyArray<string>, SecureContext>()

const contextOf = (trusted: ReadonlyArray<string>): SecureContext => {
  const context = contexts.get(trusted)
  if (context !== undefined) return context
  const made = tls.createSecureContext(
    trusted.length === 0 ? {} : { ca: [...tls.getCACertificates("default"), ...trusted] }
  )
  contexts.set(trusted, made)
  return made
}

export const httpsNetwork = ({ now, sleep, resolve = systemResolve }: HttpsNetworkOptions): Network => ({
  send: ({ url, headers, body, trusted, allowPrivate }, signal) =>
    new Promise<Outcome>((settle) => {
      const begun = now()
      const over = new AbortController()
      const chunks: Array<Buffer> = []
      let status: number | null = null
      let kept = 0
      const end = (failure: string | null) => {
        over.abort()
        settle({
          status,
          body: Buffer.concat(chunks).subarray(0, limits.webhookAnswerBytesMax),
          durationms: Math.max(0, Math.round(now() - begun)),
          failure: status === null ? failure : null
        })
      }
      const read = (response: IncomingMessage) => {
        status = response.statusCode ?? null
        response.on("data", (chunk: Buffer) => {
          chunks.push(chunk)
          kept += chunk.length
          if (kept >= limits.webhookAnswerBytesMax) response.destroy()
        })
        // Emitted last in every case: end of the answer, last needed byte, or broken connection.
        response.on("close", () => end(null))
        response.on("error", () => {})
      }
      try {
        const { hostname } = new URL(url)
        const host = hostname.replace(/^\[(.*)\]$/, "$1")
        // A connection to a literal address does no lookup.
        if (isIP(host) !== 0 && !allowPrivate && !isPublic(host)) throw refusal(host)
        const options = {
          method: "POST",
          headers: { ...headers, "Content-Length": body.length },
          agent: false,
          lookup: checkedLookup(resolve, allowPrivate),
          secureContext: contextOf(trusted),
          rejectUnauthorized: true
        }
        const request = httpsRequest(url, options)
        request.on("response", read)
        request.on("error", (error) => end(error.message))
        request.on("close", () => {
          if (status === null) end("the connection closed without an answer")
        })
        const giveUp = () => request.destroy(new Error("the attempt was given up"))
        signal.addEventListener("abort", giveUp, { once: true, signal: over.signal })
        if (signal.aborted) giveUp()
        sleep(limits.webhookTimeoutSeconds * 1000, over.signal).then(
          () => request.destroy(new Error(`no answer within ${limits.webhookTimeoutSeconds} seconds`)),
          () => {}
        )
        request.end(body)
      } catch (error) {
        end(error instanceof Error ? error.message : String(error))
      }
    })
})
