/**
 * Secrets in the output, files and tables of every kind of command: of one that succeeds, of one that fails because a
 * secret is wrong or the source answers nonsense, and of a process of `serve` that receives deliveries.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { firstLine } from "../support/reference.ts"
import { makeWorld } from "../support/world.ts"
import { liveTest } from "../support/live.ts"

const secrets = {
  wrongToken: "a-token-that-the-service-refuses-4711",
  wrongPassword: "a-password-that-postgres-refuses-4711",
  dashboardPassword: "a-password-of-the-dashboard-4711",
  companiesKey: "a-key-of-companies-with-more-than-thirty-two-characters",
  collector: "an-authorization-of-the-collector-4711",
  route: "a-path-of-the-route-4711"
}

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())

liveTest("the commands print no secret, whether they succeed or fail", function* () {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  const token = yield* Effect.promise(() => world.reference.token(1))
  const south = yield* Effect.promise(() => world.reference.token(2))
  const url = new URL(world.databaseUrl)
  const env = {
    SERVICE_API_TOKEN: token,
    SOUTH: south,
    TRIBUTARY_DASHBOARD_PASSWORD: secrets.dashboardPassword,
    TRIBUTARY_COMPANIES_KEY: secrets.companiesKey,
    TEAM_URL: `http://127.0.0.1:1/${secrets.route}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=${secrets.collector}`,
    TRIBUTARY_LOG_LEVEL: "trace"
  }
  world.configure(`webhooks: { listen: "127.0.0.1:0", public_url: "https://hooks.example.com" }
schedule: { default: off }
dashboard: { listen: "127.0.0.1:0" }
alerts: { routes: [{ name: team, http: { url_env: TEAM_URL } }] }
requests: { attempts_max: 1 }
`)
  writeFileSync(join(world.folder, "new.ndjson"), '{"externalid":"S-1","customercode":"S1","name":"One"}\n')
  const wrongPassword = new URL(url)
  wrongPassword.password = secrets.wrongPassword
  const unreachable = new URL(wrongPassword)
  unreachable.port = "1"
  const outputs: Array<string> = []
  const problems: Array<string> = []
  const run = Effect.fnUntraced(function* (
    code: number,
    args: ReadonlyArray<string>,
    more: Readonly<Record<string, string>> = {}
  ) {
    const done = yield* world.run(args, { ...env, ...more })
    outputs.push(done.stdout, done.stderr)
    if (done.code !== code) problems.push(`${args.join(" ")} ended with ${done.code}: ${done.stderr.slice(-300)}`)
  })
  yield* world.control("POST", "/faults", {
    seed: 3,
    rules: [
      { path: "/payments", kind: "status", status: 500, times: 1 },
      { path: "/orders", kind: "html", times: 1 },
      { path: "/items", kind: "reset", times: 1 }
    ]
  })
  yield* run(5, ["sync", "--json"])
  yield* world.control("DELETE", "/faults")
  yield* run(0, ["sync", "customers", "items", "--log-level", "all"])
  yield* run(3, ["sync", "customers"], { SERVICE_API_TOKEN: secrets.wrongToken })
  yield* run(2, ["sync", "customers"], { DATABASE_URL: wrongPassword.href })
  yield* run(5, ["sync", "customers"], { DATABASE_URL: unreachable.href })
  yield* run(0, ["company", "add", "south", "--token-env", "SOUTH", "--resource", "customers"])
  yield* run(0, ["webhooks", "ensure", "--company", "main"])
  yield* run(0, ["push", "customers", "--from", "new.ndjson", "--company", "main", "--json"])
  yield* run(5, ["alerts", "test"])
  yield* run(0, ["status", "--json"])

  const serving = world.command(["serve", "--json"], env)
  const { listening } = JSON.parse(yield* Effect.promise(() => firstLine(serving))) as { listening: string }
  yield* Effect.promise(() =>
    fetch(`${listening}/hooks/main`, { method: "POST", body: "{}", headers: { "svc-signature": "t=1,v1=none" } })
  )
  serving.child.kill("SIGTERM")
  const served = yield* Effect.promise(() => serving.done)
  assert.strictEqual(served.code, 0, served.stderr)
  outputs.push(served.stdout, served.stderr)

  const [dump] = yield* world.query<{ text: string }>(
    `select string_agg(t::text, ' ') as text from (
             select to_jsonb(r) as t from tributary.runs r union all
             select to_jsonb(c) from tributary.checkpoints c union all
             select to_jsonb(q) from tributary.quarantine q union all
             select to_jsonb(s) from tributary.company_settings s union all
             select to_jsonb(i) from erp.customers i) as everything`
  )
  outputs.push(dump!.text, ...filesBelow(world.folder).map((path) => readFileSync(path, "latin1")))

  const printed = outputs.join("\n")
  const databasePassword = decodeURIComponent(url.password)
  for (const [name, secret] of Object.entries({ ...secrets, token, south, databasePassword }))
    assert.notInclude(printed, secret, name)
  assert.notMatch(printed, /whsec_\w/)
  assert.strictEqual(problems.join("\n\n"), "")
})
