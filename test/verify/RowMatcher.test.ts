/** What the matcher calls equal is equal by the comparison that parses the record; the usual forms need no parsing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { canonical, parse } from "../../src/json/Json.ts"
import * as Compare from "../../src/verify/Compare.ts"
import * as RowMatcher from "../../src/verify/RowMatcher.ts"
import type { Row, WarehouseRows } from "../../src/verify/WarehouseRows.ts"
import { tableOf } from "../../src/warehouse/Table.ts"
import { withInferred } from "../../src/warehouse/WarehouseCatalogue.ts"
import { gauges } from "../support/tiny.ts"

const table = tableOf(
  withInferred(gauges, [
    { name: "colour", type: "text", column: "colour" },
    { name: "ratio", type: "number", column: "ratio" },
    { name: "at", type: "timestamp", column: "at" }
  ])
)

/** The usual forms: the value as the source sends it, and the text of its column. */
const usual: Readonly<Record<string, readonly [sent: string, stored: string]>> = {
  id: ["7", "7"],
  name: ['"gauge ä"', "gauge ä"],
  price: ['"12.5000"', "12.5000"],
  weight: ['"0.000001"', "0.000001"],
  rank: ["-3", "-3"],
  flag: ["true", "true"],
  day: ['"2026-02-28"', "2026-02-28"],
  seen: ['"2026-03-01T10:00:00.120000Z"', "2026-03-01T10:00:00.12+00:00"],
  memo: ['"a\\tb"', "a\tb"],
  lastchangedate: ['"2026-03-01T10:00:00Z"', "2026-03-01T10:00:00+00:00"],
  parts: ['[{"no":1,"name":"a, 12"},{"no":2,"name":null}]', '[{"no": 1, "name": "a, 12"}, {"no": 2, "name": null}]'],
  colour: ['"red"', "red"],
  ratio: ["1.50", "1.50"],
  at: ['"2026-03-01T10:00:00Z"', "2026-03-01T10:00:00+00:00"]
}
const names = table.columns.map(({ field }) => field)

const recordOf = (sent: Readonly<Record<string, string>>): string =>
  `{${Object.entries(sent)
    .map(([name, value]) => `"${name}":${value}`)
    .join(",")}}`
const usualSent = Object.fromEntries(names.map((name) => [name, usual[name]![0]]))
const usualRow: Row = {
  id: "7",
  isDeleted: false,
  columns: names.map((name) => usual[name]![1]),
  customFields: null,
  extra: null
}
const rowWith = (name: string, stored: string | null): Row => ({
  ...usualRow,
  columns: usualRow.columns.map((value, position) => (names[position] === name ? stored : value))
})

/** The kind of the comparison that parses the record. */
const parsed = (text: string, row: Row): string => {
  const rows = { byIds: () => Effect.succeed(new Map([[row.id, row]])) } as Partial<WarehouseRows> as WarehouseRows
  const expected = Compare.textReader(table).reader.raw(text)
  const [comparison] = Effect.runSync(
    Compare.compareRecords(table, rows, [{ ...expected, id: expected.id === null ? null : row.id }])
  )
  return comparison!.kind
}

const matcherOf = (template: string) => {
  const matcher = RowMatcher.make(table)
  matcher.learn(template)
  return matcher
}

const listed = (text: string) => text.trim().split(/\s+\|\s+/)

const sentValues = [
  ...Object.values(usual).map(([sent]) => sent),
  ...listed(String.raw`
    null | true | false | 0 | 1 | -0 | 12.5 | 12.50001 | 1e2 | [] | {} | "" | "true" | "0" | "7" | "12.5" |
    "012.5000" | "NaN" | 12.5000 | "a\nb" | "a\\nb" | "a\"b" | "\u0061" | "red\n" | "x","rank":"y" |
    "2026-02-28T00:00:00Z" | "2026-02-28T01:00:00Z" | "2026-03-01T10:00:00.12Z" | "2026-03-01T11:00:00.12+01:00" |
    "2026-03-01T10:00:00.1200001Z" | "2026-03-01T10:00:00.1200000Z" | "2026-03-01T10:00:00.120000" |
    "2026-03-01T10:00:00.Z" | "infinity" | [{"name":"a, 12","no":1},{"no":2,"name":null}] | [{"no":1.0}] |
    [{"no":1}] | [{"no":1e0}] | [{"no":1},{}] | [{"no":12345678901234567}] | [{"no":12345678901234568}] |
    [{"__proto__":1}] | [{"\u006eo":1}]`)
]
const storedValues = [
  ...Object.values(usual).map(([, stored]) => stored),
  ...listed(String.raw`
    true | false | 0 | 1 | 7 | 12.5 | 12.50001 | NaN | [] | {} | 100 | a\nb | a"b | a | x","rank":"y |
    2026-03-01T10:00:00.120001+00:00 | 2026-03-01T10:00:00+00:00 | 2026-03-01T11:00:00.12+01:00 | infinity |
    2026-03-01 | [{"no": 1}] | [{"no": 1.0}] | [{"no": 1}, {}] | [{"no": 12345678901234567}] |
    [{"__proto__": 1}] | null`),
  null,
  "",
  "a\nb",
  "red\n"
]

