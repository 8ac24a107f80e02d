/** The operations of the client against the reference server. */
import { assert, describe, it } from "vitest"
import { serviceV2 } from "../../../../connectors/service-v2/catalogue/index.ts"
import {
  ConflictError,
  InvalidRecordError,
  type CustomersRecord,
  type ResourceName
} from "../../../../connectors/service-v2/sdk/index.ts"
import { rejection, useReference } from "./support.ts"
import { valuesOf } from "../../../support/rows.ts"
import { assertEach } from "../../../support/assertions.ts"

const sdk = useReference()
const { company } = sdk

const raw = async (token: string, path: string) => {
  const response = await fetch(`${sdk.baseUrl()}${path}`, { headers: { authorization: `Bearer ${token}` } })
  return { text: await response.text(), headers: response.headers }
}

describe("the operations of a resource", () => {
  it("are those of the catalogue for all resources", async () => {
    const { client } = await company()
    const methods = {
      L: ["list"],
      C: ["create"],
      B: ["batch"],
      R: ["get", "getVersioned"],
      U: ["update"],
      D: ["cancel"]
    }
    for (const resource of serviceV2.resources.values()) {
      const made = client.resource(resource.path as ResourceName)
      const names = Object.keys(made).filter((name) => !["read", "download", "perform"].includes(name))
      assert.deepStrictEqual(
        names.sort(),
        resource.operations.flatMap((operation) => methods[operation]).sort(),
        resource.path
      )
      assert.isTrue(Object.is(made, client[resource.path as ResourceName]))
    }
  })

  it("create, get, list, change and cancel a record", async () => {
    const { client } = await company()
    const made = await client.customers.create({ customercode: "NORTH", name: "North End", creditlimit: "1500.00" })
    assert.strictEqual(made.creditlimit, "1500.0000")
    const got = await client.customers.get(made.id)
    assert.deepStrictEqual({ ...got }, { ...made })
    assert.strictEqual((await client.customers.update(made.id, { creditlimit: "1" })).creditlimit, "1.0000")
    assert.strictEqual((await client.customers.cancel(made.id)).cancel, true)
    assert.deepStrictEqual(await client.customers.list().toArray(), [])
    const all = await client.customers.list({ cancel: "any", customercode: "NORTH" }).toArray()
    assertEach(all, ({ id, cancel }) => ({ id, cancel }), [{ id: made.id, cancel: true }])
  })

  it("require a version for an update, where one is given", async () => {
    const { client } = await company()
    const { id } = await client.customers.create({ customercode: "V" })
    const { record, version } = await client.customers.getVersioned(id)
    assert.strictEqual(record.id, id)
    assert.isString(version)
    await client.customers.update(id, { name: "first" }, { ifMatch: version! })
    const error = await rejection(client.customers.update(id, { name: "second" }, { ifMatch: version! }))
    assert(error instanceof ConflictError)
    assert.deepStrictEqual([error.code, error.status], ["stale_record", 409])
    assert.strictEqual((await client.customers.get(id)).name, "first")
  })

  it("take paths below a record: actions, reads and files", async () => {
    const { client } = await company()
    const customer = await client.customers.create({ customercode: "PAY" })
    const invoice = await client.invoices.create({
      customerid: customer.id,
      lines: [{ description: "Work", quantity: "1", price: "12.34" }]
    })
    assert.isNumber((await client.invoices.perform("post", invoice.id))["voucherid"])
    assert.strictEqual((await client.payments.create({ invoiceid: invoice.id, amount: "2.34" })).invoicepaid, "2.3400")
    assert.strictEqual((await client.customers.read("balance", customer.id))["balance"], "10.0000")
    const pdf = await client.invoices.download("pdf", invoice.id)
    assert.strictEqual(Buffer.from(pdf.subarray(0, 5)).toString(), "%PDF-")
    const error = await rejection(client.invoices.download("post" as "pdf", invoice.id))
    assert.strictEqual((error as { code?: string }).code, "invalid_argument")
  })

  it("know the company and the scopes of the token", async () => {
    const token = await sdk.token({ company: 3, scopes: ["orders:read"] })
    const me = await (await sdk.client({ token })).me()
    assert.strictEqual(me.companyId, 3)
    assert.deepStrictEqual(me.scopes, ["orders:read"])
  })

  it("read custom fields when the client includes them", async () => {
    const { id, client } = await company({ includeCustomFields: true })
    const field = { name: "colour", resource: "customers", acceptedvalues: "" }
    await sdk.control("POST", "/records", { company: id, resource: "customfields", records: [field] })
    const made = await client.customers.create({ customercode: "CF", custom_fields: { colour: "red" } })
    assert.deepStrictEqual({ ...(await client.customers.get(made.id)).custom_fields }, { colour: "red" })
    assert.deepStrictEqual({ ...(await client.customers.list().toArray())[0]!.custom_fields }, { colour: "red" })
  })
})

