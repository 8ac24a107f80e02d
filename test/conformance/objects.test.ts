/** Every field of the 25 objects, as shown and as written: its type, length, scale, values and references. */
import { assert, beforeAll, describe } from "vitest"
import {
  DAY,
  digits,
  entries,
  fresh,
  idOf,
  ids,
  integer,
  isDecimal,
  it,
  keptPromises,
  MALFORMED_DECIMALS,
  micros,
  MICROSECONDS,
  newCompany,
  refused,
  refusedEntries,
  row,
  succeeded,
  text,
  TIMESTAMP,
  useServer,
  type Answer,
  type Company,
  type Row
} from "./harness.ts"
import { FACTS, type Field } from "./facts.ts"
import { putRows, resource, RESOURCES, shownRecord, target, type Resource } from "./resources.ts"
import {
  makeBill,
  makeDraft,
  makeGlAccount,
  makeItem,
  makeOrder,
  makePosted,
  makeReturn,
  orderLines,
  putOne
} from "./world.ts"

useServer()

/** A row for every reference pair of the resource to point to, by table. */
async function targets(c: Company, fields: readonly Field[]): Promise<Map<string, { id: number; code: string }>> {
  const targetOf = new Map<string, { id: number; code: string }>()
  for (const field of fields) {
    if (field.pair !== undefined && !targetOf.has(field.pair.table))
      targetOf.set(field.pair.table, await target(c, field))
  }
  return targetOf
}

/** The facts of each form of a value. */
const FORMS = {
  pair: "[FIELD-02][A-15][APBILLLINES-11][APBILLLINES-20][I-24]",
  int: "",
  bool: "[FIELD-09]",
  string: "",
  day: "[FIELD-11][F-01]",
  time: "[FIELD-11][F-01]",
  decimal: "[FIELD-05][F-02]"
} as const

for (const each of RESOURCES) {
  const { path, fields, absent } = each
  describe(`the fields of ${path}`, () => {
    let full: Row
    let bare: Row
    let targetOf: Map<string, { id: number; code: string }>

    beforeAll(async () => {
      const c = await newCompany()
      targetOf = await targets(c, fields)
      const sample: Row = {}
      for (const field of fields) {
        sample[field.name] = field.pair === undefined ? field.sample : targetOf.get(field.pair.table)?.id
      }
      // The key of a shared table must be free in the whole install.
      if (path === "invoiceterms") sample["verbal"] = fresh("term")
      const [fullId = 0, bareId = 0] = await putRows(c, path, [sample, {}])
      full = await shownRecord(c, each, fullId)
      bare = await shownRecord(c, each, bareId)
    }, 60_000)

    it(`[A-14][FIELD-01][FIELD-14]${absent.map((fact) => `[${fact}]`).join("")}[INVOICELINES-63][X-17][EP-22] are exactly the documented ones of ${path}, also when unset`, () => {
      const names = ["id"]
      for (const field of fields) {
        names.push(field.name)
        if (field.pair !== undefined) names.push(field.pair.code)
      }
      assert.isTrue(Number.isInteger(full["id"]))
      assert.deepEqual(Object.keys(full).sort(), [...names].sort(), "a full record")
      assert.deepEqual(Object.keys(bare).sort(), [...names].sort(), "a bare record")
    })

    for (const field of fields) {
      const { fact, name, kind, pair, maintained } = field
      const form = typeof kind === "object" ? "decimal" : pair === undefined ? kind : "pair"
      it(`[${fact}]${FORMS[form]} include ${path}.${name}: ${form}`, () => {
        const value = full[name]
        if (pair !== undefined) {
          const target = targetOf.get(pair.table)
          assert.deepInclude(full, { [name]: target?.id, [pair.code]: target?.code })
          assert.deepInclude(bare, { [name]: null, [pair.code]: null })
        } else if (typeof kind === "object") isDecimal(value, String(field.sample), kind.decimals, name)
        else if (kind === "time") assert.match(text(value, name), name === "lastchangedate" ? MICROSECONDS : TIMESTAMP)
        else if (maintained)
          assert.isTrue(value === null || (kind === "int" ? Number.isInteger(value) : typeof value === "string"))
        else if (path === "invoiceterms" && name === "verbal") assert.isString(value)
        else assert.strictEqual(value, field.sample)
        if (kind === "bool") assert.include([false, null], bare[name])
        if (kind === "day") assert.match(text(value, name), DAY)
      })
    }
  })
}

