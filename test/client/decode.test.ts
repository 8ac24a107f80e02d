/** The decoder of records: exact, complete, and equal to its specification for any record. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Decode from "../../connectors/service-v2/client/Decode.ts"
import { elements } from "../../connectors/service-v2/client/JsonText.ts"
import { findList, type List, parse, Unreadable } from "../../connectors/service-v2/client/Envelope.ts"
import type { Rejected, SourceRecord } from "../../src/connector/Connector.ts"
import type { Field } from "../../src/catalogue/Field.ts"
import { EncodedRecord } from "../../src/connector/EncodedRecord.ts"
import { copyLines } from "../../src/land/CopyText.ts"
import { parts } from "./parts.ts"
import * as Specification from "./Specification.ts"
import { cellsOf, valuesOf } from "../support/rows.ts"
import { assertEach } from "../support/assertions.ts"

const decoder = Decode.make(parts)
const specification = Specification.make(parts)

/** Decodes records given as JSON texts, as one page. */
const page = (...records: ReadonlyArray<string>): Decode.Decoded => {
  const text = `[${records.join(",")}]`
  return decoder.list(text, 0)
}

const one = (record: string): SourceRecord => {
  const { records, rejected } = page(record)
  assert.deepStrictEqual(rejected, [])
  assert.strictEqual(records.length, 1)
  return records[0]!
}

const refused = (record: string): Rejected => {
  const { records, rejected } = page(record)
  assert.deepStrictEqual(records, [])
  assert.strictEqual(rejected.length, 1)
  return rejected[0]!
}

const column = (record: SourceRecord, name: string) =>
  record.columns[parts.fields.findIndex((field) => field.name === name)]

/** The column value of a record that contains the id and one field. */
const value = (name: string, json: string) => column(one(`{"id":1,"${name}":${json}}`), name)
const same = (name: string, json: string, expected: string | null) =>
  assert.strictEqual(value(name, json), expected, `${name} ${json}`)

