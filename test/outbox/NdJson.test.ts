/** The NDJSON parser, for valid and malformed files. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { recordBytesMax } from "../../src/outbox/input/InputRecord.ts"
import { bytesOf, fromNdJson } from "./support.ts"
import * as NdJson from "../../src/outbox/input/NdJson.ts"

const anyUnit = fc.constantFrom("a", "\n", "\r", "é", "中", "😀", "\ud800", "\0", '"', "\\")

const brief = async (text: string | Uint8Array, size?: number) =>
  (await fromNdJson(text, size)).map((one) => [
    one.line,
    one._tag === "Json" ? one.json : one._tag === "Unreadable" ? one.message : one._tag
  ])

describe("the NDJSON parser", () => {
  it("returns lines with their numbers for any line ending and chunk size", async () => {
    const text = '\uFEFF{"a":1}\r\n\n  \n{"a":"ü😀"}\n{"a":3}'
    const expected = [
      [1, '{"a":1}'],
      [4, '{"a":"ü😀"}'],
      [5, '{"a":3}']
    ]
    for (const size of [1, 2, 3, 7, 1000]) assert.deepStrictEqual(await brief(text, size), expected)
    assert.deepStrictEqual(await brief(`${text}\n`), expected)
    assert.deepStrictEqual(await brief(""), [])
    assert.deepStrictEqual(await brief("\uFEFF\r\n"), [])
  })

  it("reports an invalid line and returns the others", async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"a":1}\n'),
      Buffer.from([0x22, 0xff, 0x22, 10]),
      Buffer.from("nothing\n{}")
    ])
    assert.deepStrictEqual(await brief(bytes), [
      [1, '{"a":1}'],
      [2, "is not UTF-8"],
      [3, "nothing"],
      [4, "{}"]
    ])
  })

  it("rejects a line above the size limit without buffering it", async () => {
    const message = `is longer than ${recordBytesMax} bytes, the maximum of a record`
    const long = "x".repeat(recordBytesMax + 1)
    for (const [size, line] of [
      [65_536, long],
      [65_536, `${long}${"x".repeat(200_000)}`],
      [10_000_000, long]
    ] as const) {
      assert.deepStrictEqual(await brief(`{}\n${line}\n{}\n`, size), [
        [1, "{}"],
        [2, message],
        [3, "{}"]
      ])
    }
    assert.deepStrictEqual((await brief("x".repeat(recordBytesMax))).length, 1)
    assert.deepStrictEqual(await brief(`${long}${long}${long}`, 65_536), [[1, message]])
  })

  it("returns all lines for random text and chunks", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: anyUnit, maxLength: 20 }), { maxLength: 10 }),
        fc.integer({ min: 1, max: 50 }),
        async (strings, size) => {
          const lines = strings.map((text) => JSON.stringify({ text }))
          assert.deepStrictEqual(
            await brief(lines.join("\n"), size),
            lines.map((json, index) => [index + 1, json])
          )
        }
      )
    )
  })

  it("returns the first lines before the last are read", async () => {
    let read = 0
    const bytes = (async function* () {
      for await (const piece of bytesOf("{}\n".repeat(1000), 300)) {
        read++
        yield piece
      }
    })()
    for await (const piece of NdJson.read(bytes)) {
      assert.lengthOf(piece, 100)
      assert.strictEqual(read, 1)
      break
    }
  })
})
