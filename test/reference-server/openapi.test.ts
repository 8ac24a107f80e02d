/** The OpenAPI document of the reference server, compared with its behaviour. */
import { Validator } from "@seriousme/openapi-schema-validator"
import { assert, describe, it } from "vitest"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { contract } from "../support/contract.ts"
import type { Json } from "./support.ts"
import { server } from "./support.ts"

type Tree = Readonly<Record<string, Readonly<Record<string, Json>>>>

const plain = server({ data: "demo" })
plain.control("PUT", "/limits", { requestsPerMinute: null })
const document = plain.call("GET", "/openapi.json").body
const openapi = contract(document)

describe("the OpenAPI document", () => {
  it("is valid", async () => {
    const { valid, errors } = await new Validator().validate({ ...document })
    assert.deepStrictEqual(errors ?? [], [])
    assert.isTrue(valid)
    const { served } = plain
    const put = served.handle({ method: "PUT", url: "/!/api/v2/openapi.json", headers: {}, body: null })
    assert.deepStrictEqual([put.status, put.headers["Allow"]], [405, "GET"])
  })

  it("lists every code, under its own status", () => {
    const listed = new Map<string, Set<number>>()
    const visit = (node: unknown, status: number) => {
      if (typeof node !== "object" || node === null) return
      const codes = (node as { properties?: { code?: { enum?: ReadonlyArray<string> }; message?: unknown } }).properties
      if (codes?.message !== undefined && codes.code?.enum !== undefined && !("field" in node)) {
        for (const code of codes.code.enum) listed.set(code, (listed.get(code) ?? new Set()).add(status))
      }
      for (const member of Object.values(node)) visit(member, status)
    }
    const { responses } = document["components"] as Tree
    for (const [name, response] of Object.entries(responses!)) {
      const status = /^Refused(\d+)_/.exec(name)?.[1] ?? (name === "MethodNotAllowed" ? "405" : "404")
      visit(response, Number(status))
    }
    for (const { code, status } of serviceV2.errorCodes) {
      // Codes of operations that are not implemented are listed too.
      if (!listed.has(code)) continue
      assert.deepStrictEqual([...listed.get(code)!], [status], code)
    }
    assert.isAtLeast(listed.size, serviceV2.errorCodes.length - 2)
  })
})

it("responses, compared with the OpenAPI document are reported by the validator if they are altered", () => {
  const response = plain.call("GET", "/payments?limit=1")
  const altered = (text: string) => openapi.answerProblems({ method: "GET", url: "/payments" }, { ...response, text })
  assert.deepStrictEqual(altered(response.text), [])
  assert.isNotEmpty(altered(response.text.replace(/"amount":"[^"]+"/, '"amount":"1.5"')))
  assert.isNotEmpty(altered(response.text.replace(/"amount":"[^"]+"/, '"amount":1.5')))
  assert.isNotEmpty(altered(response.text.replace(/"amount":"[^"]+",/, "")))
  assert.isNotEmpty(altered(response.text.replace('"amount"', '"colour":1,"amount"')))
  assert.isNotEmpty(altered(response.text.replace('"has_more"', '"hasmore"')))
  const headers = { ...response.headers, "Svc-Request-Id": undefined }
  assert.isNotEmpty(openapi.answerProblems({ method: "GET", url: "/payments" }, { ...response, headers }))
  assert.isNotEmpty(openapi.requestProblems({ method: "GET", url: "/payments?limit=251", headers: {}, text: null }))
  const text = JSON.stringify({ invoiceid: 1, amount: "1.00001" })
  assert.isNotEmpty(openapi.requestProblems({ method: "POST", url: "/payments", headers: {}, text }))
})
