/** Writes with the names of the object: each field's type, length, scale, values and references, from its fact. */
import { assert, describe, it } from "vitest"
import {
  digits,
  fresh,
  idOf,
  ids,
  integer,
  isDecimal,
  keptPromises,
  MALFORMED_DECIMALS,
  micros,
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
import type { Field } from "./facts.ts"
import { resource, RESOURCES, shownRecord, target, type Resource } from "./resources.ts"
import { makeOrder, makeReturn, orderLines } from "./world.ts"

useServer()

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
  if (table === undefined) return field.sample
  const [stored] = await c.put(table, [{}])
  return idOf(row(stored))
}

for (const each of RESOURCES.filter(({ plain }) => plain)) {
  const { path, base } = each
  const key = each.key?.name
  const written = each.fields.filter((field) => !field.readOnly && !field.maintained)
  const post = (c: Company, body: Row): Promise<Answer> => c.post(`/${path}`, { ...base(), ...body })

  describe(`a write to ${path}`, () => {
    it(`[${each.facts.ops}][${each.facts.row}][EP-12][F-13] returns a full body as sent, and requires nothing but the key`, async () => {
      const c = await newCompany()
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

    it("[F-13] sets absent fields to false, 0 or null", async () => {
      const c = await newCompany()
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

      it(`[${fact}][CODE-04][D-02] rejects a value of another type: ${path}.${name}`, async () => {
        const c = await newCompany()
        const wrong: unknown[] =
          kind === "int"
            ? ["7", 1.5, true, {}, [1]]
            : kind === "bool"
              ? [1, 0, "true", {}]
              : kind === "string" || kind === "day" || kind === "time"
                ? [1, true, {}, ["x"]]
                : [1, 1.5, true, {}, ["1"], ...MALFORMED_DECIMALS]
        for (const value of wrong) refused(await post(c, { [name]: value }), "invalid_type", name)
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
        it(`[${fact}][FIELD-11][F-01] accepts both date forms and shows the day: ${path}.${name}`, async () => {
          const c = await newCompany()
          for (const value of ["2024-02-29", "2024-02-29T23:59:59Z", "2024-02-29T00:00:00.000001Z"])
            assert.strictEqual(succeeded(await post(c, { [name]: value }), 201)[name], "2024-02-29")
        })
      }

      if (length !== undefined && pair === undefined) {
        it(`[${fact}][FIELD-10][LIM-12][D-01] accepts ${length} characters: ${path}.${name}`, async () => {
          const c = await newCompany()
          refusedEntries(await post(c, { [name]: "😀".repeat(length + 1) }), `${name}:too_long`)
          const value = "😀".repeat(length)
          assert.strictEqual(succeeded(await post(c, { [name]: value }), 201)[name], value)
        })
      } else if (kind === "string") {
        it(`[${fact}][FIELD-10] accepts text without a practical limit: ${path}.${name}`, async () => {
          const c = await newCompany()
          const value = "long\nline ä ".repeat(2000)
          assert.strictEqual(succeeded(await post(c, { [name]: value }), 201)[name], value)
        })
      }

      if (values !== undefined) {
        it(`[${fact}][CODE-06][F-16] accepts ${values.join(", ")} and nothing else: ${path}.${name}`, async () => {
          const c = await newCompany()
          for (const value of values) assert.strictEqual(succeeded(await post(c, { [name]: value }), 201)[name], value)
          for (const value of [-1, values.length, 99]) refused(await post(c, { [name]: value }), "invalid_enum", name)
        })
      }

      if (typeof kind === "object" && path !== "areas") {
        const { decimals } = kind
        it(`[${fact}][FIELD-05][FIELD-06][CODE-08][F-02][D-04] accepts ${decimals} decimals, padded and never rounded: ${path}.${name}`, async () => {
          const c = await newCompany()
          const least = decimals === 0 ? "7" : `0.${"0".repeat(decimals - 1)}1`
          for (const value of ["7", "-7", least, "123456789"]) {
            isDecimal(succeeded(await post(c, { [name]: value }), 201)[name], value, decimals, value)
          }
          for (const value of [`1.${"1".repeat(decimals + 1)}`, `1.${"0".repeat(decimals + 1)}`])
            refused(await post(c, { [name]: value }), "invalid_precision", name)
        })
      }

      if (pair !== undefined) {
        it(`[${fact}][FIELD-02][FIELD-03][A-15][F-09][CODE-26][CODE-28] accepts either half, or both if they agree: ${path}.${name} / ${pair.code}`, async () => {
          const c = await newCompany()
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

        it(`[${fact}][GEN-06][CODE-26] rejects a reference to another company: ${path}.${name}`, async () => {
          // All companies share a static table of the install.
          if (pair.table === "ccprocessors") return
          const c = await newCompany()
          const theirs = await target(await newCompany(), field)
          refused(await post(c, { [name]: theirs.id }), "unknown_value", name)
          refused(await post(c, { [pair.code]: theirs.code }), "unknown_value", pair.code)
        })

        it(`[${fact}][CODE-27][F-08] rejects a code of two active records as ambiguous: ${path}.${pair.code}`, async () => {
          // Keys cannot be shared. The other tables are not unique.
          if (["users", "ccprocessors"].includes(pair.table)) return
          const c = await newCompany()
          const code = fresh("twin")
          const [first] = await c.put(pair.table, [{ [pair.key]: code }, { [pair.key]: code }])
          refused(await post(c, { [pair.code]: code }), "ambiguous_value", pair.code)
          const id = idOf(row(first))
          assert.strictEqual(succeeded(await post(c, { [name]: id }), 201)[pair.code], code)
        })
      }

      const table = ID_ONLY[name]
      if (table !== undefined) {
        it(`[${fact}][FIELD-04][CODE-26] accepts an id that resolves, without a code half: ${path}.${name}`, async () => {
          const c = await newCompany()
          const [stored] = await c.put(table, [{}])
          const id = idOf(row(stored))
          assert.strictEqual(succeeded(await post(c, { [name]: id }), 201)[name], id)
          refused(await post(c, { [name]: 999_999_999 }), "unknown_value", name)
          const half = name.slice(0, -2)
          refused(await post(c, { [half]: "x" }), "unknown_parameter", half)
        })
      }
    }

    if (each.ops.includes("U")) {
      it("[EP-09][FIELD-08] changes and clears every field separately, a pair by either half", async () => {
        const c = await newCompany()
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
      it("[F-11][X-28][SCOPE-04][D-14] requires the cancel scope for cancel true, on create and update", async () => {
        const c = await newCompany()
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
  it("[ARDAILYCLOSES-20][F-12] makes the entry date of a daily close writable on create, by default now", async () => {
    const c = await newCompany()
    const said = await c.create("ardailycloses", { entrydate: "2020-05-06T07:08:09Z" })
    assert.strictEqual(micros(said["entrydate"]), micros("2020-05-06T07:08:09Z"))
    assert.isTrue(micros((await c.create("ardailycloses", {}))["entrydate"]) > micros("2026-01-01T00:00:00Z"))
  })

  it("[ARDAILYCLOSES-23] names a field depositeamount, and rejects the correct spelling", async () => {
    const c = await newCompany()
    isDecimal((await c.create("ardailycloses", { depositeamount: "3" }))["depositeamount"], "3", 4)
    refused(await c.post("/ardailycloses", { depositamount: "3" }), "unknown_parameter", "depositamount")
  })

  it("[TEAMPROJECTREMINDERS-13][TEAMPROJECTREMINDERS-08][STATE-17][I-02][X-07] changes a reminder from pending to done, and back", async () => {
    const c = await newCompany()
    const reminder = await c.create("teamprojectreminders", { note: "call" })
    assert.strictEqual(reminder["status"], false)
    const url = `/teamprojectreminders/${idOf(reminder)}`
    assert.strictEqual(succeeded(await c.patch(url, { status: true }))["status"], true)
    assert.deepEqual(ids(await c.list("/teamprojectreminders?status=true")), [idOf(reminder)])
    assert.strictEqual(succeeded(await c.patch(url, { status: false }))["status"], false)
  })

  it("[TEAMPROJECTRECURRINGTASKS-17] stores null as the open end date of a recurring task", async () => {
    const c = await newCompany()
    const task = await c.create("teamprojectrecurringtasks", { title: "x", enddate: null })
    assert.isNull(task["enddate"])
  })

  it("[TEAMPROJECTRECURRINGTASKS-12][TEAMPROJECTRECURRINGTASKS-13][I-28] accepts a custom frequency without an interval", async () => {
    const c = await newCompany()
    const task = await c.create("teamprojectrecurringtasks", { frequency: 3 })
    assert.strictEqual(task["frequency"], 3)
  })

  it("[TEAMPROJECTRECURRINGTASKS-14][TEAMPROJECTRECURRINGTASKS-15][I-28][CODE-06] limits the ranges of days of week and month", async () => {
    const c = await newCompany()
    const post = (body: Row) => c.post("/teamprojectrecurringtasks", body)
    for (const value of [0, 6]) assert.strictEqual(succeeded(await post({ dayofweek: value }), 201)["dayofweek"], value)
    for (const value of [-1, 7]) refused(await post({ dayofweek: value }), "invalid_enum", "dayofweek")
    for (const value of [1, 31])
      assert.strictEqual(succeeded(await post({ dayofmonth: value }), 201)["dayofmonth"], value)
    for (const value of [0, 32, -1]) refused(await post({ dayofmonth: value }), "invalid_enum", "dayofmonth")
  })

  it("[TEAMPROJECTTEMPLATEITEMS-05][I-25][CODE-16] prevents cancelling an item with active children", async () => {
    const c = await newCompany()
    const parent = idOf(await c.create("teamprojecttemplateitems", { title: fresh("p") }))
    const child = idOf(await c.create("teamprojecttemplateitems", { title: fresh("c"), parentitemid: parent }))
    refused(await c.del(`/teamprojecttemplateitems/${parent}`), "cannot_cancel")
    succeeded(await c.del(`/teamprojecttemplateitems/${child}`))
    succeeded(await c.del(`/teamprojecttemplateitems/${parent}`))
  })

  it("[PRODUCTTYPETAXES-04][I-25][CODE-16] prevents cancelling a product tax that an invoice line uses", async () => {
    const c = await newCompany()
    const tax = idOf(await c.create("producttypetaxes", { name: fresh("tax") }))
    await c.put("invoicelines", [{ producttypetaxid: tax }])
    refused(await c.del(`/producttypetaxes/${tax}`), "cannot_cancel")
    assert.strictEqual((await c.read("producttypetaxes", tax))["cancel"], false)
  })

  it("[STAGES-14][F-05] allows stages with the same code", async () => {
    const c = await newCompany()
    await c.create("stages", { code: "A" })
    await c.create("stages", { code: "A" })
    assert.lengthOf(await c.list("/stages?code=A"), 2)
  })

  it("[F-05] allows the same name in ccaccounts, producttypetaxes and itemcomparisongroups", async () => {
    const c = await newCompany()
    for (const path of ["ccaccounts", "producttypetaxes", "itemcomparisongroups"]) {
      await c.create(path, { name: "same" })
      await c.create(path, { name: "same" })
    }
  })

  it("[CCACCOUNTS-10][CCACCOUNTS-05] makes card processors a static, read-only table", async () => {
    const c = await newCompany()
    const answer = await c.post("/ccprocessors", { name: "x" })
    assert.include([404, 405], answer.status)
  })

  it("[TASKSTATUSES-03][EPR-22][A-08][X-05] gives cancel=true the meaning cancelled only in taskstatuses alone", async () => {
    const c = await newCompany()
    const [, dead] = await c.put("taskstatuses", [{ name: "live" }, { name: "dead", cancel: true }])
    assert.deepEqual(ids(await c.list("/taskstatuses?cancel=true")), [idOf(row(dead))])
    await c.put("stages", [{ name: "live" }, { name: "dead", cancel: true }])
    assert.lengthOf(await c.list("/stages?cancel=true"), 2)
  })

  it("[TASKSTATUSES-10] makes task statuses a company's lookup in the area setup", async () => {
    const c = await newCompany()
    await c.create("taskstatuses", { name: "Called" })
    assert.lengthOf(await (await c.with("setup:read")).list("/taskstatuses"), 1)
    assert.isEmpty(await (await newCompany()).list("/taskstatuses"))
  })

  it("[AREAS-06][F-03][X-27] stores an application fee with 6 decimals and shows 4, rounded away from zero", async () => {
    const c = await newCompany()
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
      refused(
        await c.post("/areas", { name: fresh("fee"), applicationfee: value }),
        "invalid_precision",
        "applicationfee"
      )
    }
    for (const value of [1, ...MALFORMED_DECIMALS]) {
      refused(await c.post("/areas", { name: fresh("fee"), applicationfee: value }), "invalid_type", "applicationfee")
    }
  })

  it("[AREAS-04][F-05][EMAILTEMPLATES-04][TASKSTATUSES-05] leaves a key of one company free in another", async () => {
    const a = await newCompany()
    const b = await newCompany()
    for (const [path, key] of [
      ["areas", "name"],
      ["taskstatuses", "name"],
      ["emailtemplates", "action"]
    ] as const) {
      await a.create(path, { [key]: "same" })
      await b.create(path, { [key]: "same" })
      refused(await b.post(`/${path}`, { [key]: "SAME" }), "duplicate", key)
    }
  })

  it("[VENDORORDERFROMS-20] ignores a client's value for the hash of the verified address", async () => {
    const c = await newCompany()
    const record = await c.create("vendororderfroms", { address: "1 Road", addressverified: "a".repeat(32) })
    assert.isNull(record["addressverified"])
    const [stored] = await c.put("vendororderfroms", [{ addressverified: "b".repeat(32) }])
    const shown = await shownRecord(c, resource("vendororderfroms"), idOf(row(stored)))
    assert.strictEqual(shown["addressverified"], "b".repeat(32))
  })

  it("[ESTQUOTEPRICELISTS-04][ESTQUOTEPRICELISTS-16][I-29] stores references to resources that are not built as given", async () => {
    const c = await newCompany()
    const record = await c.create("estquotepricelists", { stdsizeid: 123_456, point2id: 654_321 })
    assert.deepInclude(record, { stdsizeid: 123_456, point2id: 654_321 })
    refused(await c.post("/estquotepricelists", { stdsize: "A4" }), "unknown_parameter", "stdsize")
  })

  it("[TEAMPROJECTTEMPLATEITEMS-14][STAGES-11] stores a sort order, and keeps lists in the order of ids", async () => {
    const c = await newCompany()
    const late = integer((await c.create("stages", { sortorder: 9 }))["id"])
    const early = integer((await c.create("stages", { sortorder: 1 }))["id"])
    assert.deepEqual(ids(await c.list("/stages")), [late, early])
  })

  it("[RMARETURNS-19][F-12] a return has an entrydate of now by default, as a timestamp", async () => {
    const c = await newCompany()
    assert.match(text((await makeReturn(c))["entrydate"]), TIMESTAMP)
  })

  it("[I-26] a return moves no stock and no shipped quantity", async () => {
    const c = await newCompany()
    const order = await makeOrder(c)
    await makeReturn(c, { rma_arorderid: order.id })
    isDecimal((await orderLines(c, order.id))[0]?.["qtyship"], "0", 6)
  })
})

keptPromises()
