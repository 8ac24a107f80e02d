/** A CONNECT proxy on loopback. It knows hosts that no name server knows. */
import { createServer } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { createServer as createTls } from "node:tls"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Proxies } from "../../src/http/Proxies.ts"

interface TestProxy {
  readonly port: number
  /** What the proxy was asked for, in order: host and port of each tunnel that it opened. */
  readonly tunnels: Array<string>
  /** The number of requests that were not CONNECT. */
  forwarded: number
  /** The local ports by the host and port of a request. */
  readonly hosts: Map<string, number>
  /** User and password; null accepts any request. */
  login: string | null
  /** The status of every CONNECT; null opens a tunnel. 0 closes the connection without a status; -1 does not answer. */
  refusal: number | null
  /** The next tunnels end after so many bytes of an answer. */
  readonly cuts: Array<number>
  /** The number of tunnels that ended so. */
  cut: number
}

const closing = (server: { close: () => unknown }, sockets: ReadonlySet<Socket>) => () => {
  server.close()
  for (const socket of sockets) socket.destroy()
}

/** Collects sockets, whose errors are those of the other side. */
const collect = (sockets: Set<Socket>, socket: Socket) => {
  sockets.add(socket.on("error", () => {}))
  socket.once("close", () => sockets.delete(socket))
  return socket
}

const start = async () => {
  const sockets = new Set<Socket>()
  const server = createServer((_request, response) => {
    proxy.forwarded += 1
    response.writeHead(500).end("this proxy only opens tunnels")
  })
  server.on("connection", (socket) => collect(sockets, socket))
  server.on("connect", ({ url = "", headers }, client: Socket) => {
    if (proxy.refusal === -1) return undefined
    if (proxy.refusal === 0) return client.destroy()
    const expected = proxy.login === null ? undefined : `Basic ${Buffer.from(proxy.login).toString("base64")}`
    const status = expected !== undefined && headers["proxy-authorization"] !== expected ? 407 : proxy.refusal
    const port = proxy.hosts.get(url)
    if (status !== null || port === undefined) return client.end(`HTTP/1.1 ${status ?? 502} Refused\r\n\r\n`)
    proxy.tunnels.push(url)
    let left = proxy.cuts.shift() ?? Infinity
    const server = collect(sockets, connect(port, "127.0.0.1"))
    server.on("connect", () => client.write("HTTP/1.1 200 Connection established\r\n\r\n"))
    server.on("data", (part: Buffer) => {
      client.write(part.subarray(0, left))
      left -= part.length
      if (left > 0) return
      proxy.cut += 1
      client.destroy()
      server.destroy()
    })
    server.on("close", () => client.destroy())
    client.on("close", () => server.destroy())
    return client.pipe(server)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const proxy: TestProxy = {
    port: (server.address() as AddressInfo).port,
    tunnels: [],
    forwarded: 0,
    hosts: new Map(),
    login: null,
    refusal: null,
    cuts: [],
    cut: 0
  }
  return { proxy, close: closing(server, sockets) }
}

/** A proxy until the end of the scope. */
export const makeProxy = Effect.map(
  Effect.acquireRelease(Effect.promise(start), ({ close }) => Effect.sync(close)),
  ({ proxy }) => proxy
)

/** All requests through the proxy, those to loopback too, unless a host is excepted. */
export const through = ({ port, login }: TestProxy, noProxy = ""): Proxies => {
  const address = Redacted.make(`http://${login === null ? "" : `${login}@`}127.0.0.1:${port}`)
  return { https: address, http: address, noProxy }
}

/** TLS in front of a port of plain http, until the end of the scope. Returns its port. */
export const makeTls = (port: number, own: { readonly cert: string; readonly key: string }) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const sockets = new Set<Socket>()
        const server = createTls(own, (client) => {
          const inner = collect(sockets, connect(port, "127.0.0.1"))
          collect(sockets, client).pipe(inner).pipe(client)
        })
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        return { port: (server.address() as AddressInfo).port, close: closing(server, sockets) }
      }),
      ({ close }) => Effect.sync(close)
    ),
    (server) => server.port
  )
