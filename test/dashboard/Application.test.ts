/** Requests outside what the pages link to, and links of a company that was never read. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Layer, Logger } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { layerPages } from "../support/postgres.ts"
import { pageTimeout } from "../../src/dashboard/PageRunner.ts"
import { acting, ask, post, seed, showing, shownCompany, tokenOf } from "../support/pages.ts"

const companies = [shownCompany("north", 1n), shownCompany("new", 3n)]
const warehouse = Layer.effectDiscard(seed([["north", 1]], ["things"], 10)).pipe(Layer.provideMerge(layerPages))

layer(warehouse, { timeout: "60 seconds" })("a request", (it) => {
  it.effect("with a NUL is invalid", () =>
    Effect.gen(function* () {
      const { url, headers } = yield* acting(companies)
      for (const path of [
        "/runs?company=%00",
        "/runs?resource=a%00",
        "/outbox/rows?resource=%00",
        "/quarantine?company=%00",
        "/webhooks/events?resource=%00",
        "/webhooks/event?company=north&event=%00",
        "/records?company=north&resource=%00&id=1",
        "/companies/north/%00",
        "/processes/%00",
        "/confirm/sync?company=north&resource=%00"
      ]) {
        const reply = yield* ask(url + path, { headers })
        assert.strictEqual(reply.status, 400, path)
        assert.include(reply.text, "NUL", path)
      }
      const form = yield* ask(`${url}/confirm/sync?company=north&resource=things`, { headers })
      const fields = { form_token: tokenOf(form.text), company: "north", resource: "\0" }
      const reply = yield* post(`${url}/do/sync`, fields, headers)
      assert.strictEqual(reply.status, 400)
      assert.include(reply.text, "NUL")
    })
  )

  it.effect("about a company that was never read names the reason", () =>
    Effect.gen(function* () {
      const url = yield* showing(companies)
      const [rule] = /\/invariants\?invariant=\w+/.exec((yield* ask(`${url}/invariants`)).text) ?? [""]
      for (const path of ["/runs?", "/quarantine?", ...(rule === "" ? [] : [`${rule}&`])]) {
        const reply = yield* ask(`${url}${path}company=new`)
        assert.strictEqual(reply.status, 404, path)
        assert.include(reply.text, "Nothing of company new was read yet", path)
        assert.include((yield* ask(`${url}${path}company=other`)).text, "No company other is configured here", path)
      }
    })
  )

  it.effect("of a broken page is logged once, also while other pages work", () =>
    Effect.gen(function* () {
      const logged: Array<string> = []
      const log = Logger.layer([Logger.make(({ message }) => void logged.push(String(message)))])
      const sql = yield* SqlClient.SqlClient
      yield* Effect.gen(function* () {
        const url = yield* showing(companies)
        yield* sql`alter table tributary.row_counts rename to elsewhere`
        for (let round = 0; round < 3; round += 1) {
          const reply = yield* ask(url)
          assert.strictEqual(reply.status, 503)
          assert.include(reply.text, "tributary doctor")
          assert.strictEqual((yield* ask(`${url}/runs`)).status, 200)
        }
        yield* sql`alter table tributary.elsewhere rename to row_counts`
        assert.strictEqual((yield* ask(url)).status, 200)
      }).pipe(Effect.provide(log))
      assert.lengthOf(
        logged.filter((line) => line.startsWith("The page / failed")),
        1
      )
    })
  )

  it.effect("of the script waits longer than a page waits for the warehouse", () =>
    Effect.gen(function* () {
      const { text } = yield* ask(yield* showing(companies))
      const [, timeout] = /name="htmx-config" content="[^"]*timeout&quot;:(\d+)/.exec(text) ?? []
      // The check of a session and the end of a transaction take up to 5 s each.
      assert.isAbove(Number(timeout), Duration.toMillis(pageTimeout) + 2 * 5_000)
    })
  )
})
