import { traits } from "../../connectors/service-v2/catalogue/traits.ts"
import { assert, describe, it } from "vitest"
import { catalogue, CatalogueError, type CatalogueSpec } from "../../src/catalogue/Catalogue.ts"
import {
  id,
  integer,
  lastchangedate,
  list,
  money,
  pair,
  ref,
  string
} from "../../connectors/service-v2/catalogue/fields.ts"
import { exact, partial, resource, type ResourceSpec, write } from "../../connectors/service-v2/catalogue/resource.ts"

const shelf: ResourceSpec = {
  path: "shelves",
  area: "shop",
  purpose: "Shelves",
  basis: "documented",
  operations: "L C",
  fields: [id(), string("code", 10), lastchangedate()],
  modifiedSince: true
}

const thing: ResourceSpec = {
  path: "things",
  area: "shop",
  purpose: "Things",
  basis: "inferred",
  operations: "L",
  fields: [id(), pair("shelf", "shelves", { by: "code", length: 10 }), money("price")]
}

const child: ResourceSpec = {
  ...thing,
  filters: [exact("shelfid")],
  parent: { resource: "shelves", field: "shelfid" }
}

const problemsOf = (spec: Partial<CatalogueSpec>): ReadonlyArray<string> => {
  try {
    catalogue({
      name: "test",
      version: "1",
      areas: [{ name: "shop", covers: "everything" }],
      traits,
      features: ["extra"],
      errorCodes: [],
      resources: [],
      ...spec
    })
    return []
  } catch (error) {
    assert.instanceOf(error, CatalogueError)
    return error.problems.map(({ place, problem }) => `${place}: ${problem}`)
  }
}

const wrong = (...resources: ReadonlyArray<ResourceSpec>) => problemsOf({ resources: resources.map(resource) })