describe("Decode", () => {
  it("keeps lists and custom fields as the text that was sent", () => {
    same("lines", '[ {"number": 1.10}, 12345678901234567890 ]', '[ {"number": 1.10}, 12345678901234567890 ]')
    const record = one(`{"id":1,"custom_fields":{ "Weight": 1.10, "__proto__": {"a": 1e2} }}`)
    assert.strictEqual(record.customFields, `{ "Weight": 1.10, "__proto__": {"a": 1e2} }`)
    assert.strictEqual(one(`{"id":1,"custom_fields":null}`).customFields, null)
    assert.strictEqual(one(`{"id":1,"custom_fields":{}}`).customFields, "{}")
  })

  it("keeps unknown fields with their digits, in the order sent", () => {
    const record = one(
      `{"zeta":1.10,"id":1,"big":12345678901234567890,"__proto__":{"x":1},"constructor":"c","list":[1.0,-0],"none":null}`
    )
    assert.strictEqual(
      record.extra,
      `{"zeta":1.10,"big":12345678901234567890,"__proto__":{"x":1},"constructor":"c","list":[1.0,-0],"none":null}`
    )
    assert.strictEqual(({} as { readonly x?: number }).x, undefined)
  })

  it("keeps names that need an escape as they were sent", () => {
    const texts = ['{"id":1,"é":[],"\\\\":{}}', '{"id":2,"é":[],"\\"":{}}', '{"id":3,"é":[],"\\n":1.10}']
    for (const sent of [texts, texts.toReversed()]) {
      const { records, rejected } = page(...sent)
      assert.lengthOf(rejected, 0)
      assertEach(records, ({ id, extra }) => `{"id":${id},${extra?.slice(1)}`, sent)
    }
  })

  it("rejects values that Postgres cannot store, and keeps their bytes", () => {
    for (const [json, field, pattern] of [
      [`{"id":1,"new":{"a":["\\u0000"]}}`, "new", /NUL/],
      [`{"id":1,"custom_fields":{"a\\ud800":1}}`, "custom_fields", /surrogate/],
      [`{"id":1,"lines":["\\udc00"]}`, "lines", /surrogate/],
      [`{"id":1,"new":1e99999}`, "new", /cannot be stored/],
      [`{"id":1,"new":${"[".repeat(500)}${"]".repeat(500)}}`, "new", /nested/],
      [`{"id":1,"a\\u0000b":1}`, null, /name/]
    ] as const) {
      const rejected = refused(json)
      assert.strictEqual(rejected.field, field, json)
      assert.match(rejected.reason, pattern)
      assert.strictEqual(rejected.bytes, json)
    }
  })

  it("rejects a record without a usable id", () => {
    for (const json of ["{}", '{"id":null}', '{"id":"x"}', '{"id":1.5}', "null", "3", "[]", '"id"']) {
      const rejected = refused(json)
      assert.strictEqual(rejected.id, null)
      assert.strictEqual(rejected.bytes, json)
    }
    assert.strictEqual(one('{"id":"42"}').id, "42")
  })

  it("returns each record once, although another record of the page is rejected", () => {
    const { records, rejected } = page(
      `{"id":1}`,
      `{ "id" : 2 , "rank" : 1.5 }`,
      `{"id":3,"memo":"]}\\""}`,
      `7`,
      `{"id":4}`
    )
    assert.deepStrictEqual(valuesOf(records, "id"), ["1", "3", "4"])
    assert.deepStrictEqual(cellsOf(rejected, "id", "bytes"), [
      ["2", `{ "id" : 2 , "rank" : 1.5 }`],
      [null, "7"]
    ])
  })

  it("uses the last value of a repeated name, as JSON.parse does", () => {
    assert.strictEqual(one(`{"id":1,"id":2}`).id, "2")
    assert.strictEqual(one(`{"id":1,"new":1,"id":2}`).id, "2")
  })

  it("rejects invalid UTF-8", () => {
    for (const bytes of [Uint8Array.of(0x22, 0xff, 0x22), Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22)]) {
      const parsed = parse(bytes)
      assert.isTrue(parsed instanceof Unreadable && parsed.detail === "the body is not UTF-8")
    }
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// The decoder and the specification give the same results
// ---------------------------------------------------------------------------------------------------------------------

/** A string as JSON text, sometimes with every possible escape. */
const quoted = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(text, fc.boolean())
    .map(([value, escaped]) =>
      escaped
        ? `"${Array.from({ length: value.length }, (_, at) => `\\u${value.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"`
        : JSON.stringify(value)
    )

const digits = (min: number, max: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: min, maxLength: max }).map((list) => list.join(""))
const numeral = fc
  .tuple(fc.constantFrom("", "-"), digits(1, 22), fc.option(digits(1, 9)), fc.constantFrom("", "", "", "", "e2", "E-1"))
  .map(([sign, whole, fraction, exponent]) => ({ sign, whole, fraction, exponent }))
/** A number as JSON writes it, without leading zeros. */
const numberToken = numeral.map(
  ({ sign, whole, fraction, exponent }) =>
    `${sign}${BigInt(whole)}${fraction === null ? "" : `.${fraction}`}${exponent}`
)
const decimalText = numeral.map(
  ({ sign, whole, fraction, exponent }) => `"${sign}${whole}${fraction === null ? "" : `.${fraction}`}${exponent}"`
)

const oddTexts = [
  "",
  "null",
  "true",
  '"',
  "\\",
  "\0",
  "a\0b",
  "\ud83d",
  "\udc00x",
  "😀",
  "é",
  "\u2028",
  "[]{},:",
  "x".repeat(255)
]
const oddText = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.constantFrom(...oddTexts))

const two = (max: number) => fc.integer({ min: 0, max }).map((value) => String(value).padStart(2, "0"))
const dayText = fc
  .tuple(
    fc.oneof(fc.constantFrom("2024", "2026", "0000", "0001", "9999", "1900"), digits(4, 4)),
    fc.oneof({ weight: 5, arbitrary: fc.constantFrom("01", "02", "04", "12") }, { weight: 1, arbitrary: two(14) }),
    fc.oneof({ weight: 3, arbitrary: fc.constantFrom("01", "28", "29", "30", "31") }, { weight: 1, arbitrary: two(33) })
  )
  .map((list) => list.join("-"))
const instantText = fc
  .tuple(
    dayText,
    fc.constantFrom("T", "T", "T", "t", " ", "_"),
    fc.oneof(
      fc.constantFrom("00:00:00", "23:59:59", "23:59:60", "24:00:00"),
      fc.tuple(two(25), two(61), two(61)).map((list) => list.join(":"))
    ),
    fc.option(fc.oneof(digits(0, 9), fc.constantFrom("000000", "0000000", "1234560"))),
    fc.constantFrom("Z", "Z", "Z", "z", "", "+00:00", "-00:00", "+02:00", "-23:59", "+24:00", "+0200", "-01:60")
  )
  .map(
    ([day, separator, time, fraction, zone]) =>
      `${day}${separator}${time}${fraction === null ? "" : `.${fraction}`}${zone}`
  )

const tokens = 'true false null "true" "false" 0 1 -0 1.10 1.0 0.1 "0.1000" "1.10"'.split(" ")
const scalar = fc.oneof(
  numberToken,
  decimalText,
  quoted(oddText),
  quoted(fc.oneof(dayText, instantText)),
  fc.constantFrom(...tokens)
)
const json: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    { weight: 4, arbitrary: scalar },
    { weight: 1, arbitrary: fc.array(tie("value"), { maxLength: 3 }).map((list) => `[${list.join(" ,")}]`) },
    {
      weight: 1,
      arbitrary: fc
        .uniqueArray(fc.tuple(quoted(oddText), tie("value")), {
          maxLength: 3,
          selector: ([name]) => JSON.parse(name) as string
        })
        // JavaScript moves names that are integers to the front. JSON text keeps their position.
        .map(
          (list) =>
            `{${list
              .filter(([name]) => !/^\d+$/.test(JSON.parse(name) as string))
              .map(([name, value]) => `${name}:${value}`)
              .join(", ")}}`
        )
    }
  )
})).value

