/** The metrics and traces of real commands: `/metrics` of `serve` against its list, and OTLP without a secret. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { attributesOf, collector } from "../../support/collector.ts"
import { listedMetrics, parseMetrics } from "../../support/metrics.ts"
import { type CommandRun, firstLine } from "../../support/reference.ts"
import { makeWorld, type World } from "../../support/world.ts"
import { liveTest } from "../../support/live.ts"

const stopped = (command: CommandRun) =>
  Effect.promise(() => {
    command.child.kill("SIGTERM")
    return command.done
  })

const settings = `companies:
  - name: north
    token_env: NORTH_TOKEN
    resources: [customers, items, orders]
webhooks: { listen: "127.0.0.1:0" }
dashboard: { listen: off }
alerts: { routes: [{ name: team, http: { url: "http://127.0.0.1:9/" }, kinds: [restore] }] }
schedule: { default: { every: 1h } }
`

/** Starts `serve` and stops it with the scope. Returns its addresses. */
const serving = (world: World, token: string) =>
  Effect.gen(function* () {
    const command = yield* Effect.acquireRelease(
      Effect.sync(() => world.command(["serve", "--json"], { NORTH_TOKEN: token })),
      ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const { listening } = JSON.parse(yield* Effect.promise(() => firstLine(command))) as { readonly listening: string }
    return { command, listening }
  })

const worldOf = Effect.gen(function* () {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  world.configure(settings)
  return { world, token: yield* Effect.promise(() => world.reference.token(1)) }
})

const form = (metrics: ReadonlyMap<string, { readonly type: string; readonly labels: ReadonlyArray<string> }>) =>
  [...metrics].map(([name, { type, labels }]) => `${name} ${type} ${labels.join(",")}`).toSorted()

describe("the metrics, traces and logs", () => {
  liveTest("of a running serve have exactly the metrics of docs/reference/metrics.md", function* () {
    const { world, token } = yield* worldOf
    const { command, listening } = yield* serving(world, token)
    const ask = Effect.map(
      Effect.promise(async () => (await fetch(`${listening}/metrics`)).text()),
      parseMetrics
    )
    const valueOf = (
      metrics: ReturnType<typeof parseMetrics>,
      name: string,
      labels: Readonly<Record<string, string>>
    ): number | undefined =>
      metrics
        .get(name)
        ?.samples.find((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))?.value
    const orders = { company: "north", resource: "orders" }
    const unsampled = (metrics: ReturnType<typeof parseMetrics>) =>
      [...metrics].flatMap(([name, { samples }]) => (samples.length === 0 ? [name] : []))
    // No event was delivered, no source requested a pause, and there is no endpoint.
    const withoutSamples = [
      "tributary_webhook_last_accepted_timestamp_seconds",
      "tributary_webhook_stale_age_seconds",
      "tributary_budget_paused_by",
      "tributary_endpoint_active",
      "tributary_endpoint_lag_seconds",
      "tributary_endpoint_waiting",
      "tributary_endpoint_dead_letters"
    ]
    // Each metric has samples soon after the services have begun, in any order.
    const last = yield* ask.pipe(
      Effect.repeat({
        until: (metrics) =>
          unsampled(metrics).join() === withoutSamples.join() &&
          ["customers", "items", "orders"].every(
            (resource) =>
              (valueOf(metrics, "tributary_rows", { company: "north", resource }) ?? 0) > 0 &&
              valueOf(metrics, "tributary_freshness_late", { company: "north", resource }) === 0
          ) &&
          valueOf(metrics, "tributary_runs_ended_total", { company: "north", status: "done" }) === 3,
        schedule: Schedule.spaced("200 millis"),
        times: 250
      })
    )
    const expected = listedMetrics()
    assert.sameMembers([...last.keys()], [...expected.keys()])
    const sampled = new Map([...last].filter(([, { samples }]) => samples.length > 0))
    assert.deepStrictEqual(form(sampled), form(new Map([...expected].filter(([name]) => sampled.has(name)))))
    assert.deepStrictEqual(unsampled(last), withoutSamples)
    for (const [name, { help, type }] of last) {
      assert.isAbove(help.length, 10, name)
      assert.strictEqual(type === "counter", name.endsWith("_total"), name)
    }
    // The values are correct.
    const [counted] = yield* world.query<{ rows: number; requests: number }>(
      `select (select count(*) from erp.orders where "_deleted_at" is null)::int as rows,
                    (select sum(requests) from tributary.runs)::int as requests`
    )
    assert.strictEqual(valueOf(last, "tributary_rows", orders), counted!.rows)
    assert.isAtLeast(valueOf(last, "tributary_source_requests_total", {})!, counted!.requests)
    assert.isBelow(valueOf(last, "tributary_freshness_age_seconds", orders)!, 60)
    assert.strictEqual(valueOf(last, "tributary_freshness_target_seconds", orders), 900)
    assert.strictEqual(valueOf(last, "tributary_run_last_status", { ...orders, status: "done" }), 1)
    assert.strictEqual(valueOf(last, "tributary_budget_configured_requests", { company: "north" }), 500)
    assert.strictEqual(valueOf(last, "tributary_serve_alive", { company: "north" }), 1)
    assert.strictEqual(valueOf(last, "tributary_tasks", { company: "north", state: "waiting" }), 3)
    assert.isAtLeast(valueOf(last, "tributary_records_total", { company: "north", change: "inserted" })!, counted!.rows)
    assert.closeTo(valueOf(last, "process_start_time_seconds", {})!, Date.now() / 1000, 120, "the start time")
    assert.strictEqual((yield* stopped(command)).code, 0)
  })

  liveTest("of a sync contain runs, requests and landings over OTLP, without a secret", function* () {
    const { world, token } = yield* worldOf
    // Without it, a larger page is requested first, and refused.
    world.configure(`${settings}paging: { page_size: 100 }\n`)
    const { url, posts, spans, resources } = yield* collector
    const otlp = {
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_HEADERS: "x-key=collector-key-1",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test"
    }
    // The service fails one request, which is retried.
    yield* world.control("POST", "/faults", {
      rules: [{ kind: "status", status: 503, path: "/customers", times: 1 }]
    })
    const { code, stderr } = yield* world.run(["sync", "--json"], { NORTH_TOKEN: token, ...otlp })
    assert.strictEqual(code, 0, stderr)
    const allSpans = spans()
    const byId = new Map(allSpans.map((span) => [span.spanId, span]))
    const above = (span: (typeof allSpans)[number]): ReadonlyArray<string> => {
      const parent = byId.get(span.parentSpanId ?? "")
      return parent === undefined ? [] : [parent.name, ...above(parent)]
    }
    const runs = allSpans.filter(({ name }) => name === "syncResource").map((span) => attributesOf(span))
    assert.sameMembers(
      runs.map((attributes) => attributes["tributary.resource"]),
      ["customers", "items", "orders"]
    )
    for (const run of runs) {
      assert.strictEqual(run["tributary.status"], "done")
      assert.strictEqual(run["tributary.kind"], "full")
      assert.strictEqual(run["tributary.company_id"], "1")
      assert.isAbove(Number(run["tributary.inserted"]), 0)
      assert.isAbove(Number(run["tributary.run_id"]), 0)
    }
    const requests = allSpans.filter(({ name }) => name === "GET /customers")
    assert.deepStrictEqual(
      requests
        .map((span) => attributesOf(span))
        .map((span) => [span["http.response.status_code"], span["http.request.resend_count"]])
        .slice(0, 2),
      [
        ["503", "0"],
        ["200", "1"]
      ]
    )
    for (const span of requests) {
      assert.include(above(span), "syncResource")
      assert.include(above(span), "sync")
      assert.strictEqual(attributesOf(span)["url.path"], "/customers")
    }
    const landings = allSpans.filter(({ name }) => name === "land")
    assert.isAtLeast(landings.length, 3)
    for (const span of landings) assert.include(above(span), "syncResource")
    const isStatement = (span: (typeof allSpans)[number]) => "db.query.text" in attributesOf(span)
    assert.isAbove(allSpans.filter(isStatement).length, 10)
    const alone = allSpans.filter((span) => isStatement(span) && span.parentSpanId === undefined)
    assert.deepStrictEqual(alone, [], "statements outside a run are not traced")
    for (const resource of resources()) {
      const attributes = attributesOf(resource)
      assert.strictEqual(attributes["service.name"], "tributary")
      assert.strictEqual(attributes["deployment.environment.name"], "test")
    }
    assert.isTrue(posts.every(({ headers }) => headers["x-key"] === "collector-key-1"))

    writeFileSync(join(world.folder, "new.ndjson"), '{"externalid":"K-1","customercode":"K1","name":"One"}')
    const pushed = yield* world.run(["push", "customers", "--from", "new.ndjson"], { NORTH_TOKEN: token, ...otlp })
    assert.strictEqual(pushed.code, 0, pushed.stderr)
    const call = spans().find(({ name }) => name === "push.call")!
    assert.include(attributesOf(call), { "tributary.resource": "customers", "tributary.records": "1" })
    const request = spans().find(({ parentSpanId }) => parentSpanId === call.spanId)!
    assert.strictEqual(attributesOf(request)["http.request.method"], "POST")

    const bytes = posts.map(({ text }) => text).join("\n")
    assert.isAbove(bytes.length, 10_000)
    for (const secret of [token, "Bearer", "collector-key-1", new URL(world.databaseUrl).password].filter(Boolean)) {
      assert.notInclude(bytes, secret)
    }

    // The default protocol is protobuf, as in OpenTelemetry.
    posts.length = 0
    assert.strictEqual((yield* world.run(["sync"], { NORTH_TOKEN: token, OTEL_EXPORTER_OTLP_ENDPOINT: url })).code, 0)
    assert.sameMembers([...new Set(posts.map(({ headers }) => headers["content-type"]))], ["application/x-protobuf"])
    posts.length = 0
    yield* world.run(["sync"], {
      NORTH_TOKEN: token,
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_SDK_DISABLED: "true"
    })
    assert.deepStrictEqual(posts, [])
  })
})
