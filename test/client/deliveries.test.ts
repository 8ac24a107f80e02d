/** The reader of delivery bodies, over arbitrary bytes. */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { eventNames } from "../../connectors/service-v2/catalogue/events.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { Deliveries } from "../../connectors/service-v2/client/index.ts"
import { type Event, isEvent, type InvalidEvent } from "../../src/connector/Delivery.ts"

const { deliveryReader } = Deliveries

const read = (body: string | Uint8Array) => deliveryReader.read(typeof body === "string" ? Buffer.from(body) : body)
const eventOf = (body: string | Uint8Array): Event => {
  const reading = read(body)
  assert(isEvent(reading), isEvent(reading) ? "" : reading.detail)
  return reading
}
const refusalOf = (body: string | Uint8Array): InvalidEvent => {
  const reading = read(body)
  assert(!isEvent(reading), "it is an event")
  return reading
}

/** An envelope whose members are given as JSON text. */
const envelope = (parts: Readonly<Record<string, string>> = {}) => {
  const all = {
    id: '"evt_1"',
    type: '"orders.updated"',
    createdate: '"2026-03-16T09:00:00.000001Z"',
    companyid: "1",
    data: '{"id":7}',
    ...parts
  }
  return `{${Object.entries(all)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join(",")}}`
}

it("the delivery reader subscribes to documented event names that the catalogue contains", () => {
  assert.deepStrictEqual(deliveryReader.eventsDefault, [
    "orders.created",
    "orders.updated",
    "shipments.created",
    "invoices.posted"
  ])
  assert.includeMembers([...eventNames(serviceV2)], [...deliveryReader.eventsDefault])
  assert.strictEqual(deliveryReader.signatureHeader, "svc-signature")
})