describe("a catalogue", () => {
  it("is accepted if every name resolves", () => {
    assert.deepStrictEqual(wrong(shelf, thing), [])
    assert.deepStrictEqual(wrong(shelf, child), [])
    assert.deepStrictEqual(resource(child).parent, { resource: "shelves", field: "shelfid" })
    assert.isNull(resource(thing).parent)
  })

  it("expands a reference pair into its two fields", () => {
    const { field } = resource(thing)
    assert.deepStrictEqual([...field.keys()], ["id", "shelfid", "shelf", "price"])
    assert.deepStrictEqual(field.get("shelf")!.reference, {
      resource: "shelves",
      half: "code",
      pairedWith: "shelfid",
      by: "code"
    })
  })

  const cases: ReadonlyArray<readonly [expected: RegExp, ...resources: ReadonlyArray<ResourceSpec>]> = [
    [/things, field "shelfid": refers to the resource "shelves"/, thing],
    [
      /things, field "shelf": is resolved by shelves\.label, which is no field/,
      shelf,
      { ...thing, fields: [id(), pair("shelf", "shelves", { by: "label", length: 10 })] }
    ],
    [
      /is resolved by shelves\.lastchangedate, which is no string/,
      shelf,
      { ...thing, fields: [id(), pair("shelf", "shelves", { by: "lastchangedate", length: 10 })] }
    ],
    [
      /field "shelfid": is paired with "shelf"/,
      shelf,
      { ...thing, fields: [id(), pair("shelf", "shelves", { by: "code", length: 10 })[0]!] }
    ],
    [/shelves: is stated twice/, shelf, shelf],
    [/things: states twice: price/, { ...thing, fields: [id(), money("price"), money("price")] }],
    [/in the area "attic"/, { ...shelf, area: "attic" }],
    [/needs the module "magic"/, { ...shelf, feature: "magic" }],
    [/the operation "X"/, { ...shelf, operations: "L X" }],
    [/cannot be listed/, { ...shelf, operations: "C R" }],
    [/only answers to writes carry "code"/, { ...shelf, answers: ["code"] }],
    [/must begin with the field "id"/, { ...thing, fields: [money("price")] }],
    [/modifiedsince without a lastchangedate/, { ...thing, fields: [id()], modifiedSince: true }],
    [/filter "colour": is no field/, { ...shelf, filters: [exact("colour")] }],
    [
      /filter "rank": is partial but no text/,
      { ...shelf, fields: [...shelf.fields, integer("rank")], filters: [partial("rank")] }
    ],
    [
      /filter "externalid": is common/,
      { ...shelf, fields: [...shelf.fields, string("externalid", 100)], filters: [exact("externalid")] }
    ],
    [/business date "day": is no field/, { ...shelf, businessDate: { field: "day" } }],
    [/business date "code": is neither a date/, { ...shelf, businessDate: { field: "code" } }],
    [/business date "code": holds no number/, { ...shelf, businessDate: { through: "code" } }],
    [
      /business date "shelfid": leads to shelves, which has no field/,
      shelf,
      { ...thing, businessDate: { through: "shelfid" } }
    ],
    [/holds 21 decimals/, { ...thing, fields: [id(), money("price", { dp: 21 })] }],
    [/has the length 0/, { ...thing, fields: [id(), string("name", 0)] }],
    [/line field "price"/, { ...thing, fields: [id(), list("lines", [money("price", { dp: -1 })])] }],
    [
      /allows the value "red"/,
      { ...thing, fields: [id(), integer("rank", { values: [{ value: "red", meaning: "" }] })] }
    ],
    [/field "Bad Name": is no usable name/, { ...thing, fields: [id(), money("Bad Name")] }],
    [/field "custom_fields": is no usable name/, { ...thing, fields: [id(), string("custom_fields", 9)] }],
    [/longer than 63 bytes/, { ...thing, fields: [id(), money("a".repeat(64))] }],
    [/has the key "label"/, { ...shelf, key: { field: "label" } }],
    [/requires "label"/, { ...shelf, required: ["label"] }],
    [
      /create field "cost": sets "costs"/,
      { ...thing, fields: [id()], create: [write(money("cost"), { sets: "costs" })] }
    ],
    [
      /create field "boxid": refers to the resource "boxes"/,
      { ...thing, fields: [id(), integer("boxid")], create: [write(ref("boxid", "boxes"))] }
    ],
    [
      /things, parent "boxes": is not in the catalogue/,
      shelf,
      { ...child, parent: { resource: "boxes", field: "shelfid" } }
    ],
    [/things, parent "shelves": offers no modifiedsince/, { ...shelf, modifiedSince: false }, child],
    [
      /things, parent "shelves": is of no use/,
      shelf,
      { ...child, fields: [...child.fields, lastchangedate()], modifiedSince: true }
    ],
    [
      /parent "shelves": is found by "boxid", which is no field of things/,
      shelf,
      { ...child, parent: { resource: "shelves", field: "boxid" } }
    ],
    [
      /parent "shelves": is found by "id", which holds no number of shelves/,
      shelf,
      { ...child, filters: [exact("id")], parent: { resource: "shelves", field: "id" } }
    ],
    [
      /parent "shelves": is found by "shelf", which holds no number of shelves/,
      shelf,
      { ...child, filters: [exact("shelf")], parent: { resource: "shelves", field: "shelf" } }
    ],
    [
      /parent "shelves": is found by "shelfid", which lists cannot be filtered by exactly/,
      shelf,
      { ...child, filters: [partial("shelf")] }
    ],
    [
      /needs the scope "shop:look"/,
      { ...shelf, specials: [{ method: "GET", name: "labels", scope: "shop:look", purpose: "" }] }
    ]
  ]
  for (const [expected, ...resources] of cases) {
    it(`rejects a mistake, and names its position: ${expected.source}`, () => {
      const problems = wrong(...resources)
      assert.isTrue(
        problems.some((problem) => expected.test(problem)),
        `none of ${JSON.stringify(problems)} is ${String(expected)}`
      )
    })
  }

  it("reports every mistake at once", () => {
    assert.lengthOf(wrong({ ...shelf, area: "attic", feature: "magic", operations: "C X" }), 4)
  })

  it("rejects an error code that is stated twice", () => {
    const code = { status: 404, code: "not_found", condition: "" }
    assert.deepStrictEqual(problemsOf({ errorCodes: [code, code] }), ["error code not_found: is stated twice"])
  })
})
