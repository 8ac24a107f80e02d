/**
 * A minimal HTTP client for measurements: raw sockets, one request at a time on each, and responses with a length.
 */
import { connect, type Socket } from "node:net"

export interface Answer {
  readonly status: number
  readonly body: string
}

/** A POST with the headers that every request has. `more` contains whole header lines. */
export const postOf = (host: string, path: string, body: string, more: ReadonlyArray<string>): Buffer =>
  Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
      `${more.map((line) => `${line}\r\n`).join("")}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )

/** The answer with its head parsed; null while bytes are missing. */
const whole = (answer: string): Answer | null => {
  const end = answer.indexOf("\r\n\r\n")
  if (end < 0) return null
  const head = answer.slice(0, end)
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
  const length = status === 204 ? "0" : /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error(`an answer without a length: ${head}`)
  // In latin1, a character is a byte.
  if (answer.length < end + 4 + Number(length)) return null
  return { status, body: answer.slice(end + 4) }
}

/** A connection that carries one request at a time. A second concurrent request is a bug. */
export class Line {
  private readonly socket: Socket
  private text = ""
  private pending: { readonly resolve: (answer: Answer) => void; readonly reject: (error: Error) => void } | null = null

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.setEncoding("latin1")
    socket.on("data", (chunk: string) => this.received(chunk))
    socket.on("error", (error) => this.failed(error))
    socket.on("close", () => this.failed(new Error("the connection was closed")))
  }

  static open(port: number): Promise<Line> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1")
      socket.once("error", reject)
      socket.once("connect", () => resolve(new Line(socket)))
    })
  }

  /** Whether the peer, or {@link close}, has ended it. */
  get isClosed(): boolean {
    return this.socket.destroyed || this.socket.readableEnded
  }

  ask(request: Buffer): Promise<Answer> {
    if (this.pending !== null) throw new Error("a request is under way")
    if (this.isClosed) return Promise.reject(new Error("the connection was closed"))
    return new Promise((resolve, reject) => {
      this.pending = { resolve, reject }
      this.socket.write(request)
    })
  }

  close(): void {
    this.socket.destroy()
  }

  private received(chunk: string): void {
    this.text += chunk
    const { pending } = this
    try {
      const answer = whole(this.text)
      if (answer === null || pending === null) return
      this.text = ""
      this.pending = null
      pending.resolve(answer)
    } catch (error) {
      this.failed(error as Error)
    }
  }

  private failed(error: Error): void {
    this.pending?.reject(error)
    this.pending = null
  }
}

/**
 * A fixed number of connections. A request waits while all are busy. A connection that the peer has closed because it
 * was idle is replaced.
 */
export const lines = async (port: number, count: number) => {
  const free = await Promise.all(Array.from({ length: count }, () => Line.open(port)))
  const waiting: Array<(line: Line) => void> = []
  return {
    ask: async (request: Buffer): Promise<Answer> => {
      // In turn, so that none is idle for long enough to be closed while it is acquired.
      let line = free.shift() ?? (await new Promise<Line>((resolve) => waiting.push(resolve)))
      try {
        if (line.isClosed) line = await Line.open(port)
        return await line.ask(request)
      } finally {
        const next = waiting.shift()
        if (next === undefined) free.push(line)
        else next(line)
      }
    },
    /** To be called when no request is in flight. */
    close: () => {
      for (const line of free) line.close()
    }
  }
}
