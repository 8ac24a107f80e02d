/** Every field of the 25 objects: its presence, its type, its output form, and both halves of each pair. */
import { assert, beforeAll, describe, it } from "vitest"
import {
  DAY,
  fresh,
  idOf,
  isDecimal,
  keptPromises,
  MICROSECONDS,
  newCompany,
  row,
  text,
  TIMESTAMP,
  useServer,
  type Company,
  type Row
} from "./harness.ts"
import type { Field } from "./facts.ts"
import { RESOURCES, shownRecord, target } from "./resources.ts"

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
      const [fullRow] = await c.put(path, [sample])
      const [bareRow] = await c.put(path, [path === "invoiceterms" ? { verbal: fresh("term") } : {}])
      full = await shownRecord(c, each, idOf(row(fullRow)))
      bare = await shownRecord(c, each, idOf(row(bareRow)))
    }, 60_000)

    it(`[FIELD-01] include an integer id: ${path}.id`, () => {
      assert.isTrue(Number.isInteger(full["id"]))
    })

    it(`[A-14][FIELD-14]${absent.map((fact) => `[${fact}]`).join("")}[INVOICELINES-63][X-17][EP-22] are exactly the documented ones of ${path}, also when unset`, () => {
      const names = ["id"]
      for (const field of fields) {
        names.push(field.name)
        if (field.pair !== undefined) names.push(field.pair.code)
      }
      assert.deepEqual(Object.keys(full).sort(), [...names].sort(), "a full record")
      assert.deepEqual(Object.keys(bare).sort(), [...names].sort(), "a bare record")
    })

    for (const field of fields) {
      const { fact, name, kind } = field
      const pair = field.pair
      if (pair !== undefined) {
        it(`[${fact}][FIELD-02][A-15] include the reference pair ${path}.${name} / ${pair.code}`, () => {
          const target = targetOf.get(pair.table)
          assert.strictEqual(full[name], target?.id)
          assert.strictEqual(full[pair.code], target?.code)
          assert.isNull(bare[name])
          assert.isNull(bare[pair.code])
        })
      } else if (kind === "int") {
        it(`[${fact}] include the integer ${path}.${name}`, () => {
          if (!field.maintained) assert.strictEqual(full[name], field.sample)
          else assert.isTrue(full[name] === null || Number.isInteger(full[name]))
        })
      } else if (kind === "bool") {
        it(`[${fact}][FIELD-09] include the JSON boolean ${path}.${name}`, () => {
          assert.strictEqual(full[name], true)
          assert.include([false, null], bare[name])
        })
      } else if (kind === "string") {
        it(`[${fact}] include the string ${path}.${name}`, () => {
          if (field.maintained) assert.isTrue(full[name] === null || typeof full[name] === "string")
          else if (path === "invoiceterms" && name === "verbal") assert.isString(full[name])
          else assert.strictEqual(full[name], field.sample)
        })
      } else if (kind === "day") {
        it(`[${fact}][FIELD-11][F-01] show ${path}.${name} in the date form`, () => {
          assert.match(text(full[name], name), DAY)
          assert.strictEqual(full[name], field.sample)
        })
      } else if (kind === "time") {
        it(`[${fact}][FIELD-11][F-01] show ${path}.${name} in the timestamp form`, () => {
          assert.match(text(full[name], name), name === "lastchangedate" ? MICROSECONDS : TIMESTAMP)
        })
      } else {
        it(`[${fact}][FIELD-05][F-02] show ${path}.${name} as a decimal string padded to ${kind.decimals}`, () => {
          isDecimal(full[name], String(field.sample), kind.decimals, name)
        })
      }
    }
  })
}

keptPromises()
