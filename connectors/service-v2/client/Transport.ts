/**
 * The HTTP transport of the connector.
 *
 * Promise: that of `src/http/Client.ts`, and no more than the allowed bytes are read. The caller sets the timeout of a
 * request.
 */
import type { SecureContext } from "node:tls"
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Client from "../../../src/http/Client.ts"
import type { Proxies } from "../../../src/http/Proxies.ts"

export interface TransportOptions {
  /** Sockets per origin. */
  readonly connections?: number
  readonly connectTimeout?: Duration.Duration
  /**
   * Lifetime of an idle socket where the server does not state one. Shorter than usual for servers, so that a request
   * rarely meets a socket that is being closed.
   */
  readonly keepAliveTimeout?: Duration.Duration
  /** Maximum bytes of one answer. */
  readonly answerBytesMax?: number
  /** Certificates to trust instead of the usual ones, PEM. */
  readonly ca?: string
  /** The same as a context of TLS, which several clients share. */
  readonly secureContext?: SecureContext
  /** The proxies; none without them. */
  readonly proxies?: Proxies | null
}

/** An HTTP client of its own sockets, until the end of the scope; no span is made per request. */
export const makeUndici = (options: TransportOptions = {}): Effect.Effect<HttpClient.HttpClient, never, Scope.Scope> =>
  Client.make({
    proxies: options.proxies ?? null,
    connections: options.connections ?? 8,
    keepAliveTimeout: Duration.toMillis(options.keepAliveTimeout ?? "4 seconds"),
    maxResponseSize: options.answerBytesMax ?? 64 * 1024 * 1024,
    connectTimeout: options.connectTimeout ?? Duration.seconds(10),
    tls: { ca: options.ca, secureContext: options.secureContext }
  })

/** {@link makeUndici} as a layer, which takes three times the memory: a process of thousands of companies makes none. */
export const layerUndici = (options: TransportOptions = {}): Layer.Layer<HttpClient.HttpClient> =>
  Layer.effect(HttpClient.HttpClient)(makeUndici(options))
