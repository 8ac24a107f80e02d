/** The language-independent cases, run from three languages with their standard HTTP clients. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { controlRoutes } from "../../connectors/service-v2/reference-server/control/routes.ts"
import { exampleServer, languages, readCases } from "./examplesSupport.ts"
import type { ExampleServer, Language } from "./examplesSupport.ts"

const each = Object.keys(languages) as ReadonlyArray<Language>

let server: ExampleServer
const folder = mkdtempSync(join(tmpdir(), "cases-"))
beforeAll(async () => {
  server = await exampleServer()
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

const clock = "GET /clock"
/** A wrong expectation for each condition, with the place that every runner must name. */
const wrong: ReadonlyArray<readonly [step: Readonly<Record<string, unknown>>, place: string]> = [
  [{ control: clock, expect: { status: 201 } }, "status"],
  [{ control: clock, expect: { status: { $match: "200" } } }, "status"],
  [{ control: clock, expect: { connection: "broken" } }, "connection"],
  [{ control: clock, expect: { headers: { "Content-Type": "text/plain" } } }, "headers.content-type"],
  [{ control: clock, expect: { headers: { "X-Other": { $type: "string" } } } }, "headers.x-other"],
  [{ control: clock, expect: { body: { manual: 1 } } }, "body.manual"],
  [{ control: clock, expect: { body: { manual: "true" } } }, "body.manual"],
  [{ control: clock, expect: { body: { manual: null } } }, "body.manual"],
  [{ control: clock, expect: { body: { other: null } } }, "body.other"],
  [{ control: clock, expect: { body: { manual: { $absent: true } } } }, "body.manual"],
  [{ control: clock, expect: { body: { manual: { $type: "integer" } } } }, "body.manual"],
  [{ control: clock, expect: { body: { now: { $type: "object" } } } }, "body.now"],
  [{ control: clock, expect: { body: { now: { $match: "^2027" } } } }, "body.now"],
  [{ control: clock, expect: { body: { now: { $length: 1 } } } }, "body.now"],
  [{ control: clock, expect: { body: { now: { year: 2026 } } } }, "body.now"],
  [{ control: clock, expect: { body: [] } }, "body"],
  [{ control: clock, expect: { text: { $match: "noon" } } }, "text"],
  [{ control: "GET /requests", expect: { body: { requests: [{}] } } }, "body.requests"],
  [{ control: "GET /requests", expect: { body: { requests: { $length: 1 } } } }, "body.requests"],
  [{ control: "GET /requests", expect: { body: { requests: { $contains: [{}] } } } }, "body.requests"],
  [{ control: "GET /history", expect: { body: {} } }, "text"],
  [{ control: "GET /history?company=1", expect: { lines: [{ op: "delete" }] } }, "lines"],
  [{ control: "GET /clock?x={{unknown}}", expect: { status: 200 } }, "values"]
]

describe("the language-independent cases", () => {
  it("use every call of the control plane", () => {
    const { setup, cases } = readCases()
    const calls = [...setup, ...cases.flatMap(({ steps }) => steps)].flatMap(({ control }) => control ?? [])
    const unused = controlRoutes.filter(
      ({ method, path }) => !calls.some((call) => call.startsWith(`${method} ${path.split("{")[0]}`))
    )
    assert.deepStrictEqual(unused, [])
  })

  it("have the same results in three languages", async () => {
    const names = readCases().cases.map(({ name }) => `ok ${name}`)
    for (const language of each) {
      const { code, results, output } = await server.run(language)
      assert.deepStrictEqual(
        results,
        [...names, `${names.length} passed, 0 failed, 0 skipped`],
        `${language}\n${output}`
      )
      assert.strictEqual(code, 0, language)
    }
  })

  it("are skipped with the reason where they need a receiver and there is none", async () => {
    const { cases } = readCases()
    const needing = cases.flatMap(({ name, needs }) =>
      needs === undefined ? [] : [`${name}: needs ${needs.join(", ")}`]
    )
    assert.isAbove(needing.length, 0)
    for (const language of each) {
      const { code, results } = await server.run(language, undefined, true)
      const skipped = results.filter((line) => line.startsWith("skipped"))
      assert.deepStrictEqual(
        skipped,
        needing.map((line) => `skipped ${line}`),
        language
      )
      const passed = cases.length - needing.length
      assert.strictEqual(results.at(-1), `${passed} passed, 0 failed, ${needing.length} skipped`, language)
      assert.strictEqual(code, 0, language)
    }
  })

  it("fail in each language where an expectation is wrong", async () => {
    const cases = wrong.map(([step], index) => ({ name: `wrong ${index}`, steps: [step] }))
    const file = join(folder, "wrong.json")
    writeFileSync(file, JSON.stringify({ setup: readCases().setup, cases }))
    const expected = wrong.map(([, place], index) => `not ok wrong ${index}: step 1: ${place}`)
    for (const language of each) {
      const { code, results, output } = await server.run(language, file)
      assert.deepStrictEqual(
        results,
        [...expected, `0 passed, ${wrong.length} failed, 0 skipped`],
        `${language}\n${output}`
      )
      assert.strictEqual(code, 1, language)
    }
  })
})
