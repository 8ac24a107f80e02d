/** Odd values, fields and answers of an installation. */
import { assert, describe } from "@effect/vitest"
import { toJson } from "../../src/cli/Output.ts"
import { change, compare, type Intercept, installation, shown } from "./support.ts"
import { test } from "../support/suite.ts"

const put = (resource: string, records: ReadonlyArray<Readonly<Record<string, unknown>>>) => ({
  company: 1,
  resource,
  records,
  at: "2026-03-01T00:00:00.123456Z"
})

/** A salesman of whom every text would identify a person. */
const secretName = "Bartholomew Featherstonehaugh"

describe("the values of records", () => {
  test("are compared with the catalogue, and shown by their shape only", function* () {
    const one = yield* installation("empty")
    change(
      one,
      "POST",
      "/records",
      put("customers", [{ id: 1, customercode: "A-1", name: secretName.repeat(5), creditlimit: "1.23456" }])
    )
    change(
      one,
      "POST",
      "/records",
      put("customers", [{ id: 2, customercode: null, creditlimit: 12.5, favourite: secretName }])
    )
    change(one, "POST", "/records", put("salesmen", [{ id: 1, name: "Ada", cancel: 1 }]))
    change(
      one,
      "POST",
      "/records",
      put("invoicelines", [
        { id: 1, linetype: 77, period: "Q", linedate: "whenever", qty: "one" },
        { id: 2, linedate: "later" }
      ])
    )
    change(
      one,
      "POST",
      "/records",
      put("orders", [{ id: 1, status: "forgotten", orderdate: "2026-02-28T12:30:00Z", ordertotal: "12.5" }])
    )
    const { report, recording } = yield* compare(one)
    assert.deepStrictEqual(shown(report).toSorted(), [
      "date.form orders.orderdate: 1 of 3 dates are timestamps",
      "field.form customers.creditlimit: a JSON number with decimals, where the field is a decimal in a text",
      "field.form salesmen.cancel: a JSON integer, where the field is a boolean",
      "field.length customers.name: 145 characters, where the field has 100",
      "field.null customers.customercode: null",
      "field.padding orders.ordertotal: 1 decimal, where the field shows 4",
      "field.precision customers.creditlimit: 5 decimals, where the field has 4",
      "field.type invoicelines.linedate: a text of 8 characters, where the field is date; 2 of 2 values",
      "field.type invoicelines.qty: a text of 3 characters, where the field is qty of 6 decimals; 1 of 1 value: an odd value",
      "field.unknown customers.favourite: a text of 29 characters",
      "field.values invoicelines.linetype: the value 77, which is none of the 6 values",
      "field.values invoicelines.period: a text of 1 character, which is none of the 4 values",
      "field.values orders.status: a text of 9 characters, which is none of the 5 values"
    ])
    const patch = report.patch.map(({ resource, field, change: kind, to, command }) => [
      resource,
      field,
      kind,
      to,
      command
    ])
    assert.deepStrictEqual(
      patch.filter(([resource]) => resource === "customers"),
      [
        ["customers", "creditlimit", "scale", "5 decimals or more", null],
        ["customers", "favourite", "add", "text", "tributary schema apply --field customers.favourite --type text"],
        ["customers", "name", "length", "145 characters or more", null]
      ]
    )
    assert.deepStrictEqual(
      patch.filter(([, , kind]) => kind === "type"),
      [["invoicelines", "linedate", "type", "a type that holds a text of 8 characters", null]]
    )
    for (const text of [toJson(report), recording]) {
      assert.notInclude(text, "Bartholomew")
      assert.notInclude(text, "forgotten")
      assert.notInclude(text, "whenever")
    }
  })

  test("are compared inside of lines too", function* () {
    const one = yield* installation("empty")
    const line = { id: 1, linenumber: 1, qtyorder: "1.0000000", colour: "red" }
    change(one, "POST", "/records", put("orders", [{ id: 1, lines: [line] }]))
    const { report } = yield* compare(one)
    const found = shown(report).filter((text) => /qtyorder|colour/.test(text))
    assert.deepStrictEqual(found.toSorted(), [
      "field.precision orders.lines.qtyorder: 7 decimals, where the field has 6",
      "field.unknown orders.lines.colour: a text of 3 characters"
    ])
  })
})

describe("answers of another form", () => {
  const answer = (status: number, body: unknown, headers: Record<string, string> = {}): ReturnType<Intercept> => ({
    status,
    headers: {
      "content-type": "application/json",
      date: "Mon, 16 Mar 2026 09:00:00 GMT",
      "svc-request-id": "r1",
      ...headers
    },
    body: typeof body === "string" ? body : JSON.stringify(body)
  })

  test("of a resource, a filter and a refusal are reported", function* () {
    const one = yield* installation("demo")
    change(one, "PUT", "/limits", { requestsPerMinute: null })
    const { report } = yield* compare(one, {
      intercept: (path) => {
        if (/\/vouchers\b/.test(path)) return answer(404, { error: { code: "not_found", message: "no" } })
        if (/\/stages\?/.test(path)) return answer(501, { error: { code: "not_implemented", message: "no" } })
        if (/\/jobs\?.*customerid=/.test(path))
          return answer(400, { error: { code: "unknown_parameter", message: "no", field: "customerid" } })
        if (path.includes("/jobs?") && /modifiedsince/.test(path))
          return answer(400, { error: { code: "unknown_parameter", message: "no", field: "modifiedsince" } })
        if (path.endsWith("/radar-unknown")) return answer(404, "<html>no</html>", { "content-type": "text/html" })
        if (path.includes("cancel=maybe")) return answer(200, { data: [], _meta: {} })
        return null
      }
    })
    const found = shown(report)
    for (const text of [
      "access.resource vouchers: 404 not_found",
      "access.resource stages: 501 not_implemented",
      "error.envelope : 404 with a body that is no JSON",
      "error.invalid_enum : 200"
    ]) {
      assert.include(found, text)
    }
    assert.deepInclude(report.patch, {
      resource: "vouchers",
      field: null,
      change: "remove",
      from: "in the catalogue",
      to: "404 not_found",
      command: null
    })
    assert.isTrue(
      found.some((text) =>
        /^(?:filters jobs\.customerid|modifiedsince\.offered jobs): 400 unknown_parameter/.test(text)
      ),
      found.join("\n")
    )
  })

  test("with missing or repeated records on pages are reported as the worst", function* () {
    const one = yield* installation("empty")
    const { report } = yield* compare(one, {
      // The service ignores its cursor.
      intercept: (path) => {
        if (!path.includes("cursor=")) return null
        const { status, headers, body } = one.served.handle({
          method: "GET",
          url: path.replace(/&?cursor=[^&]*/, ""),
          headers: { authorization: `Bearer ${one.token()}` },
          body: null
        })
        return { status, headers, body }
      }
    })
    assert.isTrue(
      shown(report).some((text) => text.startsWith("page.complete ")),
      shown(report).join("\n")
    )
  })
})
