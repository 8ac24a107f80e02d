/**
 * The dialects: the switches at the end of decisions.md, by their names in the control plane. The client reads in those of
 * lists (test/client/subscriptions.test.ts), and the radar names those that reads reveal (test/radar/variants.long.test.ts).
 */
import { afterEach, assert, beforeAll, describe } from "vitest"
import {
  control,
  fresh,
  idOf,
  ids,
  it,
  newCompany,
  refused,
  row,
  rows,
  succeeded,
  text,
  useServer,
  type Answer,
  type Company,
  type Row
} from "./harness.ts"
import { makeOrder, makeSalesman, makeShipment } from "./world.ts"

useServer()

let usual: Row = {}

beforeAll(async () => {
  usual = row((await control("PUT", "/dialect", {})).json)
})
afterEach(async () => {
  await control("PUT", "/dialect", usual)
})

const turn = (switches: Row) => control("PUT", "/dialect", switches)

/** Sent without the checks of the default dialect. */
const ask = (c: Company, path: string): Promise<Answer> => c.send({ method: "GET", path, faulty: true })

describe("a list in another dialect", () => {
  it("[A-08] has cancelled records only, or too, under cancel=true everywhere", async (c) => {
    const [, dead] = await c.put("salesmen", [{ name: "a" }, { name: "b", cancel: true }])
    await turn({ cancelTrue: "only" })
    assert.deepEqual(ids(await c.list("/salesmen?cancel=true")), [idOf(row(dead))])
    await turn({ cancelTrue: "includes" })
    assert.lengthOf(await c.list("/salesmen?cancel=true"), 2)
  })
})

describe("a record in another dialect", () => {
  it("[B-01] has no ETag, so that lastchangedate guards updates", async (c) => {
    const record = await makeSalesman(c)
    await turn({ etag: false })
    const answer = await c.get(`/salesmen/${idOf(record)}`)
    assert.isUndefined(answer.headers["etag"])
    const stale = { "if-match": `"2001-01-01T00:00:00.000000Z"` }
    refused(await c.patch(`/salesmen/${idOf(record)}`, { email1: "x" }, stale), "stale_record")
    const guard = { "if-match": `"${text(row(answer.json)["lastchangedate"])}"` }
    succeeded(await c.patch(`/salesmen/${idOf(record)}`, { email1: "x" }, guard))
  })

  it("[F-04][CODE-11] has an externalid that is unique within company and resource", async (c) => {
    await turn({ uniqueExternalid: true })
    const externalid = fresh("unique")
    await makeSalesman(c, { externalid })
    refused(await c.post("/salesmen", { name: fresh("s"), externalid }), "duplicate", "externalid")
    succeeded(await c.post("/carrierservices", { externalid }), 201)
    await makeSalesman(await newCompany(), { externalid })
  })

  it("[G-01] has a text status as a batch item", async (c) => {
    await turn({ batchStatus: "text" })
    const answer = await c.post("/salesmen/batch", [{ name: "a" }, {}])
    const statuses = rows(succeeded(answer, 207)["results"]).map((each) => each["status"])
    for (const status of statuses) assert.isString(status)
    assert.notStrictEqual(statuses[0], statuses[1])
  })

  it("[I-14][X-09] that is unknown is 422 unknown_value on DELETE", async (c) => {
    await turn({ deleteUnknown: 422 })
    for (const path of ["shipments", "payments"]) refused(await c.del(`/${path}/999999999`), "unknown_value")
  })

  it("[I-01][X-06] has all six operations on every resource", async (c) => {
    await turn({ allOperations: true })
    const id = idOf(await c.create("taskstatuses", { name: fresh("s") }))
    assert.strictEqual(succeeded(await c.del(`/taskstatuses/${id}`))["cancel"], true)
    const service = idOf(await c.create("carrierservices", { code: "A" }))
    assert.strictEqual(idOf(succeeded(await c.get(`/carrierservices/${service}`))), service)
    assert.strictEqual(succeeded(await c.patch(`/carrierservices/${service}`, { code: "B" }))["code"], "B")
  })

  it("[J-02][CODE-21][RULE-07] can be a shipment that is invoiced alone", async (c) => {
    await turn({ enableShipmentInvoice: true })
    refused(await c.post("/shipments/999999999/invoice", {}), "not_found")
    const order = await makeOrder(c)
    const shipment = idOf(await makeShipment(c, order, "4"))
    const answer = await c.post(`/shipments/${shipment}/invoice`, {})
    assert.include([200, 201], answer.status, answer.text)
    refused(await c.post(`/shipments/${shipment}/invoice`, {}), "shipment_already_invoiced")
  })
})

describe("a header in another dialect", () => {
  it("[E-03] states Retry-After as an HTTP date", async (c) => {
    await turn({ retryAfter: "date" })
    await control("PUT", "/limits", { requestsPerMinute: 1 })
    await ask(c, "/salesmen")
    const answer = await ask(c, "/salesmen")
    await control("PUT", "/limits", { requestsPerMinute: 600 })
    assert.strictEqual(answer.status, 429)
    assert.match(String(answer.headers["retry-after"]), /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/)
  })
})
