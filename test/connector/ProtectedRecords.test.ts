/** What is kept of records that are encoded for COPY, and of texts of every length. */
import { createHmac } from "node:crypto"
import { assert, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import fc from "fast-check"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { protect as protectResource } from "../../src/catalogue/Protection.ts"
import type { ConnectorShape, Page, SourceRecord } from "../../src/connector/Connector.ts"
import { EncodedRecord, textOf } from "../../src/connector/EncodedRecord.ts"
import * as FieldRules from "../../src/connector/FieldRules.ts"
import { protect } from "../../src/connector/ProtectedConnector.ts"

const lines = serviceV2.resources.get("invoicelines")!
const key = "a key of the installation, 32 characters"
const patterns = fc.subarray(["*name*", "qty", "*id", "linenumber", "taxflag*", "custom_fields", "x", "*"])
const rule = fc.constantFrom(FieldRules.exclude, FieldRules.hash(Redacted.make(key)), FieldRules.mask("*ü*", 2))

const value = fc.oneof(
  fc.constant(null),
  fc.string({ unit: "grapheme", maxLength: 90 }),
  fc.constantFrom("\\", "\t", "a\nb", "\\N", "", "12.50", "[]", '[{"x":"b"}]', '[{"name":"\\u0041"}]')
)
const extra = fc.constantFrom(null, '{"x":"1","deep":{"itemname":"b"}}', '{"qty":12.123456789}', '{"other": [1, 2]}')

/** The records of a page under the rules, as the text of their columns, with the other members. */
const pageOf = (records: ReadonlyArray<SourceRecord>, rules: Parameters<typeof protectResource>[1]) => {
  const page: Page = {
    records,
    rejected: [],
    next: null,
    syncedThrough: null,
    beganAt: 0,
    source: "",
    bytes: 0,
    attempts: 1
  }
  const connector = protect({ page: () => Effect.succeed(page) } as unknown as ConnectorShape)
  const request = { resource: protectResource(lines, rules).resource, since: null, token: null }
  return Effect.runSync(connector.page(request)).records.map(
    ({ columns, customFields, extra: others, id, partial }) => ({
      id,
      columns,
      partial,
      customFields,
      extra: others
    })
  )
}

it("records that are encoded are kept as others are", () => {
  const columns = fc.array(value, { minLength: lines.fields.length, maxLength: lines.fields.length })
  fc.assert(
    fc.property(fc.array(fc.tuple(columns, extra), { maxLength: 5 }), patterns, rule, (rows, names, one) => {
      const rules = names.map((pattern) => ({ pattern, rule: one }))
      const plain = rows.map(([texts, others], at) => ({
        id: String(at),
        columns: [String(at), ...texts.slice(1)],
        partial: false,
        customFields: others,
        extra: others
      }))
      const encoded = plain.map((record) => {
        const bytes = Buffer.from(record.columns.map(textOf).join("\t"))
        return new EncodedRecord(record.id, bytes, 0, bytes.length, record.customFields, record.extra)
      })
      assert.deepStrictEqual(pageOf(encoded, rules), pageOf(plain, rules))
    })
  )
})

it("a hash is the HMAC-SHA-256 of the text", () => {
  for (const secret of [key, "k", key.repeat(4)]) {
    const { keep } = FieldRules.hash(Redacted.make(secret))
    const expected = (text: string) => createHmac("sha256", secret).update(text, "utf8").digest("base64url")
    for (const text of ["", "a", "Grüße 𝄞", "x".repeat(64), "ü".repeat(512), "𝄞".repeat(256), "y".repeat(513)])
      assert.strictEqual(keep(text), expected(text))
    fc.assert(fc.property(fc.string({ unit: "grapheme", maxLength: 600 }), (text) => keep(text) === expected(text)))
  }
})
