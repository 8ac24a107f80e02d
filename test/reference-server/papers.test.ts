import { assert, describe, it } from "vitest"
import { basePath } from "../../connectors/service-v2/reference-server/http/serve.ts"
import { pagesOf } from "../support/pdf.ts"
import { order, postedInvoice, server, ship } from "./support.ts"
import type { Server } from "./support.ts"

const file = async ({ served, token }: Server, path: string) => {
  const authorization = `Bearer ${token()}`
  const request = { method: "GET", url: `${basePath}${path}`, headers: { authorization }, body: null }
  const answer = await served.handle(request).pending!
  assert.strictEqual(answer.status, 200)
  assert.strictEqual(answer.headers["Content-Type"], "application/pdf")
  assert.isDefined(answer.headers["Svc-Request-Id"])
  assert.strictEqual(Buffer.from(answer.bytes!.subarray(0, 5)).toString(), "%PDF-")
  return { bytes: answer.bytes!, text: pagesOf(answer.bytes!).join("\n") }
}

const shipped = ({ call }: Server) => String(ship(call, order(call), "7").body["id"])

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

  it("include an invoice with its lines and total", async () => {
    const world = server()
    const { id, invoicenumber } = postedInvoice(world.call, "123.45")
    const { text } = await file(world, `/invoices/${String(id)}/pdf`)
    for (const shown of [String(invoicenumber), "Work", "123.4500"]) assert.include(text, shown)
  })

  it("are the same bytes for the same record", async () => {
    const world = server()
    const id = shipped(world)
    const first = await file(world, `/shipments/${id}/pdf`)
    world.control("POST", "/clock", { advanceSeconds: 3600 })
    assert.deepStrictEqual((await file(world, `/shipments/${id}/pdf`)).bytes, first.bytes)
  })
})
