/** Invoice lines: added to drafts only, in their simplified shape. */
import { assert, it } from "vitest"
import {
  fresh,
  idOf,
  isDecimal,
  keptPromises,
  newCompany,
  plusDays,
  refused,
  refusedEntries,
  succeeded,
  today,
  useServer,
  type Company
} from "./harness.ts"
import { makeCustomer, makeDraft, makeItem, makePosted } from "./world.ts"

useServer()

async function draft(c: Company): Promise<number> {
  return idOf(await makeDraft(c))
}

it("[WRITE-07][WRITE-09][I-05][I-06][INVOICELINES-62] an invoice line stores the write names in its fields, and returns the invoice's total", async () => {
  const c = await newCompany()
  const invoice = await makeDraft(c)
  const item = await makeItem(c, { description: "Widget" })
  const line = await c.create("invoicelines", {
    invoiceid: idOf(invoice),
    itemid: idOf(item),
    description: "Blue widget",
    quantity: "2.5",
    price: "4.123456",
    taxable: false,
    externalid: "L-1"
  })
  assert.deepInclude(line, {
    invoiceid: idOf(invoice),
    invoice: invoice["invoicenumber"],
    itemid: idOf(item),
    item: item["sku"],
    description: "Blue widget",
    linenumber: 2,
    taxflag: 0,
    externalid: "L-1"
  })
  isDecimal(line["qty"], "2.5", 6)
  isDecimal(line["priceach"], "4.123456", 6)
  isDecimal(line["totalprice"], "10.3086", 4)
  isDecimal(line["invoicetotal"], "110.3086", 4)
})

it("[I-05] an invoice line does not store the sums of its create response", async () => {
  const c = await newCompany()
  const line = await c.create("invoicelines", {
    invoiceid: await draft(c),
    description: "x",
    quantity: "1",
    price: "1"
  })
  const [shown] = (await c.list("/invoicelines")).filter((each) => each["id"] === line["id"])
  assert.isDefined(shown)
  assert.notProperty(shown, "invoicetotal")
})

it("[WRITE-07][INVOICELINES-07] an invoice line has the item's description by default", async () => {
  const c = await newCompany()
  const itemid = idOf(await makeItem(c, { description: "Widget" }))
  const line = await c.create("invoicelines", { invoiceid: await draft(c), itemid, quantity: "1", price: "1" })
  assert.strictEqual(line["description"], "Widget")
})

it("[WRITE-07][INVOICELINES-06] an invoice line without an item has a description", async () => {
  const c = await newCompany()
  const line = await c.create("invoicelines", {
    invoiceid: await draft(c),
    description: "Work",
    quantity: "1",
    price: "1"
  })
  assert.deepInclude(line, { itemid: null, item: null, description: "Work" })
})

it("[WRITE-07][INVOICELINES-11][I-06] an invoice line shows taxable as taxflag 1 or 0", async () => {
  const c = await newCompany()
  const invoiceid = await draft(c)
  const line = (taxable: boolean) =>
    c.create("invoicelines", { invoiceid, description: "x", quantity: "1", price: "1", taxable })
  assert.strictEqual((await line(true))["taxflag"], 1)
  assert.strictEqual((await line(false))["taxflag"], 0)
})

it("[I-27][INVOICELINES-05] an invoice line has the next linenumber, from 1", async () => {
  const c = await newCompany()
  const invoice = await makeDraft(c, {
    lines: [
      { description: "a", quantity: "1", price: "1" },
      { description: "b", quantity: "1", price: "1" }
    ]
  })
  for (const number of [3, 4]) {
    const line = await c.create("invoicelines", {
      invoiceid: idOf(invoice),
      description: "x",
      quantity: "1",
      price: "1"
    })
    assert.strictEqual(line["linenumber"], number)
  }
  const all = await c.list(`/invoicelines?invoiceid=${idOf(invoice)}`)
  assert.deepEqual(
    all.map((line) => line["linenumber"]),
    [1, 2, 3, 4]
  )
})

