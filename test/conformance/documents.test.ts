/** Invoice lines, payments, deposits and vendor bills. */
import { assert, describe } from "vitest"
import {
  entries,
  fresh,
  idOf,
  ids,
  integer,
  isDecimal,
  it,
  keptPromises,
  plusDays,
  refused,
  row,
  rows,
  succeeded,
  text,
  today,
  useServer,
  valuesOf,
  type Company,
  type Row
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
  putOne
} from "./world.ts"
import { assertEach } from "../support/assertions.ts"

useServer()

const simpleLine = { description: "x", quantity: "1", price: "1" }

async function draft(c: Company): Promise<number> {
  return idOf(await makeDraft(c))
}

it("[WRITE-07][WRITE-09][I-05][I-06][INVOICELINES-62][INVOICELINES-06][INVOICELINES-07][INVOICELINES-11] an invoice line stores the write names in its fields, and returns the invoice's total", async (c) => {
  const invoice = await makeDraft(c)
  const item = await makeItem(c, { description: "Widget" })
  const sent = { quantity: "2.5", price: "4.123456", taxable: false, externalid: "L-1" }
  const line = await c.create("invoicelines", { invoiceid: idOf(invoice), itemid: idOf(item), ...sent })
  assert.deepInclude(line, {
    invoiceid: idOf(invoice),
    invoice: invoice["invoicenumber"],
    itemid: idOf(item),
    item: item["sku"],
    description: "Widget",
    linenumber: 2,
    taxflag: 0,
    externalid: "L-1"
  })
  isDecimal(line["qty"], "2.5", 6)
  isDecimal(line["priceach"], "4.123456", 6)
  isDecimal(line["totalprice"], "10.3086", 4)
  isDecimal(line["invoicetotal"], "110.3086", 4)
  const bare = await c.create("invoicelines", { ...simpleLine, invoiceid: idOf(invoice), taxable: true })
  assert.deepInclude(bare, { itemid: null, item: null, description: "x", taxflag: 1 })
  for (const stored of await c.list("/invoicelines")) assert.notProperty(stored, "invoicetotal")
})

it("[I-27][INVOICELINES-05][WRITE-07][I-05] an invoice line has the next linenumber, also in a batch and among concurrent requests", async (c) => {
  const invoiceid = await draft(c)
  const posted = idOf(await makePosted(c))
  const line = (more: Row) => ({ ...simpleLine, invoiceid, price: "2", taxable: false, ...more })
  assert.strictEqual((await c.create("invoicelines", line({})))["linenumber"], 2)
  const batch = [line({}), line({ invoiceid: posted }), line({ itemid: 999_999_999 }), line({})]
  const results = rows(succeeded(await c.post("/invoicelines/batch", batch), 207)["results"])
  assert.deepEqual(valuesOf(results, "status"), [201, 409, 422, 201])
  isDecimal(row(results[3]?.["record"])["invoicetotal"], "106", 4)
  for (const answer of await Promise.all(Array.from({ length: 10 }, () => c.post("/invoicelines", line({})))))
    succeeded(answer, 201)
  const numbers = (await c.list(`/invoicelines?invoiceid=${invoiceid}`)).map((each) => Number(each["linenumber"]))
  assert.deepEqual(
    numbers.sort((x, y) => x - y),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
  )
})

it("[INVOICELINES-59][RES-13][RES-16] invoice lines are accepted in the invoice request, in the same shape", async (c) => {
  const itemid = idOf(await makeItem(c))
  const invoice = await makeDraft(c, {
    lines: [
      { itemid, quantity: "2", price: "3", taxable: false },
      { description: "Work", quantity: "1.5", price: "10", taxable: false, externalid: "w" }
    ]
  })
  isDecimal(invoice["invoicetotal"], "21", 4)
  assert.isNull(invoice["voucherid"])
  const lines = await c.list(`/invoicelines?invoiceid=${idOf(invoice)}`)
  assertEach(lines, (line) => [line["itemid"], line["externalid"]], [
    [itemid, null],
    [null, "w"]
  ])
  isDecimal(lines[1]?.["totalprice"], "15", 4)
})

