/** The language-independent cases of the control plane and the API, run from TypeScript. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { controlRoutes } from "../../connectors/service-v2/reference-server/control/routes.ts"
import { exampleServer, readCases } from "./examplesSupport.ts"
import type { ExampleServer } from "./examplesSupport.ts"

let server: ExampleServer
beforeAll(async () => {
  server = await exampleServer()
})
afterAll(() => server.close())

describe("the language-independent cases", () => {
  const { setup, cases } = readCases()

  it("use every call of the control plane", () => {
    const calls = [...setup, ...cases.flatMap(({ steps }) => steps)].flatMap(({ control }) => control ?? [])
    for (const { method, path } of controlRoutes) {
      const [head = ""] = path.split("{")
      assert.isTrue(
        calls.some((call) => call.startsWith(`${method} ${head}`)),
        `no case calls ${method} ${path}`
      )
    }
  })

  it("pass from TypeScript", async () => {
    const { code, results, output } = await server.run("typescript")
    assert.strictEqual(results.at(-1), `${cases.length} passed, 0 failed, 0 skipped`, output)
    assert.strictEqual(code, 0)
  })
})