it("[I-27] invoice lines that are created concurrently have different numbers", async () => {
  const c = await newCompany()
  const invoiceid = await draft(c)
  const answers = await Promise.all(
    Array.from({ length: 10 }, () =>
      c.post("/invoicelines", { invoiceid, description: "x", quantity: "1", price: "1" })
    )
  )
  const numbers = answers.map((answer) => Number(succeeded(answer, 201)["linenumber"])).sort((x, y) => x - y)
  assert.deepEqual(numbers, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
})

it("[INVOICELINES-59][RES-13][RES-16] invoice lines are accepted in the invoice request, in the same shape", async () => {
  const c = await newCompany()
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
  assert.deepEqual(
    lines.map((line) => [line["itemid"], line["externalid"]]),
    [
      [itemid, null],
      [null, "w"]
    ]
  )
  isDecimal(lines[1]?.["totalprice"], "15", 4)
})

it("[ERR-06][INVOICELINES-59] an error in a nested line is named with its position, and creates nothing", async () => {
  const c = await newCompany()
  const customerid = idOf(await makeCustomer(c))
  const body = (line: Record<string, unknown>) => ({
    invoicenumber: fresh("i"),
    customerid,
    lines: [{ description: "a", quantity: "1", price: "1" }, line]
  })
  refused(
    await c.post("/invoices", body({ description: "b", quantity: 1, price: "1" })),
    "invalid_type",
    "lines[1].quantity"
  )
  refused(
    await c.post("/invoices", body({ description: "b", quantity: "1.1234567", price: "1" })),
    "invalid_precision",
    "lines[1].quantity"
  )
  refusedEntries(await c.post("/invoices", body({ description: "b", price: "1" })), "lines[1].quantity:required")
  refused(
    await c.post("/invoices", body({ itemid: 999_999_999, quantity: "1", price: "1" })),
    "unknown_value",
    "lines[1].itemid"
  )
  assert.isEmpty(await c.list("/invoices?cancel=any"))
  assert.isEmpty(await c.list("/invoicelines"))
})

it("[WRITE-08][CODE-23][STATE-10] an invoice line is rejected on a posted invoice", async () => {
  const c = await newCompany()
  const invoiceid = idOf(await makePosted(c))
  refused(
    await c.post("/invoicelines", { invoiceid, description: "x", quantity: "1", price: "1" }),
    "invoice_already_posted"
  )
  assert.lengthOf(await c.list(`/invoicelines?invoiceid=${invoiceid}`), 1)
})

it("[STATE-09][STATE-10][SPECIAL-08][J-07][SCOPE-09] posting an invoice sets its voucher, once", async () => {
  const c = await newCompany()
  const invoice = await makeDraft(c)
  assert.isNull(invoice["voucherid"])
  const poster = await c.with("invoices:write")
  const posted = succeeded(await poster.post(`/invoices/${idOf(invoice)}/post`, {}))
  assert.isTrue(Number.isInteger(posted["voucherid"]))
  assert.strictEqual(posted["id"], invoice["id"])
  refused(await poster.post(`/invoices/${idOf(invoice)}/post`, {}), "invoice_already_posted")
  refused(await c.post("/invoices/999999999/post", {}), "not_found")
  const reader = await c.with("invoices:read", "invoices:cancel")
  refused(await reader.post(`/invoices/${idOf(invoice)}/post`, {}), "insufficient_scope")
})

it("[J-07][D-07] posting an invoice accepts an empty body or none", async () => {
  const c = await newCompany()
  succeeded(await c.post(`/invoices/${await draft(c)}/post`))
  succeeded(await c.post(`/invoices/${await draft(c)}/post`, {}))
})

it("[J-07][RULE-03][STATE-09] an invoice of a closed period is not posted and stays a draft", async () => {
  const c = await newCompany()
  const day = await today()
  const id = idOf(await makeDraft(c, { invoicedate: plusDays(day, -20) }))
  await c.settings({ closedThrough: plusDays(day, -10) })
  refused(await c.post(`/invoices/${id}/post`, {}), "period_closed")
  assert.isNull((await c.read("invoices", id))["voucherid"])
  succeeded(await c.post(`/invoices/${await draft(c)}/post`, {}))
})

it("[D-03] an invoice line checks its references before the state of the invoice", async () => {
  const c = await newCompany()
  const invoiceid = idOf(await makePosted(c))
  refused(
    await c.post("/invoicelines", { invoiceid, itemid: 999_999_999, quantity: "1", price: "1" }),
    "unknown_value",
    "itemid"
  )
  refused(
    await c.post("/invoicelines", { invoiceid, itemid: 999_999_999, quantity: 1, price: "1" }),
    "invalid_type",
    "quantity"
  )
})

it("[D-05][WRITE-08] an invoice line accepts a negative quantity, not zero", async () => {
  const c = await newCompany()
  const invoiceid = await draft(c)
  const line = await c.create("invoicelines", {
    invoiceid,
    description: "back",
    quantity: "-2",
    price: "3",
    taxable: false
  })
  isDecimal(line["qty"], "-2", 6)
  isDecimal(line["totalprice"], "-6", 4)
  isDecimal(line["invoicetotal"], "94", 4)
  refused(await c.post("/invoicelines", { invoiceid, description: "x", quantity: "0", price: "3" }), "rule_violation")
})

keptPromises()
