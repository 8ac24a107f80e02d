/** The types of the client: `npm run typecheck` evaluates the assignments, and each error that is expected. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, expectTypeOf, it } from "vitest"
import { files } from "../../../../connectors/service-v2/sdk/generate.ts"
import type * as Sdk from "../../../../connectors/service-v2/sdk/index.ts"

/** Never called: its types are the test. */
const calls = async (client: Sdk.ServiceClient, event: Sdk.WebhookEvent) => {
  // @ts-expect-error the chart of accounts is read-only
  void client.glaccounts.create({})
  // @ts-expect-error orders have no batch
  void client.orders.batch([])
  // @ts-expect-error invoice lines cannot be read one by one
  void client.invoicelines.get(1)
  // @ts-expect-error there is no such resource
  void client.resource("shelves")
  // @ts-expect-error a decimal is text
  void client.payments.create({ invoiceid: 1, amount: 5 })
  // @ts-expect-error the amount is required
  void client.payments.create({ invoiceid: 1 })
  // @ts-expect-error a required reference needs one half
  void client.orders.create({ orderdate: "2026-03-16" })
  // @ts-expect-error read-only fields are not written
  void client.orders.create({ customerid: 1, ordertotal: "1" })
  // @ts-expect-error a closed set of values
  void client.payments.create({ invoiceid: 1, amount: "5", method: 7 })
  // @ts-expect-error payments have no modifiedsince
  void client.payments.list({ modifiedsince: "2026-03-16T09:00:00Z" })
  // @ts-expect-error the body of an update differs from that of a create
  void client.payments.update(1, { amount: "6" })
  // @ts-expect-error customers have no such path
  void client.customers.read("stock", 1)

  expectTypeOf(await client.invoices.get(1)).toEqualTypeOf<Sdk.InvoicesRecord>()
  expectTypeOf((await client.invoices.get(1)).invoicetotal).toEqualTypeOf<string | null>()
  expectTypeOf((await client.payments.create({ invoiceid: 1, amount: "5" })).invoicepaid).toEqualTypeOf<
    string | null | undefined
  >()
  expectTypeOf(client.resource("areas")).toEqualTypeOf<Sdk.ServiceClient["areas"]>()
  for await (const order of client.orders.list({ customerid: 1, modifiedsince: "x" })) {
    expectTypeOf(order.lines![0]!.qtyorder).toEqualTypeOf<string | null>()
  }
  for (const item of (await client.customers.batch([{ customercode: "A" }])).items) {
    if (item.status === "created") expectTypeOf(item.record.id).toEqualTypeOf<number>()
    if (item.status === "rejected") expectTypeOf(item.error).toEqualTypeOf<Sdk.ServiceApiError>()
  }
  if (event.resource === "invoices") {
    expectTypeOf(event.data).toEqualTypeOf<Sdk.InvoicesRecord | null>()
    expectTypeOf(event.type).toEqualTypeOf<
      "invoices.created" | "invoices.updated" | "invoices.cancelled" | "invoices.posted"
    >()
  }
}

const folder = fileURLToPath(new URL("../../../../connectors/service-v2/sdk", import.meta.url))

/** Without the line breaks and the leading bars of the formatter. */
const plain = (text: string) => text.replaceAll(/[\s|]+/g, "")

describe("the types of the client", () => {
  it("are those of the catalogue", () => {
    assert.isFunction(calls)
    const expected = files()
    assert.deepStrictEqual(readdirSync(`${folder}/records`).sort(), [...expected.keys()].sort())
    for (const [name, text] of expected) {
      const written = readFileSync(`${folder}/records/${name}`, "utf8")
      assert.strictEqual(plain(written), plain(text), `${name}: run node connectors/service-v2/sdk/generate.ts`)
    }
  })

  it("name no type of another package in the public modules", () => {
    // What a public module exports may only come from the modules of this list, or its declarations would need more.
    const open = new Set(["index.ts"])
    for (const name of open) {
      const text = readFileSync(`${folder}/${name}`, "utf8")
      const runs = name === "createClient.ts" || name === "VerifyWebhook.ts"
      const imports = [...text.matchAll(/(import|export)([^"]*?) from "([^"]+)"/g)]
      for (const [, , , from] of imports) {
        if (runs && !/\.\/(?:Api|Errors|WebhookEvent|Values)\.ts$/.test(from!)) continue
        assert.match(from!, /^\.{1,2}\//, `${name} imports ${from}`)
        open.add(from!.startsWith("../") ? from!.slice(3) : `${name.includes("/") ? "records/" : ""}${from!.slice(2)}`)
      }
    }
    assert.isAbove(open.size, 90)
  })
})