const byType = {
  integer: fc.oneof(
    fc.integer().map(String),
    fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
    numberToken,
    decimalText
  ),
  decimal: fc.oneof(
    decimalText,
    fc.tuple(digits(1, 6), digits(1, 4)).map(([a, b]) => `"${a}.${b}"`),
    numberToken
  ),
  boolean: fc.constantFrom("true", "false", "0", "1", '"true"'),
  string: quoted(oddText),
  date: quoted(fc.oneof(dayText, instantText)),
  timestamp: quoted(fc.oneof(dayText, instantText)),
  list: fc.array(json, { maxLength: 2 }).map((list) => `[${list.join(",")}]`)
} as const

/** Mostly a value of the field's type, sometimes any value. Rarely the field is absent. */
const members = parts.fields.map((field) =>
  fc
    .oneof(
      { weight: 12, arbitrary: byType[field.type._tag] },
      { weight: 1, arbitrary: fc.constant("null") },
      { weight: 1, arbitrary: json },
      { weight: 1, arbitrary: fc.constant(null) }
    )
    .map((text) => (text === null ? null : `"${field.name}":${text}`))
)
const unknownMember = fc
  .tuple(fc.oneof(fc.constantFrom("custom_fields", "new", "__proto__", "constructor", "toString", "é"), oddText), json)
  // Names that need an escape are excluded. JSON.parse of Node 24.21, which the specification uses, confuses them: for
  // {"\\":0} and then {"\"":0} it returns the name of the first twice. The decoder keeps such names as they were sent,
  // see above.
  .map(([name, value]) =>
    /^\d+$/.test(name) || parts.field.has(name) || JSON.stringify(name) !== `"${name}"`
      ? null
      : `${JSON.stringify(name)}:${value}`
  )

