/** The server over sockets: the behaviour of the network layer. */
import { connect } from "node:net"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { start } from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import type { RunningServer } from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import type { Json } from "./support.ts"

const scope = Scope.makeUnsafe()
let urls: RunningServer
let authorization: string

const control = (method: string, path: string, body?: unknown) =>
  fetch(`${urls.controlUrl}${path}`, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })

const call = (method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
  fetch(`${urls.baseUrl}${path}`, {
    method,
    headers: { authorization, ...headers },
    ...(body === undefined ? {} : { body })
  })

/** Sends bytes and reads until the server closes. */
const raw = (text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(urls.baseUrl).port), "127.0.0.1", () => socket.write(text))
    let answer = ""
    socket.on("data", (chunk: Buffer) => (answer += chunk.toString()))
    socket.on("close", () => resolve(answer))
    socket.on("error", reject)
  })

const under = async (rule: Json) => {
  await control("POST", "/faults", { rules: [{ times: 1, ...rule }] })
  try {
    const response = await call("GET", "/invoicelines")
    return { status: response.status, text: await response.text() }
  } catch {
    return null
  }
}

beforeAll(async () => {
  urls = await Effect.runPromise(Scope.provide(start({ port: 0, controlPort: 0, data: "demo" }), scope))
  const issued = (await (await control("POST", "/tokens", { company: 1, scopes: ["*"] })).json()) as Json
  authorization = `Bearer ${String(issued["token"])}`
})

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

describe("the listener of the reference server", () => {
  it("breaks responses as the faults say", async () => {
    assert.isNull(await under({ kind: "reset" }))
    assert.isNull(await under({ kind: "dropResponse" }))
    assert.isNull(await under({ kind: "truncate" }))
    assert.match((await under({ kind: "html" }))!.text, /^<!doctype html>/)
    const garbage = (await under({ kind: "garbage" }))!
    assert.strictEqual(garbage.status, 200)
    assert.throws(() => JSON.parse(garbage.text) as unknown)
    const plain = await (await call("GET", "/invoicelines")).text()
    const length = (text: string) => text.replace(/"_meta".*$/, "")
    assert.strictEqual(length((await under({ kind: "slowBody", ms: 1 }))!.text), length(plain))
    assert.strictEqual(length((await under({ kind: "delay", ms: 5 }))!.text), length(plain))
  })

  it("answers 400 to bytes that are not a request", async () => {
    const answer = await raw("nonsense\r\n\r\n")
    assert.match(answer, /^HTTP\/1\.1 400 /)
    assert.match(answer, /"code":"invalid_request"/)
    assert.match(await raw("CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"), /^HTTP\/1\.1 400 /)
  })

  it("stops reading a body that is too long", async () => {
    const token = authorization.slice("Bearer ".length)
    const head = `POST /!/api/v2/salesmen HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`
    // The rest of the body never arrives. The server responds, then closes the connection.
    const answer = await raw(`${head}Content-Length: 9000000\r\n\r\n${"x".repeat(8_500_000)}`)
    assert.match(answer, /^HTTP\/1\.1 400 /)
    assert.match(answer, /invalid_request/)
  })

  it("accepts a base path with an encoded mark", async () => {
    const origin = new URL(urls.baseUrl).origin
    const response = await fetch(`${origin}/%21/api/v2/me`, { headers: { authorization } })
    assert.strictEqual(response.status, 200)
  })
})
