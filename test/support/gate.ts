/** A proxy for a database that can be slow, and can be shut: connections are cut and refused, or no bytes pass. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import { Effect, Redacted, type Scope } from "effect"

export interface Gate {
  /** The same database, through the gate. */
  readonly url: Redacted.Redacted
  /** Cuts every connection and accepts no new one. */
  readonly shut: Effect.Effect<void>
  /** Lets connections and bytes pass again. */
  readonly open: Effect.Effect<void>
  /** Keeps and accepts connections, but passes no bytes until it is opened. */
  readonly hang: Effect.Effect<void>
  /** Number of open connections. */
  readonly connections: () => number
}

/** Starts a gate, which ends with the scope. `delayMs` is the time that bytes take in each direction. */
export const makeGate = (database: Redacted.Redacted, delayMs = 0): Effect.Effect<Gate, never, Scope.Scope> =>
  Effect.gen(function* () {
    const target = new URL(Redacted.value(database))
    const pairs = new Map<Socket, Socket>()
    let isHanging = false
    let server: Server | null = null
    let port = 0
    const pass = (client: Socket) => {
      // The connection arrived while the gate was being shut.
      if (server === null) {
        client.destroy()
        return
      }
      const upstream = connect(Number(target.port), target.hostname)
      pairs.set(client, upstream)
      for (const [from, to] of [
        [client, upstream],
        [upstream, client]
      ] as const) {
        from.setNoDelay(true)
        from.on("error", () => {})
        from.on("data", (chunk: Buffer) => {
          if (delayMs === 0) to.write(chunk)
          else setTimeout(() => to.write(chunk), delayMs)
        })
        from.once("close", () => {
          pairs.delete(client)
          to.destroy()
        })
      }
      if (isHanging) client.pause()
    }
    const open = Effect.callback<void>((resume) => {
      isHanging = false
      for (const client of pairs.keys()) client.resume()
      if (server !== null) return resume(Effect.void)
      server = createServer(pass).listen(port, "127.0.0.1", () => {
        port = (server!.address() as AddressInfo).port
        resume(Effect.void)
      })
    })
    const shut = Effect.callback<void>((resume) => {
      for (const [client, upstream] of pairs) {
        client.destroy()
        upstream.destroy()
      }
      if (server === null) return resume(Effect.void)
      server.close(() => resume(Effect.void))
      server = null
    })
    yield* Effect.acquireRelease(open, () => shut)
    const url = new URL(target)
    url.hostname = "127.0.0.1"
    url.port = String(port)
    return {
      url: Redacted.make(url.href),
      open,
      shut,
      hang: Effect.sync(() => {
        isHanging = true
        for (const client of pairs.keys()) client.pause()
      }),
      connections: () => pairs.size
    }
  })