const recordText = fc
  .tuple(
    fc.subarray([...parts.fields.keys()]).chain((kept) => fc.tuple(...kept.map((place) => members[place]!))),
    fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: 1 }).map((id) => `"id":${id}`) },
      { weight: 1, arbitrary: fc.constant(null) }
    ),
    fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 2, arbitrary: fc.array(unknownMember, { maxLength: 2 }) }
    ),
    fc.constantFrom(",", ", ", " ,\n\t")
  )
  .map(([declared, id, undeclared, comma]) => {
    const seen = new Set<string>()
    const list = [id, ...declared, ...undeclared].filter((text) => {
      if (text === null) return false
      const name = /^"(?:[^"\\]|\\.)*"/.exec(text)![0]
      if (seen.has(name)) return false
      seen.add(name)
      return true
    })
    return `{${list.join(comma)}}`
  })

const compare = (text: string, outcome: SourceRecord | Rejected) => {
  const expected = specification(text)
  if ("reason" in outcome) {
    assert.strictEqual(outcome.bytes, text)
    assert.deepStrictEqual({ rejected: outcome.field }, expected, `${outcome.reason} in ${text}`)
    return
  }
  const lines = parts.fields.findIndex((field) => field.name === "lines")
  assert.deepStrictEqual(
    {
      columns: outcome.columns.map((cell, place) =>
        place === lines && typeof cell === "string" ? Specification.canonical(cell) : cell
      ),
      customFields: outcome.customFields === null ? null : Specification.canonical(outcome.customFields),
      extra: outcome.extra === null ? null : Specification.canonical(outcome.extra)
    },
    expected,
    text
  )
  assert.strictEqual(outcome.partial, outcome.columns.includes(undefined))
  assert.strictEqual(outcome.id, outcome.columns[0])
}

