/** Writes with a shape of their own: the names, types, lengths and required fields that the WRITE facts state. */
import { assert, describe, it } from "vitest"
import { FACTS } from "./facts.ts"
import {
  entries,
  idOf,
  isDecimal,
  keptPromises,
  MALFORMED_DECIMALS,
  newCompany,
  refused,
  refusedEntries,
  row,
  succeeded,
  useServer,
  type Company,
  type Row
} from "./harness.ts"
import { resource, type Resource } from "./resources.ts"
import { makeBill, makeDraft, makeGlAccount, makeItem, makeOrder, makePosted } from "./world.ts"

useServer()

interface ShapeField {
  readonly name: string
  readonly type: "integer" | "decimal" | "string" | "boolean" | "lines"
  readonly length: number | undefined
  readonly required: boolean
}

interface Shape {
  readonly fact: string
  readonly each: Resource
  readonly fields: readonly ShapeField[]
}

function shapeFieldsOf(stated: string): ShapeField[] {
  // Of two names that are joined by "or", one is required: the rule of apbilllines has a test of its own.
  const parts = stated.split("; ").flatMap((part) => part.replace(/^(\w+ \w+) or (.*) REQUIRED/, "$1; $2").split("; "))
  return parts.map((part) => {
    const [, name = "", type = "", length] =
      /^(\w+) (integer|money string|qty string|string|boolean|array of objects)(?:\((\d+)\))?/.exec(part) ?? []
    if (name === "") throw new Error(`no field: ${part}`)
    const kind = type.endsWith(" string") ? "decimal" : type === "array of objects" ? "lines" : type
    return {
      name,
      type: kind as ShapeField["type"],
      length: length === undefined ? undefined : Number(length),
      required: / REQUIRED\b/.test(part)
    }
  })
}

