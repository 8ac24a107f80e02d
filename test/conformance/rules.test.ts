/** The documented rules outside sales: journals, purchase orders, hours, and the states of an order. */
import { assert, describe } from "vitest"
import {
  allowed,
  fresh,
  idOf,
  integer,
  isDecimal,
  it,
  keptPromises,
  newCompany,
  plusDays,
  refused,
  refusedEntries,
  row,
  rows,
  succeeded,
  today,
  useServer,
  valuesOf,
  type Company,
  type Row
} from "./harness.ts"
import {
  BODIES,
  makeCustomer,
  makeDeposit,
  makeGlAccount,
  makeItem,
  makeLocation,
  makeOrder,
  makePurchaseOrder,
  makeServiceOrder,
  makeShipment,
  makeVendor,
  orderLines,
  purchaseOrderLines,
  putOne
} from "./world.ts"

useServer()

const simpleLine = { description: "x", qtyorder: "1", priceach: "1" }

describe("a journal set", () => {
  interface Books {
    readonly c: Company
    readonly set: (...amounts: string[]) => Row
    readonly accounts: readonly Row[]
  }
  async function books(): Promise<Books> {
    const c = await newCompany()
    const accounts = [await makeGlAccount(c), await makeGlAccount(c)]
    return {
      c,
      accounts,
      set: (...amounts) => ({
        transactiondate: "2026-02-03",
        description: "a journal",
        lines: amounts.map((amount, i) => ({ glaccountid: idOf(accounts[i % 2] as Row), amount }))
      })
    }
  }

  it("[RULE-01][GEN-03] has signed amounts that sum to exactly zero", async () => {
    const { c, set } = await books()
    refused(await c.post("/gltransactions", set("10", "-9.9999")), "gl_set_unbalanced")
    refused(await c.post("/gltransactions", set("10", "10")), "gl_set_unbalanced")
    await c.refuses("/gltransactions", set("9007199254740993.0001", "-9007199254740993.0000"), "gl_set_unbalanced")
    assert.isEmpty(await c.list("/gltransactions"))
    const made = await c.create("gltransactions", set("0.1", "0.2", "-0.3"))
    integer(made["voucherid"])
    assert.lengthOf(await c.list("/gltransactions"), 1)
  })

  it("[RULE-02] has at least two lines", async () => {
    const { c, set } = await books()
    for (const amounts of [[], ["0"], ["10"]]) await c.refuses("/gltransactions", set(...amounts), "gl_set_too_short")
    assert.isEmpty(await c.list("/gltransactions"))
  })

  it("[RULE-03][RULE-01] of a closed period is rejected", async () => {
    const { c, set } = await books()
    const day = await today()
    await c.settings({ closedThrough: plusDays(day, -10) })
    await c.refuses("/gltransactions", { ...set("1", "-1"), transactiondate: plusDays(day, -10) }, "period_closed")
    succeeded(await c.post("/gltransactions", { ...set("1", "-1"), transactiondate: plusDays(day, -9) }), 201)
  })

  it("[RULE-01][CODE-26][FIELD-02][FIELD-05] has lines with an account by id or name, and a money amount", async () => {
    const { c, accounts } = await books()
    const [a, b] = accounts as [Row, Row]
    const lines = (first: Row) => ({
      transactiondate: "2026-02-03",
      lines: [first, { glaccountid: idOf(b), amount: "-1" }]
    })
    const made = await c.create("gltransactions", lines({ glaccount: a["name"], amount: "1" }))
    const [line] = rows((await c.read("gltransactions", idOf(made)))["lines"])
    assert.strictEqual(line?.["glaccountid"], idOf(a))
    isDecimal(line?.["amount"], "1", 4)
    for (const [name, value, code] of [
      ["glaccountid", 999_999_999, "unknown_value"],
      ["amount", 1, "invalid_type"],
      ["amount", "1.00001", "invalid_precision"]
    ] as const) {
      const line = { glaccountid: idOf(a), amount: "1", [name]: value }
      await c.refuses("/gltransactions", lines(line), code, `lines[0].${name}`)
    }
  })

  it("[SCOPE-16][SCOPE-24] belongs to an area of its own", async () => {
    const { c, set } = await books()
    const made = idOf(await c.create("gltransactions", set("1", "-1")))
    const reader = await c.with("gltransactions:read")
    assert.strictEqual(idOf(await reader.read("gltransactions", made)), made)
    refused(await (await c.with("glaccounts:read", "invoices:read")).get("/gltransactions"), "insufficient_scope")
    refused(await (await c.with("glaccounts:write")).post("/gltransactions", set("1", "-1")), "insufficient_scope")
    assert.notInclude(allowed(await c.patch(`/gltransactions/${made}`, {})), "PATCH")
  })
})