it("[WRITE-08][CODE-23][STATE-10][D-03] an invoice line is rejected on a posted invoice, after the checks of its body", async (c) => {
  const line = { ...simpleLine, invoiceid: idOf(await makePosted(c)) }
  await c.refuses("/invoicelines", line, "invoice_already_posted")
  await c.refuses("/invoicelines", { ...line, itemid: 999_999_999 }, "unknown_value", "itemid")
  await c.refuses("/invoicelines", { ...line, itemid: 999_999_999, quantity: 1 }, "invalid_type", "quantity")
  assert.lengthOf(await c.list(`/invoicelines?invoiceid=${line.invoiceid}`), 1)
})

it("[D-05][WRITE-08] an invoice line accepts a negative quantity, not zero", async (c) => {
  const invoiceid = await draft(c)
  const line = await c.create("invoicelines", { ...simpleLine, invoiceid, quantity: "-2", price: "3", taxable: false })
  isDecimal(line["qty"], "-2", 6)
  isDecimal(line["totalprice"], "-6", 4)
  isDecimal(line["invoicetotal"], "94", 4)
  await c.refuses("/invoicelines", { ...simpleLine, invoiceid, quantity: "0" }, "rule_violation")
})

const pay = (c: Company, invoiceid: number, amount: unknown, more: Record<string, unknown> = {}) =>
  c.post("/payments", { invoiceid, amount, ...more })

async function paid(c: Company, invoiceid: number): Promise<unknown> {
  return (await c.read("invoices", invoiceid))["invoicepaid"]
}

describe("creating a payment", () => {
  it("[WRITE-10][WRITE-12][I-05][I-06][I-17] sets voucher and customer, and returns the paid total of the invoice", async (c) => {
    const customer = await makeCustomer(c)
    const invoice = await makePosted(c, { customerid: idOf(customer) })
    const day = await today()
    const payment = await c.create("payments", {
      invoiceid: idOf(invoice),
      amount: "12.5",
      date: plusDays(day, -1),
      method: 2,
      reference: "CHK 100",
      externalid: "P-1"
    })
    assert.deepInclude(payment, {
      invoiceid: idOf(invoice),
      invoice: invoice["invoicenumber"],
      datereceived: plusDays(day, -1),
      paymeth: 2,
      checkid: "CHK 100",
      externalid: "P-1",
      customerid: idOf(customer),
      customer: customer["customercode"],
      cancel: false
    })
    assert.isTrue(Number.isInteger(payment["voucherid"]))
    isDecimal(payment["amount"], "12.5", 4)
    isDecimal(payment["invoicepaid"], "12.5", 4)
    assert.notProperty(await c.read("payments", idOf(payment)), "invoicepaid")
    isDecimal((await c.create("payments", { invoiceid: idOf(invoice), amount: "7.5" }))["invoicepaid"], "20", 4)
    isDecimal(await paid(c, idOf(invoice)), "20", 4)
  })

  it("[PAYMENTS-48][STATE-10][I-15][PAYMENTS-50][X-32] is rejected for a draft", async (c) => {
    const invoiceid = idOf(await makeDraft(c))
    refused(await pay(c, invoiceid, "1"), "rule_violation", "invoiceid")
    assert.isEmpty(await c.list("/payments?cancel=any"))
  })

  it("[PAYMENTS-07][FIELD-11][F-01][I-06][WRITE-10] accepts both date forms, and has the server's today by default", async (c) => {
    const day = await today()
    assert.include([day, await today()], (await makePayment(c))["datereceived"])
    assert.strictEqual((await makePayment(c, { date: `${day}T23:59:59.999999Z` }))["datereceived"], day)
    const invoiceid = idOf(await makePosted(c))
    for (const date of ["today", "2026-02-30"])
      assert.strictEqual((await pay(c, invoiceid, "1", { date })).status, 400, date)
  })
})

it("[PAYMENTS-06][STATE-10][FIELD-02] a payment and its invoice have vouchers that can be read", async (c) => {
  const invoice = await makePosted(c)
  const payment = await makePayment(c, { invoiceid: idOf(invoice) })
  assert.notStrictEqual(payment["voucherid"], invoice["voucherid"])
  for (const record of [invoice, payment]) {
    assert.strictEqual((await c.read("vouchers", Number(record["voucherid"])))["voucher"], record["voucher"])
  }
})

