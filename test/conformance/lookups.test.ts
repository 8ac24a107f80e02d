/** Salesmen, invoice terms and carrier services: their keys, shared tables, and cancelling while in use. */
import { assert, describe, it } from "vitest"
import {
  control,
  fresh,
  idOf,
  ids,
  keptPromises,
  newCompany,
  page,
  query,
  refused,
  row,
  succeeded,
  text,
  useServer
} from "./harness.ts"
import { makeCustomer, makeSalesman, makeTerm } from "./world.ts"

useServer()

const KEYED = [
  { path: "salesmen", key: "name", fact: "SALESMEN-04", prefix: "Ann" },
  { path: "invoiceterms", key: "verbal", fact: "INVOICETERMS-04", prefix: "Net" },
  { path: "emailtemplates", key: "action", fact: "EMAILTEMPLATES-04", prefix: "Act" },
  { path: "taskstatuses", key: "name", fact: "TASKSTATUSES-05", prefix: "Sta" },
  { path: "areas", key: "name", fact: "AREAS-04", prefix: "Are" }
] as const

for (const { path, key, fact, prefix } of KEYED) {
  describe(`the key ${key} of ${path}`, () => {
    it(`[${fact}][EP-06][CODE-11][F-05] rejects a used value as 409 duplicate, in any case`, async () => {
      const c = await newCompany()
      const value = fresh(prefix)
      const record = await c.create(path, { [key]: value })
      for (const again of [value, value.toUpperCase(), value.toLowerCase()]) {
        refused(await c.post(`/${path}`, { [key]: again }), "duplicate", key)
      }
      assert.deepEqual(ids(await c.list(`/${path}${query({ [key]: value })}`)), [idOf(record)])
    })

    it(`[${fact}][F-06] stays used by a cancelled row, which the message names`, async () => {
      const c = await newCompany()
      const value = fresh(prefix)
      const [stored] = await c.put(path, [{ [key]: value, cancel: true }])
      const id = idOf(row(stored))
      const error = refused(await c.post(`/${path}`, { [key]: value }), "duplicate", key)
      assert.include(String(error["message"]), String(id))
    })

    it(`[${fact}][F-07] rejects a rename to a used value as 409 duplicate, and changes nothing`, async () => {
      const c = await newCompany()
      const usedValue = fresh(prefix)
      await c.create(path, { [key]: usedValue })
      const mine = fresh(prefix)
      const id = idOf(await c.create(path, { [key]: mine }))
      refused(await c.patch(`/${path}/${id}`, { [key]: usedValue.toUpperCase(), externalid: "x" }), "duplicate", key)
      assert.deepInclude(await c.read(path, id), { [key]: mine, externalid: null })
    })

    it(`[${fact}] accepts a rename to another case of its own value`, async () => {
      const c = await newCompany()
      const value = fresh(prefix)
      const id = idOf(await c.create(path, { [key]: value }))
      assert.strictEqual(
        succeeded(await c.patch(`/${path}/${id}`, { [key]: value.toUpperCase() }))[key],
        value.toUpperCase()
      )
      assert.strictEqual(
        succeeded(await c.patch(`/${path}/${id}`, { [key]: value.toUpperCase() }))[key],
        value.toUpperCase()
      )
    })

    it(`[${fact}] is free again after a rename`, async () => {
      const c = await newCompany()
      const value = fresh(prefix)
      const id = idOf(await c.create(path, { [key]: value }))
      succeeded(await c.patch(`/${path}/${id}`, { [key]: fresh(prefix) }))
      await c.create(path, { [key]: value })
    })

    it(`[${fact}][CODE-11] is created once by ten concurrent requests`, async () => {
      const c = await newCompany()
      const value = fresh(prefix)
      const answers = await Promise.all(Array.from({ length: 10 }, () => c.post(`/${path}`, { [key]: value })))
      const statuses = answers.map((answer) => answer.status).sort((x, y) => x - y)
      assert.deepEqual(statuses, [201, ...Array.from({ length: 9 }, () => 409)])
    })
  })
}

describe("the code of carrierservices", () => {
  it("[F-05][CARRIERSERVICES-14] may be the same in two records", async () => {
    const c = await newCompany()
    await c.create("carrierservices", { code: "GND" })
    await c.create("carrierservices", { code: "GND" })
    assert.lengthOf(await c.list("/carrierservices?code=GND"), 2)
  })
})

