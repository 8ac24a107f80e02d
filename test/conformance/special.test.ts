/** The special endpoints of the resources, and the OpenAPI document. */
import { assert, describe } from "vitest"
import {
  advance,
  allowed,
  idOf,
  isDecimal,
  isRow,
  it,
  keptPromises,
  micros,
  newCompany,
  outOfScope,
  page,
  plusDays,
  refused,
  row,
  rows,
  send,
  succeeded,
  text,
  today,
  useServer,
  type Row
} from "./harness.ts"
import { resource, RESOURCES } from "./resources.ts"
import {
  makeCustomer,
  makeDraft,
  makeItem,
  makeOrder,
  makePayment,
  makePosted,
  makeShipment,
  orderLines
} from "./world.ts"
import { assertEach } from "../support/assertions.ts"

useServer()

/** The special endpoints, each with its scope. */
const SPECIALS = [
  ["GET", "/shipments/{id}/packages", "shipments:read"],
  ["GET", "/shipments/{id}/pdf", "shipments:read"],
  ["GET", "/shipments/{id}/boxlabels", "shipments:read"],
  ["POST", "/shipments/{id}/invoice", "invoices:write"],
  ["POST", "/orders/{id}/invoice", "invoices:write"],
  ["GET", "/invoicelines/{id}/tax", "invoices:read"],
  ["GET", "/payments/{id}/receipt", "payments:read"],
  ["POST", "/invoices/{id}/post", "invoices:write"],
  ["GET", "/invoices/{id}/pdf", "invoices:read"],
  ["POST", "/apbills/{id}/post", "bills:write"],
  ["GET", "/customers/{id}/balance", "customers:read"],
  ["GET", "/items/{id}/stock", "items:read"]
] as const

describe("a shipment", () => {
  it("[SPECIAL-01][J-01][SCOPE-02][SHIPMENTS-21][X-09] lists its packages, and an absent one is unknown_value", async (c) => {
    const reader = await c.with("shipments:read")
    const id = idOf(await makeShipment(c, await makeOrder(c)))
    page(await reader.get(`/shipments/${id}/packages`))
    refused(await reader.get("/shipments/999999999/packages"), "unknown_value")
    const other = await newCompany()
    refused(await other.get(`/shipments/${id}/packages`), "unknown_value")
    refused(await (await c.with("shipments:write")).get(`/shipments/${id}/packages`), "insufficient_scope")
  })

  it("[SPECIAL-02][CODE-33][J-02][C-13] is not invoiced alone: 501, before the id and after the scope", async (c) => {
    const id = idOf(await makeShipment(c, await makeOrder(c)))
    refused(await c.post(`/shipments/${id}/invoice`, {}), "not_implemented")
    refused(await c.post("/shipments/999999999/invoice", {}), "not_implemented")
    const shipper = await c.with("shipments:read", "shipments:write", "shipments:cancel")
    outOfScope(await shipper.post(`/shipments/${id}/invoice`, {}), "invoices:write")
  })

  for (const [name, fact] of [
    ["pdf", "SPECIAL-04"],
    ["boxlabels", "SPECIAL-05"]
  ] as const) {
    it(`[${fact}][J-04][GEN-01] has the PDF ${name}, and an absent one is a JSON 404`, async (c) => {
      const reader = await c.with("shipments:read")
      const id = idOf(await makeShipment(c, await makeOrder(c)))
      const answer = await reader.get(`/shipments/${id}/${name}`)
      assert.strictEqual(answer.status, 200)
      assert.match(String(answer.headers["content-type"]), /^application\/pdf\b/)
      assert.strictEqual(answer.bytes.subarray(0, 5).toString("latin1"), "%PDF-")
      refused(await reader.get(`/shipments/999999999/${name}`), "not_found")
    })
  }
})

