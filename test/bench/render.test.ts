import { expect, it } from "vitest"
import { bytesRenderer, jsonRenderer } from "./render.ts"

const columns = ["id", "name", "amount", "isActive", "lines", "missing", "note"]
const records = [
  { id: 1, name: "Plain", amount: "12.50", isActive: true, lines: [], note: null },
  {
    id: 2,
    name: 'tab\tquote"back\\slash\nline\r',
    amount: "-0.000001",
    isActive: false,
    lines: [{ a: "}],{" }],
    note: ""
  },
  {
    unknown: { x: ["]", 1] },
    note: "Ünïcödé \u0007 \ud83d\ude80",
    id: 3,
    name: "null",
    lines: { text: 'a"b\\c\td' },
    amount: 1.5e3
  },
  {},
  { id: 9007199254740993n.toString(), name: "\\".repeat(50), lines: "\t".repeat(300) }
]

it("makes the same COPY text from the bytes of a page as through JSON.parse", () => {
  for (const data of [records, records.slice(0, 1), [{}, {}, {}], []]) {
    const page = Buffer.from(JSON.stringify({ data, _meta: { next_cursor: "{[" } }))
    const [bytes, json] = [bytesRenderer("7")(columns)(page), jsonRenderer("7")(columns)(page)]
    expect(bytes.text.toString("utf8")).toBe(json.text.toString("utf8"))
    expect(bytes.count).toBe(data.length)
  }
})
