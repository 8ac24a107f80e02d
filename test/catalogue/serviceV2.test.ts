/**
 * The catalogue of Service API v2, compared with the facts of the documents: operations, filters and fields of the 25
 * documented resources. The wire tests show that the reference server, which reads the catalogue, obeys it.
 */
import { assert, describe, it } from "vitest"
import { areas, features } from "../../connectors/service-v2/catalogue/areas.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { Field } from "../../src/catalogue/Field.ts"
import type { Resource, WriteField } from "../../src/catalogue/Resource.ts"
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

describe("write shapes", () => {
  const shapeText = ({ name, type, required, sets, refers, lines }: WriteField): string => {
    const words =
      type._tag === "decimal"
        ? `${type.kind} ${type.scale}`
        : type._tag === "string"
          ? `string ${type.maxLength}`
          : type._tag
    return [
      `${name}: ${words}`,
      required ? "required" : "",
      sets === name || sets === null ? "" : `-> ${sets}`,
      refers === null ? "" : `= ${refers.resource}.${refers.by ?? "id"}`,
      lines === null ? "" : `[${lines.map(shapeText).join("; ")}]`
    ]
      .filter((part) => part !== "")
      .join(" ")
  }
  const externalid = "externalid: string 100"

  it.each([
    [
      "shipments",
      "create",
      [
        "orderid: integer required = orders.id",
        externalid,
        "lines: list required [orderlineid: integer required = orderlines.id; quantity: qty 6 required]"
      ]
    ],
    ["shipments", "update", ["carrierserviceid: integer = carrierservices.id", "shipdate: date", externalid]],
    [
      "invoicelines",
      "create",
      [
        "invoiceid: integer required = invoices.id",
        "itemid: integer = items.id",
        "description: string 255",
        "quantity: qty 6 required -> qty",
        "price: money 6 required -> priceach",
        "taxable: boolean -> taxflag",
        externalid
      ]
    ],
    [
      "payments",
      "create",
      [
        "invoiceid: integer required = invoices.id",
        "amount: money 4 required",
        "date: date -> datereceived",
        "method: integer -> paymeth",
        "reference: string 100 -> checkid",
        externalid
      ]
    ],
    ["payments", "update", ["reference: string 100 -> checkid", "method: integer -> paymeth", externalid]],
    [
      "orderdeposits",
      "create",
      [
        "orderid: integer required = orders.id",
        "amount: money 4 required",
        "date: date",
        "method: integer -> payment_method",
        "reference: string 100 -> checkid",
        externalid
      ]
    ],
    [
      "apbilllines",
      "create",
      [
        "apbillid: integer required = apbills.id",
        "glaccountid: integer required = glaccounts.id",
        "glaccount: string 60 = glaccounts.name",
        "amount: money 4 required",
        "jobid: integer = jobs.id",
        "costcodeid: integer = costcodes.id",
        externalid
      ]
    ]
  ] as const)("are as documented: %s, %s", (path, mode, expected) => {
    assert.deepStrictEqual(resourceOf(path)[mode]!.map(shapeText), [...expected])
  })

  it("return sums that are not fields of the record for three resources (WRITE-09, WRITE-12, WRITE-19)", () => {
    const summing = all.filter(({ answers }) => answers.length > 0)
    assert.deepStrictEqual(Object.fromEntries(summing.map(({ path, answers }) => [path, answers])), {
      invoicelines: ["invoicetotal"],
      payments: ["invoicepaid"],
      apbilllines: ["billtotal", "distributed", "undistributed"]
    })
  })
})
