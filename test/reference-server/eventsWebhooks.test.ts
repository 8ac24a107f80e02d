/** The /webhooks endpoints. */
import { assert, describe, it } from "vitest"
import { eventServer, subscribe } from "./eventsSupport.ts"
import { codeOf, errorOf } from "./support.ts"
import type { Json, HttpReply } from "./support.ts"

const events = ["orders.created", "webhooks.test"]

const refused = (response: HttpReply, status: number, code: string, field?: string) => {
  assert.strictEqual(response.status, status, response.text)
  assert.strictEqual(codeOf(response), code)
  assert.strictEqual(errorOf(response)["field"], field)
}

describe("the test call of a subscription", () => {
  it("is sent once per Idempotency-Key, and reports if it still runs", async () => {
    const { call, ask, reply, sent } = eventServer()
    const { id } = subscribe(call, events)
    let release: (reply: number) => void = () => {}
    reply(() => new Promise((resolve) => (release = resolve)))
    const key = { "idempotency-key": "test once" }
    const first = ask("POST", `/webhooks/${id}/test`, undefined, key)
    refused(await ask("POST", `/webhooks/${id}/test`, undefined, key), 409, "request_in_progress")
    release(200)
    const { text } = await first
    const again = await ask("POST", `/webhooks/${id}/test`, undefined, key)
    assert.strictEqual(again.text, text)
    assert.strictEqual(again.headers["Idempotent-Replayed"], "true")
    assert.lengthOf(sent, 1)
  })

  it("appears in the request journal once it is answered", async () => {
    const { call, ask, control, defects } = eventServer()
    const { id } = subscribe(call, events)
    await ask("POST", `/webhooks/${id}/test`)
    const { requests } = control("GET", "/requests").body
    assert.deepInclude((requests as ReadonlyArray<Json>).at(-1)!, { path: `/webhooks/${id}/test`, status: 200 })
    assert.deepStrictEqual(defects, [])
  })
})
