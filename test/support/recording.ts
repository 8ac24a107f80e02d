/** Servers of a test that keep what they get. */
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createHttps } from "node:https"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"

type Handle = (request: IncomingMessage, body: Buffer, response: ServerResponse) => void

/** A server on loopback, over TLS where it has a certificate. `handle` gets each request with its whole body. */
export const startRecording = async (handle: Handle, own?: { readonly cert: string; readonly key: string }) => {
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const parts: Array<Buffer> = []
    request.on("data", (part: Buffer) => parts.push(part))
    request.on("end", () => handle(request, Buffer.concat(parts), response))
  }
  const server = own === undefined ? createHttp(listener) : createHttps(own, listener)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { server, port, url: `${own === undefined ? "http://127.0.0.1" : "https://localhost"}:${port}`, close }
}

/** The same, until the end of the scope. */
export const recording = (...args: Parameters<typeof startRecording>) =>
  Effect.acquireRelease(
    Effect.promise(() => startRecording(...args)),
    ({ close }) => Effect.promise(close)
  )
