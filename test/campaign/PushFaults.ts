/**
 * A proxy between pushes and the source, with the faults of networks and gateways for writes.
 *
 * Promise: every fault is drawn from one random stream and counted. A request is passed on unchanged, with its key, or
 * not at all. No delayed request outlives `flush`.
 */
import { createHash } from "node:crypto"
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse
} from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import type { Chance } from "../fuzz/Chance.ts"
import { bodyOf } from "../support/tap.ts"

interface PushFaultsOptions {
  /** The base address of the source. */
  readonly upstream: string
  readonly chance: Chance
  /** How long the client waits for an answer. */
  readonly clientTimeoutMs: number
  readonly count: (fault: string) => void
  /** Called with a request whose key was used for another request, or that has no key. */
  readonly misused: (what: string) => void
}

const fates = [
  [60, "passed on"],
  [5, "lost before the work"],
  [7, "answer lost"],
  [5, "sent twice at once"],
  [4, "sent again later"],
  [2, "delayed beyond the timeout"],
  [5, "answered 500 in place of the answer"],
  [4, "answered 500, nothing done"],
  [2, "answered 503 by a gateway"]
] as const

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

const json = { "content-type": "application/json" }
const envelope = (code: string, message: string): Buffer => Buffer.from(JSON.stringify({ error: { code, message } }))
const fault: Answer = { status: 500, headers: json, body: envelope("server_error", "the request did not complete") }
const gateway: Answer = { status: 503, headers: { "content-type": "text/html" }, body: Buffer.from("<h1>busy</h1>") }
const inProgress: Answer = {
  status: 409,
  headers: { ...json, "retry-after": "1" },
  body: envelope("request_in_progress", "the first request with this Idempotency-Key is still running")
}

export const openPushFaults = async (options: PushFaultsOptions) => {
  const { chance, clientTimeoutMs, count, misused } = options
  const upstream = new URL(options.upstream)
  const agent = new Agent({ keepAlive: true })
  const underway = new Set<Promise<unknown>>()
  /** The request of each key, and whether it is delayed. */
  const keys = new Map<string, { readonly print: string; isDelayed: boolean }>()

  const along = <A>(work: Promise<A>): Promise<A> => {
    underway.add(work)
    const done = () => underway.delete(work)
    work.finally(done).catch(() => undefined)
    return work
  }

  /** Passes a request on; null when the source cannot be reached. */
  const pass = (method: string, path: string, headers: IncomingHttpHeaders, body: Buffer): Promise<Answer | null> =>
    along(
      new Promise((resolve) => {
        const { hostname, port } = upstream
        const outgoing = request({ hostname, port, path, method, agent, headers: { ...headers, host: upstream.host } })
        outgoing.once("response", (answer) => {
          bodyOf(answer).then(
            (bytes) => resolve({ status: answer.statusCode!, headers: answer.headers, body: bytes }),
            () => resolve(null)
          )
        })
        outgoing.once("error", () => resolve(null))
        outgoing.end(body)
      })
    )

  /** Applies a fault to a write; null is a broken connection. */
  const write = async (key: string, passed: () => Promise<Answer | null>): Promise<Answer | null> => {
    const keyState = keys.get(key)!
    if (keyState.isDelayed) return inProgress
    const fate = chance.weighted(fates)
    count(`write ${fate}`)
    switch (fate) {
      case "passed on":
        return passed()
      case "lost before the work":
        return null
      case "answer lost":
        await passed()
        return null
      case "sent twice at once": {
        const [answer] = await Promise.all([passed(), passed()])
        return answer
      }
      case "sent again later": {
        const answer = await passed()
        void along(sleep(chance.between(50, 2_000)).then(passed))
        return answer
      }
      case "delayed beyond the timeout":
        keyState.isDelayed = true
        try {
          await along(sleep(clientTimeoutMs + chance.between(100, 1_500)))
          return await passed()
        } finally {
          keyState.isDelayed = false
        }
      case "answered 500 in place of the answer":
        await passed()
        return fault
      case "answered 500, nothing done":
        return fault
      case "answered 503 by a gateway":
        return gateway
    }
  }

  const applyFaults = async (incoming: IncomingMessage): Promise<Answer | null> => {
    const method = incoming.method!
    const path = incoming.url!
    const body = await bodyOf(incoming)
    const passed = () => pass(method, path, incoming.headers, body)
    if (method === "GET") return passed()
    const key = incoming.headers["idempotency-key"]
    if (typeof key !== "string") {
      misused(`${method} ${path} came without a key`)
      return passed()
    }
    const print = createHash("sha256")
      .update(`${method} ${path} ${incoming.headers["if-match"] ?? ""}\n`)
      .update(body)
      .digest("hex")
    if (!keys.has(key)) keys.set(key, { print, isDelayed: false })
    else if (keys.get(key)!.print !== print) misused(`${method} ${path} came with the key ${key} of another request`)
    return write(key, passed)
  }

  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const result = await applyFaults(incoming)
    if (result === null) {
      incoming.socket.destroy()
      return
    }
    const { "transfer-encoding": _, connection: _connection, ...headers } = result.headers
    response.writeHead(result.status, { ...headers, "content-length": result.body.length }).end(result.body)
  }
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch(() => incoming.socket.destroy())
  })
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const base = new URL(upstream)
  base.port = String((server.address() as AddressInfo).port)
  return {
    /** The base address of the API behind the proxy. */
    baseUrl: base.href,
    /** Waits until every delayed request has been passed on. */
    flush: async () => {
      while (underway.size > 0) await Promise.allSettled(underway)
    },
    close: async () => {
      agent.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}
