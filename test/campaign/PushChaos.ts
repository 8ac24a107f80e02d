/**
 * A proxy between pushes and the source, with the faults of networks and gateways for writes. Writes are lost before
 * the work or after it, sent twice, or delayed beyond the client's timeout. They are answered 500 instead of the true
 * answer, once or for that key for ever, and answered request_in_progress while the first is still processed.
 *
 * Promise: every fault is drawn from one random stream and counted. The proxy adds no work and undoes none: a request
 * is passed on unchanged, with its key, or not at all. No delayed request outlives {@link PushChaos.flush}.
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

/** A write request, as it arrived. */
export interface Write {
  readonly method: string
  readonly path: string
  readonly key: string
  readonly body: string
}

export interface PushChaos {
  /** The base address of the API behind the proxy. */
  readonly baseUrl: string
  /** Number of faults by kind. */
  readonly counts: ReadonlyMap<string, number>
  /** Requests with a key that was used for another request, or without a key. */
  readonly misused: ReadonlyArray<string>
  /** Draws new probabilities for all faults. */
  readonly shuffle: () => void
  /** Waits until every delayed request has been passed on. */
  readonly flush: () => Promise<void>
  readonly close: () => Promise<void>
}

export interface PushChaosOptions {
  /** The base address of the source. */
  readonly upstream: string
  readonly chance: Chance
  /** How long the client waits for an answer. */
  readonly clientTimeoutMs: number
  /** A request whose body contains this text is rejected as a whole. */
  readonly poisonMark: string
  /** Called when a key arrives for the first time, before anything is done. */
  readonly onFirst: (write: Write) => Promise<void>
}

const fates = {
  "passed on": 60,
  "lost before the work": 5,
  "answer lost": 7,
  "sent twice at once": 5,
  "sent again later": 4,
  "delayed beyond the timeout, before the work": 2,
  "answer delayed beyond the timeout": 2,
  "answered 500 in place of the answer": 5,
  "answered 500, nothing done": 4,
  "answered 503 by a gateway": 2,
  "answered 429": 1,
  "500 for ever, nothing done": 1,
  "500 for ever, done": 1
} as const
type Fate = keyof typeof fates

const readFates = {
  "passed on": 94,
  "lost before the work": 2,
  "answer lost": 2,
  "answered 500, nothing done": 2
} as const

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

const json = { "content-type": "application/json" }
const envelope = (code: string, message: string, field?: string): Buffer =>
  Buffer.from(JSON.stringify({ error: { code, message, ...(field === undefined ? {} : { field }) } }))
const fault: Answer = { status: 500, headers: json, body: envelope("server_error", "the request did not complete") }
const gateway: Answer = { status: 503, headers: { "content-type": "text/html" }, body: Buffer.from("<h1>busy</h1>") }
const limited: Answer = {
  status: 429,
  headers: { ...json, "retry-after": "1" },
  body: envelope("rate_limited", "too many requests")
}
const inProgress: Answer = {
  status: 409,
  headers: { ...json, "retry-after": "1" },
  body: envelope("request_in_progress", "the first request with this Idempotency-Key is still running")
}
const refused: Answer = {
  status: 422,
  headers: json,
  body: envelope("rule_violation", "a record breaks a rule of this installation", "description")
}

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

export const openPushChaos = async (options: PushChaosOptions): Promise<PushChaos> => {
  const { chance, clientTimeoutMs } = options
  const upstream = new URL(options.upstream)
  const agent = new Agent({ keepAlive: true })
  const counts = new Map<string, number>()
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)
  const misused: Array<string> = []
  const underway = new Set<Promise<unknown>>()
  /** The state of a key: its request, the number of delayed requests, and a permanent answer if there is one. */
  const keys = new Map<string, { readonly print: string; delayed: number; stored: Answer | null }>()

  const weights = <F extends string>(of: Readonly<Record<F, number>>) =>
    Object.entries<number>(of).map(([fate, weight]) => [weight, fate as F] as const)
  let drawn = weights(fates)
  const shuffle = () => {
    drawn = weights(fates).map(([weight, fate]) =>
      fate === "passed on" ? ([weight, fate] as const) : ([weight * chance.pick([0, 1, 1, 2]), fate] as const)
    )
  }

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

  /** Applies the faults of a read; null is a broken connection. */
  const read = async (passed: () => Promise<Answer | null>): Promise<Answer | null> => {
    const fate = chance.weighted(weights(readFates))
    if (fate !== "passed on") count(`read: ${fate}`)
    switch (fate) {
      case "passed on":
        return passed()
      case "lost before the work":
        return null
      case "answer lost":
        await passed()
        return null
      case "answered 500, nothing done":
        return fault
    }
  }

  const write = async (key: string, passed: () => Promise<Answer | null>): Promise<Answer | null> => {
    const keyState = keys.get(key)!
    if (keyState.stored !== null) {
      count("answered the stored 500")
      return keyState.stored
    }
    if (keyState.delayed > 0) {
      count("answered request_in_progress")
      return inProgress
    }
    const fate: Fate = chance.weighted(drawn)
    count(fate)
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
      case "delayed beyond the timeout, before the work":
        keyState.delayed += 1
        try {
          await along(sleep(clientTimeoutMs + chance.between(100, 1_500)))
          return await passed()
        } finally {
          keyState.delayed -= 1
        }
      case "answer delayed beyond the timeout": {
        const answer = await passed()
        await sleep(clientTimeoutMs + 200)
        return answer
      }
      case "answered 500 in place of the answer":
        await passed()
        return fault
      case "answered 500, nothing done":
        return fault
      case "answered 503 by a gateway":
        return gateway
      case "answered 429":
        return limited
      case "500 for ever, nothing done":
        return (keyState.stored = fault)
      case "500 for ever, done":
        keyState.stored = fault
        await passed()
        return fault
    }
  }

  const applyFaults = async (incoming: IncomingMessage): Promise<Answer | null> => {
    const method = incoming.method!
    const path = incoming.url!
    const body = await bodyOf(incoming)
    const passed = () => pass(method, path, incoming.headers, body)
    if (method === "GET") return read(passed)
    const key = incoming.headers["idempotency-key"]
    if (typeof key !== "string") {
      misused.push(`${method} ${path} came without a key`)
      return passed()
    }
    const print = createHash("sha256")
      .update(`${method} ${path} ${incoming.headers["if-match"] ?? ""}\n`)
      .update(body)
      .digest("hex")
    const keyState = keys.get(key)
    if (keyState === undefined) {
      keys.set(key, { print, delayed: 0, stored: null })
      await options.onFirst({ method, path, key, body: body.toString("utf8") })
    } else if (keyState.print !== print)
      misused.push(`${method} ${path} came with the key ${key}, which is that of another request`)
    if (body.includes(options.poisonMark)) {
      count("refused as a whole")
      return refused
    }
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
    baseUrl: base.href,
    counts,
    misused,
    shuffle,
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
