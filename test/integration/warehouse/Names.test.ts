/** SQL names of API names: unique, never truncated, and never a system column. */
import { assert, describe, it } from "vitest"
import { identifier, nameFor } from "../../../src/warehouse/Identifier.ts"

/** Assigns SQL names in order, each one different from those before it. */
const assignNames = (...names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const usedNames = new Set<string>(["id"])
  return names.map((name) => {
    const assignedName = nameFor(name, usedNames)
    usedNames.add(assignedName.toLowerCase())
    return assignedName
  })
}

describe("the SQL name of a field", () => {
  it("equals the API name when that is a plain name", () => {
    assert.deepStrictEqual(assignNames("colour", "unitPrice", "select", "user", "x_1"), [
      "colour",
      "unitPrice",
      "select",
      "user",
      "x_1"
    ])
  })

  it("is unique when two long names share their first 63 bytes", () => {
    const long = "a".repeat(63)
    const [one, two] = assignNames(`${long}xxxxxxx`, `${long}yyyyyyy`)
    assert.notStrictEqual(one, two)
    for (const name of [one!, two!]) {
      assert.strictEqual(Buffer.byteLength(name), 63)
      assert.match(name, /^a{54}_[0-9a-f]{8}$/)
    }
    // A name may have 63 characters, and not 64.
    assert.strictEqual(assignNames(long)[0], long)
    assert.notStrictEqual(assignNames(`${long}a`)[0], `${long}a`)
  })

  it("is unique also when case is ignored", () => {
    const [lower, upper, mixed, number] = assignNames("price", "PRICE", "Price", "ID")
    assert.strictEqual(lower, "price")
    assert.strictEqual(new Set([lower, upper, mixed].map((name) => name!.toLowerCase())).size, 3)
    assert.match(number!, /^ID_[0-9a-f]{8}$/)
  })

  it("never equals a system column of Postgres or Tributary", () => {
    for (const name of ["_version", "_company_id", "_extra", "_deleted_at", "_valid_to"]) {
      assert.match(assignNames(name)[0]!, /^[a-z_]+_[0-9a-f]{8}$/)
      assert.notStrictEqual(assignNames(name)[0]![0], "_")
    }
    for (const name of ["custom_fields", "Custom_Fields", "ctid", "xmin", "tableoid", "things__superseded"]) {
      assert.match(assignNames(name)[0]!, /_[0-9a-f]{8}$/, name)
    }
  })

  it("is derived from a name with any characters", () => {
    assert.match(assignNames('a "quoted" name')[0]!, /^a_quoted_name_[0-9a-f]{8}$/)
    assert.match(assignNames("Größe")[0]!, /^Gro_e_[0-9a-f]{8}$/)
    assert.match(assignNames("été")[0]!, /^ete_[0-9a-f]{8}$/)
    assert.match(assignNames("😀")[0]!, /^field_[0-9a-f]{8}$/)
    assert.match(assignNames("")[0]!, /^field_[0-9a-f]{8}$/)
    assert.match(assignNames("1st")[0]!, /^st_[0-9a-f]{8}$/)
    assert.match(assignNames("a; drop table x;--")[0]!, /^a_drop_table_x_[0-9a-f]{8}$/)
    for (const name of assignNames("\\", "'", "a.b", "a\nb", "\u202e")) assert.doesNotThrow(() => identifier(name))
  })

  it("differs from a field that has the name of another mapped field", () => {
    const [mapped] = assignNames("a b")
    const [first, other] = assignNames(mapped!, "a b")
    assert.strictEqual(first, mapped)
    assert.match(other!, /^a_b_[0-9a-f]{12}$/)
  })

  it("is rejected when it contains a NUL or a lone surrogate", () => {
    assert.throws(() => nameFor("a\0b", new Set()), /NUL/)
    assert.throws(() => nameFor("\ud800", new Set()), /surrogate/)
  })

  it("does not depend on other existing names", () => {
    assert.strictEqual(nameFor("a b", new Set()), nameFor("a b", new Set(["price"])))
  })
})