it("updating a payment [WRITE-13][I-06] changes reference, method and externalid, and nothing else", async (c) => {
  const payment = await makePayment(c, { method: 1, reference: "old" })
  const path = `/payments/${idOf(payment)}`
  assert.deepInclude(succeeded(await c.patch(path, { reference: "new", method: 4, externalid: "e" })), {
    checkid: "new",
    paymeth: 4,
    externalid: "e"
  })
  assert.deepInclude(succeeded(await c.patch(path, { reference: null })), { checkid: null, paymeth: 4 })
  refused(await c.patch(path, { method: 7 }), "invalid_enum", "method")
  refused(await c.patch(path, { date: "2026-01-01" }), "unknown_parameter", "date")
})

describe("cancelling a payment", () => {
  it("[WRITE-14][I-18][SCOPE-04][GEN-09] restores the balance of the invoice and names the user", async (c) => {
    const invoiceid = idOf(await makePosted(c))
    const payment = succeeded(await pay(c, invoiceid, "100"), 201)
    const me = succeeded(await c.get("/me"))
    const cancelled = succeeded(await c.del(`/payments/${idOf(payment)}`))
    assert.strictEqual(cancelled["cancel"], true)
    assert.strictEqual(cancelled["cancel_userid"], me["userid"])
    isDecimal(await paid(c, invoiceid), "0", 4)
    succeeded(await pay(c, invoiceid, "100"), 201)
    isDecimal(await paid(c, invoiceid), "100", 4)
  })

  it("[D-13] restores the balance once, also with concurrent cancellations", async (c) => {
    const invoiceid = idOf(await makePosted(c))
    const first = succeeded(await pay(c, invoiceid, "40"), 201)
    succeeded(await pay(c, invoiceid, "60"), 201)
    for (const answer of await Promise.all(Array.from({ length: 5 }, () => c.del(`/payments/${idOf(first)}`))))
      succeeded(answer)
    isDecimal(await paid(c, invoiceid), "60", 4)
  })

  it("[RULE-03][WRITE-14][I-18] reverses a payment of a closed period in the current one, unless that is closed", async (c) => {
    const day = await today()
    const payment = idOf(await makePayment(c, { date: plusDays(day, -20) }))
    await c.settings({ closedThrough: day })
    refused(await c.del(`/payments/${payment}`), "period_closed")
    assert.strictEqual((await c.read("payments", payment))["cancel"], false)
    await c.settings({ closedThrough: plusDays(day, -10) })
    assert.strictEqual(succeeded(await c.del(`/payments/${payment}`))["cancel"], true)
  })

  it("[I-18][CODE-16][WRITE-14][STATE-12] is rejected after a bank deposit or a statement cleared it", async (c) => {
    for (const more of [{ bankdepositid: 5 }, { bankstatement_cleardate: "2026-01-15" }]) {
      const payment = await makePayment(c)
      await c.put("payments", [{ ...(await c.read("payments", idOf(payment))), ...more }])
      refused(await c.del(`/payments/${idOf(payment)}`), "cannot_cancel")
      assert.strictEqual((await c.read("payments", idOf(payment)))["cancel"], false)
    }
  })

  it("[CODE-16][STATE-12] is required before its invoice can be cancelled", async (c) => {
    const invoiceid = idOf(await makePosted(c))
    const payment = succeeded(await pay(c, invoiceid, "1"), 201)
    refused(await c.del(`/invoices/${invoiceid}`), "cannot_cancel")
    succeeded(await c.del(`/payments/${idOf(payment)}`))
    assert.strictEqual((await c.read("invoices", invoiceid))["cancel"], false)
  })
})

it("[STATE-16][PAYMENTS-22] a bounced payment has returned 1", async (c) => {
  assert.strictEqual((await c.read("payments", await putOne(c, "payments", { returned: 1 })))["returned"], 1)
})

const deposit = (c: Company, orderid: number, amount: unknown, more: Record<string, unknown> = {}) =>
  c.post("/orderdeposits", { orderid, amount, ...more })

