/** The comparison of a write with the record of the source: by value, not by notation. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { SourceRecord } from "../../src/connector/Connector.ts"
import type { ValidRecord } from "../../src/outbox/Validate.ts"
import { differences } from "../../src/outbox/DiffWritten.ts"
import { checkerOf, decimalOf, resourceOf } from "./support.ts"

const sourceRecord = (path: string, values: Readonly<Record<string, string | null>>): SourceRecord => ({
  id: "1",
  columns: resourceOf(path).fields.map(({ name }) => values[name]),
  partial: true,
  customFields: null,
  extra: null
})

const compare = (path: string, written: string, values: Readonly<Record<string, string | null>>) =>
  differences(
    resourceOf(path),
    "create",
    (checkerOf(path).validateJson(written) as ValidRecord).text,
    sourceRecord(path, values)
  )

describe("the comparison of a write with its response", () => {
  it("covers the fields that the write sets", () => {
    const written = '{"invoiceid":1,"quantity":"2.5","price":3,"taxable":true,"description":"A","externalid":"E"}'
    const same = {
      invoiceid: "1",
      qty: "2.500000",
      priceach: "3.000000",
      taxflag: "1",
      description: "A",
      externalid: "E"
    }
    assert.deepStrictEqual(compare("invoicelines", written, same), [])
    assert.deepStrictEqual(
      compare("invoicelines", written, { ...same, qty: "2.500001", taxflag: "0", description: null, externalid: "e" }),
      [
        { field: "description", given: "A", current: null },
        { field: "quantity", given: "2.5", current: "2.500001" },
        { field: "taxable", given: "true", current: "0" },
        { field: "externalid", given: "E", current: "e" }
      ]
    )
    const untaxed = written.replace("true", "false")
    assert.deepStrictEqual(compare("invoicelines", untaxed, { ...same, taxflag: "0" }), [])
    assert.lengthOf(compare("invoicelines", untaxed, same), 1)
  })

  it("rounds decimals to the scale of the source", () => {
    const fee = (written: string, applicationfee: string) =>
      compare("areas", `{"name":"A","externalid":"E","applicationfee":"${written}"}`, { applicationfee })
    assert.deepStrictEqual(fee("1.23445", "1.2345"), [])
    assert.deepStrictEqual(fee("-1.23445", "-1.2345"), [])
    assert.deepStrictEqual(fee("1.234449", "1.2344"), [])
    assert.lengthOf(fee("1.234449", "1.2345"), 1)
    assert.deepStrictEqual(fee("-0.00001", "0.0000"), [])
    assert.deepStrictEqual(fee("0.99999", "1.0000"), [])
  })

  it("ignores padding zeros and reports every other value", () => {
    fc.assert(
      fc.property(decimalOf(4), fc.integer({ min: 1, max: 9 }), (amount, digit) => {
        const [whole = "", fraction = ""] = amount.split(".")
        const padded = `${whole.replace(/^(-?)0+(?=\d)/, "$1")}.${fraction.padEnd(4, "0")}`
        const written = `{"invoiceid":1,"amount":"${amount}","externalid":"E"}`
        assert.deepStrictEqual(compare("payments", written, { amount: padded }), [])
        const other = `${padded.slice(0, -1)}${(Number(padded.at(-1)) + digit) % 10}`
        assert.lengthOf(compare("payments", written, { amount: other }), 1)
      })
    )
  })

  it("compares a date with the day of a timestamp", () => {
    const date = (written: string, datereceived: string) =>
      compare("payments", `{"invoiceid":1,"amount":"1","externalid":"E","date":"${written}"}`, { datereceived })
    assert.deepStrictEqual(date("2026-03-16", "2026-03-16"), [])
    assert.deepStrictEqual(date("2026-03-16T23:59:59.9Z", "2026-03-16"), [])
    assert.deepStrictEqual(date("2026-03-16", "2026-03-16T10:00:00.000000Z"), [])
    assert.lengthOf(date("2026-03-16", "2026-03-17"), 1)
    const closed = (written: string, entrydate: string) =>
      compare("ardailycloses", `{"externalid":"E","entrydate":"${written}"}`, { entrydate })
    assert.deepStrictEqual(closed("2026-03-16T10:00:00Z", "2026-03-16T10:00:00.000000Z"), [])
    assert.deepStrictEqual(closed("2026-03-16", "2026-03-16T00:00:00.000000Z"), [])
    assert.lengthOf(closed("2026-03-16T10:00:00Z", "2026-03-16T10:00:00.000001Z"), 1)
  })

  it("ignores fields that the response does not contain", () => {
    const line = { apbillid: "1", glaccountid: "5", glaccount: "Revenue", amount: "1.0000" }
    const written = '{"apbillid":1,"glaccount":"Sales","amount":"1","externalid":"E"}'
    assert.deepStrictEqual(compare("apbilllines", written, line), [])
    const nested = '"lines":[{"orderlineid":1,"quantity":"1"}],"custom_fields":{"a":1}'
    const shipment = { orderid: "1", externalid: "E" }
    assert.deepStrictEqual(compare("shipments", `{"orderid":1,"externalid":"E",${nested}}`, shipment), [])
    assert.deepStrictEqual(differences(resourceOf("payments"), "cancel", "{}", sourceRecord("payments", {})), [])
  })

  it("reports a field that an update did not clear", () => {
    const shown = sourceRecord("payments", { checkid: "R", paymeth: "3" })
    const found = differences(resourceOf("payments"), "update", '{"reference":null,"method":3}', shown)
    assert.deepStrictEqual(found, [{ field: "reference", given: null, current: "R" }])
  })
})
