/** The OpenAPI document of the control plane, compared with its behaviour. */
import { readFileSync } from "node:fs"
import { Validator } from "@seriousme/openapi-schema-validator"
import { assert, describe, it } from "vitest"
import type { ControlRoute } from "../../connectors/service-v2/reference-server/control/Route.ts"
import { controlRoutes } from "../../connectors/service-v2/reference-server/control/routes.ts"
import { contract } from "../support/contract.ts"
import type { Json, Server } from "./support.ts"
import { linesOf, server } from "./support.ts"

const documentOf = ({ control }: Server) => control("GET", "/openapi.json").body
const openapi = contract(documentOf(server()))

const urlOf = ({ path, example: { parameters = {} } }: ControlRoute): string => {
  const inPath = path.replace(/\{(\w+)\}/g, (_all, name: string) => String(parameters[name]))
  const query = Object.entries(parameters).filter(([name]) => !path.includes(`{${name}}`))
  const text = query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")
  return text === "" ? inPath : `${inPath}?${text}`
}

/** Sends the documented example of a call. */
const sendExample = async ({ served }: Server, route: ControlRoute) => {
  const { method, example } = route
  const text = example.input === undefined ? null : JSON.stringify(example.input)
  const body = text === null ? null : Buffer.from(text)
  const first = served.control({ method, url: urlOf(route), headers: {}, body })
  const { status, headers, body: whole, chunks } = (await first.pending) ?? first
  return { status, headers, text: chunks === undefined ? whole : [...chunks].join(""), sent: text }
}

/** Makes delivery 1, whose event is abandoned, so that it can be sent again. */
const deliver = async ({ served, token, caller }: Server) => {
  const call = caller(token())
  call("POST", "/webhooks", { url: "https://receiver.example/hook", events: ["customers.created"] })
  assert.strictEqual(call("POST", "/customers", { customercode: "REPLAYED" }).status, 201)
  for (let cycle = 0; cycle < 3; cycle++) {
    await served.control({ method: "POST", url: "/cycle", headers: {}, body: null }).pending
  }
}

/** Calls whose example shows more than a new server has. */
const shownWithMore = new Set([
  "/cycle",
  "/deliveries",
  "/deliveries/{delivery}/replay",
  "/requests",
  "/openapi.json",
  "/snapshots",
  "/restore",
  "/worlds"
])

describe("the OpenAPI document of the control plane", () => {
  it("is valid OpenAPI 3.1", async () => {
    const document = documentOf(server())
    assert.strictEqual(document["openapi"], "3.1.0")
    const { valid, errors } = await new Validator().validate({ ...document })
    assert.deepStrictEqual(errors ?? [], [])
    assert.isTrue(valid)
  })

  it("has each declared call once, with an id of its own", () => {
    const paths = documentOf(server())["paths"] as Readonly<Record<string, Readonly<Record<string, Json>>>>
    const calls = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`)
    )
    assert.sameMembers(
      calls,
      controlRoutes.map(({ method, path }) => `${method} ${path}`)
    )
    const ids = Object.values(paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId))
    assert.strictEqual(new Set(ids).size, controlRoutes.length)
  })

  it("has examples that the server accepts, in their order, and answers as shown", async () => {
    const running = server({ data: "demo" })
    running.control("POST", "/reset", {})
    for (const route of controlRoutes) {
      const name = `${route.method} ${route.path}`
      const request = { method: route.method, url: urlOf(route), headers: {} }
      if (route.path.startsWith("/deliveries/{")) await deliver(running)
      const { status, headers, text, sent } = await sendExample(running, route)
      assert.strictEqual(status, route.output.status, `${name} ${text}`)
      assert.deepStrictEqual(openapi.requestProblems({ ...request, text: sent }), [], name)
      assert.deepStrictEqual(openapi.answerProblems(request, { status, headers, text }), [], name)
      if (!route.output.type.endsWith("json")) continue
      const isLines = route.output.type.endsWith("ndjson")
      const answers = isLines ? linesOf(text) : [JSON.parse(text) as Json]
      for (const line of isLines ? answers : [route.example.output]) {
        const shown = { "Content-Type": "application/json" }
        const pretend = { status, headers: isLines ? headers : shown, text: JSON.stringify(line) }
        assert.deepStrictEqual(openapi.answerProblems(request, pretend), [], `the example of ${name}`)
      }
      if (!shownWithMore.has(route.path)) assert.deepInclude(answers, route.example.output as Json, name)
    }
    assert.deepStrictEqual(running.defects, [])
  })

  it("describes the answers of a server in use", async () => {
    const { call, control } = server({ data: "demo" })
    call("GET", "/orders?limit=1")
    control("PUT", "/limits", { requestsPerMinute: null })
    for (const url of ["/requests", "/deliveries", "/clock", "/openapi.json"]) {
      const { status, text } = control("GET", url)
      const answer = { status, headers: { "Content-Type": "application/json" }, text }
      assert.deepStrictEqual(openapi.answerProblems({ method: "GET", url }, answer), [], url)
    }
  })

  it("refuses what the document refuses, with a sentence that names the field", () => {
    const running = server({ data: "demo" })
    const wrong = [[], { a: [] }, "text\u0000", -1.5, true]
    let refused = 0
    for (const { method, path, input, example } of controlRoutes) {
      if (input === null) continue
      const url = path.replace("{id}", "1")
      const isRefused = (body: Json, field: string) => {
        const text = JSON.stringify(body)
        if (openapi.requestProblems({ method, url, headers: {}, text }).length === 0) return
        const answer = running.control(method, url, text)
        assert.strictEqual(answer.status, 400, `${method} ${path} ${text} ${answer.text}`)
        assert.include(String(answer.body["error"]), field, `${method} ${path} ${text}`)
        refused++
      }
      isRefused({ ...example.input, unheardof: 1 }, "unheardof")
      for (const name of Object.keys(example.input ?? {})) {
        for (const value of wrong) isRefused({ ...example.input, [name]: value }, name)
        isRefused(Object.fromEntries(Object.entries(example.input!).filter(([one]) => one !== name)), name)
      }
    }
    assert.isAbove(refused, 80)
  })
})

it("the table of the control plane in the README has each declared call with its summary", () => {
  const readme = readFileSync("connectors/service-v2/reference-server/README.md", "utf8")
  const rows = [...readme.matchAll(/^\| `((?:GET|POST|PUT|DELETE) \/\S*)` *\| ([^|]*?) *\|/gm)]
  assert.deepStrictEqual(
    rows.map(([, call, summary]) => `${call}: ${summary}`),
    controlRoutes.map(({ method, path, summary }) => `${method} ${path}: ${summary}`)
  )
})