describe("a purchase order", () => {
  it("[CODE-22][STATE-14][X-20] rejects changes and lines while complete, until complete is false again", async (c) => {
    const id = idOf(await makePurchaseOrder(c))
    const url = `/purchaseorders/${id}`
    const line = { purchaseorderid: id, ...simpleLine }
    assert.strictEqual(succeeded(await c.patch(url, { complete: true }))["complete"], true)
    refused(await c.patch(url, { externalid: "x" }), "po_complete")
    refused(await c.patch(url, { complete: false, externalid: "x" }), "po_complete")
    refused(await c.post("/purchaseorderlines", line), "po_complete")
    assert.strictEqual((await c.read("purchaseorders", id))["externalid"], null)
    assert.strictEqual(succeeded(await c.patch(url, { complete: false }))["complete"], false)
    assert.strictEqual(succeeded(await c.patch(url, { externalid: "x" }))["externalid"], "x")
    succeeded(await c.post("/purchaseorderlines", line), 201)
  })

  it("[CODE-18] keeps received lines at their received quantity, and accepts no new line", async (c) => {
    const id = idOf(await makePurchaseOrder(c))
    const [line] = await purchaseOrderLines(c, id)
    const lineId = idOf(row(line))
    await c.create("purchaseorderreceipts", {
      purchaseorderid: id,
      receiptdate: "2026-02-04",
      lines: [{ purchaseorderlineid: lineId, quantity: "4" }]
    })
    isDecimal((await purchaseOrderLines(c, id))[0]?.["qtyreceived"], "4", 6)
    refused(await c.del(`/purchaseorderlines/${lineId}`), "line_has_receipts")
    refused(await c.patch(`/purchaseorderlines/${lineId}`, { qtyorder: "3.999999" }), "line_has_receipts")
    await c.refuses("/purchaseorderlines", { purchaseorderid: id, ...simpleLine }, "line_has_receipts")
    isDecimal(succeeded(await c.patch(`/purchaseorderlines/${lineId}`, { qtyorder: "4" }))["qtyorder"], "4", 6)
    assert.lengthOf(await purchaseOrderLines(c, id), 1)
  })

  it("[STATE-14][FIELD-06] has a total that the server computes", async (c) => {
    const made = await makePurchaseOrder(c, {
      lines: [
        { description: "a", qtyorder: "3", priceach: "0.1" },
        { description: "b", qtyorder: "1", priceach: "2" }
      ]
    })
    isDecimal((await c.read("purchaseorders", idOf(made)))["ordertotal"], "2.3", 4)
    assert.isNotNull((await makePurchaseOrder(c, { vendorid: idOf(await makeVendor(c)) }))["vendor"])
  })
})

describe("a line within a document", () => {
  for (const [path, name] of [
    ["purchaseorders", "qtyorder"],
    ["orders", "qtyorder"],
    ["invoices", "quantity"],
    ["inventorycounts", "counted"]
  ] as const) {
    it(`[ERR-06][INVOICELINES-59][FIELD-05][FIELD-06][CODE-05] with an error is named by its position, and nothing is stored: ${path}`, async (c) => {
      const top = row(await BODIES[path]?.(c))
      const [good] = rows(top["lines"]) as [Row]
      const before = (await c.list(`/${path}?cancel=any`)).length
      const post = (second: unknown) => c.post(`/${path}`, { ...top, lines: [good, second] })
      refused(await post({ ...good, [name]: 1 }), "invalid_type", `lines[1].${name}`)
      refused(await post({ ...good, [name]: "1.1111111" }), "invalid_precision", `lines[1].${name}`)
      refused(await post({ ...good, bogus: 1 }), "unknown_parameter", "lines[1].bogus")
      const wrongLine = { ...good, [name]: 1 }
      refusedEntries(
        await c.post(`/${path}`, { ...top, lines: [wrongLine, good, wrongLine] }),
        `lines[0].${name}:invalid_type`,
        `lines[2].${name}:invalid_type`
      )
      // D-03: unknown fields are found before types.
      refused(await post({ ...wrongLine, bogus: 1 }), "unknown_parameter", "lines[1].bogus")
      for (const wrong of ["x", 1, null, []]) assert.strictEqual((await post(wrong)).status, 400)
      for (const wrong of ["x", 1, {}])
        refused(await c.post(`/${path}`, { ...top, lines: wrong }), "invalid_type", "lines")
      assert.lengthOf(await c.list(`/${path}?cancel=any`), before)
      succeeded(await post(good), 201)
    })
  }
})

