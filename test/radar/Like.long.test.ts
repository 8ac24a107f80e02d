/**
 * `reference-server --like`: a second comparison, over sockets, reports the same differences as the first one.
 */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import * as Transport from "../../connectors/service-v2/client/Transport.ts"
import * as ControlPlane from "../../connectors/service-v2/demo/ControlPlane.ts"
import { apply, run } from "../../connectors/service-v2/radar/index.ts"
import * as ReferenceServer from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import * as Budget from "../../src/budget/Budget.ts"
import type { RadarReport } from "../../src/connector/Radar.ts"
import type { Json } from "../reference-server/support.ts"
import { readable } from "./readings.ts"
import { shown } from "./support.ts"
import { liveTest } from "../support/live.ts"

type Control = (method: string, path: string, body: Json) => Effect.Effect<string>

const controlOf =
  (server: ReferenceServer.RunningServer): Control =>
  (method, path, body) =>
    Effect.orDie(ControlPlane.call(server, method, path, JSON.stringify(body)))

/** Compares a running server. */
const compareServer = Effect.fnUntraced(function* (server: ReferenceServer.RunningServer) {
  const text = yield* controlOf(server)("POST", "/tokens", { company: 1, scopes: ["*"] })
  return yield* run({
    baseUrl: server.baseUrl,
    token: Redacted.make((JSON.parse(text) as { readonly token: string }).token),
    catalogue: serviceV2,
    allowHttp: false,
    requestTimeout: Duration.seconds(30),
    retryAfterMax: Duration.minutes(2),
    requestsMax: 300,
    requestsPerMinute: 10_000
  }).pipe(
    Effect.provideServiceEffect(HttpClient.HttpClient, Transport.makeUndici()),
    Effect.provideServiceEffect(Budget.Budget, Budget.makeOwn(null))
  )
})

/** Compares an installation and a reference server that is made like it. */
const repeat = Effect.fnUntraced(function* (prepare: (control: Control) => Effect.Effect<unknown>) {
  const one = yield* ReferenceServer.start({ port: 0, controlPort: 0, data: "demo" })
  yield* prepare(controlOf(one))
  const first = yield* compareServer(one)
  // Other data, of another seed.
  const other = yield* ReferenceServer.start({ port: 0, controlPort: 0, data: "demo", seed: 2 })
  const notes = yield* apply(other, first.recording)
  const second = yield* compareServer(other)
  return { first: first.report, second: second.report, notes, recording: first.recording }
})

const keysOf = ({ differences }: RadarReport): ReadonlyArray<string> =>
  differences.map(({ check, subject, setting }) => `${check} ${subject} ${setting === null ? "" : setting.value}`)

describe("a server like a recorded installation", () => {
  for (const { dialect } of readable) {
    liveTest(`has the same readings: ${JSON.stringify(dialect)}`, function* () {
      const { first, second } = yield* repeat((control) => control("PUT", "/dialect", dialect))
      assert.isNotEmpty(first.differences)
      assert.deepStrictEqual(keysOf(second), keysOf(first), shown(second).join("\n"))
      assert.deepStrictEqual(second.settings, first.settings)
    })
  }

  liveTest("has the same modules, values and catalogue patch", function* () {
    const { first, second, notes, recording } = yield* repeat((control) =>
      Effect.gen(function* () {
        const at = "2026-03-01T00:00:00.123456Z"
        const put = (resource: string, records: ReadonlyArray<Json>) =>
          control("POST", "/records", { company: 1, resource, records, at })
        yield* control("PUT", "/dialect", {
          itemsKey: "results",
          paging: "offset",
          pageMax: 120,
          etag: false,
          dateForm: "seconds",
          keyOrder: 4,
          requestIdHeader: "X-Trace"
        })
        yield* control("PUT", "/companies/1", { features: { payroll: false } })
        yield* put("customers", [
          { id: 1, name: "n".repeat(140), favourite: "tea, please", height: 1.875 },
          { id: 2, creditlimit: "1.23456", customercode: null }
        ])
        yield* put("invoicelines", [{ id: 3, linetype: 77, qty: "lots", period: "Q" }])
        yield* put("orders", [{ id: 4, lines: [{ id: 1, linenumber: 1, qtyorder: "1.0000000", colour: "red" }] }])
      })
    )
    assert.isAbove(first.differences.length, 14)
    assert.deepStrictEqual(keysOf(second), keysOf(first), shown(second).join("\n"))
    assert.deepStrictEqual(second.settings, first.settings)
    assert.deepStrictEqual(second.patch, first.patch)
    assert.deepStrictEqual(second.access.refused, first.access.refused)
    assert.strictEqual(notes.length, 1, notes.join("\n"))
    assert.match(notes[0]!, /issue one with the \d+ scopes/)
    assert.notInclude(recording, "tea, please")
  })

  liveTest("has the same request limit", function* () {
    const one = yield* ReferenceServer.start({ port: 0, controlPort: 0, data: "empty" })
    const recording = {
      format: "tributary radar recording 1",
      reference: { dialect: {}, limits: { requestsPerMinute: 77 }, features: {}, scopes: null, records: [] },
      notReproduced: ["a reason"]
    }
    assert.deepStrictEqual(yield* apply(one, JSON.stringify(recording)), ["a reason"])
    assert.strictEqual((JSON.parse(yield* controlOf(one)("PUT", "/limits", {})) as Json)["requestsPerMinute"], 77)
  })
})
