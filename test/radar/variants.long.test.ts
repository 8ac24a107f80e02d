/**
 * Every switch of the reference server's dialect: those that reads can reveal are detected by their name, and the others
 * are listed with the reason.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { plainDialect } from "../../connectors/service-v2/reference-server/http/dialect.ts"
import type { Json } from "../reference-server/support.ts"
import { readable } from "./readings.ts"
import { change, compare, installation, shown, variantsOf } from "./support.ts"
import { test } from "../support/suite.ts"
import { assertNone } from "../support/assertions.ts"

/** The switches that reads cannot reveal, each with the reason. */
const unreadable: Readonly<Record<string, { readonly dialect: Json; readonly reason: string }>> = {
  batchStatus: { dialect: { batchStatus: "text" }, reason: "only the answer to a batch has a status for each item" },
  uniqueExternalid: { dialect: { uniqueExternalid: true }, reason: "only a create is refused for a second one" },
  deleteUnknown: { dialect: { deleteUnknown: 422 }, reason: "only a DELETE is answered so" },
  enableShipmentInvoice: { dialect: { enableShipmentInvoice: true }, reason: "only a POST is answered 501" },
  retryAfter: {
    dialect: { retryAfter: "date" },
    reason: "only a 429 has it, and the radar sends fewer requests than the documented limit allows; see limits.test.ts"
  }
}

/** Seeds of which every one must be seen. */
const seeds = [1, 2, 3, 11, 97, 4242]

const detect = Effect.fnUntraced(function* (dialect: Json, data: "demo" | "empty" = "demo") {
  const one = yield* installation(data)
  change(one, "PUT", "/limits", { requestsPerMinute: null })
  change(one, "PUT", "/dialect", dialect)
  const { report } = yield* compare(one)
  assert.isNull(report.ended)
  assert.isAtMost(report.requests, 300)
  return { report, variants: [...variantsOf(report)].toSorted(), text: shown(report).join("\n") }
})

describe("the table of readings", () => {
  it("has every switch of the dialect once", () => {
    const names = readable.flatMap(({ dialect }) => Object.keys(dialect))
    const all = new Set([...names, ...Object.keys(unreadable)])
    assert.deepStrictEqual([...all].toSorted(), Object.keys(plainDialect).toSorted())
    assertNone(Object.keys(unreadable), (name) => names.includes(name))
  })

  for (const [name, { dialect, reason }] of Object.entries(unreadable)) {
    test(`reports no difference for what reads cannot reveal: ${name} (${reason})`, function* () {
      assert.strictEqual((yield* detect(dialect)).text, "")
    })
  }

  for (const name of ["pageSizes", "tieOrder", "keyOrder", "extraFields"]) {
    test(`detects ${name} with any seed`, function* () {
      for (const seed of seeds) {
        const { text, variants } = yield* detect({ [name]: seed })
        assert.deepStrictEqual(variants, [`${name}=1`], text)
      }
    })
  }

  for (const paging of ["page", "offset", "link"]) {
    test(`detects ${paging} without metadata, and in an empty installation`, function* () {
      const bare = yield* detect({ itemsKey: "bare", paging })
      assert.deepStrictEqual(bare.variants, ["itemsKey=bare", ...(paging === "link" ? [] : [`paging=${paging}`])])
      const empty = yield* detect({ paging }, "empty")
      assert.deepStrictEqual(empty.variants, [`paging=${paging}`], empty.text)
    })
  }

  test("detects several readings together", function* () {
    const dialect = {
      itemsKey: "results",
      paging: "page",
      pageMax: 120,
      limit: "clamped",
      syncedThrough: false,
      etag: false,
      compression: true
    }
    const { report, text, variants } = yield* detect(dialect)
    const names = Object.entries(dialect).map(([name, value]) => `${name}=${String(value)}`)
    assert.deepStrictEqual(variants, names.toSorted(), text)
    assert.deepStrictEqual(report.settings.map(({ path, value }) => `${path}=${value}`).toSorted(), [
      "list.items_key=results",
      "paging.mode=page",
      "paging.page_size=120"
    ])
  })
})

describe("a reading of the dialect that reads can reveal", () => {
  for (const { dialect, named } of readable) {
    const name = Object.entries(dialect).map(([key, value]) => `${key}=${String(value)}`)
    test(`is detected by its name: ${name.join(", ")}`, function* () {
      const { report, text, variants } = yield* detect(dialect)
      assert.deepStrictEqual(variants, [...(named ?? name)].toSorted(), text)
      const unnamed = report.differences.filter(({ variant }) => variant === null)
      const isAboutOperations = "allOperations" in dialect
      assert.isTrue(
        unnamed.every(({ check }) => isAboutOperations && check === "operations"),
        text
      )
    })
  }
})