describe("Decode, compared with its specification", () => {
  it("agrees with the specification on every record of any page", () => {
    let accepted = 0
    let rejected = 0
    fc.assert(
      fc.property(fc.array(recordText, { minLength: 1, maxLength: 4 }), (texts) => {
        const text = ` [ ${texts.join(" , ")} ] `
        const decoded = decoder.list(text, text.indexOf("["))
        accepted += decoded.records.length
        rejected += decoded.rejected.length
        assert.strictEqual(decoded.records.length + decoded.rejected.length, texts.length)
        const left = { records: [...decoded.records], rejected: [...decoded.rejected] }
        for (const record of texts) {
          const outcome = "rejected" in specification(record) ? left.rejected.shift() : left.records.shift()
          assert.isDefined(outcome, record)
          compare(record, outcome)
        }
      }),
      { numRuns: 3000 }
    )
    // Both accepted and rejected records must have occurred.
    assert.isAbove(accepted, 500)
    assert.isAbove(rejected, 500)
  })

  it("reads a record alone as it reads it within a page", () => {
    fc.assert(
      fc.property(recordText, (text) => {
        const inPage = page(text)
        const alone = decoder.one(text, 0, text.length)
        assert.deepStrictEqual([...inPage.records, ...inPage.rejected], [alone])
      }),
      { numRuns: 2000 }
    )
  })

  it("finds the range of each array element in any text", () => {
    fc.assert(
      fc.property(fc.array(json, { maxLength: 5 }), fc.constantFrom("", " ", "\n\t "), (list, space) => {
        const text = `${space}[${space}${list.join(`${space},${space}`)}${space}]${space}`
        const ranges = elements(text, space.length)
        const texts = Array.from({ length: ranges.length / 2 }, (_, at) =>
          text.slice(ranges[2 * at], ranges[2 * at + 1])
        )
        assert.deepStrictEqual(texts, list)
      })
    )
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// Decoding from bytes
// ---------------------------------------------------------------------------------------------------------------------

/** The COPY text that landing writes for records. */
const landed = (records: ReadonlyArray<SourceRecord>): string => {
  const rows = records.map((one) => [one, "end"] as const)
  // The next piece overwrites the buffer of this one.
  return Buffer.concat(Array.from(copyLines(rows, "7\t"), (piece) => Buffer.from(piece))).toString("utf8")
}

const plainly = ({ id, columns, partial, customFields, extra }: SourceRecord) =>
  [id, columns, partial, customFields, extra] as const

/**
 * Decodes a response from bytes and from text. The byte decoder may return null; otherwise both results must be equal.
 */
const bothWays = (answer: string | Uint8Array, using: Decode.Decoder): number => {
  const bytes = typeof answer === "string" ? Buffer.from(answer) : answer
  const read = using.bytes(bytes)
  if (read === null) return 0
  const parsed = parse(bytes)
  if (parsed instanceof Unreadable) return assert.fail(`decoded although it is unreadable: ${parsed.detail}`)
  const short = findList({ text: "", value: read.envelope }, null, "parts")
  // As in production, the result is used only if its list is the list of the response.
  if (short instanceof Unreadable || short.items !== read.emptyList) return 0
  const whole = findList(parsed, null, "parts")
  if (whole instanceof Unreadable) return assert.fail("the byte decoder found a list that does not exist")
  const expected = using.list(parsed.text, whole.start())
  assert.deepStrictEqual(read.records.map(plainly), expected.records.map(plainly))
  assert.deepStrictEqual(read.rejected, expected.rejected)
  assert.strictEqual(landed(read.records), landed(expected.records))
  // Without `_meta`, the list is itself a member of the object that is used as `_meta`.
  const besideList = (list: List) => Object.entries(list.meta).filter(([, value]) => value !== list.items)
  assert.deepStrictEqual(besideList(short), besideList(whole))
  return read.records.filter((one) => one instanceof EncodedRecord).length
}

const places = parts.fields.map((_, place) => place)

/** Similar records: the same members in the same order with the same white space, and mostly plain values. */
const alike = fc
  .record({
    order: fc.oneof(
      { weight: 2, arbitrary: fc.constant(places) },
      { weight: 1, arbitrary: fc.shuffledSubarray(places, { minLength: 15 }) }
    ),
    others: fc.subarray(["custom_fields", "new", "constructor"]),
    comma: fc.constantFrom(",", ", ", " ,\n  "),
    colon: fc.constantFrom(":", ": ")
  })
  .chain(({ order, others, comma, colon }) =>
    fc.array(
      fc
        .tuple(
          fc.integer({ min: 1, max: 99_999 }),
          fc.tuple(
            ...order.map((place) =>
              fc.oneof(
                { weight: 150, arbitrary: plainFor(parts.fields[place]!) },
                { weight: 1, arbitrary: byType[parts.fields[place]!.type._tag] },
                { weight: 1, arbitrary: fc.constant("null") },
                { weight: 1, arbitrary: fc.constantFrom("1.0", "{}", '""', "[1]") }
              )
            )
          ),
          fc.tuple(...others.map(() => json))
        )
        .map(([id, values, more]) => {
          const members = order.map((place, at) => {
            const { name } = parts.fields[place]!
            return `"${name}"${colon}${name === "id" ? id : values[at]!}`
          })
          return `{${[...members, ...others.map((name, at) => `"${name}"${colon}${more[at]!}`)].join(comma)}}`
        }),
      { maxLength: 8 }
    )
  )

const plainOf = {
  integer: fc.integer().map(String),
  decimal: fc.integer().map((value) => `"${value}"`),
  boolean: fc.constantFrom("true", "false"),
  string: quoted(
    fc.oneof(fc.string(), fc.constantFrom("", '2" pipe', "a\\b", "tab\there", "line\nend\r", "\b\f/", "é😀", "\\N"))
  ),
  date: fc.constantFrom('"2026-02-28"', '"2026-10-31"', '"2026-12-31"', '"2026-11-30"', '"0001-01-01"'),
  timestamp: fc.constantFrom('"2026-01-01T10:00:00.123456Z"', '"2026-01-31T23:59:59Z"', '"2026-07-31T00:00:00.1Z"'),
  list: fc.constantFrom("[]", "[]", '[{"number":1.10}]', '[ "é" ]', '["\\n"]')
} as const

const plainFor = ({ type }: Field): fc.Arbitrary<string> =>
  type._tag === "decimal" && type.scale > 0
    ? fc.tuple(fc.integer(), digits(1, type.scale)).map(([whole, fraction]) => `"${whole}.${fraction}"`)
    : plainOf[type._tag]

const tails = [
  `,"_meta":{"limit":250,"has_more":true,"next_cursor":"abc","synced_through":"2026-01-01T00:00:00.000000Z"}}`,
  `}`,
  ` , "_meta" : null } `,
  `,"data":[]}`,
  `,"data":[{"id":1}]}`,
  `,"d\\u0061ta":[]}`,
  `,"items":[{"id":2}]}`
]
const heads = [`{"data":[`, `{"_meta":{"limit":[1]},"data":[`, ` {"records" : [ `, `{"items":[`, `{"errors":[`]

describe("Decode, from bytes", () => {
  it("decodes plain records without creating objects", () => {
    const text = Array.from({ length: 20 }, (_, at) => {
      const memo = JSON.stringify(`no. ${at} 2" \\ \t é`)
      return (
        `{"id":${at + 1},"rank":-3,"priority":1,"price":"12.5000","weight":"0.000001","share":"5","flag":true,"code":"A",` +
        `"memo":${memo},"kind":null,"day":"2026-02-28","seen":"2026-01-01T10:00:00.123456Z","lines":[],"cancel":false,` +
        `"lastchangedate":"2026-01-01T10:00:00Z"}`
      )
    })
    const using = Decode.make(parts)
    // The first record defines the layout that the others are compared with.
    assert.strictEqual(bothWays(`${heads[0]!}${text.join(",")}]${tails[0]!}`, using), 19)
    assert.strictEqual(bothWays(`[${text.join(",")}]`, using), 20)
  })

  it("returns what decoding the text returns, or null", () => {
    let encodedRecords = 0
    fc.assert(
      fc.property(alike, fc.constantFrom(...heads, "["), fc.constantFrom(...tails), (texts, head, tail) => {
        const using = Decode.make(parts)
        const answer = `${head}${texts.join(head.includes(" ") ? " , " : ",")}]${head === "[" ? "" : tail}`
        encodedRecords += bothWays(answer, using)
        // A second page uses the layouts of the first one.
        encodedRecords += bothWays(answer, using)
      }),
      { numRuns: 500 }
    )
    assert.isAbove(encodedRecords, 250)
  })

  it("returns null for invalid JSON, whichever byte is wrong", () => {
    const using = Decode.make(parts)
    fc.assert(
      fc.property(
        alike,
        fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        fc.constantFrom("drop", "put", "cut"),
        fc.oneof(fc.constantFrom(...Buffer.from('"\\,:{}[]0e.-u \n\t\0')), fc.integer({ min: 0, max: 255 })),
        (texts, share, kind, byte) => {
          const answer = Buffer.from(`${heads[0]!}${texts.join(",")}]${tails[0]!}`)
          bothWays(answer, using)
          const at = Math.floor(share * answer.length)
          const rest = answer.subarray(kind === "put" ? at : at + 1)
          bothWays(
            kind === "cut"
              ? answer.subarray(0, at)
              : Buffer.concat([answer.subarray(0, at), kind === "put" ? Buffer.of(byte) : Buffer.alloc(0), rest]),
            using
          )
        }
      ),
      { numRuns: 1000 }
    )
  })
})
