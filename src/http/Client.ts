/**
 * Outgoing HTTP: undici with the limits of its caller, through a proxy where one is configured.
 *
 * Promise: certificates are verified whatever the environment says, redirects are not followed, and connecting has a
 * timeout. A proxy gets only CONNECT, so that an answer of its own is never taken for one of the receiver. A failure on
 * the way through a proxy is a {@link ProxyFailed}. The variables of the process are not read here.
 */
import type { ConnectionOptions } from "node:tls"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { Agent, type buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from "undici"
import { type Proxies, ProxyFailed } from "./Proxies.ts"

export interface Options extends Pick<Agent.Options, "connections" | "keepAliveTimeout" | "maxResponseSize"> {
  /** Null reaches every address directly. */
  readonly proxies: Proxies | null
  readonly connectTimeout: Duration.Duration
  /** Authorities other than the usual ones. */
  readonly tls?: Pick<ConnectionOptions, "ca" | "secureContext">
  /** Opens the connections that are direct. */
  readonly connect?: buildConnector.connector
  /** The checked address of a host, which a proxy gets instead of its name. */
  readonly resolve?: (host: string) => Promise<string>
}

const codeOf = (error: unknown): string | null =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null

/** Host and port of an address. */
const authorityOf = ({ protocol, hostname, port }: URL): string =>
  `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`

const checkProxy = "check that the proxy is up, and its address in requests.proxy, HTTPS_PROXY or HTTP_PROXY"

const textOf = (error: unknown): string =>
  error instanceof Error && error.message !== "" ? error.message : "no answer"

/** Nothing of the request was sent. undici connects again, or changes the error, for some codes of its own and of TLS. */
const unreachable = (proxy: string, error: unknown): ProxyFailed => {
  const code = codeOf(error)
  return new ProxyFailed({
    message: `the proxy ${proxy} cannot be reached: ${textOf(error)}`,
    code: code !== null && /^E(?!RR_)/.test(code) ? code : "ERR_PROXY_UNREACHABLE",
    proxy,
    remedy: checkProxy
  })
}

const broken = (proxy: string, error: Error): ProxyFailed =>
  new ProxyFailed({
    message: `the connection through the proxy ${proxy} failed: ${textOf(error)}`,
    code: codeOf(error) ?? "ERR_TUNNEL",
    proxy,
    remedy: `${checkProxy}; for a certificate, set requests.ca_file or NODE_EXTRA_CA_CERTS`
  })

const refusalOf = (proxy: string, host: string, status: number): ProxyFailed => {
  const remedy =
    status === 407
      ? "put the user and the password of the proxy into its address, in the variable of requests.proxy_env or HTTPS_PROXY"
      : `let the proxy allow CONNECT to ${host}, or name the host in NO_PROXY`
  const message = `the proxy ${proxy} refused the connection to ${host} with status ${status}`
  return new ProxyFailed({ message, code: `ERR_PROXY_${status}`, proxy, remedy })
}

const addressIn = async (path: string, resolve: NonNullable<Options["resolve"]>): Promise<string> => {
  const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(path)!
  const address = await resolve(host!)
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`
}

/** Reports the failures of requests whose connection a proxy has opened. */
const nameProxy =
  (tunnels: ReadonlyMap<string, string>): Dispatcher.DispatcherComposeInterceptor =>
  (dispatch) =>
  (options, handler) =>
    dispatch(options, {
      onRequestStart: (...start) => handler.onRequestStart?.(...start),
      onRequestUpgrade: (...upgrade) => handler.onRequestUpgrade?.(...upgrade),
      onResponseStart: (...response) => handler.onResponseStart?.(...response),
      onResponseData: (...data) => handler.onResponseData?.(...data),
      onResponseEnd: (...end) => handler.onResponseEnd?.(...end),
      onResponseStarted: () => handler.onResponseStarted?.(),
      onBodySent: (chunk) => handler.onBodySent?.(chunk),
      onRequestSent: () => handler.onRequestSent?.(),
      onResponseError: (controller, error) => {
        const proxy = tunnels.get(authorityOf(new URL(String(options.origin))))
        const isOwn = proxy === undefined || error instanceof ProxyFailed || error.name === "AbortError"
        handler.onResponseError?.(controller, isOwn ? error : broken(proxy, error))
      }
    })

const makeUnmanaged = ({ proxies, connectTimeout, tls, connect, resolve, ...limits }: Options): Dispatcher => {
  const timeout = Duration.toMillis(connectTimeout)
  const secure = { ...tls, timeout, rejectUnauthorized: true, allowH2: false }
  const common = { ...limits, pipelining: 1, allowH2: false, connect: connect ?? secure }
  if (proxies === null) return new Agent(common)
  /** The proxy that opened a connection, by host and port of the receiver. */
  const tunnels = new Map<string, string>()
  const openTunnels = (address: URL, options: object): Dispatcher => {
    const proxy = authorityOf(address)
    const pool = new Pool(address, { ...options, headersTimeout: timeout })
    const connectPool: (options: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData> = pool.connect.bind(pool)
    const open = async ({ path, headers, ...rest }: Dispatcher.ConnectOptions) => {
      const target = resolve === undefined ? path : await addressIn(path, resolve)
      const answer = await connectPool({
        ...rest,
        path: target,
        headers: { ...(headers as object), host: target }
      }).catch((error: unknown) => Promise.reject(unreachable(proxy, error)))
      if (answer.statusCode !== 200) {
        answer.socket.on("error", () => {}).destroy()
        throw refusalOf(proxy, target, answer.statusCode)
      }
      tunnels.set(path, proxy)
      return answer
    }
    return Object.assign(pool, { connect: open })
  }
  return new EnvHttpProxyAgent({
    ...common,
    httpProxy: proxies.http === null ? "" : Redacted.value(proxies.http),
    httpsProxy: proxies.https === null ? "" : Redacted.value(proxies.https),
    noProxy: proxies.noProxy,
    proxyTunnel: true,
    connectTimeout: timeout,
    requestTls: secure,
    proxyTls: secure,
    clientFactory: openTunnels
  }).compose(nameProxy(tunnels))
}

/** A dispatcher of its own connections, until the end of the scope. */
export const makeDispatcher = (options: Options): Effect.Effect<Dispatcher, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => makeUnmanaged(options)),
    (dispatcher) => Effect.promise(() => dispatcher.destroy())
  )

/** The same as an HTTP client. It makes no spans: the path of an address may be a secret. */
export const make = (options: Options): Effect.Effect<HttpClient.HttpClient, never, Scope.Scope> =>
  Effect.flatMap(makeDispatcher(options), (dispatcher) =>
    Effect.provideService(NodeHttpClient.makeUndici, NodeHttpClient.Dispatcher, dispatcher)
  ).pipe(Effect.map(HttpClient.transformResponse(Effect.provideService(HttpClient.TracerDisabledWhen, () => true))))
