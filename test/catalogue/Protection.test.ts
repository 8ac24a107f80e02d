/** Privacy rules: which fields may have one, what is kept, and what a push may write. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { type PatternRule, protect } from "../../src/catalogue/Protection.ts"
import { unreadable } from "../../src/cli/Models.ts"
import * as FieldRules from "../../src/connector/FieldRules.ts"
import { protectDelivery, protectRejected } from "../../src/connector/ProtectedConnector.ts"
import { isObject, parse } from "../../src/json/Json.ts"
import { isInvalid, nameProblem, rulesOf, validateRecord } from "../../src/outbox/ValidateRecord.ts"
import { unsupported } from "../../src/outbox/WriteSchema.ts"
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

  it("refuse a push of a line or of the install's own fields with what is kept", () => {
    const orders = protect(serviceV2.resources.get("orders")!, rules(mask("***", 0), "description", "iban")).resource
    const record = parse(
      '{"customerid":1,"lines":[{"itemid":1,"qtyorder":"1","description":"***"}],"custom_fields":{"iban":"***"}}'
    )
    const members = isObject(record) ? record : new Map()
    const result = validateRecord(rulesOf(orders, "create", "externalid"), members, { externalid: "a" }, [])
    assert.sameMembers(
      (isInvalid(result) ? result : []).map(({ field }) => field),
      ["lines[0].description", "custom_fields.iban"]
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
    assert.deepStrictEqual(["0123456789", "12", ""].map(mask("***", 4).keep), ["***6789", "***", "***"])
  })

  it("change the record of a delivery, and nothing beside it", () => {
    const { protection } = protect(customers, rules(exclude, "*")).resource
    assert.strictEqual(
      protectDelivery(
        protection!,
        '{"id":"evt_1","type":"customers.updated","data":{"id":7,"name":"Ann","x":{"y":1}}}'
      ),
      '{"id":"evt_1","type":"customers.updated","data":{"id":7}}'
    )
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