describe("an order", () => {
  it("[SPECIAL-03][J-03][RULE-07] is invoiced for its shipped and unbilled lines, as a draft", async (c) => {
    const order = await makeOrder(c)
    refused(await c.post(`/orders/${order.id}/invoice`, {}), "nothing_to_invoice")
    const shipment = await makeShipment(c, order, "4")
    const invoicer = await c.with("invoices:write")
    const invoice = succeeded(await invoicer.post(`/orders/${order.id}/invoice`, {}), 201)
    assert.isNull(invoice["voucherid"])
    assert.strictEqual(invoice["orderid"], order.id)
    const lines = await c.list(`/invoicelines?invoiceid=${idOf(invoice)}`)
    assert.lengthOf(lines, 1)
    isDecimal(lines[0]?.["qty"], "4", 6)
    isDecimal(lines[0]?.["priceach"], "5", 6)
    isDecimal(invoice["invoicetotal"], "20", 4)
    assert.strictEqual((await c.read("shipments", idOf(shipment)))["invoiceid"], idOf(invoice))
    isDecimal((await orderLines(c, order.id))[0]?.["qtybilled"], "4", 6)
    refused(await c.post(`/orders/${order.id}/invoice`, {}), "nothing_to_invoice")
    refused(await c.post("/orders/999999999/invoice", {}), "not_found")
  })

  it("[J-03][RULE-03] is invoiced with a given date in an open period", async (c) => {
    const day = await today()
    await c.settings({ closedThrough: plusDays(day, -10) })
    const order = await makeOrder(c)
    await makeShipment(c, order, "4")
    refused(await c.post(`/orders/${order.id}/invoice`, { invoicedate: plusDays(day, -10) }), "period_closed")
    assert.isEmpty(await c.list("/invoices?cancel=any"))
    const invoice = succeeded(await c.post(`/orders/${order.id}/invoice`, { invoicedate: plusDays(day, -9) }), 201)
    assert.strictEqual(invoice["invoicedate"], plusDays(day, -9))
  })
})

it("[CODE-19][K-04] an invoiced order rejects changes of its header", async (c) => {
  const order = await makeOrder(c)
  await makeShipment(c, order, "4")
  succeeded(await c.post(`/orders/${order.id}/invoice`, {}), 201)
  const other = idOf(await makeCustomer(c))
  refused(await c.patch(`/orders/${order.id}`, { customerid: other }), "order_already_billed")
  refused(await c.patch(`/orders/${order.id}`, { ordertype: "service" }), "order_already_billed")
  assert.strictEqual((await c.read("orders", order.id))["customerid"], order.order["customerid"])
})

it("[K-02][STATE-08] an order changes its status on request only from quote or unconfirmed to open", async (c) => {
  const unconfirmed = await makeOrder(c, { status: "unconfirmed" })
  assert.strictEqual(unconfirmed.order["status"], "unconfirmed")
  assert.strictEqual(succeeded(await c.patch(`/orders/${unconfirmed.id}`, { status: "open" }))["status"], "open")
  for (const status of ["quote", "unconfirmed", "partial", "billed"]) {
    refused(await c.patch(`/orders/${unconfirmed.id}`, { status }), "rule_violation")
  }
  const quote = await makeOrder(c, { status: "quote" })
  refused(await c.patch(`/orders/${quote.id}`, { status: "billed" }), "rule_violation")
})

