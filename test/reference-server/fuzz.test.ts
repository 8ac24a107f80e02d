/** Random requests: each response has a documented status and the one envelope, and none is a defect. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { server } from "./support.ts"
import type { Json, Server } from "./support.ts"

const statusOf = new Map(serviceV2.errorCodes.map(({ code, status }) => [code, status]))

const odd = fc.constantFrom<unknown>(
  null,
  true,
  0,
  -1,
  1.5,
  1e300,
  "",
  "1",
  "-0.5",
  "1e3",
  "99999999999999999999999",
  "2026-02-30",
  "2026-02-28",
  "\u0000",
  "\ud800",
  "x".repeat(300),
  [],
  [null],
  [{}],
  {},
  { a: 1 }
)

const resources = [...serviceV2.resources.values()]

const bodyFor = fc.constantFrom(...resources).chain((resource) => {
  const write = [...(resource.create ?? []), ...resource.fields].map(({ name }) => name)
  const names = fc.constantFrom(...write, "custom_fields", "__proto__", "constructor")
  return fc.record({
    path: fc.constant(resource.path),
    body: fc.oneof(fc.dictionary(names, fc.oneof(odd, fc.integer({ min: 1, max: 30 })), { maxKeys: 6 }), odd)
  })
})

const query = fc.constantFrom(
  "",
  "?limit=5",
  "?cursor=WzEsbnVsbCwxXQ",
  "?cursor=W10",
  "?modifiedsince=9999-12-31T23:59:59Z",
  "?modifiedsince=0001-01-01T00:00:00Z",
  "?include=custom_fields",
  "?%00=1",
  "?a=%e9",
  "?limit=1e2",
  "?cancel=any&&",
  "?__proto__=1"
)

describe("a random request", () => {
  it("is answered as documented", () => {
    const { call, control, defects } = server({ data: "demo" })
    control("PUT", "/limits", { requestsPerMinute: null })
    fc.assert(
      fc.property(
        fc.constantFrom("GET", "POST", "PATCH", "DELETE", "PUT"),
        bodyFor,
        fc.constantFrom("", "/1", "/2", "/batch", "/abc", "/1/post", "/1/invoice"),
        query,
        fc.boolean(),
        (method, { path, body }, below, search, isRaw) => {
          const sent =
            method === "GET"
              ? undefined
              : isRaw
                ? `${JSON.stringify(body)}}`
                : [body, body].at(below === "/batch" ? 0 : 1)
          const response = call(method, `/${path}${below}${search}`, below === "/batch" && !isRaw ? [sent] : sent)
          if (response.status < 300) return
          assert.deepStrictEqual(Object.keys(response.body), ["error"])
          const { code, message } = response.body["error"] as Json
          assert.strictEqual(statusOf.get(String(code)), response.status)
          assert.isNotEmpty(message)
          assert.isBelow(response.status, 500)
        }
      ),
      { numRuns: 3000, seed: 20260316 }
    )
    assert.deepStrictEqual(defects, [])
    // What random requests left is read back from its snapshot, byte for byte.
    const textOf = (one: Pick<Server, "control">) => {
      assert.strictEqual(one.control("POST", "/snapshots", { name: "left" }).status, 201)
      return one.control("GET", "/snapshots/left").text
    }
    const left = textOf({ control })
    const other = server()
    assert.strictEqual(other.control("POST", "/restore", left).status, 200)
    assert.strictEqual(textOf(other), left)
    assert.strictEqual(other.control("GET", "/history").text, control("GET", "/history").text)
  })
})
