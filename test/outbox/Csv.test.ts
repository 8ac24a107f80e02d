/** The CSV parser, for valid and malformed files. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { recordBytesMax } from "../../src/outbox/input/InputRecord.ts"
import { answers, checkerOf, fromCsv, withProblemTexts } from "./support.ts"
import { isInvalid } from "../../src/outbox/Validate.ts"
import type { Delimiter } from "../../src/outbox/input/Csv.ts"

const brief = async (text: string | Uint8Array, delimiter?: Delimiter, size?: number) =>
  (await fromCsv(text, delimiter, size)).map((one) => {
    if (one._tag === "Header") return [one.line, ...one.names.map((name) => `#${name}`)]
    return one._tag === "Cells"
      ? [one.line, ...one.cells]
      : [one.line, one._tag === "Unreadable" ? one.message : one._tag]
  })

describe("the CSV parser", () => {
  it("returns the first line of each record for any cells and chunk sizes", async () => {
    const text = '\uFEFF a , b\n1,"x\r\ny"\n\n\n"2\n\n",ü😀\n3,""'
    const expected = [
      [1, "#a", "#b"],
      [2, "1", "x\r\ny"],
      [6, "2\n\n", "ü😀"],
      [9, "3", ""]
    ]
    for (const size of [1, 2, 3, 5, 1000]) {
      assert.deepStrictEqual(await brief(text, ",", size), expected)
      assert.deepStrictEqual(await brief(`${text}\n`, ",", size), expected)
    }
    assert.deepStrictEqual(await brief("a;b\r\n1;2,5\r\n\r\n3;4\r\n", ";", 1), [
      [1, "#a", "#b"],
      [2, "1", "2,5"],
      [4, "3", "4"]
    ])
    assert.deepStrictEqual(await brief(""), [])
  })

  it("takes the delimiter of a first line sep=, and names the one that a header has", async () => {
    for (const size of [1, 3, 1000]) {
      assert.deepStrictEqual(await brief("\uFEFFsep=;\r\na;b\r\n1;2,5\r\n", ",", size), [
        [2, "#a", "#b"],
        [3, "1", "2,5"]
      ])
      assert.deepStrictEqual(await brief("a;b\n1;2\n3;4", ",", size), [
        [1, 'is separated by ";": give --delimiter semicolon']
      ])
      assert.deepStrictEqual(await brief("sep=x\n1", ",", size), [
        [1, "#sep=x"],
        [2, "1"]
      ])
    }
  })

  it("continues after a row with a wrong number of cells", async () => {
    assert.deepStrictEqual(await brief("a,b\n1\n1,2,3\n1,2"), [
      [1, "#a", "#b"],
      [2, "has 1 cell where the header names 2 columns"],
      [3, "has 3 cells where the header names 2 columns"],
      [4, "1", "2"]
    ])
  })

  it("keeps rows before a malformed quote and reports its line", async () => {
    const before = [
      [1, "#a", "#b"],
      [2, "1", "2"]
    ]
    for (const size of [1, 1000]) {
      for (const [row, problem] of [
        ['3,"4', "a quote that is never closed"],
        ['"3"x,4', "text behind a closing quote; a quote inside a quoted cell is written twice"],
        ['3,4" pipe', "a quote inside a cell that is not quoted; quote the cell and write its quotes twice"]
      ] as const) {
        const read = await brief(`a,b\n1,2\n${row}\n5,6\n`, ",", size)
        assert.deepStrictEqual(read, [...before, [3, `has ${problem}; the rest was not read`]])
      }
    }
    const [, , last] = await brief(`a,b\n1,2\n3,"${"x".repeat(recordBytesMax + 10)}`)
    assert.strictEqual(last?.[0], 3)
    assert.match(String(last?.[1]), /^is longer than/)
  })

  it("reports the line with invalid UTF-8", async () => {
    const bad = Buffer.concat([Buffer.from('a,b\n1,"\n"\n3,'), Buffer.from([0xc3, 0x28]), Buffer.from("\n5,6\n")])
    const cut = Buffer.concat([Buffer.from('a,b\n1,"\n"\n3,'), Buffer.from([0xf0, 0x9f])])
    for (const bytes of [bad, cut]) {
      for (const size of [1, 2, 3, 1000]) {
        const lines = await brief(bytes, ",", size)
        assert.deepStrictEqual(lines[0], [1, "#a", "#b"])
        assert.deepStrictEqual(lines.at(-1), [4, "is not UTF-8; the rest was not read"])
        assert.isAtMost(lines.length, 3)
      }
    }
  })

  it("returns the written cells and lines for random input", async () => {
    const cell = fc.string({ unit: fc.constantFrom("a", '"', ",", "\n", "\r\n", "é", "😀", " "), maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(cell, cell), { maxLength: 6 }),
        fc.constantFrom("\n", "\r\n"),
        fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
        fc.integer({ min: 1, max: 20 }),
        async (rows, end, blanks, size) => {
          let line = 1
          let text = ""
          const expected: Array<ReadonlyArray<unknown>> = []
          for (const [index, cells] of [["x", "y"], ...rows].entries()) {
            if (blanks[index] === true) {
              text += end
              line++
            }
            expected.push([line, ...cells.map((one) => (index === 0 ? `#${one}` : one))])
            const row = cells.map((one) => `"${one.replaceAll('"', '""')}"`).join(",") + end
            text += row
            line += row.split("\n").length - 1
          }
          assert.deepStrictEqual(await brief(text, ",", size), expected)
        }
      ),
      { numRuns: 100 }
    )
  })
})

describe("a CSV record", () => {
  const of = async (path: string, csv: string) =>
    answers(checkerOf(path), await fromCsv(csv)).map((answer) =>
      isInvalid(answer) ? answer.map(({ line, field, message }) => `${line} ${field}: ${message}`) : answer.text
    )

  it("converts cells to the types of their fields", async () => {
    assert.deepStrictEqual(
      await of(
        "salesmen",
        'externalid,name,salesman,servicerep,commissionrate,custom_fields\n007,1,YES,0,01.50,"{""a"":1.0}"\n8,true,,False,,'
      ),
      [
        '{"name":"1","salesman":true,"servicerep":false,"commissionrate":"01.50","externalid":"007","custom_fields":{"a":1.0}}',
        '{"name":"true","servicerep":false,"externalid":"8"}'
      ]
    )
    assert.deepStrictEqual(
      await of("shipments", 'externalid,orderid,lines\n1,12,"[{""orderlineid"":1,""quantity"":""2""}]"\n2,0x1,[1'),
      [
        '{"orderid":12,"externalid":"1","lines":[{"orderlineid":1,"quantity":"2"}]}',
        [
          "3 lines: must be JSON in its cell: expected a comma or the end of the list at character 3",
          '3 orderid: must be a whole number, not "0x1"',
          "3 lines: is required"
        ]
      ]
    )
  })

  it("reports invalid header names once", async () => {
    assert.deepStrictEqual(
      await of("salesmen", "externalid,name,name,,nome,id,_line\n1,A,B,C,D,5,6\n2,A,B,C,D,5,6\n,A,B,C,D,5,6"),
      [
        [
          "1 name: names column 2 and column 3",
          "1 null: column 4 has no name",
          "1 nome: is no field that can be written here; these are: name, phone1, cancel, email1, salesman, servicerep, externalid, commissionrate, custom_fields",
          "1 id: is set by the service; leave it out"
        ],
        '{"name":"A","externalid":"1"}',
        '{"name":"A","externalid":"2"}',
        ["4 externalid: is required: it shows whether the record was written already"]
      ]
    )
  })

  it("reports missing required columns once", async () => {
    assert.deepStrictEqual(await of("apbilllines", "externalid,jobid\n1,2\n3,x\n5,6"), [
      [
        "1 apbillid: has no column, and is required",
        "1 glaccountid: has no column, and is required",
        "1 amount: has no column, and is required"
      ],
      ['3 jobid: must be a whole number, not "x"']
    ])
    const changes = answers(checkerOf("payments", "update"), await fromCsv("method\n1\n2"))
    assert.deepStrictEqual(changes.map(withProblemTexts), [
      ["record: no column identifies the record: give its id, or its externalid"]
    ])
  })

  it("identifies the record to update by its id column", async () => {
    const answer = answers(checkerOf("payments", "update"), await fromCsv("id,method\n17,3\nx,3"))
    assert.deepStrictEqual(answer.map(withProblemTexts), [
      { externalid: null, recordId: "17", text: '{"method":3}' },
      ['id: must be the record\'s number, not "x"']
    ])
  })
})
