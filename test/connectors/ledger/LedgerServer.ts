/** The application behind the second connector: a ledger in memory with numbered pages, over HTTP. */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"

export interface Entry {
  readonly entryno: number
  readonly reference: string | null
  readonly amount: string
  readonly changed: string
}

interface Reply {
  readonly status: number
  readonly body: string
}

const pageSize = 3

export class LedgerServer {
  readonly entries = new Map<number, Entry>()
  readonly token = "Bearer open-sesame"
  /** Requests in the form `GET /entries?page=1`. */
  readonly requests: Array<string> = []
  /** The number of writes whose response is still to be lost. */
  answersToLose = 0
  /** A reply that replaces the regular one, or null. */
  intercept: (request: string) => Reply | null = () => null
  /** Rises with every removal, because a removal moves entries between pages. */
  private edition = 1
  /** The seconds of its clock: each use is a second later. */
  private seconds = 0
  private readonly replies = new Map<string, Reply>()
  private readonly server = createServer((request, response) => {
    void this.answer(request).then(({ status, body }) => response.writeHead(status).end(body))
  })

  private now(): string {
    return new Date(Date.UTC(2026, 0, 1, 0, 0, (this.seconds += 1))).toISOString()
  }

  put(entry: Omit<Entry, "changed">): Entry {
    const stored = { ...entry, changed: this.now() }
    this.entries.set(entry.entryno, stored)
    return stored
  }

  remove(entryno: number): void {
    this.entries.delete(entryno)
    this.edition += 1
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve))
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }

  private async answer(request: IncomingMessage): Promise<Reply> {
    const requestLine = `${request.method} ${request.url}`
    this.requests.push(requestLine)
    const intercepted = this.intercept(requestLine)
    if (intercepted !== null) return intercepted
    if (request.headers["x-ledger-token"] !== this.token) return { status: 401, body: "who are you?" }
    const url = new URL(request.url ?? "/", "http://ledger")
    const entryno = /^\/entries\/(\d+)$/.exec(url.pathname)?.[1]
    if (url.pathname === "/me") return { status: 200, body: '{"company":7}' }
    if (request.method === "GET") return entryno === undefined ? this.list(url) : this.show(Number(entryno))
    const key = String(request.headers["x-request-key"])
    const reply = this.replies.get(key) ?? this.write(entryno, await text(request))
    this.replies.set(key, reply)
    return this.answersToLose-- > 0 ? { status: 502, body: "lost" } : reply
  }

  /** The number of pages and the edition, then one entry per line. */
  private list({ searchParams }: URL): Reply {
    const [since, reference] = [searchParams.get("since"), searchParams.get("reference")]
    const entries = [...this.entries.values()]
      .filter(
        (entry) => (since === null || entry.changed >= since) && (reference ?? entry.reference) === entry.reference
      )
      .toSorted((a, b) => a.entryno - b.entryno)
    const from = (Number(searchParams.get("page")) - 1) * pageSize
    const head = { pages: Math.ceil(entries.length / pageSize), edition: this.edition, at: this.now() }
    return {
      status: 200,
      body: [head, ...entries.slice(from, from + pageSize)].map((one) => JSON.stringify(one)).join("\n")
    }
  }

  private show(entryno: number): Reply {
    const entry = this.entries.get(entryno)
    return entry === undefined ? { status: 404, body: "no such entry" } : { status: 200, body: JSON.stringify(entry) }
  }

  private write(entryno: string | undefined, body: string): Reply {
    const input = JSON.parse(body) as Pick<Entry, "reference" | "amount">
    if (input.amount.startsWith("-")) return { status: 422, body: "an amount is never negative" }
    const number = entryno === undefined ? 1 + Math.max(0, ...this.entries.keys()) : Number(entryno)
    const before = this.entries.get(number) ?? { reference: null, amount: "0.0000" }
    return { status: 200, body: JSON.stringify(this.put({ ...before, ...input, entryno: number })) }
  }
}