it("[WRITE-15][ORDERDEPOSITS-29][ORDERDEPOSITS-32][I-06][I-20][ORDERDEPOSITS-10] a deposit stores the write names in its fields, not the posting date, and posts at once", async (c) => {
  const { id: orderid } = await makeOrder(c)
  const record = await c.create("orderdeposits", {
    orderid,
    amount: "12.5",
    date: await today(),
    method: 3,
    reference: "R-1",
    externalid: "D-1"
  })
  assert.deepInclude(record, { orderid, payment_method: 3, checkid: "R-1", externalid: "D-1", cancel: false })
  isDecimal(record["amount"], "12.5", 4)
  assert.isTrue(Number.isInteger(record["voucherid"]))
  for (const name of ["date", "datereceived", "depositdate"]) assert.notProperty(record, name)
})

it("[I-19] a deposit can use the amount of a cancelled one", async (c) => {
  const { id: orderid } = await makeOrder(c)
  const record = succeeded(await deposit(c, orderid, "50"), 201)
  const [shown] = await c.list("/orderdeposits")
  await c.put("orderdeposits", [{ ...row(shown), cancel: true }])
  assert.strictEqual(row(shown)["id"], record["id"])
  succeeded(await deposit(c, orderid, "50"), 201)
})

interface Bill {
  readonly apbillid: number
  readonly account: Row
  readonly glaccountid: number
}

async function bill(c: Company, billtotal = "100"): Promise<Bill> {
  const account = await makeGlAccount(c)
  return { apbillid: idOf(await makeBill(c, { billtotal })), account, glaccountid: idOf(account) }
}

describe("a vendor bill line", () => {
  it("[WRITE-17][WRITE-19][APBILLLINES-04][APBILLLINES-05][I-05] is returned with the totals of the bill", async (c) => {
    const { apbillid, glaccountid, account } = await bill(c)
    const line = await c.create("apbilllines", { apbillid, glaccountid, amount: "30.5" })
    assert.deepInclude(line, { apbillid, glaccountid, glaccount: account["name"] })
    isDecimal(line["amount"], "30.5", 4)
    isDecimal(line["billtotal"], "100", 4)
    isDecimal(line["distributed"], "30.5", 4)
    isDecimal(line["undistributed"], "69.5", 4)
    const more = await c.create("apbilllines", { apbillid, glaccountid, amount: "69.5" })
    isDecimal(more["distributed"], "100", 4)
    isDecimal(more["undistributed"], "0", 4)
    const read = await c.read("apbilllines", idOf(line))
    for (const name of ["billtotal", "distributed", "undistributed"]) assert.notProperty(read, name)
    isDecimal((await c.read("apbills", apbillid))["distributed"], "100", 4)
    isDecimal((await c.read("apbills", apbillid))["undistributed"], "0", 4)
  })

  it("[WRITE-17][EP-12][CODE-03] requires bill, account and amount, and names each missing one", async (c) => {
    const error = refused(await c.post("/apbilllines", {}), "invalid_request")
    assert.match(entries(error).join(" "), /^amount:required apbillid:required glaccount(id)?:required$/)
  })

  it("[APBILLLINES-06][WRITE-17][F-09] names its account by id or by exact name", async (c) => {
    const { apbillid, account, glaccountid } = await bill(c)
    const name = text(account["name"])
    const made = await c.create("apbilllines", { apbillid, glaccount: name, amount: "1" })
    assert.strictEqual(made["glaccountid"], glaccountid)
    for (const wrong of [name.toUpperCase(), name.slice(1), `${name} `, "unknown"]) {
      refused(await c.post("/apbilllines", { apbillid, glaccount: wrong, amount: "1" }), "unknown_value", "glaccount")
    }
    const other = await makeGlAccount(c)
    const both = { apbillid, glaccountid, glaccount: other["name"], amount: "1" }
    await c.refuses("/apbilllines", both, "conflicting_reference")
  })

  it("[APBILLLINES-19][WRITE-20][X-13][I-23] accepts an account name of 60 characters", async (c) => {
    const { apbillid } = await bill(c)
    const name = fresh("acct").padEnd(60, "x")
    await makeGlAccount(c, { name })
    assert.strictEqual((await c.create("apbilllines", { apbillid, glaccount: name, amount: "1" }))["glaccount"], name)
  })

  it("[D-05][WRITE-18] accepts a negative amount as a reversal", async (c) => {
    const { apbillid, glaccountid } = await bill(c, "10")
    await c.create("apbilllines", { apbillid, glaccountid, amount: "10" })
    const back = await c.create("apbilllines", { apbillid, glaccountid, amount: "-3" })
    isDecimal(back["undistributed"], "3", 4)
  })

  it("[CODE-24][STATE-11][WRITE-18] is rejected on a bill with a voucher, whatever set it", async (c) => {
    const { apbillid, glaccountid } = await bill(c)
    await c.create("apbilllines", { apbillid, glaccountid, amount: "100" })
    assert.isNotNull(succeeded(await c.post(`/apbills/${apbillid}/post`, {}))["voucherid"])
    const voucherid = await putOne(c, "vouchers", { voucher: fresh("v") })
    const posted = await putOne(c, "apbills", { billtotal: "10", voucherid })
    const before = await c.list("/apbilllines")
    for (const [id, amount] of [
      [apbillid, "1"],
      [apbillid, "-1"],
      [posted, "1"]
    ])
      await c.refuses("/apbilllines", { apbillid: id, glaccountid, amount }, "apbill_already_posted")
    assert.deepEqual(await c.list("/apbilllines"), before)
  })

  // The shape of POST /apbilllines rejects the ids that do not resolve.
  it("[WRITE-18][I-22][CODE-26][APBILLLINES-08][APBILLLINES-10] has a job and a cost code", async (c) => {
    const { apbillid, glaccountid } = await bill(c)
    const jobid = await putOne(c, "jobs", { name: "House" })
    const costcodeid = await putOne(c, "costcodes", { code: "LAB" })
    const line = await c.create("apbilllines", { apbillid, glaccountid, amount: "1", jobid, costcodeid })
    assert.deepInclude(line, { jobid, costcodeid, costcode: "LAB" })
    assert.deepEqual(ids(await c.list(`/apbilllines?jobid=${jobid}`)), [idOf(line)])
  })
})

