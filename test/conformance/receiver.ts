/**
 * Webhook receivers: real HTTPS servers on 127.0.0.1, each with a certificate of its own that no
 * machine trusts.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { assert } from "vitest"
import { certificate } from "../support/certificate.ts"
import { startRecording } from "../support/recording.ts"
import { control, idOf, integer, row, rows, succeeded, text, type Answer, type Company, type Row } from "./harness.ts"

// --- receivers ------------------------------------------------------------------------------------------------------

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

export interface Reply {
  readonly status?: number
  readonly body?: string | Buffer
  readonly headers?: Record<string, string>
  /** The answer follows it. */
  readonly after?: Promise<void>
  /** Never answer, or break the connection. */
  readonly instead?: "hang" | "reset"
}

export interface Mailbox {
  readonly url: string
  readonly received: Received[]
  /** The reply to deliveries from now on. */
  answer: (received: Received, count: number) => Reply
}

export interface Receiver {
  readonly port: number
  readonly caPem: string
  readonly mailbox: () => Mailbox
  readonly close: () => Promise<void>
}

export async function startReceiver(): Promise<Receiver> {
  const { cert, key } = certificate(["localhost"], ["127.0.0.1"])
  const boxes = new Map<string, Mailbox>()
  const handle: Parameters<typeof startRecording>[0] = (request, body, response) => {
    const path = request.url ?? ""
    const box = boxes.get(path)
    if (box === undefined) {
      response.writeHead(404).end()
      return
    }
    const received: Received = { method: request.method ?? "", path, headers: request.headers, body }
    box.received.push(received)
    const reply = box.answer(received, box.received.length)
    if (reply.instead === "hang") return
    if (reply.instead === "reset") {
      request.socket.destroy()
      return
    }
    const answer = () => response.writeHead(reply.status ?? 204, reply.headers).end(reply.body)
    if (reply.after === undefined) answer()
    else void reply.after.then(answer)
  }
  const { port, close } = await startRecording(handle, { cert, key })
  let count = 0
  return {
    port,
    caPem: cert,
    mailbox: () => {
      count += 1
      const path = `/box/${count}`
      const box: Mailbox = { url: `https://127.0.0.1:${port}${path}`, received: [], answer: () => ({ status: 204 }) }
      boxes.set(path, box)
      return box
    },
    close
  }
}

/** Sets the switch for receivers on private addresses (H-22). */
export const allowPrivate = (allowed: boolean) => control("PUT", "/limits", { allowPrivateReceivers: allowed })

/** Lets the server deliver to this receiver. */
export async function trust(receiver: Receiver): Promise<void> {
  await control("POST", "/trust", { caPem: receiver.caPem })
  await allowPrivate(true)
}

// --- subscriptions --------------------------------------------------------------------------------------------------

export interface Hook {
  readonly c: Company
  readonly id: number
  readonly url: string
  readonly secret: string
  readonly created: Row
  readonly box: Mailbox
  readonly show: () => Promise<Row>
  /** The result of a test call. */
  readonly test: () => Promise<Row>
  readonly log: (query?: string) => Promise<Row[]>
}

export async function subscribe(
  c: Company,
  receiver: Receiver,
  events: readonly string[],
  over: Row = {}
): Promise<Hook> {
  const box = receiver.mailbox()
  const created = await c.create("webhooks", { url: box.url, events, ...over })
  const id = idOf(created)
  return {
    c,
    id,
    url: `/webhooks/${id}`,
    secret: text(created["secret"], "secret"),
    created,
    box,
    show: () => c.read("webhooks", id),
    test: async () => succeeded(await c.post(`/webhooks/${id}/test`)),
    log: (query = "") => c.list(`/webhooks/${id}/deliveries${query}`)
  }
}

/** Runs delivery cycles now. */
export async function cycle(times = 1): Promise<Answer | undefined> {
  let answer: Answer | undefined
  for (let i = 0; i < times; i += 1) answer = await control("POST", "/cycle")
  return answer
}

export function envelope(received: Received | undefined): Row {
  if (received === undefined) throw new Error("nothing was received")
  return row(JSON.parse(received.body.toString("utf8")), "envelope")
}

export function types(box: Mailbox): string[] {
  return box.received.map((each) => text(envelope(each)["type"]))
}

export interface Signature {
  readonly t: number
  readonly v1: string[]
}

/** Parses `Svc-Signature: t=…,v1=…[,v1=…]` and rejects any other content. */
export function signatureOf(received: Received): Signature {
  const header = text(received.headers["svc-signature"], "Svc-Signature")
  assert.match(header, /^t=\d+,v1=[0-9a-f]{64}(,v1=[0-9a-f]{64})?$/)
  const parts = header.split(",").map((part) => part.split("=") as [string, string])
  return {
    t: integer(Number(parts[0]?.[1])),
    v1: parts.filter(([key]) => key === "v1").map(([, value]) => value)
  }
}

/** Whether any v1 verifies with this secret, over the raw body. */
export function verifies(received: Received, secret: string): boolean {
  const { t, v1 } = signatureOf(received)
  const expected = createHmac("sha256", secret).update(`${t}.`).update(received.body).digest()
  return v1.some((each) => timingSafeEqual(Buffer.from(each, "hex"), expected))
}

/** The attempts that the control plane has recorded. */
export async function attempts(): Promise<Row[]> {
  return rows(row((await control("GET", "/deliveries")).json)["deliveries"])
}
