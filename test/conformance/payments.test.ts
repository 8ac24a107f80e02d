/** Payments: applied to posted invoices in open periods up to the balance, and reversed. */
import { assert, describe, it } from "vitest"
import {
  idOf,
  isDecimal,
  keptPromises,
  newCompany,
  plusDays,
  refused,
  row,
  succeeded,
  today,
  useServer,
  type Company
} from "./harness.ts"
import { makeCustomer, makeDraft, makePayment, makePosted } from "./world.ts"

useServer()

const pay = (c: Company, invoiceid: number, amount: unknown, more: Record<string, unknown> = {}) =>
  c.post("/payments", { invoiceid, amount, ...more })

async function paid(c: Company, invoiceid: number): Promise<unknown> {
  return (await c.read("invoices", invoiceid))["invoicepaid"]
}

describe("creating a payment", () => {
  it("[WRITE-10][WRITE-12][I-05][I-06][I-17] sets voucher and customer, and returns the paid total of the invoice", async () => {
    const c = await newCompany()
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
    isDecimal((await c.create("payments", { invoiceid: idOf(invoice), amount: "7.5" }))["invoicepaid"], "20", 4)
    isDecimal(await paid(c, idOf(invoice)), "20", 4)
  })

  it("[I-05][WRITE-12] stores no invoicepaid in the record", async () => {
    const c = await newCompany()
    const payment = await makePayment(c)
    assert.notProperty(await c.read("payments", idOf(payment)), "invoicepaid")
  })

  it("[PAYMENTS-48][STATE-10][I-15][PAYMENTS-50][X-32] is rejected for a draft", async () => {
    const c = await newCompany()
    const invoiceid = idOf(await makeDraft(c))
    refused(await pay(c, invoiceid, "1"), "rule_violation", "invoiceid")
    assert.isEmpty(await c.list("/payments?cancel=any"))
  })

  it("[I-16][WRITE-11][CODE-30][ERR-09] is limited to the open balance", async () => {
    const c = await newCompany()
    const invoiceid = idOf(await makePosted(c))
    refused(await pay(c, invoiceid, "100.0001"), "rule_violation")
    succeeded(await pay(c, invoiceid, "99.9999"), 201)
    refused(await pay(c, invoiceid, "0.0002"), "rule_violation")
    succeeded(await pay(c, invoiceid, "0.0001"), 201)
    refused(await pay(c, invoiceid, "0.0001"), "rule_violation")
    isDecimal(await paid(c, invoiceid), "100", 4)
  })

  it("[I-16][GEN-03] succeeds up to the balance among twenty concurrent requests", async () => {
    const c = await newCompany()
    const invoiceid = idOf(await makePosted(c))
    const answers = await Promise.all(Array.from({ length: 20 }, () => pay(c, invoiceid, "10")))
    assert.strictEqual(answers.filter((answer) => answer.status === 201).length, 10)
    for (const answer of answers) if (answer.status !== 201) refused(answer, "rule_violation")
    isDecimal(await paid(c, invoiceid), "100", 4)
  })

  it("[D-05][CODE-30] requires an amount above zero", async () => {
    const c = await newCompany()
    const invoiceid = idOf(await makePosted(c))
    for (const amount of ["0", "0.0000", "-1", "-0.0001"]) refused(await pay(c, invoiceid, amount), "rule_violation")
  })

  it("[RULE-03][WRITE-11][I-17] requires a date in an open period", async () => {
    const c = await newCompany()
    const invoiceid = idOf(await makePosted(c))
    const day = await today()
    await c.settings({ closedThrough: plusDays(day, -10) })
    refused(await pay(c, invoiceid, "1", { date: plusDays(day, -10) }), "period_closed")
    refused(await pay(c, invoiceid, "1", { date: plusDays(day, -400) }), "period_closed")
    succeeded(await pay(c, invoiceid, "1", { date: plusDays(day, -9) }), 201)
    await c.settings({ closedThrough: day })
    refused(await pay(c, invoiceid, "1"), "period_closed")
    isDecimal(await paid(c, invoiceid), "1", 4)
  })

  it("[PAYMENTS-07][FIELD-11][F-01] accepts both date forms", async () => {
    const c = await newCompany()
    const day = await today()
    const payment = await makePayment(c, { date: `${day}T23:59:59.999999Z` })
    assert.strictEqual(payment["datereceived"], day)
    const invoiceid = idOf(await makePosted(c))
    for (const date of ["today", "2026-02-30"])
      assert.strictEqual((await pay(c, invoiceid, "1", { date })).status, 400, date)
    refused(await pay(c, invoiceid, "1", { date: 20_260_101 }), "invalid_type", "date")
  })
})