/** Id-only references that must resolve, and the tables they point to (I-29 lists those that need not). */
const ID_ONLY: Readonly<Record<string, string>> = {
  teamprojecttaskid: "teamprojecttasks",
  teamprojectmilestoneid: "teamprojectmilestones",
  stagetypeid: "stagetypes",
  rma_arorderid: "orders",
  new_orderid: "orders"
}

async function sampleOf(c: Company, field: Field, each: Resource): Promise<unknown> {
  if (field.pair !== undefined) return (await target(c, field)).id
  if (field.name === each.key?.name) return fresh("key")
  const table = ID_ONLY[field.name]
  return table === undefined ? field.sample : putOne(c, table)
}

/** Values that are of another type. */
const WRONG = {
  integer: ["", "1", 1.5, true, {}, [1]],
  decimal: [1, 1.5, 0, true, {}, ["1"], ...MALFORMED_DECIMALS],
  string: [1, true, {}, ["x"]],
  boolean: [0, 1, "true", {}],
  lines: ["x", 1, {}, true]
} as const

for (const each of RESOURCES.filter(({ plain }) => plain)) {
  const { path, base } = each
  const key = each.key?.name
  const written = each.fields.filter((field) => !field.readOnly && !field.maintained)
  const post = (c: Company, body: Row): Promise<Answer> => c.post(`/${path}`, { ...base(), ...body })

  describe(`a write to ${path}`, () => {
    it(`[${each.facts.ops}][${each.facts.row}][EP-12][F-13] returns a full body as sent, and requires nothing but the key`, async (c) => {
      const body: Row = {}
      for (const field of written) {
        if (field.name !== "cancel") body[field.name] = await sampleOf(c, field, each)
      }
      const record = succeeded(await post(c, body), 201)
      for (const [name, value] of Object.entries(body)) {
        if (name === "entrydate") assert.strictEqual(micros(record[name]), micros(value))
        else assert.deepEqual(record[name], value, name)
      }
      assert.deepEqual(await shownRecord(c, each, idOf(record)), record)
      if (key === undefined) succeeded(await c.post(`/${path}`, {}), 201)
      else {
        refusedEntries(await c.post(`/${path}`, {}), `${key}:required`)
        refusedEntries(await c.post(`/${path}`, { [key]: null }), `${key}:required`)
      }
    })

    it("[F-13] sets absent fields to false, 0 or null", async (c) => {
      const record = succeeded(await post(c, {}), 201)
      for (const field of written) {
        const value = record[field.name]
        if (field.name === key || field.name === "entrydate") continue
        if (field.kind === "bool") assert.strictEqual(value, false, field.name)
        else if (field.pair !== undefined || field.kind === "string" || field.kind === "day")
          assert.isNull(value, field.name)
        else if (field.kind === "int") assert.include([0, null], value, field.name)
        else if (value !== null) assert.strictEqual(digits(text(value, field.name)).units, 0n, field.name)
      }
    })

    for (const field of written) {
      const { fact, name, kind, length, values, pair } = field
      if (name === "cancel") continue

      it(`[${fact}][CODE-04][D-02] rejects a value of another type: ${path}.${name}`, async (c) => {
        const type =
          kind === "int" ? "integer" : kind === "bool" ? "boolean" : typeof kind === "object" ? "decimal" : "string"
        for (const value of WRONG[type]) refused(await post(c, { [name]: value }), "invalid_type", name)
        if (pair !== undefined) {
          for (const value of [1, true, {}]) refused(await post(c, { [pair.code]: value }), "invalid_type", pair.code)
        }
        if (kind === "day") {
          const invalid = [
            "",
            "yesterday",
            "2026-02-30",
            "2025-02-29",
            "2026-13-01",
            "2026-1-1",
            "01/02/2026",
            "20260101"
          ]
          for (const value of [...invalid, "2026-01-01 10:00"])
            refused(await post(c, { [name]: value }), "invalid_type", name)
        }
      })

      if (kind === "day") {
        it(`[${fact}][FIELD-11][F-01] accepts both date forms and shows the day: ${path}.${name}`, async (c) => {
          for (const value of ["2024-02-29", "2024-02-29T23:59:59Z", "2024-02-29T00:00:00.000001Z"])
            assert.strictEqual(succeeded(await post(c, { [name]: value }), 201)[name], "2024-02-29")
        })
      }

      if (length !== undefined && pair === undefined) {
        it(`[${fact}][FIELD-10][LIM-12][D-01] accepts ${length} characters: ${path}.${name}`, async (c) => {
          refusedEntries(await post(c, { [name]: "😀".repeat(length + 1) }), `${name}:too_long`)
          const value = "😀".repeat(length)
          assert.strictEqual(succeeded(await post(c, { [name]: value }), 201)[name], value)
        })
      } else if (kind === "string") {
        it(`[${fact}][FIELD-10] accepts text without a practical limit: ${path}.${name}`, async (c) => {
          const value = "long\nline ä ".repeat(2000)
          assert.strictEqual(succeeded(await post(c, { [name]: value }), 201)[name], value)
        })
      }

      if (values !== undefined) {
        it(`[${fact}][CODE-06][F-16] accepts ${values.join(", ")} and nothing else: ${path}.${name}`, async (c) => {
          for (const value of values) assert.strictEqual(succeeded(await post(c, { [name]: value }), 201)[name], value)
          for (const value of [-1, values.length, 99]) refused(await post(c, { [name]: value }), "invalid_enum", name)
        })
      }

      if (typeof kind === "object" && path !== "areas") {
        const { decimals } = kind
        it(`[${fact}][FIELD-05][FIELD-06][CODE-08][F-02][D-04] accepts ${decimals} decimals, padded and never rounded: ${path}.${name}`, async (c) => {
          const least = decimals === 0 ? "7" : `0.${"0".repeat(decimals - 1)}1`
          for (const value of ["0", "7", "-7", least, "123456789"]) {
            isDecimal(succeeded(await post(c, { [name]: value }), 201)[name], value, decimals, value)
          }
          for (const value of [`1.${"1".repeat(decimals + 1)}`, `1.${"0".repeat(decimals + 1)}`])
            refused(await post(c, { [name]: value }), "invalid_precision", name)
        })
      }

      if (pair !== undefined) {
        it(`[${fact}][FIELD-02][FIELD-03][A-15][F-09][CODE-26][CODE-28] accepts either half, or both if they agree: ${path}.${name} / ${pair.code}`, async (c) => {
          const one = await target(c, field)
          const two = await target(c, field)
          for (const body of [
            { [name]: one.id },
            { [pair.code]: one.code },
            { [name]: one.id, [pair.code]: one.code }
          ]) {
            assert.deepInclude(succeeded(await post(c, body), 201), { [name]: one.id, [pair.code]: one.code })
          }
          const before = ids(await c.list(`/${path}?limit=250`))
          refused(await post(c, { [name]: one.id, [pair.code]: two.code }), "conflicting_reference")
          refused(await post(c, { [name]: 999_999_999 }), "unknown_value", name)
          for (const value of [
            "unknown",
            one.code.slice(0, -1),
            `${one.code} `,
            ...(pair.table === "users" ? [] : [one.code.toUpperCase() + "X"])
          ])
            refused(await post(c, { [pair.code]: value }), "unknown_value", pair.code)
          refusedEntries(await post(c, { [pair.code]: "x".repeat((length ?? 0) + 1) }), `${pair.code}:too_long`)
          assert.deepEqual(ids(await c.list(`/${path}?limit=250`)), before)
        })

        it(`[${fact}][GEN-06][CODE-26][CODE-27][F-08] rejects a reference to another company, and a code of two active records: ${path}.${name}`, async (c) => {
          // All companies share a static table of the install.
          if (pair.table === "ccprocessors") return
          const theirs = await target(await newCompany(), field)
          refused(await post(c, { [name]: theirs.id }), "unknown_value", name)
          refused(await post(c, { [pair.code]: theirs.code }), "unknown_value", pair.code)
          // Keys cannot be shared. The other tables are not unique.
          if (pair.table === "users") return
          const code = fresh("twin")
          const [first] = await c.put(pair.table, [{ [pair.key]: code }, { [pair.key]: code }])
          refused(await post(c, { [pair.code]: code }), "ambiguous_value", pair.code)
          assert.strictEqual(succeeded(await post(c, { [name]: idOf(row(first)) }), 201)[pair.code], code)
        })
      }

      const table = ID_ONLY[name]
      if (table !== undefined) {
        it(`[${fact}][FIELD-04][CODE-26][I-26] accepts an id that resolves in its company, without a code half: ${path}.${name}`, async (c) => {
          const id = await putOne(c, table)
          assert.strictEqual(succeeded(await post(c, { [name]: id }), 201)[name], id)
          for (const unknown of [999_999_999, await putOne(await newCompany(), table)])
            refused(await post(c, { [name]: unknown }), "unknown_value", name)
          const half = name.slice(0, -2)
          refused(await post(c, { [half]: "x" }), "unknown_parameter", half)
        })
      }
    }

    if (each.ops.includes("U")) {
      it("[EP-09][FIELD-08] changes and clears every field separately, a pair by either half", async (c) => {
        const id = idOf(await each.make(c))
        for (const field of written) {
          if (field.name === "cancel") continue
          const value = await sampleOf(c, field, each)
          assert.deepEqual(succeeded(await c.patch(`/${path}/${id}`, { [field.name]: value }))[field.name], value)
          if (field.name === key || field.kind === "bool") continue
          const cleared = succeeded(await c.patch(`/${path}/${id}`, { [field.name]: null }))[field.name]
          assert.isTrue(cleared === null || Number(cleared) === 0, `${field.name} is cleared: ${String(cleared)}`)
          if (field.pair === undefined) continue
          const { code } = field.pair
          const to = await target(c, field)
          const both = { [field.name]: to.id, [code]: to.code }
          assert.deepInclude(succeeded(await c.patch(`/${path}/${id}`, { [code]: to.code })), both)
          assert.deepInclude(succeeded(await c.patch(`/${path}/${id}`, { [code]: null })), {
            [field.name]: null,
            [code]: null
          })
        }
      })
    }

    if (each.cancel) {
      it("[F-11][X-28][SCOPE-04][D-14] requires the cancel scope for cancel true, on create and update", async (c) => {
        const writer = await c.with(`${each.area}:write`)
        refused(await writer.post(`/${path}`, { ...base(), cancel: true }), "insufficient_scope")
        assert.strictEqual(succeeded(await writer.post(`/${path}`, { ...base(), cancel: false }), 201)["cancel"], false)
        if (!each.ops.includes("U")) return
        const url = `/${path}/${idOf(await each.make(c))}`
        refused(await writer.patch(url, { cancel: true }), "insufficient_scope")
        assert.strictEqual(succeeded(await writer.patch(url, { cancel: false }))["cancel"], false)
        assert.strictEqual(succeeded(await c.patch(url, { cancel: true }))["cancel"], true)
        refused(await c.patch(url, { cancel: false }), "rule_violation")
        assert.strictEqual(succeeded(await c.get(url))["cancel"], true)
      })
    }
  })
}