describe("invoices and payments", () => {
  it("[SPECIAL-07][J-06] include the receipt of a payment", async (c) => {
    const invoice = await makePosted(c)
    const payment = await makePayment(c, { invoiceid: idOf(invoice), amount: "12.5", method: 2, reference: "CHK" })
    const receipt = succeeded(await (await c.with("payments:read")).get(`/payments/${idOf(payment)}/receipt`))
    assert.deepInclude(receipt, {
      paymentid: idOf(payment),
      invoiceid: idOf(invoice),
      invoice: invoice["invoicenumber"],
      paymeth: 2,
      checkid: "CHK",
      datereceived: payment["datereceived"]
    })
    isDecimal(receipt["amount"], "12.5", 4)
    refused(await c.get("/payments/999999999/receipt"), "not_found")
  })

  it("[SPECIAL-06][J-05][I-14][INVOICELINES-64][INVOICELINES-65][X-08] include the tax of a line, and answer unknown_value to an absent line", async (c) => {
    const line = await resource("invoicelines").make(c)
    page(await (await c.with("invoices:read")).get(`/invoicelines/${idOf(line)}/tax`))
    refused(await c.get("/invoicelines/999999999/tax"), "unknown_value")
    refused(await (await newCompany()).get(`/invoicelines/${idOf(line)}/tax`), "unknown_value")
  })

  it("[CODE-15][J-11][SPECIAL-08] include the PDF of a posted invoice, not of a draft", async (c) => {
    const draft = await makeDraft(c)
    refused(await c.get(`/invoices/${idOf(draft)}/pdf`), "not_posted")
    const posted = await makePosted(c)
    assert.strictEqual((await c.get(`/invoices/${idOf(posted)}/pdf`)).bytes.subarray(0, 5).toString("latin1"), "%PDF-")
  })

  it("[SPECIAL-11][SCOPE-02][J-09][J-10] are part of a customer's balance; item stock has its own read scope", async (c) => {
    const customerid = idOf(await makeCustomer(c, { creditlimit: "500" }))
    await makePayment(c, { invoiceid: idOf(await makePosted(c, { customerid })), amount: "25" })
    const balance = succeeded(await (await c.with("customers:read")).get(`/customers/${customerid}/balance`))
    assert.strictEqual(balance["customerid"], customerid)
    isDecimal(balance["balance"], "75", 4)
    isDecimal(balance["creditlimit"], "500", 4)
    const itemid = idOf(await makeItem(c))
    const stock = succeeded(await (await c.with("items:read")).get(`/items/${itemid}/stock`))
    assert.strictEqual(stock["itemid"], itemid)
    assert.isTrue(Array.isArray(stock["locations"]))
    refused(await (await c.with("items:read")).get(`/customers/${customerid}/balance`), "insufficient_scope")
  })
})

describe("a special path", () => {
  it("[CODE-10][EP-04][C-02][SCOPE-02][AUTH-15] answers 405 with Allow to another verb, and checks the scope before the id", async (c) => {
    const narrow = await c.with("users:read")
    for (const [verb, template, scope] of SPECIALS) {
      const path = template.replace("{id}", "999999999")
      for (const method of ["GET", "POST", "PATCH", "DELETE", "PUT"]) {
        const answer = await narrow.send({ method, path, ...(/GET|DELETE/.test(method) ? {} : { body: {} }) })
        if (method === verb) {
          outOfScope(answer, scope)
        } else assert.include(allowed(answer), verb, `${method} ${path}`)
      }
    }
  })

  it("[GEN-06][CODE-09] hides a record of another company", async (a, b) => {
    const order = await makeOrder(a)
    const shipment = idOf(await makeShipment(a, order))
    const payment = idOf(await makePayment(a))
    for (const path of [
      `/shipments/${shipment}/pdf`,
      `/shipments/${shipment}/boxlabels`,
      `/payments/${payment}/receipt`,
      `/customers/${String(order.order["customerid"])}/balance`,
      `/items/${String(order.lines[0]?.["itemid"])}/stock`
    ]) {
      refused(await b.get(path), "not_found")
    }
    refused(await b.post(`/orders/${order.id}/invoice`, {}), "not_found")
    refused(await b.post(`/invoices/${idOf(await makeDraft(a))}/post`, {}), "not_found")
  })
})

it("[RES-10][K-06][A-19][EP-16] an order line is removed, not cancelled, and its siblings are renumbered; the order changes", async (c) => {
  const line = (description: string) => ({ description, qtyorder: "1", priceach: "1" })
  const order = await makeOrder(c, { lines: [line("a"), line("b"), line("c")] })
  await advance(1)
  const before = await c.read("orders", order.id)
  assert.strictEqual(succeeded(await c.del(`/orderlines/${order.lineIds[1]}`))["id"], order.lineIds[1])
  refused(await c.get(`/orderlines/${order.lineIds[1]}`), "not_found")
  assert.isTrue(micros((await c.read("orders", order.id))["lastchangedate"]) > micros(before["lastchangedate"]))
  const left = await orderLines(c, order.id)
  assertEach(left, (each) => [each["id"], each["description"], each["linenumber"]], [
    [order.lineIds[0], "a", 1],
    [order.lineIds[2], "c", 2]
  ])
})

const VERBS = ["get", "post", "patch", "delete"]

async function document(): Promise<Row> {
  return succeeded(await send({ method: "GET", path: "/openapi.json" }))
}

/** What a reference within the document names. */
function referred(doc: Row, ref: string): unknown {
  const parts = ref.slice(2).split("/")
  return parts
    .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((at, part) => (isRow(at) ? at[part] : undefined), doc)
}