describe("the matcher of rows", () => {
  it("needs no parsing for the usual forms", () => {
    const matcher = matcherOf(recordOf(usualSent))
    assert.strictEqual(matcher.idOf(recordOf(usualSent)), "7")
    assert.isTrue(matcher.isEqual(recordOf(usualSent), usualRow))
    assert.isTrue(matcher.isEqual(recordOf(usualSent), { ...usualRow, extra: "{}" }))
    for (const name of names.slice(1)) {
      assert.isTrue(matcher.isEqual(recordOf({ ...usualSent, [name]: "null" }), rowWith(name, null)), name)
    }
    const { rank: _rank, ...without } = usualSent
    assert.isTrue(matcherOf(recordOf(without)).isEqual(recordOf(without), rowWith("rank", null)))
    const own = recordOf({ ...usualSent, custom_fields: '{"size":"1.10","b":[1]}' })
    assert.isTrue(matcherOf(own).isEqual(own, { ...usualRow, customFields: '{"b": [1], "size": "1.10"}' }))
  })

  it("calls no value equal that the comparison by parsing does not", () => {
    const matcher = matcherOf(recordOf(usualSent))
    let equal = 0
    for (const name of names.slice(1)) {
      for (const sent of sentValues) {
        const text = recordOf({ ...usualSent, [name]: sent })
        for (const stored of storedValues) {
          const row = rowWith(name, stored)
          if (!matcher.isEqual(text, row)) continue
          equal++
          assert.strictEqual(parsed(text, row), "equal", `${name}: ${sent} and ${stored}`)
        }
      }
    }
    // Most fields match in several forms.
    assert.isAbove(equal, 4 * names.length)
  })

  it("calls no record equal whose members are others", () => {
    const { rank: _rank, ...without } = usualSent
    const custom = { ...usualSent, custom_fields: '{"a":1}' }
    const records = [
      usualSent,
      without,
      custom,
      { ...usualSent, custom_fields: "null" },
      { ...usualSent, more: "1" }
    ].map(recordOf)
    records.push(
      recordOf(usualSent).replace('"rank":-3', '"rank":-3,"rank":-4'),
      recordOf(usualSent).replace('"rank"', '"r\\u0061nk"'),
      recordOf(usualSent).replace("{", "{ "),
      recordOf(usualSent).replace(/\}$/, " }"),
      `${recordOf(usualSent)} `,
      `${recordOf(usualSent)}}`,
      recordOf(usualSent).slice(0, -1)
    )
    const rows: ReadonlyArray<Row> = [
      usualRow,
      rowWith("rank", null),
      { ...usualRow, customFields: '{"a": 1}' },
      { ...usualRow, customFields: '{"a": 1.0}' },
      { ...usualRow, customFields: "null" },
      { ...usualRow, extra: '{"more": 1}' },
      { ...usualRow, extra: '{"rank": -3}' },
      { ...usualRow, extra: "[]" }
    ]
    for (const template of records) {
      const matcher = matcherOf(template)
      for (const text of records) {
        for (const row of rows) {
          const isEqual = matcher.isEqual(text, row)
          if (isEqual) assert.strictEqual(parsed(text, row), "equal", `${text} and ${JSON.stringify(row)}`)
        }
      }
    }
  })

  it("finds only numbers that a row can have", () => {
    const matcher = matcherOf(recordOf(usualSent))
    const idOf = (sent: string) => matcher.idOf(recordOf({ ...usualSent, id: sent }))
    assert.deepStrictEqual(["0", "-7", "123456789012345678"].map(idOf), ["0", "-7", "123456789012345678"])
    for (const sent of ["07", "-0", "7.0", "7e0", '"7"', "null", "9223372036854775808", "1234567890123456789"]) {
      assert.isNull(idOf(sent), sent)
    }
  })

  it("compares JSON values as the canonical forms do", () => {
    const texts = [
      ...sentValues,
      "1.10",
      "1.1",
      "-0.0",
      '{"a":1,"b":2}',
      '{"b":2,"a":1}',
      '{"a":1}',
      '{"a":[]}',
      '{"a":{}}'
    ]
    for (const one of texts) {
      for (const other of texts) {
        if (one.includes('","rank"') || other.includes('","rank"')) continue
        const isEqual = canonical(parse(one)) === canonical(parse(other))
        assert.strictEqual(RowMatcher.isSameJson(one, other), isEqual, `${one} and ${other}`)
      }
    }
  })
})
