/** A reference server with demo data over HTTP, in this process, and clients of its companies without a rate limit. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { ServiceClient, Transport } from "../../connectors/service-v2/client/index.ts"
import * as ReferenceServer from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import { Budget } from "../../src/budget/Budget.ts"

export const makeInstallation = Effect.gen(function* () {
  const server = yield* ReferenceServer.start({ port: 0, controlPort: 0, data: "demo" })
  const send = (method: string, url: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
    Effect.promise(async () => {
      const response = await fetch(url, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        headers: { "content-type": "application/json", ...headers }
      })
      return { ok: response.ok, text: await response.text() }
    })
  const control = (method: string, path: string, body?: unknown) =>
    Effect.map(send(method, `${server.controlUrl}${path}`, body), ({ ok, text }) => {
      assert.isTrue(ok, text)
      return text
    })
  yield* control("PUT", "/limits", { requestsPerMinute: 1_000_000 })
  const context = yield* Layer.build(Layer.merge(Transport.layerUndici(), Budget.layerUnlimited))
  return {
    baseUrl: server.baseUrl,
    send,
    control,
    lines: (path: string) => Effect.map(control("GET", path), (text) => text.split("\n").filter((line) => line !== "")),
    connect: Effect.fnUntraced(function* (company: number, includeCustomFields: boolean) {
      const { token } = JSON.parse(yield* control("POST", "/tokens", { company, scopes: ["*"] })) as { token: string }
      const connector = yield* ServiceClient.make({
        baseUrl: server.baseUrl,
        token: Redacted.make(token),
        catalogue: serviceV2,
        includeCustomFields
      }).pipe(Effect.provideContext(context))
      return { token, connector }
    })
  }
})
