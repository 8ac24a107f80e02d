/** A reference server in process, with its clock stopped at a known time. */
import { assert } from "vitest"
import type { CoreOptions } from "../../connectors/service-v2/reference-server/Core.ts"
import { core } from "../../connectors/service-v2/reference-server/Core.ts"
import { readInstant } from "../../connectors/service-v2/reference-server/time.ts"

export const beginning = "2026-03-16T09:00:00Z"

export type Json = Readonly<Record<string, unknown>>

/** A response with its complete body. */
export interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly body: Json
}

const bytes = (body: unknown) =>
  body === undefined ? null : Buffer.from(typeof body === "string" ? body : JSON.stringify(body))

export const server = (options: Partial<CoreOptions> = {}) => {
  const defects: Array<unknown> = []
  const served = core({ now: () => readInstant(beginning)!, onDefect: (error) => defects.push(error), ...options })

  const control = (method: string, path: string, body?: unknown): HttpReply => {
    const {
      status,
      headers,
      body: text,
      chunks
    } = served.control({ method, url: path, headers: {}, body: bytes(body) })
    const whole = chunks === undefined ? text : [...chunks].join("")
    return { status, headers, text: whole, body: chunks === undefined ? (JSON.parse(whole) as Json) : {} }
  }

  const token = (options: Json = {}): string => {
    const { status, body } = control("POST", "/tokens", { company: 1, scopes: ["*"], ...options })
    assert.strictEqual(status, 201)
    return String(body["token"])
  }

  /** Calls with one token. */
  const caller =
    (secret: string) =>
    (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): HttpReply => {
      const answer = served.handle({
        method,
        url: `/!/api/v2${path}`,
        headers: { authorization: `Bearer ${secret}`, ...headers },
        body: bytes(body)
      })
      const text = answer.body
      return {
        status: answer.status,
        headers: answer.headers,
        text,
        body: text === "" ? {} : (JSON.parse(text) as Json)
      }
    }

  control("POST", "/clock", { manual: true })
  return { served, control, token, caller, defects, call: caller(token()) }
}

export type Server = ReturnType<typeof server>

export const dataOf = ({ body }: HttpReply): ReadonlyArray<Json> => body["data"] as ReadonlyArray<Json>
export const metaOf = ({ body }: HttpReply): Json => body["_meta"] as Json
export const errorOf = ({ body }: HttpReply): Json => body["error"] as Json
export const codeOf = (response: HttpReply): string => String(errorOf(response)?.["code"])
export const linesOf = (text: string): ReadonlyArray<Json> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Json)

/** Reads every record of a list, page by page, and calls `between` between two pages. */
export const readAll = (call: Server["call"], path: string, between: () => void = () => {}) => {
  const records: Array<Json> = []
  const synced = new Set<unknown>()
  for (let next: string | null = null, pages = 0; pages < 1000; pages++) {
    const response = call("GET", next === null ? path : `${path}&cursor=${next}`)
    assert.strictEqual(response.status, 200, response.text)
    records.push(...dataOf(response))
    synced.add(metaOf(response)["synced_through"])
    next = metaOf(response)["next_cursor"] as string | null
    if (next === null) return { records, synced: [...synced] }
    between()
  }
  throw new Error("the list does not end")
}

export const idsOf = (records: ReadonlyArray<Json>) => records.map(({ id }) => id as number)

/** A customer, two items, a ship-to and an open order of two lines: 10 at 2.50 and 4 at 10. */
export const order = (call: Server["call"], more: Json = {}) => {
  const unique = String(dataOf(call("GET", "/customers?limit=250&cancel=any")).length + 1)
  const customer = call("POST", "/customers", { customercode: `CUST${unique}`, name: "Customer" }).body
  const shipto = call("POST", "/shiptos", { customer: `CUST${unique}`, name: "Site" }).body
  const bolts = call("POST", "/items", {
    sku: `BOLT${unique}`,
    description: "Bolt",
    price: "2.5",
    glaccount: "Sales"
  }).body
  const panel = call("POST", "/items", { sku: `PANEL${unique}`, description: "Panel", price: "10" }).body
  const response = call("POST", "/orders", {
    customerid: customer["id"],
    shiptoid: shipto["id"],
    lines: [
      { itemid: bolts["id"], qtyorder: "10" },
      { item: `PANEL${unique}`, qtyorder: "4" }
    ],
    ...more
  })
  assert.strictEqual(response.status, 201, response.text)
  const lines = response.body["lines"] as ReadonlyArray<Json>
  return { id: response.body["id"] as number, record: response.body, lines, customer, shipto, bolts, panel }
}

/** The answer to a shipment of this quantity of the first line of an order. */
export const ship = (call: Server["call"], { id, lines }: ReturnType<typeof order>, quantity: string) =>
  call("POST", "/shipments", { orderid: id, lines: [{ orderlineid: lines[0]!["id"], quantity }] })

/** A posted invoice with one line of this amount. */
export const postedInvoice = (call: Server["call"], amount: string) => {
  const { customer } = order(call)
  const lines = [{ description: "Work", quantity: "1", price: amount }]
  const { id } = call("POST", "/invoices", { customerid: customer["id"], lines }).body
  const response = call("POST", `/invoices/${String(id)}/post`)
  assert.strictEqual(response.status, 200, response.text)
  return response.body
}