it("[PAYMENTS-06][STATE-10][FIELD-02] a payment and its invoice have vouchers that can be read", async () => {
  const c = await newCompany()
  const invoice = await makePosted(c)
  const payment = await makePayment(c, { invoiceid: idOf(invoice) })
  assert.notStrictEqual(payment["voucherid"], invoice["voucherid"])
  for (const record of [invoice, payment]) {
    assert.strictEqual((await c.read("vouchers", Number(record["voucherid"])))["voucher"], record["voucher"])
  }
})

describe("updating a payment", () => {
  it("[WRITE-13][I-06] changes reference, method and externalid, and nothing else", async () => {
    const c = await newCompany()
    const payment = await makePayment(c, { method: 1, reference: "old" })
    const path = `/payments/${idOf(payment)}`
    assert.deepInclude(succeeded(await c.patch(path, { reference: "new", method: 4, externalid: "e" })), {
      checkid: "new",
      paymeth: 4,
      externalid: "e"
    })
    assert.deepInclude(succeeded(await c.patch(path, { reference: null })), { checkid: null, paymeth: 4 })
    refused(await c.patch(path, { method: 7 }), "invalid_enum", "method")
    for (const [name, value] of Object.entries({
      amount: "1",
      date: "2026-01-01",
      invoiceid: 1,
      checkid: "x",
      paymeth: 1,
      returned: 1,
      datereceived: "2026-01-01"
    })) {
      refused(await c.patch(path, { [name]: value }), "unknown_parameter", name)
    }
  })
})

describe("cancelling a payment", () => {
  it("[WRITE-14][I-18][SCOPE-04][GEN-09] restores the balance of the invoice and names the user", async () => {
    const c = await newCompany()
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

  it("[D-13] restores the balance once, also with concurrent cancellations", async () => {
    const c = await newCompany()
    const invoiceid = idOf(await makePosted(c))
    const first = succeeded(await pay(c, invoiceid, "40"), 201)
    succeeded(await pay(c, invoiceid, "60"), 201)
    for (const answer of await Promise.all(Array.from({ length: 5 }, () => c.del(`/payments/${idOf(first)}`))))
      succeeded(answer)
    isDecimal(await paid(c, invoiceid), "60", 4)
  })

  it("[RULE-03][WRITE-14][I-18] is rejected if the current period is closed", async () => {
    const c = await newCompany()
    const payment = await makePayment(c)
    await c.settings({ closedThrough: await today() })
    refused(await c.del(`/payments/${idOf(payment)}`), "period_closed")
    assert.strictEqual((await c.read("payments", idOf(payment)))["cancel"], false)
  })

  it("[I-18] reverses a payment of a closed period in the current one", async () => {
    const c = await newCompany()
    const day = await today()
    const payment = await makePayment(c, { date: plusDays(day, -20) })
    await c.settings({ closedThrough: plusDays(day, -10) })
    assert.strictEqual(succeeded(await c.del(`/payments/${idOf(payment)}`))["cancel"], true)
  })

  it("[I-18][CODE-16][WRITE-14][STATE-12] is rejected after a bank deposit or a statement cleared it", async () => {
    const c = await newCompany()
    for (const more of [{ bankdepositid: 5 }, { bankstatement_cleardate: "2026-01-15" }]) {
      const payment = await makePayment(c)
      await c.put("payments", [{ ...(await c.read("payments", idOf(payment))), ...more }])
      refused(await c.del(`/payments/${idOf(payment)}`), "cannot_cancel")
      assert.strictEqual((await c.read("payments", idOf(payment)))["cancel"], false)
    }
  })

  it("[PAYMENTS-53][I-14][X-09] answers 404 to an absent payment, not unknown_value", async () => {
    const c = await newCompany()
    refused(await c.del("/payments/999999999"), "not_found")
  })

  it("[CODE-16][STATE-12] is required before its invoice can be cancelled", async () => {
    const c = await newCompany()
    const invoiceid = idOf(await makePosted(c))
    const payment = succeeded(await pay(c, invoiceid, "1"), 201)
    refused(await c.del(`/invoices/${invoiceid}`), "cannot_cancel")
    succeeded(await c.del(`/payments/${idOf(payment)}`))
    assert.strictEqual((await c.read("invoices", invoiceid))["cancel"], false)
  })
})

it("[STATE-16][PAYMENTS-22] a bounced payment has returned 1", async () => {
  const c = await newCompany()
  const [bounced] = await c.put("payments", [{ returned: 1 }])
  assert.strictEqual((await c.read("payments", idOf(row(bounced))))["returned"], 1)
})

keptPromises()
