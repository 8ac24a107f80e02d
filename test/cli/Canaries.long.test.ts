/**
 * Privacy rules for every field of every resource, and what the commands and a process of `serve` print, write and send
 * under them: no value under a rule is in it. `Canaries.test.ts` searches what needs no process.
 */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DuckDBInstance } from "@duckdb/node-api"
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import * as WarehouseCatalogue from "../../src/warehouse/WarehouseCatalogue.ts"
import { overStdio } from "../support/assistant.ts"
import {
  canary,
  canaryEvent,
  canaryRecord,
  databaseTexts,
  leaksOf,
  privacyKey,
  refusal,
  rulesOfAll
} from "../support/canaries.ts"
import { collector } from "../support/collector.ts"
import { loadText } from "../support/configuration.ts"
import { signatureOf } from "../support/deliveries.ts"
import { liveTest } from "../support/live.ts"
import { pagesOf } from "../support/pdf.ts"
import { freshDatabase } from "../support/postgres.ts"
import { recording } from "../support/recording.ts"
import { firstLine, untilSeen } from "../support/reference.ts"
import { makeWorld } from "../support/world.ts"

const whsec = `whsec_${Buffer.from("a secret of the change endpoint").toString("base64")}`
const hookSecret = "a-signing-secret-of-the-deliveries"

const databaseOf = (url: string) =>
  databaseTexts.pipe(
    Effect.provide(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(url))))),
    Effect.orDie
  )

/** The text of a file: of a Parquet file its values, of a PDF that of its pages. */
const fileText = async (path: string): Promise<string> => {
  if (path.endsWith(".pdf")) return pagesOf(readFileSync(path)).join("\n")
  if (!path.endsWith(".parquet")) return readFileSync(path, "latin1")
  const connection = await (await DuckDBInstance.create(":memory:")).connect()
  const result = await connection.runAndReadAll(
    `select columns(*)::varchar from read_parquet('${path.replaceAll("'", "''")}')`
  )
  connection.closeSync()
  return JSON.stringify(result.getRowObjectsJson())
}

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())

