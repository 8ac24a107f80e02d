/** A reference server in process with scripted receivers: each test states their responses. */
import { assert } from "vitest"
import type { Network, Outcome, Outgoing } from "../../connectors/service-v2/reference-server/events/Network.ts"
import type { Answer } from "../../connectors/service-v2/reference-server/http/Message.ts"
import { server } from "./support.ts"
import type { Json, Server, HttpReply } from "./support.ts"

/** A status, a status with a body, or no response. */
export type Reply = number | null | { readonly status: number; readonly body: string | Uint8Array }

export interface Sent extends Outgoing {
  readonly envelope: Json
  readonly type: string
}

const outcomeOf = (reply: Reply): Outcome => {
  if (reply === null) return { status: null, body: new Uint8Array(), durationms: 15_000, failure: "no answer" }
  const { status, body } = typeof reply === "number" ? { status: reply, body: "" } : reply
  return { status, body: typeof body === "string" ? Buffer.from(body) : body, durationms: 7, failure: null }
}

export const receiver = "https://receiver.example/hook"

/** A server, the requests that its receivers got, and the responses that they give from now on. */
export const eventServer = (
  more: { readonly network?: (inner: Network) => Network; readonly formToken?: string } = {}
) => {
  const sent: Array<Sent> = []
  let answer: (outgoing: Sent) => Reply | Promise<Reply> = () => 204
  const inner: Network = {
    send: async (outgoing) => {
      const envelope = JSON.parse(Buffer.from(outgoing.body).toString("utf8")) as Json
      const seen = { ...outgoing, envelope, type: String(envelope["type"]) }
      sent.push(seen)
      return outcomeOf(await answer(seen))
    }
  }
  const { formToken } = more
  const running = server({
    network: more.network?.(inner) ?? inner,
    ...(formToken === undefined ? {} : { formToken })
  })
  const own = running.token()
  const { served } = running

  const read = (outcome: Answer): HttpReply => {
    const text = outcome.chunks === undefined ? outcome.body : [...outcome.chunks].join("")
    return { status: outcome.status, headers: outcome.headers, text, body: JSON.parse(text) as Json }
  }
  const bytes = (body: unknown) => (body === undefined ? null : Buffer.from(JSON.stringify(body)))

  /** A control call that waits for its result. */
  const plane = async (method: string, path: string, body?: unknown): Promise<HttpReply> => {
    const outcome = served.control({ method, url: path, headers: {}, body: bytes(body) })
    const response = read(outcome.pending === undefined ? outcome : await outcome.pending)
    assert.strictEqual(response.status, 200, response.text)
    return response
  }

  /** An API call that waits for its result. */
  const ask = async (method: string, path: string, headers: Readonly<Record<string, string>> = {}) => {
    const authorization = `Bearer ${own}`
    const request = { method, url: `/!/api/v2${path}`, headers: { authorization, ...headers }, body: null }
    const outcome = served.handle(request)
    return read(outcome.pending === undefined ? outcome : await outcome.pending)
  }

  return {
    ...running,
    call: running.caller(own),
    sent,
    plane,
    ask,
    types: () => sent.map(({ type }) => type),
    /** Runs a cycle. Returns its attempts. */
    cycle: async () => (await plane("POST", "/cycle")).body["attempts"] as ReadonlyArray<Json>,
    advance: (seconds: number) => plane("POST", "/clock", { advanceSeconds: seconds }),
    reply: (next: typeof answer) => {
      answer = next
    }
  }
}

/** Creates a subscription. Returns it with its secret. */
export const subscribe = (call: Server["call"], events: ReadonlyArray<string>, more: Json = {}) => {
  const response = call("POST", "/webhooks", { url: receiver, events, ...more })
  assert.strictEqual(response.status, 201, response.text)
  return { id: response.body["id"] as number, secret: String(response.body["secret"]), record: response.body }
}