describe("invoiceterms, shared by all companies", () => {
  it("[INVOICETERMS-05][INVOICETERMS-15][C-11][X-24] are read, listed, changed and cancelled from another company", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const verbal = fresh("shared")
    const term = await a.create("invoiceterms", { verbal, netduedays: 30 })
    assert.deepEqual(await b.read("invoiceterms", idOf(term)), term)
    assert.deepEqual(await b.list(`/invoiceterms?verbal=${verbal}`), [term])
    const after = succeeded(await b.patch(`/invoiceterms/${idOf(term)}`, { netduedays: 45 }))
    assert.deepEqual(await a.read("invoiceterms", idOf(term)), after)
    assert.strictEqual(after["netduedays"], 45)
    succeeded(await b.del(`/invoiceterms/${idOf(term)}`))
    assert.isEmpty(await a.list(`/invoiceterms?verbal=${verbal}`))
  })

  it("[INVOICETERMS-05][C-11] have a key that is unique in the whole install", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const verbal = fresh("Shared")
    await makeTerm(a, { verbal })
    refused(await b.post("/invoiceterms", { verbal: verbal.toLowerCase() }), "duplicate", "verbal")
  })

  it("[INVOICETERMS-03][C-11][EP-16] report a change from one company to the polls of another", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const through = text(page(await b.get("/invoiceterms?limit=1")).syncedThrough)
    const term = await makeTerm(a)
    assert.include(ids(await b.list(`/invoiceterms${query({ modifiedsince: through })}`)), idOf(term))
  })

  it("[C-11] exist in a new install, and a new company sees them", async () => {
    const a = await newCompany()
    const b = await newCompany()
    await makeTerm(a)
    const ofA = await a.list("/invoiceterms?limit=250")
    const ofB = await b.list("/invoiceterms?limit=250")
    assert.isNotEmpty(ofA)
    assert.deepEqual(ids(ofB).slice(0, ofA.length), ids(ofA))
  })
})

describe("cancelling a record in use", () => {
  it("[I-25][CODE-16][STATE-12] is rejected for terms of a customer", async () => {
    const c = await newCompany()
    const term = idOf(await makeTerm(c))
    const customer = idOf(await makeCustomer(c, { invoicetermid: term }))
    refused(await c.del(`/invoiceterms/${term}`), "cannot_cancel")
    refused(await c.patch(`/invoiceterms/${term}`, { cancel: true }), "cannot_cancel")
    assert.strictEqual((await c.read("invoiceterms", term))["cancel"], false)
    succeeded(await c.del(`/customers/${customer}`))
    assert.strictEqual(succeeded(await c.del(`/invoiceterms/${term}`))["cancel"], true)
  })

  it("[I-25][CODE-16][C-11] is rejected for terms of another company's customer", async () => {
    const a = await newCompany()
    const b = await newCompany()
    const term = idOf(await makeTerm(a))
    await makeCustomer(b, { invoicetermid: term })
    refused(await a.del(`/invoiceterms/${term}`), "cannot_cancel")
  })

  it("[I-25][CODE-16] is rejected for a salesman of a customer", async () => {
    const c = await newCompany()
    const salesman = idOf(await makeSalesman(c))
    const customer = idOf(await makeCustomer(c, { salesmanid: salesman }))
    refused(await c.del(`/salesmen/${salesman}`), "cannot_cancel")
    assert.strictEqual((await c.read("salesmen", salesman))["cancel"], false)
    succeeded(await c.patch(`/customers/${customer}`, { salesmanid: null }))
    succeeded(await c.del(`/salesmen/${salesman}`))
  })
})

describe("the other lookups", () => {
  it("[SALESMEN-14][SALESMEN-06][SALESMEN-07] include salespeople and service reps in one table", async () => {
    const c = await newCompany()
    await makeSalesman(c, { salesman: true, servicerep: false })
    await makeSalesman(c, { salesman: false, servicerep: true })
    assert.deepEqual(
      (await c.list("/salesmen")).map((record) => [record["salesman"], record["servicerep"]]),
      [
        [true, false],
        [false, true]
      ]
    )
  })

  it("[CODE-11][RES-05][LIM-11] have a customer code that is unique in its company", async () => {
    const c = await newCompany()
    await makeCustomer(c, { customercode: "ACME" })
    refused(await c.post("/customers", { customercode: "ACME", name: "x" }), "duplicate")
  })

  it("[CODE-11][RES-13] have an invoice number that is unique in its company", async () => {
    const c = await newCompany()
    const customerid = idOf(await makeCustomer(c))
    const invoice = { invoicenumber: "INV-1", customerid, lines: [{ description: "x", quantity: "1", price: "1" }] }
    succeeded(await c.post("/invoices", invoice), 201)
    refused(await c.post("/invoices", invoice), "duplicate")
  })

  it("[CODE-01][LIM-11] reject only the next customer or item above the licensed limit", async () => {
    const c = await newCompany()
    await c.settings({ recordLimits: { customers: 1, items: 1 } })
    await makeCustomer(c)
    const answer = await c.post("/customers", { customercode: fresh("c"), name: "x" })
    refused(answer, "record_limit_reached")
    assert.isUndefined(answer.headers["www-authenticate"])
    await c.create("items", { sku: fresh("s"), description: "x" })
    refused(await c.post("/items", { sku: fresh("s"), description: "x" }), "record_limit_reached")
    await makeSalesman(c)
    await control("PUT", `/companies/${c.id}`, { recordLimits: { customers: 2 } })
    await makeCustomer(c)
    assert.lengthOf(await c.list("/customers"), 2)
  })

  it("[RES-05][GEN-09] keep cancelled customers, which are never removed", async () => {
    const c = await newCompany()
    const id = idOf(await makeCustomer(c))
    assert.strictEqual(succeeded(await c.del(`/customers/${id}`))["cancel"], true)
    assert.strictEqual(row(await c.read("customers", id))["cancel"], true)
  })
})

keptPromises()