describe("an entry of hours", () => {
  it("[SPECIAL-09][J-08] is created on a service order", async (c) => {
    const order = await makeServiceOrder(c)
    const made = await c.create("serviceordertimes", { orderid: order.id, hours: "1.5", date: "2026-02-03", note: "n" })
    assert.deepInclude(made, { orderid: order.id, date: "2026-02-03", note: "n", status: 0 })
    isDecimal(made["hours"], "1.5", 6)
    assert.deepEqual(await c.read("serviceordertimes", idOf(made)), made)
    refused(await c.post("/serviceordertimes", { orderid: 999_999_999, hours: "1" }), "unknown_value", "orderid")
    const error = refused(await c.post("/serviceordertimes", {}), "invalid_request")
    assert.includeMembers(valuesOf(rows(error["errors"]), "field"), ["orderid", "hours"])
  })

  it("[RULE-11][SPECIAL-09] is rejected on any other order", async (c) => {
    for (const ordertype of ["fulfillment", "rental"]) {
      const order = await makeOrder(c, { ordertype })
      refused(await c.post("/serviceordertimes", { orderid: order.id, hours: "1" }), "hours_require_service_order")
    }
    assert.isEmpty(await c.list("/serviceordertimes"))
  })

  it("[STATE-02][STATE-07][CODE-19][SPECIAL-09][K-02] is rejected on a billed service order, which stays billed", async (c) => {
    const order = await makeServiceOrder(c)
    await makeShipment(c, order, "10")
    succeeded(await c.post(`/orders/${order.id}/invoice`, {}), 201)
    assert.strictEqual((await c.read("orders", order.id))["status"], "billed")
    refused(await c.post("/serviceordertimes", { orderid: order.id, hours: "1" }), "order_already_billed")
    assert.strictEqual((await c.read("orders", order.id))["status"], "billed")
    assert.isEmpty(await c.list("/serviceordertimes"))
  })

  it("[CODE-20][STATE-15][J-08] of status 2, which the server sets, is neither changed nor cancelled, unlike others", async (c) => {
    const order = await makeServiceOrder(c)
    const id = await putOne(c, "serviceordertimes", { orderid: order.id, hours: "1.000000", status: 2 })
    refused(await c.patch(`/serviceordertimes/${id}`, { note: "x" }), "hours_already_billed")
    refused(await c.del(`/serviceordertimes/${id}`), "hours_already_billed")
    assert.deepInclude(await c.read("serviceordertimes", id), { status: 2, cancel: false })
    const made = await c.create("serviceordertimes", { orderid: order.id, hours: "1", status: 2 })
    assert.strictEqual(made["status"], 0)
    const open = idOf(made)
    const changed = succeeded(await c.patch(`/serviceordertimes/${open}`, { status: 2, note: "x" }))
    assert.deepInclude(changed, { status: 0, note: "x" })
    assert.strictEqual(succeeded(await c.del(`/serviceordertimes/${open}`))["cancel"], true)
  })

  it("[SPECIAL-09][C-09][SCOPE-08] requires the scope of orders", async (c) => {
    const order = await makeServiceOrder(c)
    const hours = { orderid: order.id, hours: "1" }
    await (await c.with("orders:write")).create("serviceordertimes", hours)
    await (await c.with("projects:write")).refuses("/serviceordertimes", hours, "insufficient_scope")
  })
})

