/** An HTTP server of a test, which keeps what it gets. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"

/** A server on loopback, until the end of the scope. `handle` gets each request with its whole body. */
export const recording = (handle: (request: IncomingMessage, body: Buffer, response: ServerResponse) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((request, response) => {
        const parts: Array<Buffer> = []
        request.on("data", (part: Buffer) => parts.push(part))
        request.on("end", () => handle(request, Buffer.concat(parts), response))
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const { port } = server.address() as AddressInfo
      const close = () => {
        server.closeAllConnections()
        server.close()
      }
      return { port, url: `http://127.0.0.1:${port}`, close }
    }),
    ({ close }) => Effect.sync(close)
  )
