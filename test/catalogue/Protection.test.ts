/** Privacy rules: which fields may have one, what is kept, and what a push may write. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { type PatternRule, protect } from "../../src/catalogue/Protection.ts"
import { unreadable } from "../../src/cli/Models.ts"
import * as FieldRules from "../../src/connector/FieldRules.ts"
import { protectDelivery, protectRejected, protectText } from "../../src/connector/ProtectedConnector.ts"
import * as SourceError from "../../src/connector/SourceError.ts"
import { isObject, parse } from "../../src/json/Json.ts"
import { isInvalid, nameProblem, rulesOf, validateRecord } from "../../src/outbox/ValidateRecord.ts"
import { unsupported } from "../../src/outbox/WriteSchema.ts"
import * as WarehouseCatalogue from "../../src/warehouse/WarehouseCatalogue.ts"
import { loadText } from "../support/configuration.ts"
import { test } from "../support/suite.ts"

const customers = serviceV2.resources.get("customers")!
const key = Redacted.make("a key of the installation, 32 characters")
const hash = FieldRules.hash(key)
const rules = (rule: PatternRule["rule"], ...patterns: ReadonlyArray<string>) =>
  patterns.map((pattern) => ({ pattern, rule }))
const { exclude, mask } = FieldRules

describe("privacy rules", () => {
  for (const [name, rule, problem] of [
    ["id", exclude, "id has no rule, since it is the key of the record"],
    ["ID", exclude, "id has no rule, since it is the key of the record"],
    ["lastchangedate", hash, "lastchangedate has no rule, since it tells which version is the newest"],
    ["cancel", exclude, "cancel has no rule, since it tells whether the record is cancelled"],
    ["externalid", hash, "externalid has no rule, since it identifies records that are pushed"],
    ["entrydate", hash, "entrydate can only be excluded, since it is a timestamp"],
    ["custom_fields", hash, "custom_fields can only be excluded, since it is a set of fields"]
  ] as const)
    it(`say why a field cannot have one: ${name}`, () =>
      assert.deepStrictEqual(protect(customers, rules(rule, name)).problems, [problem]))

  it("leave out needed fields of a pattern, and take the strictest of several rules", () => {
    const { problems, resource } = protect(customers, [
      ...rules(mask("***", 2), "*"),
      ...rules(hash, "*name*"),
      ...rules(exclude, "name")
    ])
    assert.deepStrictEqual(problems, [])
    const kindOf = (name: string) => resource.protection?.ruleOf(name)?.kind ?? null
    assert.deepStrictEqual(["id", "cancel", "name", "salesman", "surname", "entrydate"].map(kindOf), [
      null,
      null,
      "exclude",
      "mask",
      "hash",
      null
    ])
    assert.strictEqual(kindOf("Name"), "exclude")
    assert.strictEqual(kindOf("two\nlines"), "mask")
    assert.isFalse(resource.field.has("name"))
    assert.strictEqual(resource.field.get("creditlimit")?.type._tag, "string")
  })

  it("take the filters and the key away that the warehouse has no values for", () => {
    const { resource } = protect(customers, rules(hash, "customercode"))
    assert.strictEqual(customers.key?.field, "customercode")
    assert.isNull(resource.key)
    assert.isTrue(customers.filters.some(({ field }) => field === "customercode"))
    assert.deepStrictEqual(
      resource.filters,
      customers.filters.filter(({ field }) => field !== "customercode")
    )
    assert.strictEqual(protect(customers, rules(hash, "phone")).resource.key, customers.key)
  })

  it("refuse a push of a line or of the install's own fields with what is kept", () => {
    const orders = protect(serviceV2.resources.get("orders")!, rules(mask("***", 0), "description", "iban")).resource
    const record = parse(
      '{"customerid":1,"lines":[{"itemid":1,"qtyorder":"1","description":"***"}],"custom_fields":{"iban":"***","deep":[{"iban":"***"}]}}'
    )
    const members = isObject(record) ? record : new Map()
    const result = validateRecord(rulesOf(orders, "create", "externalid"), members, { externalid: "a" }, [])
    assert.sameMembers(
      (isInvalid(result) ? result : []).map(({ field }) => field),
      ["lines[0].description", "custom_fields.iban", "custom_fields.deep[0].iban"]
    )
  })

  it("leave out queries over members of lists and of the install's own fields", () => {
    const orders = protect(serviceV2.resources.get("orders")!, rules(exclude, "description", "custom_fields")).resource
    const read = (sql: string) => unreadable({ resources: ["orders"], sql }, new Map([["orders", orders]]))
    assert.strictEqual(
      read("select line ->> 'description' from {{orders}}"),
      "it reads orders.description (exclude), which has a privacy rule"
    )
    assert.match(read("select custom_fields from {{orders}}") ?? "", /orders\.custom_fields \(exclude\)/)
    assert.match(
      read("select l.description from {{orders}}, jsonb_to_recordset(lines) as l (description text)") ?? "",
      /orders\.description/
    )
    assert.isNull(read("select line ->> 'qtyorder' from {{orders}}"))
  })

  it("leave out a reason that quotes the members of a nested value", () => {
    const { protection } = protect(customers, rules(exclude, "iban")).resource
    const reasonOf = (field: string, invoiceterm: unknown) =>
      protectRejected(protection!, { field, reason: "quotes", bytes: JSON.stringify({ id: 1, invoiceterm }) }).reason
    assert.strictEqual(reasonOf("invoiceterm", { iban: "DE02" }), "does not fit its type")
    assert.strictEqual(reasonOf("invoiceterm", [{ iban: "DE02" }]), "does not fit its type")
    assert.strictEqual(reasonOf("invoiceterm", 1), "quotes")
  })

  it("hash equal values equally under one key, and mask what is too short as a whole", () => {
    assert.strictEqual(hash.keep("a@example.com"), FieldRules.hash(key).keep("a@example.com"))
    assert.notStrictEqual(
      hash.keep("a"),
      FieldRules.hash(Redacted.make("another key of 32 characters, indeed")).keep("a")
    )
    assert.match(hash.keep("a") ?? "", /^[\w-]{43}$/)
    const masked = mask("***", 4)
    assert.deepStrictEqual(
      ["0123456789", "12", ""].map((text) => masked.keep(text, true)),
      ["***6789", "***", "***"]
    )
  })

  it("mask no end of a value that is no free text", () => {
    const { protection } = protect(serviceV2.resources.get("orders")!, rules(mask("***", 2), "*")).resource
    const record = {
      id: 12,
      customer: "a customer",
      customerid: 345,
      status: "quote",
      unstated: ["a text", 678],
      unstatedtext: "a text",
      unstatednumber: 910,
      unstatedflag: true,
      lines: [{ id: 1112, description: "a line", qtyorder: "13.00", isnew: false }],
      custom_fields: { id: "an id", deep: [{ rank: 14, name: "a name" }] }
    }
    assert.deepStrictEqual(JSON.parse(protectText(protection!, JSON.stringify(record))), {
      id: 12,
      customer: "***er",
      customerid: "***",
      status: "***",
      unstated: "***",
      unstatedtext: "***xt",
      unstatednumber: "***",
      unstatedflag: "***",
      lines: [{ id: "***", description: "***ne", qtyorder: "***", isnew: "***" }],
      custom_fields: { id: "***id", deep: "***" }
    })
  })

  it("change the record of a delivery, and what its envelope does not state", () => {
    const { protection } = protect(customers, rules(exclude, "*")).resource
    const envelope = '"id":"evt_1","type":"customers.updated","createdate":"2026-01-02T03:04:05Z","companyid":1'
    assert.strictEqual(
      protectDelivery(
        protection!,
        `{${envelope},"data":{"id":7,"name":"Ann","x":{"y":1}},"before":{"id":7},"by":"Ann"}`
      ),
      `{${envelope},"data":{"id":7}}`
    )
  })

  it("hold for deliveries about a path that the catalogue does not know", () => {
    const entry = (path: string, ...own: ReadonlyArray<PatternRule>) => ({
      path,
      area: null,
      modifiedSince: false,
      cancel: false,
      key: null,
      rules: own
    })
    const protectionOf = WarehouseCatalogue.protectionOf(serviceV2, [
      entry("*", ...rules(exclude, "*name*")),
      entry("gad*", ...rules(hash, "iban"))
    ])
    const kindsOf = (path: string) =>
      ["name", "iban", "id"].map((name) => protectionOf(path)?.ruleOf(name)?.kind ?? null)
    assert.deepStrictEqual(["gadgets", "others", ""].map(kindsOf), [
      ["exclude", "hash", null],
      ["exclude", null, null],
      ["exclude", null, null]
    ])
    assert.isNull(WarehouseCatalogue.protectionOf(serviceV2, [])("gadgets"))
  })

  it("leave out the messages of the source, which may quote values", () => {
    const problems = [{ field: "name", code: "taken", message: "Ann" }]
    const reasons = [
      new SourceError.Refused({
        kind: "other",
        status: 422,
        code: "invalid",
        field: "name",
        detail: "Ann",
        problems,
        current: { name: "Ann" }
      }),
      new SourceError.Forbidden({ kind: "other", code: "no", scope: null, detail: "Ann" }),
      new SourceError.NotFound({ detail: "Ann" }),
      new SourceError.NotImplemented({ detail: "Ann" }),
      new SourceError.PageTokenRefused({ detail: "Ann" })
    ]
    const request = { method: "GET", path: "/customers", requestId: "req_1" }
    for (const reason of reasons) {
      const error = SourceError.withoutTexts(new SourceError.SourceError({ reason, request, scope: "resource" }))
      assert.notInclude(`${JSON.stringify(error)} ${error.message} ${error.remedy}`, "Ann")
      assert.include(error.message, "req_1")
      assert.deepStrictEqual([error.reason._tag, error.scope], [reason._tag, "resource"])
    }
  })

  it("keep a push from writing what is kept of a value", () => {
    const { resource } = protect(customers, rules(hash, "phone"))
    assert.strictEqual(
      nameProblem(rulesOf(resource, "update", "externalid"), "phone"),
      "has a privacy rule (hash): the warehouse does not have its value, so that it is not pushed"
    )
    assert.isNull(unsupported(resource, "create"))
    assert.match(
      unsupported(protect(customers, rules(hash, "customercode")).resource, "create")?.message ?? "",
      /^customers cannot be created by a push: it needs customercode, which has a privacy rule/
    )
  })

  for (const [what, text, problem] of [
    ["no key", "resources:\n  customers: { hash: [name] }\n", /TRIBUTARY_PRIVACY_KEY is not set/],
    ["an unknown pattern", "resources:\n  xyz*: { exclude: [name] }\n", null]
  ] as const)
    test(`are refused with ${what}`, function* () {
      const loaded = yield* Effect.result(loadText(text))
      if (problem === null) assert.strictEqual(loaded._tag, "Success")
      else assert.match(loaded._tag === "Failure" ? loaded.failure.problems.join() : "", problem)
    })
})
