/** Resources that only the configuration file defines. */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { isCancellable } from "../../src/catalogue/Resource.ts"
import * as WarehouseCatalogue from "../../src/warehouse/WarehouseCatalogue.ts"
import { loadText, problemsOf } from "../support/configuration.ts"
import { test } from "../support/suite.ts"
import { valuesOf } from "../support/rows.ts"

describe("resources defined only in the configuration", () => {
  test("are added to the catalogue with the fields that their settings name", function* () {
    const { resources } = yield* loadText(
      "resources:\n  widgets: {}\n  reports/Daily-Sales: { modifiedsince: true, cancel: true, key: code, area: items }\n"
    )
    const catalogue = yield* WarehouseCatalogue.addConfigured(serviceV2, resources)
    assert.strictEqual(catalogue.resources.size, serviceV2.resources.size + 2)
    const widgets = catalogue.resources.get("widgets")!
    assert.deepStrictEqual(valuesOf(widgets.fields, "name"), ["id"])
    assert.deepStrictEqual([widgets.basis, widgets.area, isCancellable(widgets)], ["configured", "", false])
    const sales = catalogue.resources.get("reports/Daily-Sales")!
    assert.deepStrictEqual(valuesOf(sales.fields, "name"), ["id", "code", "cancel", "lastchangedate"])
    assert.deepStrictEqual([sales.area, sales.modifiedSince, isCancellable(sales)], ["items", true, true])
    // An inferred field named cancel does not change how lists are requested.
    assert.isFalse(
      isCancellable(WarehouseCatalogue.withInferred(widgets, [{ name: "cancel", column: "cancel", type: "boolean" }]))
    )
  })

  test("are rejected with the position in the file and the allowed values", function* () {
    assert.deepStrictEqual(yield* problemsOf("resources:\n  widgets: { modifiedSince: true }\n"), [
      "file:2:29: resources.widgets.modifiedSince: there is no such setting; allowed: area, modifiedsince, cancel, key, ignore_fields, since, where, exclude, hash, mask"
    ])
    const [path] = yield* problemsOf('resources:\n  "../secrets": {}\n')
    assert.include(path, "allowed: the path of a list: letters, digits, _ and -, with / between its parts")
    const error = yield* Effect.flip(
      WarehouseCatalogue.addConfigured(serviceV2, (yield* loadText("resources:\n  items: {}\n")).resources)
    )
    assert.include(error.message, "resources.items: the catalogue knows this resource already")
  })
})
