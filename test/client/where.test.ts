/** Filtered pages of a parent's children, and pages with the original text of their records. */
import { assert, describe } from "@effect/vitest"
import { Cause, Duration, Effect, Exit } from "effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { PageRequest } from "../../src/connector/Connector.ts"
import { things } from "../support/tiny.ts"
import * as ScriptedHttp from "./ScriptedHttp.ts"
import { answers, failureOf, list, refuses } from "./ScriptedHttp.ts"
import { test } from "../support/suite.ts"
import { valuesOf } from "../support/rows.ts"

const named = (path: string) => serviceV2.resources.get(path)!
const children = (path: string, field: string, value: string): PageRequest => ({
  resource: named(path),
  since: null,
  token: null,
  where: [{ field, value }]
})

describe("a filtered page request", () => {
  test("sends cancel=any where records can be cancelled, on every page", function* () {
    const steps = [list([{ id: 1 }], { has_more: true, next_cursor: "c" }), ...[2, 3, 4, 5, 6].map(() => list([]))]
    const { connector, sent } = yield* ScriptedHttp.make(steps, { pageSize: 50 })
    const request = children("payments", "invoiceid", "7")
    const { next } = yield* connector.page(request)
    yield* connector.page({ ...request, token: next })
    yield* connector.rawPage(request)
    yield* connector.page(children("apbilllines", "jobid", "7"))
    yield* connector.page(children("payments", "externalid", "a b&c"))
    yield* connector.page({ ...children("invoicelines", "invoiceid", "7"), since: "2026-01-01T00:00:00Z" })
    assert.deepStrictEqual(valuesOf(sent, "path"), [
      "/payments?limit=50&invoiceid=7&cancel=any",
      "/payments?limit=50&invoiceid=7&cancel=any&cursor=c",
      "/payments?limit=50&invoiceid=7&cancel=any",
      "/apbilllines?limit=50&jobid=7",
      "/payments?limit=50&externalid=a%20b%26c&cancel=any",
      "/invoicelines?limit=50&invoiceid=7&modifiedsince=2026-01-01T00%3A00%3A00Z"
    ])
  })

  test("dies if the resource does not offer the filter", function* () {
    const { connector, sent } = yield* ScriptedHttp.make([])
    for (const [path, field] of [
      ["payments", "amount"],
      ["payments", "colour"],
      ["payments", "cancel"],
      ["apbilllines", "apbillid"]
    ] as const) {
      for (const read of [
        Effect.asVoid(connector.page(children(path, field, "1"))),
        Effect.asVoid(connector.rawPage(children(path, field, "1")))
      ]) {
        const exit = yield* Effect.exit(read)
        assert(Exit.isFailure(exit) && Cause.hasDies(exit.cause), `${path}.${field}`)
      }
    }
    assert.lengthOf(sent, 0)
  })
})

describe("a raw page", () => {
  const request: PageRequest = { resource: things, since: null, token: null }

  test("returns each record's own text, whatever it contains", function* () {
    const records: readonly [string, ...ReadonlyArray<string>] = [
      `{"id" : 1, "price": 1.10, "name":"\\u00e9]}\\\\\\""}`,
      `{"id":12345678901234567890,"x":[{"a":[]}],"id":2}`,
      `{ }`,
      `"no record"`,
      `null`,
      `-1.50e+3`,
      `[1, 2]`,
      `{"price":"1.2345678","":0}`
    ]
    const { connector } = yield* ScriptedHttp.make([
      answers(200, ` {"_meta":{"has_more":false} ,"data" : [ ${records.join(" ,\n ")} ] } `),
      answers(200, `[${records.join(",")}]`, {}),
      answers(200, `{"data":[],"data":[${records[0]}]}`),
      list([])
    ])
    assert.deepStrictEqual(yield* connector.rawPage(request), { records, next: null, attempts: 1 })
    assert.deepStrictEqual((yield* connector.rawPage(request)).records, records)
    assert.deepStrictEqual((yield* connector.rawPage(request)).records, [records[0]])
    assert.deepStrictEqual((yield* connector.rawPage(request)).records, [])
  })

  test("has the parameters, paging and retries of any page", function* () {
    const options = { pageSize: 2, includeCustomFields: true, retry: { backoffBase: Duration.zero } }
    const steps = [
      refuses(400, "invalid_enum", { field: "include" }),
      list([{ id: 1 }], { has_more: true, next_cursor: "c" }),
      list([{ id: 2 }], { has_more: true, next_cursor: "c" })
    ]
    const paths: Array<ReadonlyArray<string>> = []
    for (const how of ["page", "rawPage"] as const) {
      const {
        connector: { page, rawPage },
        sent
      } = yield* ScriptedHttp.make(steps, options)
      const read = (token: string | null) =>
        Effect.map<{ readonly next: string | null }, string | null>(({ next }) => next)(
          how === "page" ? page({ ...request, token }) : rawPage({ ...request, token })
        )
      const next = yield* read(null)
      assert.strictEqual((yield* failureOf(read(next))).reason._tag, "PagingBroken")
      assert.strictEqual((yield* failureOf(read("x"))).reason._tag, "PageTokenRefused")
      paths.push(sent.map(({ path }) => path))
    }
    assert.deepStrictEqual(paths[0], paths[1])
    const { connector } = yield* ScriptedHttp.make([refuses(503, "server_error"), answers(200, "<p>"), list([])], {
      retry: { backoffBase: Duration.zero }
    })
    assert.strictEqual((yield* connector.rawPage(request)).attempts, 3)
  })
})