describe("an order", () => {
  it("[STATE-01][K-01] has one of three types and five statuses, or is invalid_enum", async (c) => {
    for (const ordertype of ["fulfillment", "service", "rental"])
      assert.strictEqual((await makeOrder(c, { ordertype })).order["ordertype"], ordertype)
    const customerid = idOf(await makeCustomer(c))
    for (const [name, value] of [
      ["ordertype", "sale"],
      ["ordertype", "Service"],
      ["status", "closed"],
      ["status", "OPEN"]
    ] as const) {
      refused(await c.post("/orders", { customerid, [name]: value, lines: [] }), "invalid_enum", name)
    }
  })

  it("[STATE-03][K-03] commits its stock when it changes from quote to open", async (c) => {
    const location = await makeLocation(c)
    const itemid = idOf(await makeItem(c))
    const quote = await makeOrder(c, {
      status: "quote",
      inventorylocationid: idOf(location),
      lines: [{ itemid, qtyorder: "10", priceach: "5" }]
    })
    const committed = async () =>
      rows(succeeded(await c.get(`/items/${itemid}/stock`))["locations"]).find(
        (each) => each["inventorylocationid"] === idOf(location)
      )?.["committed"] ?? "0.000000"
    isDecimal(await committed(), "0", 6)
    succeeded(await c.patch(`/orders/${quote.id}`, { status: "open" }))
    isDecimal(await committed(), "10", 6)
    await makeShipment(c, quote, "4")
    isDecimal(await committed(), "6", 6)
  })

  it("[STATE-06][RULE-07][ORDERDEPOSITS-30][SPECIAL-03][J-03] with a deposit alone is invoiceable", async (c) => {
    const order = await makeOrder(c)
    await c.refuses(`/orders/${order.id}/invoice`, {}, "nothing_to_invoice")
    await makeDeposit(c, { orderid: order.id, amount: "20" })
    const invoice = succeeded(await c.post(`/orders/${order.id}/invoice`, {}), 201)
    assert.isNull(invoice["voucherid"])
    const lines = await c.list(`/invoicelines?invoiceid=${idOf(invoice)}`)
    assert.lengthOf(lines, 1)
    assert.deepInclude(lines[0], { description: "Deposit", itemid: null })
    isDecimal(lines[0]?.["totalprice"], "20", 4)
  })

  it("[SHIPMENTS-16][C-12] accepts a nested shipment, with the scope of shipments", async (c) => {
    const customerid = idOf(await makeCustomer(c))
    const body = {
      ordertype: "fulfillment",
      customerid,
      externalid: fresh("nest"),
      lines: [{ itemid: idOf(await makeItem(c)), qtyorder: "10", priceach: "5" }],
      shipments: [{ lines: [{ linenumber: 1, quantity: "4" }] }]
    }
    refused(await (await c.with("orders:write")).post("/orders", body), "insufficient_scope")
    const answer = await c.post("/orders", body)
    if (answer.status === 201) {
      const order = idOf(row(answer.json))
      assert.lengthOf(await c.list(`/shipments?orderid=${order}`), 1)
      isDecimal((await orderLines(c, order))[0]?.["qtyship"], "4", 6)
    } else {
      // The documents do not state how a nested line names its order line. They do state that `shipments` is a field of
      // an order.
      assert.include([400, 422], answer.status)
      assert.match(String(row(row(answer.json)["error"])["field"]), /^shipments\[0\]/, answer.text)
    }
  })

  it("[RES-16] accepts nested hours on a service order", async (c) => {
    const answer = await c.post("/orders", {
      ordertype: "service",
      customerid: idOf(await makeCustomer(c)),
      lines: [simpleLine],
      hours: [{ hours: "1.5", note: "nested" }]
    })
    const order = idOf(succeeded(answer, 201))
    const [entry] = (await c.list("/serviceordertimes")).filter((each) => each["orderid"] === order)
    isDecimal(entry?.["hours"], "1.5", 6)
  })

  it("[STATE-07][CODE-17][K-05] keeps shipped lines at their shipped quantity, and accepts no new line", async (c) => {
    const order = await makeOrder(c)
    await makeShipment(c, order, "4")
    const line = `/orderlines/${order.lineIds[0] ?? 0}`
    refused(await c.del(line), "line_has_shipped")
    refused(await c.patch(line, { qtyorder: "3.999999" }), "line_has_shipped")
    await c.refuses("/orderlines", { orderid: order.id, ...simpleLine }, "line_has_shipped")
    succeeded(await c.patch(line, { qtyorder: "4" }))
  })
})

keptPromises()
