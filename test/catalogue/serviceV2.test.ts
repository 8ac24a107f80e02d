/**
 * The catalogue of Service API v2, compared with the facts of the documents: operations, filters and fields of the 25
 * documented resources. The wire tests show that the reference server, which reads the catalogue, obeys it.
 */
import { assert, describe, it } from "vitest"
import { areas, features } from "../../connectors/service-v2/catalogue/areas.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { Field } from "../../src/catalogue/Field.ts"
import type { Resource } from "../../src/catalogue/Resource.ts"
import { DESCRIBED, type Field as Stated } from "../conformance/facts.ts"

const resourceOf = (path: string): Resource => {
  const resource = serviceV2.resources.get(path)
  if (resource === undefined) throw new Error(`${path} is not in the catalogue`)
  return resource
}

/** The fields of the catalogue that a fact states: one, or the two halves of a pair. */
const statedFields = ({ name, kind, length, pair }: Stated): ReadonlyArray<readonly [name: string, type: string]> => {
  if (pair !== undefined)
    return [
      [name, `integer of ${pair.table}`],
      [pair.code, `string ${length} of ${pair.table}.${pair.key}`]
    ]
  if (kind === "int") return [[name, "integer"]]
  if (kind === "bool") return [[name, "boolean"]]
  if (kind === "day") return [[name, "date"]]
  if (kind === "time") return [[name, "timestamp"]]
  return [[name, kind === "string" ? `string ${length ?? null}` : `decimal ${kind.decimals}`]]
}

const typeOf = ({ type, reference }: Field): string => {
  const words =
    type._tag === "decimal" ? `decimal ${type.shown}` : type._tag === "string" ? `string ${type.maxLength}` : type._tag
  if (reference === null || reference === undefined || reference.pairedWith === null) return words
  return `${words} of ${reference.resource}${reference.half === "code" ? `.${reference.by}` : ""}`
}

const sorted = (items: Iterable<string>) => [...items].sort()
const all = [...serviceV2.resources.values()]
const pathsOf = (holds: (resource: Resource) => boolean) => sorted(all.filter(holds).map(({ path }) => path))

describe("the catalogue of Service API v2", () => {
  it("has a resource in every area, and requires a module exactly in the areas that are modules", () => {
    assert.deepStrictEqual(sorted(new Set(all.map(({ area }) => area))), sorted(areas.map(({ name }) => name)))
    for (const { path, area, feature } of all) assert.strictEqual(feature, features.includes(area) ? area : null, path)
  })

  it("has the 25 documented resources, and marks what is special of single ones", () => {
    assert.deepStrictEqual(
      pathsOf(({ basis }) => basis === "documented"),
      sorted(DESCRIBED.map(({ path }) => path))
    )
    assert.deepStrictEqual(
      pathsOf(({ capped }) => capped),
      ["customers", "employees", "items", "vendors"]
    )
    // A-08 and C-11.
    assert.deepStrictEqual(
      pathsOf(({ cancelFilter }) => cancelFilter === "only"),
      ["taskstatuses"]
    )
    assert.deepStrictEqual(
      pathsOf(({ shared }) => shared),
      ["invoiceterms"]
    )
  })
})

describe.each(DESCRIBED)("the resource $path", ({ path, area, ops, filters, modifiedsince, fields, key }) => {
  const resource = resourceOf(path)

  it("has the documented area, operations, filters and key", () => {
    assert.strictEqual(resource.area, area)
    assert.deepStrictEqual([...resource.operations], [...ops])
    assert.deepStrictEqual(
      resource.filters.map(({ field, match }) => ({ name: field, match })),
      filters.map(({ name, match }) => ({ name, match }))
    )
    assert.strictEqual(resource.modifiedSince, modifiedsince)
    assert.deepStrictEqual([...resource.required], key === undefined ? [] : [key.name])
    if (key === undefined) assert.isNotTrue(resource.key?.unique)
    else assert.deepStrictEqual(resource.key, { field: key.name, caseSensitive: false, unique: true })
  })

  it("has the documented fields, types, lengths, decimals and pairs", () => {
    const expected = [["id", "integer"], ...fields.flatMap(statedFields)]
    const actual = resource.fields.map((field) => [field.name, typeOf(field)])
    const order = ([a = ""]: ReadonlyArray<string>, [b = ""]: ReadonlyArray<string>) => (a < b ? -1 : 1)
    assert.deepStrictEqual(actual.toSorted(order), expected.toSorted(order))
  })

  it("has the documented read-only marks and values", () => {
    for (const { name, readOnly, values } of fields) {
      const field = resource.field.get(name)!
      assert.strictEqual(field.readOnly, readOnly, name)
      if (values === undefined) continue
      const listed = field.values?.map(({ value }) => Number(value)).toSorted((a, b) => a - b)
      assert.deepStrictEqual(listed, [...values], name)
    }
  })
})