/** The documents that are accepted up to a limit: each with the limit, the least amount, and a request for an amount. */
const LIMITED: ReadonlyArray<{
  readonly path: string
  readonly facts: string
  readonly code: string
  readonly limit: number
  readonly least: string
  readonly request: (c: Company) => Promise<(amount: string, more?: Row) => Row>
}> = [
  {
    path: "shipments",
    facts: "[WRITE-01][WRITE-02][RULE-06]",
    code: "shipqty_exceeds_remaining",
    limit: 10,
    least: "0.000001",
    request: async (c) => {
      const order = await makeOrder(c)
      return (quantity) => ({ orderid: order.id, lines: [{ orderlineid: order.lineIds[0], quantity }] })
    }
  },
  {
    path: "payments",
    facts: "[WRITE-10][WRITE-11][I-16][I-17][CODE-30][ERR-09]",
    code: "rule_violation",
    limit: 100,
    least: "0.0001",
    request: async (c) => {
      const invoiceid = idOf(await makePosted(c))
      return (amount, more) => ({ invoiceid, amount, ...more })
    }
  },
  {
    path: "orderdeposits",
    facts: "[WRITE-15][WRITE-16][RULE-09][I-19][ORDERDEPOSITS-33][X-15]",
    code: "deposit_exceeds_order",
    limit: 50,
    least: "0.0001",
    request: async (c) => {
      const { id: orderid } = await makeOrder(c)
      return (amount, more) => ({ orderid, amount, ...more })
    }
  },
  {
    path: "apbilllines",
    facts: "[WRITE-17][WRITE-18][RULE-08]",
    code: "distribution_exceeds_total",
    limit: 100,
    least: "0.0001",
    request: async (c) => {
      const { apbillid, glaccountid } = await bill(c)
      return (amount) => ({ apbillid, glaccountid, amount })
    }
  }
]

