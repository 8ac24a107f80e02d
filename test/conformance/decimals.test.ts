/** Decimals: strings with a scale, never numbers, never rounded, always padded. */
import { describe } from "vitest"
import {
  fresh,
  idOf,
  isDecimal,
  it,
  keptPromises,
  MALFORMED_DECIMALS,
  refused,
  succeeded,
  useServer
} from "./harness.ts"
import { makeDraft, makeOrder, makePosted, orderLines } from "./world.ts"

useServer()

it("a writable decimal [WRITE-01][FIELD-07][CODE-08][CODE-04] of shipment quantities accepts 6 decimals, as a string", async (c) => {
  const order = await makeOrder(c)
  const ship = (quantity: unknown) =>
    c.post("/shipments", { orderid: order.id, lines: [{ orderlineid: order.lineIds[0], quantity }] })
  for (const value of ["1.0000000", "0.1234567"]) refused(await ship(value), "invalid_precision", "lines[0].quantity")
  for (const value of [1, 1.5, true, ...MALFORMED_DECIMALS])
    refused(await ship(value), "invalid_type", "lines[0].quantity")
  succeeded(await ship("0.000001"), 201)
  succeeded(await ship("1.123456"), 201)
  isDecimal((await orderLines(c, order.id))[0]?.["qtyship"], "1.123457", 6)
})

describe("a decimal value", () => {
  it("[FIELD-05] keeps digits beyond a double, as it is never a float", async (c) => {
    const values = [
      "123456789012345.678",
      "9007199254740993.001",
      "0.001",
      "-0.001",
      "999999999999.999",
      "-123456789012345.678"
    ]
    for (const value of values) {
      const record = await c.create("salesmen", { name: fresh("d"), commissionrate: value })
      isDecimal(record["commissionrate"], value, 3, value)
      isDecimal((await c.read("salesmen", idOf(record)))["commissionrate"], value, 3, value)
    }
  })

  it("[INVOICELINES-20][WRITE-09] of a total is exact where floats are not", async (c) => {
    const sums: ReadonlyArray<readonly [string, string, string]> = [
      ["3", "0.1", "0.3"],
      ["1.1", "1.1", "1.21"],
      ["100", "1.005", "100.5"],
      ["0.07", "100", "7"],
      ["1000000", "4.35", "4350000"],
      ["3", "33.3333", "99.9999"]
    ]
    const invoiceid = idOf(await makeDraft(c))
    for (const [quantity, price, total] of sums) {
      const line = await c.create("invoicelines", { invoiceid, description: "x", quantity, price, taxable: false })
      isDecimal(line["totalprice"], total, 4, `${quantity} x ${price}`)
    }
  })

  it("[WRITE-09][WRITE-12][I-05] of a sum is exact where floats are not", async (c) => {
    const lines = Array.from({ length: 10 }, () => ({ description: "x", quantity: "1", price: "0.1", taxable: false }))
    const invoice = await makePosted(c, { lines })
    isDecimal(invoice["invoicetotal"], "1", 4)
    for (let i = 0; i < 9; i += 1)
      succeeded(await c.post("/payments", { invoiceid: idOf(invoice), amount: "0.1" }), 201)
    const last = await c.create("payments", { invoiceid: idOf(invoice), amount: "0.1" })
    isDecimal(last["invoicepaid"], "1", 4)
    refused(await c.post("/payments", { invoiceid: idOf(invoice), amount: "0.0001" }), "rule_violation")
  })
})

keptPromises()
