/** Replies to HTTP requests, also before their bodies have arrived. */
import type * as http from "node:http"
import type { Socket } from "node:net"

export interface Reply {
  readonly status: number
  readonly text: string
  readonly headers: ReadonlyArray<string>
}

export const plain = (status: number, text: string): Reply => ({ status, text, headers: [] })

export const replies = {
  notFound: plain(404, "There is nothing here.\n"),
  encoded: plain(415, "The body must not be compressed: its signature is verified over the bytes as sent.\n"),
  onlyPost: { ...plain(405, "Only POST.\n"), headers: ["Allow", "POST"] },
  noToken: {
    ...plain(401, "The bearer token of the metrics is missing or wrong.\n"),
    headers: ["WWW-Authenticate", "Bearer"]
  },
  onlyGet: { ...plain(405, "Only GET.\n"), headers: ["Allow", "GET, HEAD"] },
  failed: plain(500, "The server failed. Send it again.\n")
} as const

export interface Replier {
  readonly reply: (response: http.ServerResponse, reply: Reply) => void
  /**
   * Answers before the body has arrived, and ends the connection. The answer is sent at once. Further bytes of the peer are
   * read for a short time: a reset could destroy the answer.
   */
  readonly refuse: (request: http.IncomingMessage, response: http.ServerResponse, reply: Reply) => void
  /** Answers a request whose body is not read. */
  readonly turnAway: (request: http.IncomingMessage, response: http.ServerResponse, reply: Reply) => void
  /** Whether an answer has begun on the socket, so that no other may follow. */
  readonly isAnswered: (socket: Socket) => boolean
  /** Set once the server listens. */
  isStopping: () => boolean
}

const headersOf = (text: string): ReadonlyArray<string> => [
  "Content-Type",
  "text/plain; charset=utf-8",
  "Content-Length",
  String(Buffer.byteLength(text))
]

const hasBody = ({ headers }: http.IncomingMessage) =>
  headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0"

export const makeReplier = (bodyBytesMax: number): Replier => {
  const answered = new WeakSet<Socket>()
  const replier: Replier = {
    isStopping: () => false,
    isAnswered: (socket) => answered.has(socket),
    reply: (response, { status, text, headers }) => {
      if (response.headersSent || response.destroyed) return
      if (replier.isStopping()) response.shouldKeepAlive = false
      if (status === 204) {
        response.writeHead(204)
        response.end()
        return
      }
      response.writeHead(status, [...headersOf(text), ...headers])
      response.end(text)
    },
    refuse: (request, response, { status, text, headers }) => {
      if (response.headersSent || response.destroyed) return
      answered.add(request.socket)
      response.writeHead(status, [...headersOf(text), "Connection", "close", ...headers])
      response.write(text)
      const end = () => response.end()
      let discarded = 0
      request.on("data", (chunk: Buffer) => {
        discarded += chunk.length
        if (discarded > 4 * bodyBytesMax) end()
      })
      request.once("end", end)
      request.once("close", end)
      if (request.complete) end()
      request.resume()
    },
    turnAway: (request, response, reply) =>
      hasBody(request) ? replier.refuse(request, response, reply) : replier.reply(response, reply)
  }
  return replier
}