for (const { path, facts, code, limit, least, request } of LIMITED) {
  describe(`the limit of ${path}`, () => {
    it(`${facts}[G-02] is exact, for single requests and for the items of a batch`, async (c) => {
      const one = await request(c)
      const [most, rest] = [`${limit * 0.6}`, `${limit * 0.4}`]
      const above = (amount: string) => amount + least.slice(1)
      await c.refuses(`/${path}`, one(above(`${limit}`)), code)
      await c.create(path, one(most))
      await c.refuses(`/${path}`, one(above(rest)), code)
      await c.create(path, one(rest))
      await c.refuses(`/${path}`, one(least), code)
      const other = await request(c)
      const batch = await c.post(`/${path}/batch`, [other(most), other(most), other(rest), other(least)])
      const results = rows(succeeded(batch, 207)["results"])
      assert.deepEqual(valuesOf(results, "status"), [201, 422, 201, 422])
      assert.strictEqual(row(results[1]?.["error"])["code"], code)
      assert.lengthOf(await c.list(`/${path}`), 4)
    })

    it(`${facts}[GEN-03] is exact among twenty concurrent requests`, async (c) => {
      const one = await request(c)
      const answers = await Promise.all(Array.from({ length: 20 }, () => c.post(`/${path}`, one(`${limit / 10}`))))
      for (const answer of answers) if (answer.status !== 201) refused(answer, code)
      assert.lengthOf(await c.list(`/${path}`), 10)
    })

    it(`${facts}[D-05][CODE-30] is for amounts above zero`, async (c) => {
      const one = await request(c)
      // A negative line of a bill is a reversal.
      const amounts = path === "apbilllines" ? ["0", "-0"] : ["0", "0.0000", "-0", "-1", `-${least}`]
      for (const amount of amounts) await c.refuses(`/${path}`, one(amount), "rule_violation")
    })

    if (path === "payments" || path === "orderdeposits") {
      it(`${facts}[RULE-03] applies to dates in an open period`, async (c) => {
        const one = await request(c)
        const day = await today()
        await c.settings({ closedThrough: plusDays(day, -10) })
        for (const days of [-10, -400])
          await c.refuses(`/${path}`, one("1", { date: plusDays(day, days) }), "period_closed")
        await c.create(path, one("1", { date: plusDays(day, -9) }))
        await c.settings({ closedThrough: day })
        await c.refuses(`/${path}`, one("1"), "period_closed")
      })
    }
  })
}

/** The documents that are posted. */
const POSTED = [
  {
    path: "invoices",
    facts: "[STATE-10][SCOPE-09]",
    code: "invoice_already_posted",
    make: makeDraft,
    date: "invoicedate"
  },
  { path: "apbills", facts: "[STATE-11]", code: "apbill_already_posted", make: makeBill, date: "billdate" }
] as const

for (const { path, facts, code, make, date } of POSTED) {
  it(`${facts}[STATE-09][SPECIAL-08][J-07][CODE-05] posting sets the voucher of ${path} once, with an empty body or none`, async (c) => {
    const area = path === "apbills" ? "bills" : path
    const poster = await c.with(`${area}:write`)
    for (const body of [undefined, {}]) {
      const record = await make(c)
      assert.isNull(record["voucherid"])
      const url = `/${path}/${idOf(record)}/post`
      refused(await (await c.with(`${area}:read`, `${area}:cancel`)).post(url, {}), "insufficient_scope")
      await poster.refuses(url, { bogus: 1 }, "unknown_parameter", "bogus")
      assert.isNull((await c.read(path, idOf(record)))["voucherid"])
      const posted = succeeded(await poster.post(url, body))
      integer(posted["voucherid"])
      assert.strictEqual(posted["id"], record["id"])
      await poster.refuses(url, body, code)
    }
    await poster.refuses(`/${path}/999999999/post`, {}, "not_found")
  })

  it(`[RULE-03][J-07][STATE-09] posting is rejected in a closed period: ${path}`, async (c) => {
    const day = await today()
    const closed = idOf(await make(c, { [date]: plusDays(day, -10) }))
    await c.settings({ closedThrough: plusDays(day, -10) })
    await c.refuses(`/${path}/${closed}/post`, {}, "period_closed")
    assert.isNull((await c.read(path, closed))["voucherid"])
    succeeded(await c.post(`/${path}/${idOf(await make(c, { [date]: day }))}/post`, {}))
  })
}

keptPromises()