describe("an event of the delivery reader", () => {
  it("has the resource that precedes the last dot of its type", () => {
    const cases: ReadonlyArray<readonly [type: string, resource: string | null, recordId: string | null]> = [
      ["orders.created", "orders", "7"],
      ["orders.updated", "orders", "7"],
      ["orders.cancelled", "orders", "7"],
      ["invoices.posted", "invoices", "7"],
      ["orders.shipped", "orders", null],
      ["orders.toString", "orders", null],
      ["orders.", "orders", null],
      ["a.b.created", "a.b", "7"],
      ["things.created", "things", "7"],
      ["webhooks.test", null, null],
      ["created", null, null],
      [".created", null, null]
    ]
    for (const [type, resource, recordId] of cases) {
      assert.deepInclude(eventOf(envelope({ type: JSON.stringify(type) })), { type, resource, recordId }, type)
    }
  })

  it("has the exact id of its record, or null", () => {
    const max = 2n ** 63n - 1n
    const recordId = (data: string) => eventOf(envelope({ data })).recordId
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max }), fc.boolean(), (id, isText) => {
        assert.strictEqual(recordId(`{"x":0.5,"id":${isText ? `"${id}"` : id}}`), String(id))
        assert.strictEqual(recordId(`{"id":${isText ? `"${id}"` : id}}`), String(id))
      })
    )
    const noIds = ["0", "-1", "1.5", "1.0", "5.00000000000000001", "1e3", "1e400", String(max + 1n), "9".repeat(20)]
    const noTexts = ["0", "01", "+1", " 1", "1.0", String(max + 1n), ""].map((text) => JSON.stringify(text))
    for (const id of [...noIds, ...noTexts, "null", "true", "{}", "[1]"]) assert.isNull(recordId(`{"id":${id}}`), id)
    assert.isNull(recordId("[7]"))
    assert.isNull(recordId("{}"))
    assert.isNull(recordId('{"__proto__":{"id":7}}'))
    assert.strictEqual(recordId('{"id":1,"id":2}'), "2")
    assert.strictEqual(recordId('{"id":1, "\\u0069d":9007199254740993}'), "9007199254740993")
    assert.strictEqual(
      eventOf('{"data":{"id":1},"id":"e","type":"a.created","data":{"id":9007199254740993}}').recordId,
      "9007199254740993"
    )
  })

  it("has its company id, or null", () => {
    const companyId = (companyid: string) => eventOf(envelope({ companyid })).companyId
    assert.strictEqual(companyId("0"), 0n)
    assert.strictEqual(companyId("9007199254740993"), 9007199254740993n)
    assert.strictEqual(companyId("9223372036854775807"), 9223372036854775807n)
    assert.strictEqual(companyId('"12"'), 12n)
    for (const none of ["null", "1.5", "1.0", "1e2", "9223372036854775808", '""', '"one"', "true", "[1]", "{}"]) {
      assert.isNull(companyId(none), none)
    }
    assert.isNull(eventOf('{"id":"e","type":"a.created"}').companyId)
  })

  it("has its time in UTC, or null", () => {
    const occurredAt = (text: string) => eventOf(envelope({ createdate: text })).occurredAt
    const cases: ReadonlyArray<readonly [sent: string, expected: string | null]> = [
      ['"2026-03-16T09:00:00Z"', "2026-03-16T09:00:00Z"],
      ['"2026-03-16T09:00:00.123456Z"', "2026-03-16T09:00:00.123456Z"],
      ['"2026-03-16T09:00:00.1234567Z"', "2026-03-16T09:00:00.123456Z"],
      ['"2026-03-16T09:00:00+02:00"', "2026-03-16T07:00:00Z"],
      ['"2026-02-30T09:00:00Z"', null],
      ['"2026-03-16T09:00:00"', null],
      ['"yesterday"', null],
      ['""', null],
      ["1790000000", null],
      ["null", null]
    ]
    for (const [sent, expected] of cases) assert.strictEqual(occurredAt(sent), expected, sent)
    assert.isNull(eventOf('{"id":"e","type":"a.created"}').occurredAt)
  })

  it("returns plain field values as the text that was sent", () => {
    const numerals = ["0", "-0", "1.10", "1e2", "1E+2", "9007199254740993", "123456789012345678901234567890.10", "-7"]
    for (const numeral of numerals) {
      assert.strictEqual(eventOf(envelope({ data: `{"a":[{"n":1}],"n": ${numeral} }` })).value("n"), numeral)
    }
    const event = eventOf(
      envelope({
        data: '{"t":true,"f":false,"z":null,"o":{"n":1},"l":[1],"s":"a\\u0000b","h":"\\ud800","e":"\\u00e9\\n","":"empty","__proto__":"own","lastchangedate":"as it is"}'
      })
    )
    const shown = ["t", "f", "z", "o", "l", "s", "h", "e", "", "__proto__", "toString", "constructor", "absent"]
    assert.deepStrictEqual(
      shown.map((name) => event.value(name)),
      ["true", "false", null, null, null, null, null, "é\n", "empty", "own", null, null, null]
    )
    assert.strictEqual(event.stamp, "as it is")
    for (const stamp of ["5", "null", '"a\\u0000"', "{}"]) {
      assert.isNull(eventOf(envelope({ data: `{"id":7,"lastchangedate":${stamp}}` })).stamp)
    }
    const removed = envelope({ type: '"orders.cancelled"', data: '{"id":7,"lastchangedate":"2026-11-21T03:00:00Z"}' })
    assert.isNull(eventOf(removed).stamp, "a removal does not change it, so a row with that time proves nothing")
    const cancelled = '{"id":7,"lastchangedate":"2026-11-21T03:00:00Z","cancel":true}'
    assert.strictEqual(
      eventOf(envelope({ type: '"orders.cancelled"', data: cancelled })).stamp,
      "2026-11-21T03:00:00Z",
      "a copy of the source with an earlier time does not show the cancellation yet"
    )
    for (const data of ["null", "[]", "7", '"text"']) {
      const bare = eventOf(envelope({ data }))
      assert.deepStrictEqual([bare.value("length"), bare.value("0"), bare.stamp], [null, null, null], data)
    }
  })

  it("returns the same field values as JSON.parse", () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string({ unit: "grapheme" }),
          fc.oneof(fc.string({ unit: "grapheme" }), fc.boolean(), fc.maxSafeInteger(), fc.jsonValue())
        ),
        fc.integer({ min: 0, max: 2 }),
        (record, space) => {
          const event = eventOf(JSON.stringify({ data: record, id: "e", type: "a.created" }, null, space))
          for (const [name, value] of Object.entries(record)) {
            const isScalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean"
            const isKept = isScalar && !(typeof value === "string" && (value.includes("\0") || !value.isWellFormed()))
            const expected = !isKept ? null : typeof value === "number" ? JSON.stringify(value) : String(value)
            assert.strictEqual(event.value(name), expected, name)
          }
        }
      ),
      { numRuns: 300 }
    )
  })
})

