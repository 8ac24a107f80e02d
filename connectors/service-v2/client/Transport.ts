/**
 * The HTTP transport of the connector: undici.
 *
 * Promise: certificates are verified whatever the environment says, redirects are not followed, no more than the
 * allowed bytes are read, and connecting has a timeout. The caller sets the timeout of a request.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

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
}

/** An HTTP client of its own sockets, until the end of the scope; no span is made per request. */
export const makeUndici = (options: TransportOptions = {}): Effect.Effect<HttpClient.HttpClient, never, Scope.Scope> =>
  NodeHttpClient.makeDispatcherOptions({
    connections: options.connections ?? 8,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: Duration.toMillis(options.keepAliveTimeout ?? "4 seconds"),
    maxResponseSize: options.answerBytesMax ?? 64 * 1024 * 1024,
    connect: {
      timeout: Duration.toMillis(options.connectTimeout ?? "10 seconds"),
      rejectUnauthorized: true,
      ...(options.ca === undefined ? {} : { ca: options.ca })
    }
  }).pipe(
    Effect.flatMap((dispatcher) =>
      Effect.provideService(NodeHttpClient.makeUndici, NodeHttpClient.Dispatcher, dispatcher)
    ),
    Effect.map(HttpClient.transformResponse(Effect.provideService(HttpClient.TracerDisabledWhen, () => true)))
  )

/** {@link makeUndici} as a layer, which takes three times the memory: a process of thousands of companies makes none. */
export const layerUndici = (options: TransportOptions = {}): Layer.Layer<HttpClient.HttpClient> =>
  Layer.effect(HttpClient.HttpClient)(makeUndici(options))