describe("a rule of single resources", () => {
  it("[ARDAILYCLOSES-23] names a field depositeamount, and rejects the correct spelling", async (c) => {
    isDecimal((await c.create("ardailycloses", { depositeamount: "3" }))["depositeamount"], "3", 4)
    refused(await c.post("/ardailycloses", { depositamount: "3" }), "unknown_parameter", "depositamount")
  })

  it("[TEAMPROJECTREMINDERS-13][TEAMPROJECTREMINDERS-08][STATE-17][I-02][X-07] changes a reminder from pending to done, and back", async (c) => {
    const reminder = await c.create("teamprojectreminders", { note: "call" })
    assert.strictEqual(reminder["status"], false)
    const url = `/teamprojectreminders/${idOf(reminder)}`
    assert.strictEqual(succeeded(await c.patch(url, { status: true }))["status"], true)
    assert.deepEqual(ids(await c.list("/teamprojectreminders?status=true")), [idOf(reminder)])
    assert.strictEqual(succeeded(await c.patch(url, { status: false }))["status"], false)
  })

  it("[TEAMPROJECTRECURRINGTASKS-12][TEAMPROJECTRECURRINGTASKS-13][TEAMPROJECTRECURRINGTASKS-14][TEAMPROJECTRECURRINGTASKS-15][TEAMPROJECTRECURRINGTASKS-17][I-28][CODE-06] limits the ranges of days of a recurring task, not its frequency and end", async (c) => {
    const post = (body: Row) => c.post("/teamprojectrecurringtasks", body)
    const open = { frequency: 3, enddate: null }
    assert.deepInclude(succeeded(await post(open), 201), open)
    for (const value of [0, 6]) assert.strictEqual(succeeded(await post({ dayofweek: value }), 201)["dayofweek"], value)
    for (const value of [-1, 7]) refused(await post({ dayofweek: value }), "invalid_enum", "dayofweek")
    for (const value of [1, 31])
      assert.strictEqual(succeeded(await post({ dayofmonth: value }), 201)["dayofmonth"], value)
    for (const value of [0, 32, -1]) refused(await post({ dayofmonth: value }), "invalid_enum", "dayofmonth")
  })

  it("[TEAMPROJECTTEMPLATEITEMS-05][I-25][CODE-16] prevents cancelling an item with active children", async (c) => {
    const parent = idOf(await c.create("teamprojecttemplateitems", { title: fresh("p") }))
    const child = idOf(await c.create("teamprojecttemplateitems", { title: fresh("c"), parentitemid: parent }))
    refused(await c.del(`/teamprojecttemplateitems/${parent}`), "cannot_cancel")
    succeeded(await c.del(`/teamprojecttemplateitems/${child}`))
    succeeded(await c.del(`/teamprojecttemplateitems/${parent}`))
  })

  it("[PRODUCTTYPETAXES-04][I-25][CODE-16] prevents cancelling a product tax that an invoice line uses", async (c) => {
    const tax = idOf(await c.create("producttypetaxes", { name: fresh("tax") }))
    await c.put("invoicelines", [{ producttypetaxid: tax }])
    refused(await c.del(`/producttypetaxes/${tax}`), "cannot_cancel")
    assert.strictEqual((await c.read("producttypetaxes", tax))["cancel"], false)
  })

  it("[F-05][STAGES-14][CARRIERSERVICES-14] allows the same name or code in the other lookups", async (c) => {
    for (const [path, key] of [
      ["ccaccounts", "name"],
      ["producttypetaxes", "name"],
      ["itemcomparisongroups", "name"],
      ["stages", "code"],
      ["carrierservices", "code"]
    ] as const) {
      for (const _ of [1, 2]) await c.create(path, { [key]: "same" })
    }
  })

  it("[CCACCOUNTS-10][CCACCOUNTS-05] makes card processors a static, read-only table", async (c) => {
    const answer = await c.post("/ccprocessors", { name: "x" })
    assert.include([404, 405], answer.status)
  })

  it("[AREAS-06][F-03][X-27] stores an application fee with 6 decimals and shows 4, rounded away from zero", async (c) => {
    const shown: ReadonlyArray<readonly [string, string]> = [
      ["7", "7.0000"],
      ["1.23455", "1.2346"],
      ["1.234549", "1.2345"],
      ["-1.23455", "-1.2346"],
      ["0.00005", "0.0001"],
      ["0.000049", "0.0000"]
    ]
    for (const [sent, expected] of shown) {
      const record = await c.create("areas", { name: fresh("fee"), applicationfee: sent })
      assert.strictEqual(record["applicationfee"], expected, sent)
      assert.strictEqual((await c.read("areas", idOf(record)))["applicationfee"], expected)
    }
    for (const value of ["1.1234567", "1.0000000"]) {
      await c.refuses("/areas", { name: fresh("fee"), applicationfee: value }, "invalid_precision", "applicationfee")
    }
    for (const value of [1, ...MALFORMED_DECIMALS]) {
      refused(await c.post("/areas", { name: fresh("fee"), applicationfee: value }), "invalid_type", "applicationfee")
    }
  })

  it("[AREAS-04][F-05][EMAILTEMPLATES-04][TASKSTATUSES-05][SALESMEN-04][CODE-11][GEN-06] leaves a key of one company free in another", async (a, b) => {
    for (const [path, key] of [
      ["areas", "name"],
      ["taskstatuses", "name"],
      ["emailtemplates", "action"],
      ["salesmen", "name"],
      ["customers", "customercode"]
    ] as const) {
      await a.create(path, { [key]: "same" })
      await b.create(path, { [key]: "same" })
      await b.refuses(`/${path}`, { [key]: "same" }, "duplicate")
    }
  })

  it("[VENDORORDERFROMS-20] ignores a client's value for the hash of the verified address", async (c) => {
    const record = await c.create("vendororderfroms", { address: "1 Road", addressverified: "a".repeat(32) })
    assert.isNull(record["addressverified"])
    const stored = await putOne(c, "vendororderfroms", { addressverified: "b".repeat(32) })
    assert.strictEqual((await shownRecord(c, resource("vendororderfroms"), stored))["addressverified"], "b".repeat(32))
  })

  it("[ESTQUOTEPRICELISTS-04][ESTQUOTEPRICELISTS-16][I-29] stores references to resources that are not built as given", async (c) => {
    const record = await c.create("estquotepricelists", { stdsizeid: 123_456, point2id: 654_321 })
    assert.deepInclude(record, { stdsizeid: 123_456, point2id: 654_321 })
    refused(await c.post("/estquotepricelists", { stdsize: "A4" }), "unknown_parameter", "stdsize")
  })

  it("[TEAMPROJECTTEMPLATEITEMS-14][STAGES-11] stores a sort order, and keeps lists in the order of ids", async (c) => {
    const late = integer((await c.create("stages", { sortorder: 9 }))["id"])
    const early = integer((await c.create("stages", { sortorder: 1 }))["id"])
    assert.deepEqual(ids(await c.list("/stages")), [late, early])
  })

  it("[I-26] a return moves no stock and no shipped quantity", async (c) => {
    const order = await makeOrder(c)
    await makeReturn(c, { rma_arorderid: order.id })
    isDecimal((await orderLines(c, order.id))[0]?.["qtyship"], "0", 6)
  })
})

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