liveTest(
  "the commands print, write and send no value under a rule",
  function* () {
    const world = yield* makeWorld({ data: ["--data", "empty"], company: 1 })
    const other = Redacted.value(yield* freshDatabase)
    const traces = yield* collector
    const received: Array<string> = []
    const receiver = yield* recording((request, body, response) => {
      received.push(`${request.url} ${JSON.stringify(request.headers)} ${body.toString("utf8")}`)
      response.writeHead(200).end("ok")
    })
    const token = yield* Effect.promise(() => world.reference.token(1))
    const env = {
      NORTH: token,
      HOOK: hookSecret,
      CHANGES: whsec,
      TEAM: `${receiver.url}/team`,
      OTHER: other,
      TRIBUTARY_PRIVACY_KEY: privacyKey,
      TRIBUTARY_COMPANIES_KEY: "a key of companies with more than thirty-two characters",
      TRIBUTARY_LOG_LEVEL: "trace",
      OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json"
    }
    const shared = `webhooks: { listen: "127.0.0.1:0", check_minutes: off }
schedule: { default: off }
dashboard: { listen: "127.0.0.1:0" }
requests: { attempts_max: 1 }
change_endpoints: [{ name: app, url: "${receiver.url}/changes", secrets_env: [CHANGES], allow_private: true }]
alerts: { routes: [{ name: team, http: { url_env: TEAM } }], start_after: { failing: 1s, quarantine: 1s } }
${rulesOfAll}`
    const configure = (companies: string) => world.configure(`${companies}${shared}`)
    configure("companies: [{ name: north, token_env: NORTH, webhook_secrets_env: [HOOK] }]\n")
    const settings = yield* loadText(rulesOfAll, { TRIBUTARY_PRIVACY_KEY: privacyKey })
    const catalogue = yield* WarehouseCatalogue.addConfigured(serviceV2, settings.resources)
    const resources = [...catalogue.resources.values()]

    const outputs: Array<string> = []
    const problems: Array<string> = []
    const run = Effect.fnUntraced(function* (code: number, ...args: ReadonlyArray<string>) {
      const done = yield* world.run(args, env)
      outputs.push(`${args.join(" ")}\n${done.stdout}\n${done.stderr}`)
      if (done.code !== code) problems.push(`${args.join(" ")} ended with ${done.code}: ${done.stderr.slice(-300)}`)
      return done
    })
    const both = (code: number, ...args: ReadonlyArray<string>) =>
      Effect.andThen(run(code, ...args), run(code, ...args, "--json"))
    const plant = Effect.forEach(
      resources,
      (resource) =>
        world.control("POST", "/records", {
          company: 1,
          resource: resource.path,
          records: [canaryRecord(resource, 1), canaryRecord(resource, 2), canaryRecord(resource, 3, true)]
        }),
      { concurrency: 8, discard: true }
    )

    yield* plant
    yield* both(0, "plan")
    yield* run(4, "sync", "--json")
    yield* plant
    yield* run(4, "sync")
    // Differences, and a run that fails.
    for (const path of ["customers", "orders", "items", "vendors"])
      yield* world.query(`update erp.${path} set _extra = '{"unstated":"changed"}' where id = 1`)
    yield* both(4, "verify", "customers", "orders", "items", "vendors")
    yield* run(4, "verify", "customers", "vendors", "--sample", "2")
    yield* world.control("POST", "/faults", {
      seed: 1,
      rules: [
        { path: "/customers", kind: "status", status: 422, method: "GET", body: refusal("invalid") },
        { path: "/orders", kind: "status", status: 500, body: refusal("server_error") },
        { path: "/items", kind: "status", status: 200, body: { odd: canary() } },
        { path: "/vendors", kind: "status", status: 422, method: "PATCH", body: refusal("invalid") }
      ]
    })
    yield* both(5, "sync", "customers", "orders", "items")
    writeFileSync(join(world.folder, "changes.ndjson"), '{"id":1,"externalid":"pushed"}\n')
    yield* run(4, "push", "vendors", "--update", "--from", "changes.ndjson", "--json")
    rmSync(join(world.folder, "changes.ndjson"))
    yield* world.control("DELETE", "/faults")

    // A process that receives events, sends changes and alerts, and shows pages and metrics.
    const serving = world.command(["serve", "--json"], env)
    const { listening, dashboard } = JSON.parse(yield* Effect.promise(() => firstLine(serving))) as {
      readonly listening: string
      readonly dashboard: string
    }
    const types = [...resources.map(({ path }) => `${path}.updated`), "gadgets.updated", "announcement"]
    for (const [at, type] of types.entries()) {
      const resource = resources[at]
      const body = canaryEvent(
        `evt_${at}`,
        type,
        resource === undefined ? { name: canary() } : canaryRecord(resource, 1)
      )
      const signature = signatureOf(hookSecret, Math.floor(Date.now() / 1_000), body)
      const answered = yield* Effect.promise(() =>
        fetch(`${listening}/hooks/north`, { method: "POST", body, headers: { "svc-signature": signature } })
      )
      assert.strictEqual(answered.status, 204)
    }
    yield* untilSeen(
      "the events are processed",
      world.query<{ left: number }>("select count(*)::int as left from tributary.inbox where resolved_at is null"),
      ([row]) => row!.left === 0
    )
    yield* untilSeen(
      "changes and alerts are sent",
      Effect.sync(() => received),
      (all) => ["/changes", "/team"].every((path) => all.some((one) => one.startsWith(path)))
    )
    const shown = yield* Effect.promise(async () => {
      const texts: Array<string> = []
      for (const url of [
        `${listening}/metrics`,
        `${listening}/readyz`,
        `${dashboard}/`,
        `${dashboard}/runs`,
        `${dashboard}/quarantine`,
        `${dashboard}/webhooks/events`,
        `${dashboard}/outbox/rows`
      ])
        texts.push(`${url}\n${await (await fetch(url)).text()}`)
      return texts
    })
    serving.child.kill("SIGTERM")
    const served = yield* Effect.promise(() => serving.done)
    outputs.push(served.stdout, served.stderr)

    yield* both(0, "status")
    yield* both(0, "explain", "customers", "1")
    yield* both(0, "query", "select * from erp.customers")
    yield* both(0, "query", "select * from erp_history.vendors")
    yield* run(0, "changes")
    yield* both(0, "alerts", "list")
    yield* both(0, "alerts", "history")
    yield* both(0, "schema", "plan")
    yield* both(0, "push", "status")
    yield* run(0, "schema", "dbt", "--out", "dbt")
    for (const format of ["parquet", "csv", "ndjson"])
      yield* run(0, "export", "--to", join("files", format), "--format", format, "--history")
    yield* run(4, "close", "2026-01", "--draft", "--sample", "5", "--json")
    yield* both(4, "radar", "--record", "radar.json")
    const doctor = yield* world.run(["doctor", "--json"], env)
    outputs.push(doctor.stdout, doctor.stderr)

    const assistant = yield* overStdio(world.folder, {
      ...env,
      DATABASE_URL: world.databaseUrl,
      SERVICE_API_URL: world.reference.baseUrl,
      PATH: process.env["PATH"] ?? ""
    })
    const answers = yield* Effect.promise(async () => {
      const texts: Array<string> = []
      for (const [tool, args] of [
        ["query", { sql: "select * from erp.customers" }],
        ["explain_record", { resource: "customers", id: 1 }],
        ["list_changes", { resource: "vendors", after: "beginning", limit: 5, records: true }],
        ["gaps_and_quarantine", {}],
        ["describe_table", { table: "orders" }],
        ["freshness", { company: "north" }]
      ] as const) {
        const { isError, text } = await assistant.call(tool, args)
        assert.isFalse(isError, `${tool} ${text}`)
        texts.push(`${tool}\n${text}`)
      }
      return texts
    })

    // A sandbox with the records of the warehouse.
    const sandbox = world.command(["reference-server", "--from-warehouse"], env)
    const { controlUrl } = JSON.parse(yield* Effect.promise(() => firstLine(sandbox))) as {
      readonly controlUrl: string
    }
    const copied = yield* Effect.promise(async () => {
      const texts: Array<string> = []
      for (const { path } of resources)
        texts.push(await (await fetch(`${controlUrl}/state?company=1&resource=${path}&include=custom_fields`)).text())
      return texts
    })
    assert.isAbove(copied.join("").length, 10_000)
    sandbox.child.kill("SIGTERM")
    yield* Effect.promise(() => sandbox.done)

    yield* both(4, "forget", "customers", "1", "--yes")
    const stored = yield* databaseOf(world.databaseUrl)

    // A company of the warehouse that moves to another one.
    configure("")
    yield* run(0, "company", "add", "south", "--token-env", "NORTH", "--url", world.reference.baseUrl)
    yield* run(0, "company", "move", "south", "--to-env", "OTHER", "--json")

    /** Everything that the commands have printed, written and sent. A new place is added here. */
    const surfaces = {
      "outputs and logs": outputs,
      "the warehouse": stored,
      "the other warehouse": yield* databaseOf(other),
      "what endpoints and routes received": received,
      "traces and logs of the collector": traces.posts.map(({ text }) => text),
      "pages and metrics": shown,
      "answers to an assistant": answers,
      "a sandbox": copied,
      files: yield* Effect.forEach(filesBelow(world.folder), (path) =>
        Effect.map(
          Effect.promise(() => fileText(path)),
          (text) => `${path.slice(world.folder.length)}\n${text}`
        )
      )
    }
    for (const [name, texts] of Object.entries(surfaces)) assert.isAbove(texts.join("").length, 100, name)
    assert.deepStrictEqual(leaksOf(surfaces).slice(0, 20), [])
    assert.strictEqual(problems.join("\n\n"), "")
  },
  600_000
)