describe("a delivery body that is not an event", () => {
  const cases: ReadonlyArray<readonly [title: string, body: string | Uint8Array, detail: RegExp]> = [
    ["an empty body", "", /empty/],
    ["white space", "  \n", /not JSON$/],
    ["half an event", envelope().slice(0, 40), /not JSON$/],
    ["two events", envelope() + envelope(), /not JSON$/],
    ["a byte order mark", Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(envelope())]), /byte order mark/],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), /not UTF-8/],
    ["a surrogate in UTF-8", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), /not UTF-8/],
    ["UTF-16", Buffer.from(envelope(), "utf16le"), /not JSON$/],
    ["a list", `[${envelope()}]`, /not a JSON object/],
    ["a text", '"evt_1"', /not a JSON object/],
    ["null", "null", /not a JSON object/],
    ["no id", '{"type":"a.created"}', /no id/],
    ["an inherited id", '{"__proto__":{"id":"e"},"type":"a.created"}', /no id/],
    ["a numeric id", envelope({ id: "1" }), /no id/],
    ["an empty id", envelope({ id: '""' }), /id is not/],
    ["a long id", envelope({ id: `"${"e".repeat(201)}"` }), /id is not/],
    ["an id with a line end", envelope({ id: '"evt\\n"' }), /id is not/],
    ["an id with NUL", envelope({ id: '"evt\\u0000"' }), /id is not/],
    ["a non-ASCII id", envelope({ id: '"évt"' }), /id is not/],
    ["no type", '{"id":"evt_1"}', /no type/],
    ["an empty type", envelope({ type: '""' }), /no type/],
    ["a type that is not a text", envelope({ type: "null" }), /no type/],
    ["a long type", envelope({ type: `"${"a".repeat(193)}.created"` }), /longer than 200/],
    ["a type with NUL", envelope({ type: '"a\\u0000.created"' }), /database text cannot hold/],
    ["a type with half a character", envelope({ type: '"a\\ud800.created"' }), /database text cannot hold/]
  ]
  it("is rejected with its reason, which quotes nothing of the body", () => {
    for (const [title, body, detail] of cases) {
      assert.match(refusalOf(body).detail, detail, title)
      const other = refusalOf(typeof body === "string" ? body.replaceAll("evt", "canary") : body)
      assert.notInclude(other.detail, "canary")
    }
  })

  it("causes no exception, whatever its bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        assert.isFalse(isEvent(read(bytes)))
      })
    )
    const whole = Buffer.from(envelope({ data: '{"id":7,"a":[1.5,"é",{"b":null}],"n":1e2}' }))
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length), (at, byte, length) => {
        const spoilt = Buffer.from(whole)
        spoilt[at] = byte
        for (const body of [spoilt, spoilt.subarray(0, length)]) {
          const reading = read(body)
          if (isEvent(reading)) for (const name of ["id", "a", "n", ""]) reading.value(name)
          assert.isTrue(isEvent(reading) || reading.detail !== "")
        }
      }),
      { numRuns: 2000 }
    )
  })

  it("causes no exception, however deep its JSON", () => {
    const deep = "[".repeat(200_000) + "]".repeat(200_000)
    const event = eventOf(envelope({ data: `{"deep":${deep},"id":9007199254740993,"n":1.50}` }))
    assert.deepStrictEqual([event.recordId, event.value("n"), event.value("deep")], ["9007199254740993", "1.50", null])
    assert.match(refusalOf(deep).detail, /not a JSON object/)
    assert.match(refusalOf(`{"a":${"[".repeat(200_000)}`).detail, /not JSON$/)
  })
})