/** The names of an object's fields that are not read-only, with both halves of a pair. */
const namesOf = ({ fields }: Resource): string[] =>
  fields
    .filter(({ readOnly }) => !readOnly)
    .flatMap(({ name, pair }) => (pair === undefined ? [name] : [name, pair.code]))

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
  jobid: async (c) => putOne(c, "jobs", { name: "House" }),
  costcodeid: async (c) => putOne(c, "costcodes", { code: "LAB" })
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

for (const { fact, each, fields } of CREATES) {
  const { path } = each
  describe(`the shape of POST /${path}`, () => {
    it(`[${fact}][EP-12][CODE-03] requires its required fields, and names each missing one`, async (c) => {
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

    it(`[${fact}][CODE-04][D-02][D-04] rejects a value of another type in each field`, async (c) => {
      const body = await each.body(c)
      for (const { name, type } of fields) {
        for (const value of WRONG[type])
          refused(await c.post(`/${path}`, { ...body, [name]: value }), "invalid_type", name)
      }
    })

    it(`[${fact}][FIELD-10][D-01] limits the length of each text`, async (c) => {
      const body = await roomyBody(c, each)
      for (const { name, length } of fields) {
        if (length === undefined) continue
        refusedEntries(await c.post(`/${path}`, { ...body, [name]: "ü".repeat(length + 1) }), `${name}:too_long`)
        if (name === "glaccount") continue
        const value = "ü".repeat(length)
        assert.strictEqual((await c.create(path, { ...body, [name]: value }))[shownAs(each, name)], value)
      }
    })

    it(`[${fact}][FIELD-05][FIELD-06][FIELD-07][FIELD-08][CODE-08][LIM-12][F-02][D-04] has the decimals of the field that shows it`, async (c) => {
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

    it(`[${fact}][WRITE-03][WRITE-08][WRITE-11][WRITE-18][ORDERDEPOSITS-34][I-19][CODE-26][GEN-06] has ids that name records of the company`, async (c) => {
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
        assert.strictEqual((await c.create(path, { ...body, method }))[shownAs(each, "method")], method)
      }
      for (const method of [6, -1, 100])
        refused(await c.post(`/${path}`, { ...body, method }), "invalid_enum", "method")
    })

    it(`[${fact}][F-14][EP-14][CODE-05][X-16][X-19][I-24][INVOICELINES-60][PAYMENTS-51][PAYMENTS-52][APBILLLINES-18] rejects the other names of the object as unknown`, async (c) => {
      const body = await each.body(c)
      const known = [...fields.map(({ name }) => name), "cancel"]
      for (const name of namesOf(each).filter((one) => !known.includes(one)))
        await c.refuses(`/${path}`, { ...body, [name]: null }, "unknown_parameter", name)
    })
  })
}

for (const { fact, each, names } of UPDATES) {
  it(`[${fact}][F-14][EP-14][I-11] PATCH /${each.path}/{id} accepts ${names.join(", ")}, and no other field of the object`, async (c) => {
    const id = idOf(await each.make(c))
    const before = await c.read(each.path, id)
    for (const name of namesOf(each).filter((one) => one !== "cancel" && !names.includes(one)))
      refused(await c.patch(`/${each.path}/${id}`, { [name]: null }), "unknown_parameter", name)
    assert.deepEqual(await c.read(each.path, id), before)
    for (const name of names) succeeded(await c.patch(`/${each.path}/${id}`, { [name]: before[shownAs(each, name)] }))
  })
}

keptPromises()