/** The shapes of POST and of PATCH, from the facts. */
const CREATES: readonly Shape[] = Object.entries(FACTS).flatMap(([fact, text]) => {
  const match = /^POST \/(\w+) and \/\w+\/batch \(\w+:write\): (.*)\. \[/.exec(text)
  if (match === null) return []
  return [{ fact, each: resource(String(match[1])), fields: shapeFieldsOf(String(match[2])) }]
})
const UPDATES = Object.entries(FACTS).flatMap(([fact, text]) => {
  const match = /^PATCH \/(\w+)\/\{id\} body: ([\w, ]+);/.exec(text)
  return match === null ? [] : [{ fact, each: resource(String(match[1])), names: String(match[2]).split(", ") }]
})

/** The field of the object that shows a name of a shape. */
function shownAs({ path }: Resource, name: string): string {
  if (name === "quantity") return "qty"
  if (name === "price") return "priceach"
  if (name === "reference") return "checkid"
  return name === "method" ? (path === "payments" ? "paymeth" : "payment_method") : name
}

/** Records of a company that the ids of a shape name. */
const REFERENCES: Readonly<Record<string, (c: Company) => Promise<number>>> = {
  orderid: async (c) => (await makeOrder(c)).id,
  invoiceid: async (c) => idOf(await makePosted(c)),
  itemid: async (c) => idOf(await makeItem(c)),
  apbillid: async (c) => idOf(await makeBill(c)),
  glaccountid: async (c) => idOf(await makeGlAccount(c)),
  jobid: async (c) => idOf(row((await c.put("jobs", [{ name: "House" }]))[0])),
  costcodeid: async (c) => idOf(row((await c.put("costcodes", [{ code: "LAB" }]))[0]))
}

/** A body whose amount may have any value of the test. */
async function roomyBody(c: Company, { path, body }: Resource): Promise<Row> {
  if (path === "payments") {
    const lines = [{ description: "w", quantity: "1", price: "1000000", taxable: false }]
    return { invoiceid: idOf(await makePosted(c, { lines })), amount: "1" }
  }
  if (path === "orderdeposits") {
    const lines = [{ itemid: idOf(await makeItem(c)), qtyorder: "1", priceach: "1000000" }]
    return { orderid: (await makeOrder(c, { lines })).id, amount: "1" }
  }
  if (path === "invoicelines") return { ...(await body(c)), invoiceid: idOf(await makeDraft(c)) }
  return body(c)
}

const WRONG: Readonly<Record<ShapeField["type"], readonly unknown[]>> = {
  integer: ["", "1", 1.5, true, {}, [1]],
  decimal: [1, 1.5, 0, true, {}, ["1"], ...MALFORMED_DECIMALS],
  string: [1, true, {}, ["x"]],
  boolean: [0, 1, "true", {}],
  lines: ["x", 1, {}, true]
}

for (const { fact, each, fields } of CREATES) {
  const { path } = each
  describe(`the shape of POST /${path}`, () => {
    it(`[${fact}][EP-12][CODE-03] requires its required fields, and names each missing one`, async () => {
      const c = await newCompany()
      const required = fields.filter((field) => field.required).map(({ name }) => name)
      assert.isAtLeast(required.length, 2)
      const missing = entries(refused(await c.post(`/${path}`, {}), "invalid_request"))
      for (const name of required) assert.include(missing, `${name}:required`)
      const body = await each.body(c)
      for (const name of required) {
        const { [name]: _, ...rest } = body
        refusedEntries(await c.post(`/${path}`, rest), `${name}:required`)
        refusedEntries(await c.post(`/${path}`, { ...body, [name]: null }), `${name}:required`)
      }
    })

    it(`[${fact}][CODE-04][D-02][D-04] rejects a value of another type in each field`, async () => {
      const c = await newCompany()
      const body = await each.body(c)
      for (const { name, type } of fields) {
        for (const value of WRONG[type])
          refused(await c.post(`/${path}`, { ...body, [name]: value }), "invalid_type", name)
      }
    })

    it(`[${fact}][FIELD-10][D-01] limits the length of each text`, async () => {
      const c = await newCompany()
      const body = await roomyBody(c, each)
      for (const { name, length } of fields) {
        if (length === undefined) continue
        refusedEntries(await c.post(`/${path}`, { ...body, [name]: "ü".repeat(length + 1) }), `${name}:too_long`)
        if (name === "glaccount") continue
        const value = "ü".repeat(length)
        assert.strictEqual(
          succeeded(await c.post(`/${path}`, { ...body, [name]: value }), 201)[shownAs(each, name)],
          value
        )
      }
    })

    it(`[${fact}][FIELD-05][FIELD-06][FIELD-07][FIELD-08][CODE-08][LIM-12][F-02][D-04] has the decimals of the field that shows it`, async () => {
      const c = await newCompany()
      for (const { name, type } of fields) {
        const shown = shownAs(each, name)
        const kind = each.fields.find((field) => field.name === shown)?.kind
        if (type !== "decimal" || typeof kind !== "object") continue
        const { decimals } = kind
        for (const value of ["7", "7.5", `7.${"123456".slice(0, decimals)}`, `0.${"0".repeat(decimals - 1)}1`]) {
          const record = succeeded(await c.post(`/${path}`, { ...(await roomyBody(c, each)), [name]: value }), 201)
          isDecimal(record[shown], value, decimals, `${name} ${value}`)
        }
        const body = await roomyBody(c, each)
        for (const digits of ["1", "0"]) {
          const value = `1.${digits.repeat(decimals + 1)}`
          refused(await c.post(`/${path}`, { ...body, [name]: value }), "invalid_precision", name)
        }
      }
    })

    it(`[${fact}][WRITE-03][WRITE-08][WRITE-11][WRITE-18][ORDERDEPOSITS-34][I-19][CODE-26][GEN-06] has ids that name records of the company`, async () => {
      const c = await newCompany()
      const other = await newCompany()
      const body = await each.body(c)
      for (const { name } of fields.filter((field) => field.name.endsWith("id") && field.type === "integer")) {
        const make = REFERENCES[name]
        if (make === undefined) throw new Error(`no record for ${name}`)
        refused(await c.post(`/${path}`, { ...body, [name]: 999_999_999 }), "unknown_value", name)
        refused(await c.post(`/${path}`, { ...body, [name]: await make(other) }), "unknown_value", name)
      }
    })

    it(`[${fact}][CODE-06][F-16][I-21][X-14][ORDERDEPOSITS-06][ORDERDEPOSITS-31][PAYMENTS-08] has one of the documented methods`, async () => {
      if (!fields.some(({ name }) => name === "method")) return
      const c = await newCompany()
      const values = resource("payments").fields.find(({ name }) => name === "paymeth")?.values ?? []
      assert.lengthOf(values, 7)
      const body = await roomyBody(c, each)
      for (const method of values) {
        const record = succeeded(await c.post(`/${path}`, { ...body, method }), 201)
        assert.strictEqual(record[shownAs(each, "method")], method)
      }
      for (const method of [6, -1, 100])
        refused(await c.post(`/${path}`, { ...body, method }), "invalid_enum", "method")
    })

    it(`[${fact}][F-14][EP-14][CODE-05][X-16][X-19][I-24][INVOICELINES-60][PAYMENTS-51][PAYMENTS-52][APBILLLINES-18] rejects the other names of the object as unknown`, async () => {
      const c = await newCompany()
      const body = await each.body(c)
      const known = [...fields.map(({ name }) => name), "cancel"]
      for (const { name, pair, readOnly } of each.fields) {
        if (readOnly) continue
        for (const half of [name, ...(pair === undefined ? [] : [pair.code])]) {
          if (known.includes(half)) continue
          refused(await c.post(`/${path}`, { ...body, [half]: null }), "unknown_parameter", half)
        }
      }
    })
  })
}

for (const { fact, each, names } of UPDATES) {
  it(`[${fact}][F-14][EP-14][I-11] PATCH /${each.path}/{id} accepts ${names.join(", ")}, and no other field of the object`, async () => {
    const c = await newCompany()
    const id = idOf(await each.make(c))
    const before = await c.read(each.path, id)
    for (const { name, pair, readOnly } of each.fields) {
      if (readOnly || name === "cancel") continue
      for (const half of [name, ...(pair === undefined ? [] : [pair.code])]) {
        if (names.includes(half)) continue
        refused(await c.patch(`/${each.path}/${id}`, { [half]: null }), "unknown_parameter", half)
      }
    }
    assert.deepEqual(await c.read(each.path, id), before)
    for (const name of names) succeeded(await c.patch(`/${each.path}/${id}`, { [name]: before[shownAs(each, name)] }))
  })
}

keptPromises()