describe("the values of a record", () => {
  it("are those of the service's own JSON for a record with lines", async () => {
    const { client, token } = await company()
    const customer = await client.customers.create({ customercode: "L" })
    const item = await client.items.create({ sku: "BOLT", price: "0.1" })
    const order = await client.orders.create({
      customer: "L",
      lines: [
        { itemid: item.id, qtyorder: "0.300001", priceach: "1234567890123.123456" },
        { item: "BOLT", qtyorder: "2" }
      ]
    })
    assert.strictEqual(order.customerid, customer.id)
    const { text } = await raw(token, `/orders/${order.id}`)
    assert.deepStrictEqual(
      JSON.parse(JSON.stringify(await client.orders.get(order.id))),
      JSON.parse(text) as Record<string, unknown>
    )
    const [first] = (await client.orders.get(order.id)).lines!
    assert.deepStrictEqual([first!.qtyorder, first!.priceach], ["0.300001", "1234567890123.123456"])
  })

  it("are exact, or the record is invalid and named", async () => {
    const { client } = await company()
    const wide = '{"id":2,"customercode":"WIDE","salesmanid":9007199254740993,"new":0.1000000000000000055}'
    const body = `{"_meta":{"has_more":false},"data":[{"id":1,"customercode":"OK"},${wide}]}`
    const fault = { kind: "status", status: 200, method: "GET", path: "/customers", times: 2, body }
    await sdk.faults({ ...fault, headers: { "content-type": "application/json" } })
    const seen: Array<number> = []
    const reading = async () => {
      for await (const { id } of client.customers.list()) seen.push(id)
    }
    const error = await rejection(reading())
    assert(error instanceof InvalidRecordError)
    assert.deepStrictEqual([error.id, error.field], ["2", "salesmanid"])
    assert.include(error.json, "9007199254740993")
    const invalid: Array<string | null> = []
    const list = client.customers.list({}, { onInvalid: ({ id }) => void invalid.push(id) })
    assert.deepStrictEqual(valuesOf(await list.toArray(), "customercode"), ["OK"])
    assert.deepStrictEqual(invalid, ["2"])
  })

  it("keep unknown fields, as text where a float has other digits", async () => {
    const { client } = await company()
    const body = '{"id":5,"customercode":"U","tenth":0.1,"long":0.1000000000000000055,"big":12345678901234567890}'
    const headers = { "content-type": "application/json" }
    await sdk.faults({ kind: "status", status: 200, times: 1, headers, body })
    const record = (await client.customers.get(5)) as CustomersRecord & Record<string, unknown>
    assert.deepStrictEqual(
      [record["tenth"], record["long"], record["big"]],
      [0.1, "0.1000000000000000055", "12345678901234567890"]
    )
  })
})

describe("a list of several pages", () => {
  const filled = async (count: number, options: Parameters<typeof sdk.client>[0] = {}) => {
    const made = await company({ pageSize: 3, ...options })
    const inputs = Array.from({ length: count }, (_, at) => ({ customercode: `C${at}`, name: "first" }))
    const { items } = await made.client.customers.batch(inputs)
    return { ...made, ids: items.map((item) => (item.status === "created" ? item.record.id : 0)) }
  }

  it("continues after a page, also in another client", async () => {
    const { client, token, ids } = await filled(8)
    let next: string | null = null
    const first: Array<number> = []
    for await (const page of client.customers.list().pages()) {
      first.push(...page.records.map(({ id }) => id))
      next = page.next
      break
    }
    const other = await sdk.client({ token, pageSize: 3 })
    const rest = await other.customers.list({}, { from: next! }).toArray()
    assert.deepStrictEqual([...first, ...rest.map(({ id }) => id)], ids)
  })

  it("takes the earliest position of its pages, whichever page has it", async () => {
    for (const [first, second] of [
      ["2026-03-16T09:00:00.5Z", "2026-03-16T09:00:01Z"],
      ["2026-03-16T09:00:01Z", "2026-03-16T09:00:00.5Z"]
    ]) {
      const scripted: typeof fetch = (input) => {
        const isFirst = !new Request(input).url.includes("cursor=")
        const [next_cursor, synced_through] = isFirst ? ["two", first] : [null, second]
        const meta = { has_more: isFirst, next_cursor, synced_through }
        return Promise.resolve(Response.json({ data: [{ id: isFirst ? 1 : 2 }], _meta: meta }))
      }
      const { client } = await company({ fetch: scripted, pageSize: 1 })
      const list = client.customers.list()
      assert.strictEqual((await list.toArray()).length, 2)
      assert.strictEqual(list.syncedThrough, "2026-03-16T09:00:00.5Z")
    }
  })
})