/** The item of a path, with any parameter names, and with the base in the servers or in the path. */
function item(paths: Row, template: string): Row {
  const shape = (path: string) => path.replaceAll(/\{[^}]*\}/g, "{}")
  const match = Object.keys(paths).find(
    (path) =>
      shape(path).endsWith(shape(template)) && shape(path).split("/").length <= shape(template).split("/").length + 3
  )
  if (match === undefined) throw new Error(`no path ${template}`)
  return row(paths[match])
}

it("[VER-01][GEN-01][GEN-08] the description is valid JSON with openapi 3.1, info and paths, without a token", async () => {
  const doc = await document()
  assert.match(text(doc["openapi"]), /^3\.1\.\d+$/)
  const info = row(doc["info"])
  assert.isNotEmpty(text(info["title"]))
  assert.isNotEmpty(text(info["version"]))
  assert.isNotEmpty(Object.keys(row(doc["paths"])))
})

it("[EP-19][EP-05][EP-23][EP-18][CODE-05] the description has the operations of every detailed resource, and no others, and the filters of its list", async () => {
  const doc = await document()
  const paths = row(doc["paths"])
  for (const { path, ops, filters, modifiedsince } of RESOURCES) {
    const collection = item(paths, `/${path}`)
    const parameters = rows(row(collection["get"])["parameters"] ?? []).map((each) => {
      const ref = each["$ref"]
      return typeof ref === "string" ? row(referred(doc, ref)) : each
    })
    const names = parameters.filter((each) => each["in"] === "query").map((each) => text(each["name"]))
    for (const name of [...filters.map((filter) => filter.name), "cancel", "externalid", "include", "limit", "cursor"])
      assert.include(names, name, path)
    assert.strictEqual(names.includes("modifiedsince"), modifiedsince, path)
    assert.property(collection, "post", path)
    assert.property(item(paths, `/${path}/batch`), "post", path)
    const one: readonly string[] = ops
    const expected = [
      ...(one.includes("R") ? ["get"] : []),
      ...(one.includes("U") ? ["patch"] : []),
      ...(one.includes("D") ? ["delete"] : [])
    ]
    if (expected.length === 0) continue
    assert.sameMembers(
      Object.keys(item(paths, `/${path}/{id}`)).filter((verb) => VERBS.includes(verb)),
      expected,
      path
    )
  }
})

it("[SPECIAL-01][SPECIAL-03][SPECIAL-04][SPECIAL-06][SPECIAL-07][WEBHOOK-17][WEBHOOK-18] the description has the special endpoints and the webhooks", async () => {
  const paths = row((await document())["paths"])
  const others = ["GET /me", "POST /webhooks", "PATCH /webhooks/{id}", "POST /webhooks/{id}/test"]
  const specials = SPECIALS.map(([verb, path]) => `${verb} ${path}`)
  for (const operation of [...specials, ...others, "GET /webhooks/{id}/deliveries"]) {
    const [verb = "", path = ""] = operation.split(" ")
    assert.property(item(paths, path), verb.toLowerCase(), path)
  }
})

it("[GEN-01] the description has no unresolved reference", async () => {
  const doc = await document()
  const dangling: string[] = []
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value as unknown[]) walk(each)
    else if (isRow(value)) {
      const ref = value["$ref"]
      if (typeof ref === "string" && ref.startsWith("#/")) {
        if (referred(doc, ref) === undefined) dangling.push(ref)
      }
      for (const each of Object.values(value)) walk(each)
    }
  }
  walk(doc)
  assert.deepEqual(dangling, [])
})

it("[AUTH-01][AUTH-12] the description states bearer tokens, and is the same with a valid or invalid token", async (c) => {
  const schemes = row(row((await document())["components"])["securitySchemes"])
  const bearer = Object.values(schemes).map((each) => row(each))
  assert.isTrue(bearer.some((each) => each["type"] === "http" && String(each["scheme"]).toLowerCase() === "bearer"))
  const plain = (await send({ method: "GET", path: "/openapi.json" })).text
  for (const token of [c.token, "any-token"])
    assert.strictEqual((await send({ method: "GET", path: "/openapi.json", token })).text, plain)
})

keptPromises()
