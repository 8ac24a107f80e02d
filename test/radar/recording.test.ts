/** The recording: what it contains, and the server that is made from it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { string, money, timestamp, integer, id } from "../../connectors/service-v2/catalogue/fields.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { apply } from "../../connectors/service-v2/radar/index.ts"
import { redactJson, redactRecord, redactText } from "../../connectors/service-v2/radar/Redact.ts"
import * as ReferenceServer from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import { protect } from "../../src/catalogue/Protection.ts"
import * as FieldRules from "../../src/connector/FieldRules.ts"
import { toJson } from "../../src/cli/Output.ts"
import { linesOf } from "../../src/cli/radar/Report.ts"
import type { Json } from "../reference-server/support.ts"
import { change, compare, installation } from "./support.ts"
import { test } from "../support/suite.ts"

describe("a redacted value", () => {
  it("has the shape of the original", () => {
    assert.strictEqual(redactText("John.O'Neil+1@Example.com"), "Xxxx.X'Xxxx+0@Xxxxxxx.xxx")
    assert.strictEqual(redactText("Łódź 12"), "Xxxx 00")
    assert.strictEqual(Array.from(redactText("東京 🙂")).length, 4)
    assert.strictEqual(redactText("2019-07-31"), "2000-01-01")
    assert.strictEqual(redactText("2019-07-31T23:59:58.120000Z"), "2000-01-01T00:00:00.000000Z")
    assert.strictEqual(redactText("-1203.4500"), "-1101.1100")
    assert.strictEqual(
      redactJson('{"phone":5551234,"on":true,"at":[1.50,null]}'),
      '{"xxxxx":1111111,"xx":true,"xx":[1.10,null]}'
    )
  })

  it("keeps ids, dates and closed sets of the catalogue, and nothing else of a record", () => {
    const fields = [
      id(),
      string("name", 50),
      money("amount"),
      timestamp("at"),
      integer("rank"),
      string("kind", 9, { values: [{ value: "open", meaning: "" }] })
    ]
    const text =
      '{"id":7,"name":"Ada","amount":"98.7600","at":"2026-01-02T03:04:05.678901Z","rank":4,"kind":"open","other":["Ada"]}'
    assert.strictEqual(
      redactRecord({ fields, protection: null }, text),
      '{"id":7,"name":"Xxx","amount":"11.1100","at":"2026-01-02T03:04:05.678901Z","rank":4,"kind":"open","other":["Xxx"]}'
    )
    assert.strictEqual(
      redactRecord({ fields, protection: null }, '{"id":"Ada","rank":"12","kind":"Ada","at":"Ada"}'),
      '{"id":"Xxx","rank":"00","kind":"Xxx","at":"Xxx"}'
    )
  })
})

describe("a redacted value with a privacy rule", () => {
  it("is one that all values of the field become", () => {
    const orders = serviceV2.resources.get("orders")!
    const { protection } = protect(orders, [{ pattern: "*", rule: FieldRules.mask("***", 2) }]).resource
    const redacted = (record: object) =>
      JSON.parse(redactRecord({ fields: orders.fields, protection }, JSON.stringify(record)))
    assert.deepStrictEqual(
      redacted({
        id: 7,
        customerid: 1234,
        customer: "Ada",
        status: "billed",
        orderdate: "1815-12-10",
        ordertotal: "98.7600",
        unstated: { name: "Ada" },
        flag: true,
        lines: [{ id: 12, qtyorder: "10.00", description: "Ada", isnew: true }]
      }),
      {
        id: 7,
        customerid: 1,
        customer: "x",
        status: "quote",
        orderdate: "1815-12-10",
        ordertotal: "1",
        unstated: {},
        flag: false,
        lines: [{ id: 1, qtyorder: "1", description: "x", isnew: false }]
      }
    )
    assert.deepStrictEqual(redacted({ customerid: "Ada", ordertotal: 12, customer: null, status: "Ada" }), {
      customerid: "x",
      ordertotal: "1",
      customer: null,
      status: "quote"
    })
  })
})

/** Texts of records that a person typed. */
const textsOf = (state: ReadonlyArray<Json>): ReadonlySet<string> =>
  new Set(
    state.flatMap((record) =>
      ["name", "description", "externalid", "email", "login", "customercode", "sku", "note", "address"].flatMap(
        (field) => {
          const value = record[field]
          return typeof value === "string" && value.length >= 6 ? [value] : []
        }
      )
    )
  )

describe("the recording of a comparison", () => {
  test("has no token, no cursor and no text of a record", function* () {
    const one = yield* installation("demo")
    change(one, "PUT", "/limits", { requestsPerMinute: null })
    const { recording, report, secret } = yield* compare(one)
    const resources = [
      "customers",
      "items",
      "contactnames",
      "b2busers",
      "vendors",
      "users",
      "employees",
      "orders",
      "salesmen"
    ]
    const state = resources.flatMap((resource) => {
      const { text } = one.control("GET", `/state?company=1&resource=${resource}`)
      return text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Json)
    })
    const texts = textsOf(state)
    assert.isAbove(texts.size, 100)
    for (const text of texts) assert.isFalse(recording.includes(text), text)
    assert.notInclude(recording, secret)
    assert.notInclude(recording, secret.slice(5))
    assert.notInclude(toJson(report), secret)
    assert.match(recording, /"xxxxxxxxxxxx|"Xxx/)
    const { answers } = JSON.parse(recording) as {
      readonly answers: ReadonlyArray<{ readonly body: string; readonly request: string }>
    }
    assert.strictEqual(answers.length, report.requests)
    const bodies = answers.map(({ body }) => JSON.parse(body) as Json)
    const me = bodies[answers.findIndex(({ request }) => request === "GET /me")]!
    assert.deepInclude(me, { companyid: 1 })
    assert.include(me["scopes"] as ReadonlyArray<string>, "orders:read")
    // Decimals and cursors keep their shape only.
    assert.isTrue(bodies.every(({ _meta }) => !/"next_cursor":"(?![x0X?_-]+")/.test(JSON.stringify(_meta ?? {}))))
  })

  test("and the report have no token that the service sends back", function* () {
    const one = yield* installation("demo")
    const secret = one.token()
    const { recording, report } = yield* compare(one, {
      secret,
      intercept: (path) => ({
        status: path.includes("limit") ? 400 : 200,
        headers: {
          "x-echo": secret,
          "svc-request-id": `r-${secret}`,
          allow: secret,
          "content-type": "application/json"
        },
        body: `{"error":{"code":"${secret}","message":"${secret}","field":"${secret}"},"${secret}":1}`
      })
    })
    assert.isNotEmpty(report.differences)
    for (const text of [recording, toJson(report), linesOf(report, null).join("\n")]) assert.notInclude(text, secret)
  })

  test("that is no recording is refused with a message", function* () {
    const reference = yield* ReferenceServer.start({ port: 0, controlPort: 0, data: "empty" })
    assert.match((yield* Effect.flip(apply(reference, '{"format":"other"}'))).message, /no recording of the radar/)
  })
})
