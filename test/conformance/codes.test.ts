/** Each of the 50 documented error codes, provoked over HTTP. */
import { afterAll, afterEach, assert, describe, it } from "vitest"
import {
  CODES,
  control,
  fresh,
  freeze,
  idOf,
  keptPromises,
  mint,
  newCompany,
  plusDays,
  refused,
  row,
  send,
  succeeded,
  thaw,
  today,
  useServer,
  type Answer,
  type Company
} from "./harness.ts"
import {
  makeBill,
  makeCustomer,
  makeDraft,
  makeGlAccount,
  makeItem,
  makeOrder,
  makePayment,
  makePosted,
  makePurchaseOrder,
  makeSalesman,
  makeServiceOrder,
  makeShipment,
  makeTerm,
  purchaseOrderLines
} from "./world.ts"

useServer()
afterAll(thaw)
afterEach(async () => {
  await control("DELETE", "/faults")
  await control("PUT", "/limits", { requestsPerMinute: 600 })
})

const first = { quantity: "1" }
const ship = (c: Company, orderid: number, orderlineid: unknown, quantity = "1") =>
  c.post("/shipments", { orderid, lines: [{ ...first, orderlineid, quantity }] })

/** A code, the fact that states it, and the request that provokes it. */
const PROVOKED: ReadonlyArray<readonly [string, string, (c: Company) => Promise<Answer>]> = [
  ["unauthorized", "AUTH-12", async () => send({ method: "GET", path: "/salesmen" })],
  [
    "token_revoked",
    "AUTH-13",
    async (c) => {
      await control("POST", "/tokens/revoke", { token: c.token })
      return c.get("/salesmen")
    }
  ],
  [
    "token_expired",
    "AUTH-14",
    async (c) => {
      const { token } = await mint({ company: c.id, expires: "2020-01-01T00:00:00Z" })
      return send({ method: "GET", path: "/salesmen", token })
    }
  ],
  ["insufficient_scope", "AUTH-15", async (c) => (await c.with("orders:read")).get("/salesmen")],
  [
    "forbidden",
    "AUTH-16",
    async (c) => {
      const { token } = await mint({ company: c.id, supervisor: false })
      return send({ method: "GET", path: "/salesmen", token })
    }
  ],
  [
    "feature_not_licensed",
    "AUTH-17",
    async (c) => {
      await c.settings({ features: { projects: false } })
      return c.get("/teamprojectreminders")
    }
  ],
  [
    "record_limit_reached",
    "CODE-01",
    async (c) => {
      await c.settings({ recordLimits: { vendors: 0 } })
      return c.post("/vendors", { vendorcode: fresh("v"), name: "x" })
    }
  ],
  ["invalid_json", "CODE-02", async (c) => c.send({ method: "POST", path: "/salesmen", raw: "{" })],
  ["invalid_request", "CODE-03", async (c) => c.post("/salesmen", {})],
  ["invalid_type", "CODE-04", async (c) => c.post("/salesmen", { name: fresh("s"), commissionrate: 1 })],
  ["unknown_parameter", "CODE-05", async (c) => c.get("/salesmen?bogus=1")],
  ["invalid_enum", "CODE-06", async (c) => c.post("/teamprojecttemplateitems", { itemtype: 2 })],
  [
    "batch_too_large",
    "CODE-07",
    async (c) =>
      c.post(
        "/stages/batch",
        Array.from({ length: 251 }, () => ({}))
      )
  ],
  ["invalid_precision", "CODE-08", async (c) => c.post("/ardailycloses", { actualcash: "1.00001" })],
  ["not_found", "CODE-09", async (c) => c.get("/stages/999999999")],
  ["method_not_allowed", "CODE-10", async (c) => c.del("/emailtemplates/1")],
  [
    "duplicate",
    "CODE-11",
    async (c) => {
      await c.create("taskstatuses", { name: "Called" })
      return c.post("/taskstatuses", { name: "called" })
    }
  ],
  [
    "idempotency_replay",
    "CODE-12",
    async (c) => {
      const key = { "idempotency-key": fresh("key") }
      succeeded(await c.post("/stages", { name: "a" }, key), 201)
      return c.post("/stages", { name: "b" }, key)
    }
  ],
  [
    "request_in_progress",
    "CODE-13",
    async (c) => {
      const key = { "idempotency-key": fresh("key") }
      await control("POST", "/faults", { rules: [{ method: "POST", path: "/rmareturns", kind: "delay", times: 1 }] })
      const post = () => c.post("/rmareturns", { externalid: "slow" }, key)
      const slow = post()
      let waiting = await c.get("/rmareturns?limit=1")
      for (let i = 0; i < 50 && waiting.status !== 409; i += 1) {
        const early = await Promise.race([slow, post()])
        if (early.status === 409) waiting = early
      }
      await slow
      return waiting
    }
  ],
  [
    "stale_record",
    "CODE-14",
    async (c) => {
      const id = idOf(await c.create("stages", { name: "a" }))
      return c.patch(`/stages/${id}`, { name: "b" }, { "if-match": '"stale"' })
    }
  ],
  ["not_posted", "CODE-15", async (c) => c.get(`/invoices/${idOf(await makeDraft(c))}/pdf`)],
  [
    "cannot_cancel",
    "CODE-16",
    async (c) => {
      const term = idOf(await makeTerm(c))
      await makeCustomer(c, { invoicetermid: term })
      return c.del(`/invoiceterms/${term}`)
    }
  ],
  [
    "line_has_shipped",
    "CODE-17",
    async (c) => {
      const order = await makeOrder(c)
      await makeShipment(c, order)
      return c.del(`/orderlines/${order.lineIds[0] ?? 0}`)
    }
  ],
  [
    "line_has_receipts",
    "CODE-18",
    async (c) => {
      const id = idOf(await makePurchaseOrder(c))
      const line = idOf(row((await purchaseOrderLines(c, id))[0]))
      await c.create("purchaseorderreceipts", {
        purchaseorderid: id,
        lines: [{ purchaseorderlineid: line, quantity: "1" }]
      })
      return c.del(`/purchaseorderlines/${line}`)
    }
  ],
  [
    "order_already_billed",
    "CODE-19",
    async (c) => {
      const order = await makeOrder(c)
      await makeShipment(c, order)
      succeeded(await c.post(`/orders/${order.id}/invoice`, {}), 201)
      return c.patch(`/orders/${order.id}`, { ordertype: "service" })
    }
  ],
  [
    "hours_already_billed",
    "CODE-20",
    async (c) => {
      const order = await makeServiceOrder(c)
      const [entry] = await c.put("serviceordertimes", [{ orderid: order.id, hours: "1.000000", status: 2 }])
      return c.del(`/serviceordertimes/${idOf(row(entry))}`)
    }
  ],
  [
    "shipment_already_invoiced",
    "CODE-21",
    async (c) => {
      const order = await makeOrder(c)
      const shipment = idOf(await makeShipment(c, order))
      succeeded(await c.post(`/orders/${order.id}/invoice`, {}), 201)
      return c.del(`/shipments/${shipment}`)
    }
  ],
  [
    "po_complete",
    "CODE-22",
    async (c) => {
      const id = idOf(await makePurchaseOrder(c))
      succeeded(await c.patch(`/purchaseorders/${id}`, { complete: true }))
      return c.patch(`/purchaseorders/${id}`, { externalid: "x" })
    }
  ],
  [
    "invoice_already_posted",
    "CODE-23",
    async (c) =>
      c.post("/invoicelines", { invoiceid: idOf(await makePosted(c)), description: "x", quantity: "1", price: "1" })
  ],
  [
    "apbill_already_posted",
    "CODE-24",
    async (c) => {
      const apbillid = idOf(await makeBill(c))
      succeeded(await c.post(`/apbills/${apbillid}/post`, {}))
      return c.post("/apbilllines", { apbillid, glaccountid: idOf(await makeGlAccount(c)), amount: "1" })
    }
  ],
  ["not_batchable", "CODE-25", async (c) => c.post("/shipments/1/pdf/batch", [])],
  ["unknown_value", "CODE-26", async (c) => c.post("/stages", { stagetypeid: 999_999_999 })],
  [
    "ambiguous_value",
    "CODE-27",
    async (c) => {
      await c.put("carriers", [{ name: "Twin" }, { name: "Twin" }])
      return c.post("/carrierservices", { carrier: "Twin" })
    }
  ],
  [
    "conflicting_reference",
    "CODE-28",
    async (c) => {
      const [one] = await c.put("carriers", [{ name: "One" }, { name: "Two" }])
      return c.post("/carrierservices", { carrierid: idOf(row(one)), carrier: "Two" })
    }
  ],
  [
    "unsupported_value",
    "CODE-29",
    async (c) => c.post("/webhooks", { url: "http://x.example", events: ["orders.created"] })
  ],
  ["rule_violation", "CODE-30", async (c) => c.post("/payments", { invoiceid: idOf(await makeDraft(c)), amount: "1" })],
  [
    "rate_limited",
    "CODE-31",
    async (c) => {
      await freeze()
      await control("PUT", "/limits", { requestsPerMinute: 1 })
      await c.get("/salesmen")
      const answer = await c.get("/salesmen")
      await thaw()
      return answer
    }
  ],
  [
    "server_error",
    "CODE-32",
    async (c) => {
      await control("POST", "/faults", { rules: [{ kind: "status", code: 500, times: 1 }] })
      return c.send({ method: "POST", path: "/stages", body: { name: "x" }, faulty: true })
    }
  ],
  ["not_implemented", "CODE-33", async (c) => c.post("/shipments/1/invoice", {})],
  [
    "gl_set_unbalanced",
    "RULE-01",
    async (c) => {
      const glaccountid = idOf(await makeGlAccount(c))
      const lines = ["1", "1"].map((amount) => ({ glaccountid, amount }))
      return c.post("/gltransactions", { transactiondate: "2026-02-03", lines })
    }
  ],
  [
    "gl_set_too_short",
    "RULE-02",
    async (c) => {
      const lines = [{ glaccountid: idOf(await makeGlAccount(c)), amount: "1" }]
      return c.post("/gltransactions", { transactiondate: "2026-02-03", lines })
    }
  ],
  [
    "period_closed",
    "RULE-03",
    async (c) => {
      const payment = idOf(await makePayment(c))
      await c.settings({ closedThrough: plusDays(await today(), 30) })
      return c.del(`/payments/${payment}`)
    }
  ],
  [
    "shipto_mismatch",
    "RULE-04",
    async (c) => {
      const shiptoid = idOf(await c.create("shiptos", { customerid: idOf(await makeCustomer(c)), name: "x" }))
      const lines = [{ itemid: idOf(await makeItem(c)), qtyorder: "1", priceach: "1" }]
      return c.post("/orders", { customerid: idOf(await makeCustomer(c)), shiptoid, ordertype: "fulfillment", lines })
    }
  ],
  [
    "cannot_ship_quote",
    "RULE-05",
    async (c) => {
      const order = await makeOrder(c, { status: "quote" })
      return ship(c, order.id, order.lineIds[0])
    }
  ],
  [
    "shipqty_exceeds_remaining",
    "RULE-06",
    async (c) => {
      const order = await makeOrder(c)
      return ship(c, order.id, order.lineIds[0], "10.000001")
    }
  ],
  ["nothing_to_invoice", "RULE-07", async (c) => c.post(`/orders/${(await makeOrder(c)).id}/invoice`, {})],
  [
    "distribution_exceeds_total",
    "RULE-08",
    async (c) => {
      const apbillid = idOf(await makeBill(c, { billtotal: "10" }))
      return c.post("/apbilllines", { apbillid, glaccountid: idOf(await makeGlAccount(c)), amount: "10.0001" })
    }
  ],
  [
    "deposit_exceeds_order",
    "RULE-09",
    async (c) => c.post("/orderdeposits", { orderid: (await makeOrder(c)).id, amount: "50.0001" })
  ],
  [
    "cannot_invoice_quote",
    "RULE-10",
    async (c) => c.post(`/orders/${(await makeOrder(c, { status: "quote" })).id}/invoice`, {})
  ],
  [
    "hours_require_service_order",
    "RULE-11",
    async (c) => c.post("/serviceordertimes", { orderid: (await makeOrder(c)).id, hours: "1" })
  ]
]

describe("the error codes", () => {
  it("[ERR-02] are complete: 50 codes, each with one status", () => {
    assert.sameMembers(
      PROVOKED.map(([code]) => code),
      Object.keys(CODES)
    )
    assert.lengthOf(PROVOKED, 50)
  })

  for (const [code, fact, provoke] of PROVOKED) {
    it(`[${fact}] include ${CODES[code] ?? 0} ${code}`, async () => {
      refused(await provoke(await newCompany()), code)
    })
  }
})

describe("the code unsupported_value", () => {
  it("[CODE-29][F-17] answers a file in a custom field", async () => {
    const c = await newCompany()
    await c.put("customfields", [{ name: "scan", resource: "salesmen" }])
    const id = idOf(await makeSalesman(c))
    for (const value of [{ filename: "a.pdf", content: "AAAA" }, { file: "a.pdf" }]) {
      refused(await c.patch(`/salesmen/${id}`, { custom_fields: { scan: value } }), "unsupported_value")
    }
  })
})

keptPromises()
