import { inflateSync } from "node:zlib"
import { assert, describe, it } from "vitest"
import { basePath } from "../../connectors/service-v2/reference-server/http/serve.ts"
import { codeOf, order, postedInvoice, server } from "./support.ts"
import type { Server } from "./support.ts"

/** The text on the pages of a PDF. */
const textOf = (pdf: Uint8Array): string => {
  const bytes = Buffer.from(pdf)
  let text = ""
  for (let at = bytes.indexOf("stream\n"); at >= 0; at = bytes.indexOf("stream\n", at + 1)) {
    if (bytes.subarray(at - 3, at).toString() === "end") continue
    try {
      const drawn = inflateSync(bytes.subarray(at + 7)).toString("latin1")
      for (const [, shown] of drawn.matchAll(/\[(.*?)\] TJ/g)) {
        for (const [, hex] of shown!.matchAll(/<([0-9a-f]+)>/g)) text += Buffer.from(hex!, "hex").toString("latin1")
        text += "\n"
      }
    } catch {
      // The stream is not a compressed page.
    }
  }
  return text
}

const file = async ({ served, token }: Server, path: string) => {
  const authorization = `Bearer ${token()}`
  const request = { method: "GET", url: `${basePath}${path}`, headers: { authorization }, body: null }
  const answer = await served.handle(request).pending!
  assert.strictEqual(answer.status, 200)
  assert.strictEqual(answer.headers["Content-Type"], "application/pdf")
  assert.isDefined(answer.headers["Svc-Request-Id"])
  assert.strictEqual(Buffer.from(answer.bytes!.subarray(0, 5)).toString(), "%PDF-")
  return { bytes: answer.bytes!, text: textOf(answer.bytes!) }
}

const shipped = (world: Server) => {
  const { id, lines } = order(world.call)
  const response = world.call("POST", "/shipments", {
    orderid: id,
    lines: [{ orderlineid: lines[0]!["id"], quantity: "7" }]
  })
  assert.strictEqual(response.status, 201, response.text)
  return String(response.body["id"])
}

describe("PDF files of the reference server", () => {
  it("include a packing slip with the shipped quantities and no price", async () => {
    const world = server()
    const { text } = await file(world, `/shipments/${shipped(world)}/pdf`)
    assert.include(text, "Bolt")
    assert.include(text, "7.000000")
    assert.notInclude(text, "2.5")
  })

  it("include one label per carton", async () => {
    const world = server()
    const id = shipped(world)
    const { text } = await file(world, `/shipments/${id}/boxlabels`)
    assert.include(text, "Carton 1 of 1")
    assert.include(text, `Shipment: ${id}`)
  })

  it("include an invoice with its lines and total, once it is posted", async () => {
    const world = server()
    const { id, invoicenumber } = postedInvoice(world.call, "123.45")
    const { text } = await file(world, `/invoices/${String(id)}/pdf`)
    for (const shown of [String(invoicenumber), "Work", "123.4500"]) assert.include(text, shown)
    const draft = world.call("POST", "/invoices", { customer: "CUST1" }).body
    assert.strictEqual(codeOf(world.call("GET", `/invoices/${String(draft["id"])}/pdf`)), "not_posted")
  })

  it("are the same bytes for the same record", async () => {
    const world = server()
    const id = shipped(world)
    const first = await file(world, `/shipments/${id}/pdf`)
    world.control("POST", "/clock", { advanceSeconds: 3600 })
    assert.deepStrictEqual((await file(world, `/shipments/${id}/pdf`)).bytes, first.bytes)
  })
})
