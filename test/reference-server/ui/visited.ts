/** A reference server with traffic of every kind: refusals, a fault, a batch, deliveries, hostile texts. */
import { assert } from "vitest"
import { eventServer, receiver, subscribe } from "../eventsSupport.ts"
import { order, postedInvoice } from "../support.ts"

export const formToken = "the-token-of-forms"
const hostile = `</pre><script>alert("1")</script>\u202e`
export const host = "127.0.0.1:4000"

/** A request of a browser on this machine. */
export interface Visit {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

const origin = { host, origin: `http://${host}`, "sec-fetch-site": "same-origin" }

export const visited = async () => {
  const running = eventServer({ formToken })
  const { served, call, caller, token, control, reply, cycle, plane } = running

  const ask = async (method: string, url: string, headers: Readonly<Record<string, string>>, form?: object) => {
    const body = form === undefined ? null : Buffer.from(new URLSearchParams(Object.entries(form)).toString())
    const given = form === undefined ? headers : { "content-type": "application/x-www-form-urlencoded", ...headers }
    const first = served.control({ method, url, headers: given, body })
    const answer = first.pending === undefined ? first : await first.pending
    const text = answer.bytes === undefined ? answer.body : Buffer.from(answer.bytes).toString("utf8")
    const visit: Visit = { status: answer.status, headers: answer.headers, text }
    return visit
  }
  const look = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    ask("GET", `/ui${path}`, { host, ...headers })
  const submit = (action: string, form: object, headers: Readonly<Record<string, string>> = origin) =>
    ask("POST", `/ui/do/${action}`, headers, { form_token: formToken, ...form })

  const secret = token()
  const revoked = token({ user: "revoked" })
  control("POST", "/tokens/revoke", { token: revoked })
  const reader = token({ scopes: ["orders:read"], user: "reader" })
  token({ expires: "2020-01-01T00:00:00Z", user: "expired" })
  subscribe(call, ["customers.created", "customers.updated"], { description: hostile, url: `${receiver}?key=abcdef` })
  const { id } = order(call)
  const invoice = postedInvoice(call, "100")
  const customer = call("POST", "/customers", { customercode: "HOSTILE", name: hostile }).body
  call("PATCH", `/customers/${String(customer["id"])}`, { name: `${hostile} again`, creditlimit: "12.5" })
  call("POST", "/payments", { invoiceid: invoice["id"], amount: "1.23456" })
  call("POST", "/payments", { invoiceid: invoice["id"], amount: "1000" })
  call("POST", "/salesmen/batch", [{ name: "Ann" }, { name: "Ann" }, { name: 5 }])
  call("GET", "/orders?limit=5&cancel=any")
  call("GET", "/orders?colour=red")
  call("GET", `/orders/${id}99999`)
  caller(reader)("POST", "/customers", { customercode: "X" })
  caller(revoked)("GET", "/orders")
  caller("svct_0123456789abcdef")("GET", `/me?token=${secret}`)
  const key = { "idempotency-key": "once" }
  call("POST", "/salesmen", { name: "Once" }, key)
  call("POST", "/salesmen", { name: "Once" }, key)
  control("POST", "/faults", { rules: [{ kind: "status", status: 503, path: "/stages", times: 1 }] })
  call("GET", "/stages")
  reply(({ type }) => (type === "customers.created" ? { status: 200, body: hostile } : 500))
  await cycle()
  assert.deepStrictEqual(running.defects, [])
  return { ...running, look, submit, ask, secret, customer, control, plane }
}

export type Visited = Awaited<ReturnType<typeof visited>>
