/** Settings of schedules, the dashboard and retention. */
import { readFileSync } from "node:fs"
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import { deliveryReader } from "../../connectors/service-v2/client/Deliveries.ts"
import { endAfterDefault } from "../../src/status/ProblemKinds.ts"
import type { Configuration } from "../../src/configuration/Configuration.ts"
import { describe as inWords } from "../../src/tasks/Cron.ts"
import { loadText } from "../support/configuration.ts"
import { test } from "../support/suite.ts"
import { assertEach } from "../support/assertions.ts"
import { valuesOf } from "../support/rows.ts"

const read = (yaml: string, environment: Readonly<Record<string, string>> = {}, dashboard?: string) =>
  Effect.match(loadText(yaml, environment, { dashboard }), {
    onSuccess: (configuration): Configuration | ReadonlyArray<string> => configuration,
    onFailure: ({ problems }) => problems.map((one) => one.replace(/^.*tributary\.yaml/, "file"))
  })

const good = (result: Configuration | ReadonlyArray<string>): Configuration =>
  "companies" in result ? result : assert.fail(result.join("\n"))
const wrong = (result: Configuration | ReadonlyArray<string>): ReadonlyArray<string> =>
  "companies" in result ? assert.fail("the configuration should be rejected") : result

const password = "correct horse"

describe("schedules", () => {
  test("follow from the freshness target by default", function* () {
    const { scheduleOf } = good(yield* read("freshness: { default_minutes: 30, resources: { orders: 1 } }"))
    assert.strictEqual(inWords(scheduleOf("items")), "every 20 min")
    assert.strictEqual(inWords(scheduleOf("orders")), "every 1 min")
    assert.deepStrictEqual([scheduleOf("items").missed, scheduleOf("items").jitterMax], ["once", null])
  })

  test("are intervals, cron expressions in a time zone, or off, by resource", function* () {
    const { scheduleOf } = good(
      yield* read(`
schedule:
  time_zone: Europe/Berlin
  missed: skip
  jitter_seconds: 7
  default: { every: 90s }
  resources:
    items: { cron: "30 5 * * 1-5" }
    orders: { cron: "0 0 3 * * *", time_zone: America/New_York, missed: once, jitter_seconds: 0 }
    invoices: { every: 2h }
    glaccounts: off
`)
    )
    assert.deepStrictEqual(
      ["customers", "items", "orders", "invoices", "glaccounts"].map((resource) => inWords(scheduleOf(resource))),
      ["every 90 s", "30 5 * * 1-5 (Europe/Berlin)", "0 0 3 * * * (America/New_York)", "every 2 h", "off"]
    )
    assert.deepStrictEqual([scheduleOf("items").missed, scheduleOf("items").jitterMax], ["skip", Duration.seconds(7)])
    assert.deepStrictEqual([scheduleOf("orders").missed, scheduleOf("orders").jitterMax], ["once", Duration.zero])
  })

  test("are rejected with the line of each mistake", function* () {
    const problems = wrong(
      yield* read('schedule:\n  resources:\n    items: { cron: "61 * * * *" }\n    orders: { cron: "what" }\n')
    )
    assert.lengthOf(problems, 2)
    assert.match(problems[0]!, /^file:3:\d+: schedule\.resources\.items\.cron: "61 \* \* \* \*" is no cron expression/)
    assert.match(problems[1]!, /^file:4:/)
    const interval = ".every: expected a number and s, m, h or d, for example 90s or 10m"
    const forms = ': expected off, { every: 10m } or { cron: "0 3 * * *" }'
    for (const [text, expected] of [
      ["{ every: 0m }", interval],
      ["{ every: soon }", interval],
      ["{ every: 20 }", interval],
      [
        '{ cron: "* * * * *", time_zone: Mars/Olympus }',
        ".time_zone: expected the name of a time zone, for example Europe/Berlin or UTC"
      ],
      ["never", forms],
      ["20", forms],
      ["{}", forms],
      ["{ every: 20m, cron: x }", forms]
    ] as const) {
      const problems = wrong(yield* read(`schedule:\n  default: ${text}\n`))
      assertEach(problems, (problem) => problem.replace(/^file:2:\d+: /, ""), [`schedule.default${expected}`], text)
    }
  })
})

describe("the dashboard settings", () => {
  test("default to loopback without a password", function* () {
    const { dashboard } = good(yield* read(""))
    assert.deepStrictEqual(dashboard, { host: "127.0.0.1", port: 8086, tls: null, password: null, publicUrl: null })
    assert.isNull(good(yield* read("dashboard: { listen: off }")).dashboard)
    assert.isNull(good(yield* read("", {}, "off")).dashboard)
    assert.deepInclude(good(yield* read("dashboard: { listen: off }", {}, "[::1]:0")).dashboard, {
      host: "::1",
      port: 0
    })
  })

  test("require a password and TLS on other addresses", function* () {
    const open = wrong(yield* read("dashboard: { listen: 0.0.0.0:8086 }"))
    assert.lengthOf(open, 2)
    assert.match(open[0]!, /set a password/)
    assert.match(open[1]!, /set certificate and key/)
    const listen = "dashboard: { listen: 0.0.0.0:8086, password_env: PAGE, allow_http: true }\n"
    assert.match(wrong(yield* read(listen)).join("\n"), /PAGE is not set in the environment/)
    assert.match(wrong(yield* read(listen, { PAGE: "short" })).join("\n"), /fewer than 8/)
    const { dashboard } = good(yield* read(listen, { PAGE: password }))
    assert.strictEqual(Redacted.value(dashboard!.password!), password)
    assert.notInclude(JSON.stringify(dashboard), password)
    assert.match(wrong(yield* read("dashboard: { public_url: https://x.example }")).join("\n"), /set a password too/)
    assert.match(wrong(yield* read("dashboard: { public_url: https://x.example/tributary }")).join("\n"), /at the root/)
    const environment = { TRIBUTARY_DASHBOARD_PASSWORD: password }
    const named = good(yield* read("dashboard: { public_url: https://x.example/ }", environment)).dashboard
    assert.strictEqual(named!.publicUrl, "https://x.example")
    assert.strictEqual(Redacted.value(named!.password!), password)
  })
})

describe("the retention and monitoring settings", () => {
  test("state the address and the token of health and metrics", function* () {
    assert.deepStrictEqual(good(yield* read("")).monitoring, { listen: null, token: null })
    const { monitoring } = good(yield* read('monitoring: { listen: "[::]:9100", token_env: T }', { T: "secret" }))
    assert.deepStrictEqual(monitoring.listen, { host: "::", port: 9100 })
    assert.strictEqual(Redacted.value(monitoring.token!), "secret")
    assert.notInclude(JSON.stringify(monitoring), "secret")
    assert.isNotNull(good(yield* read("", { TRIBUTARY_METRICS_TOKEN: "secret" })).monitoring.token)
    assert.match(wrong(yield* read("monitoring: { listen: 127.0.0.1:99999 }")).join("\n"), /expected host:port/)
    assert.match(wrong(yield* read("monitoring: { token_env: T }")).join("\n"), /T is not set/)
  })

  test("keep finished rows for some days, and pushed records for at least a week", function* () {
    assert.deepStrictEqual(good(yield* read("retention: { history_days: 400 }")).retention.history, Duration.days(400))
    assert.deepStrictEqual(good(yield* read("retention: { runs_days: 7 }")).retention.runs, Duration.days(7))
    assert.match(wrong(yield* read("retention: { outbox_days: 1 }")).join(), /at least 7/)
  })

  test("appear in the example, where each loads once it is enabled", function* () {
    const example = readFileSync(new URL("../../config/tributary.example.yaml", import.meta.url), "utf8")
    const used = example.replace(/^# (?=[a-z_]+:$| {2})/gm, "")
    const settings = good(
      yield* read(used.replace(/^ {2}(?:certificate|key|- { name: \w+, file): .*$/gm, ""), {
        NORTH_TOKEN: "n",
        SOUTH_TOKEN: "s",
        TRIBUTARY_DASHBOARD_PASSWORD: password,
        TRIBUTARY_METRICS_TOKEN: "t",
        TEAM_SLACK_URL: "https://hooks.example.com/team",
        MONITORING_URL: "https://monitoring.example.com",
        MONITORING_SECRET: "m",
        SMTP_URL: "smtps://u:p@mail.example.com",
        CHANGES_SECRET: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
      })
    )
    assert.deepStrictEqual(settings.alerts.endAfter, endAfterDefault)
    assert.deepStrictEqual(settings.alerts.startAfter.late, Duration.minutes(10))
    assert.strictEqual(inWords(settings.scheduleOf("orders")), "every 1 min")
    assert.strictEqual(settings.dashboard!.publicUrl, "https://tributary.example.com")
    // Each value that the example calls a default is the default.
    const [endpoint] = settings.changeEndpoints
    assert.deepInclude(endpoint, { name: "orders", batchMax: 1, retryHours: 72, allowPrivate: false })
    assert.deepStrictEqual(settings.webhooks.events, deliveryReader.eventsDefault)
    const { push, retention, webhooks } = good(yield* read(""))
    assert.deepStrictEqual({ ...settings.webhooks, publicUrl: null, events: null }, webhooks)
    assert.deepStrictEqual({ ...settings.retention, history: null }, retention)
    assert.deepStrictEqual(settings.push, push)
    const { companies } = good(yield* read(example, { NORTH_TOKEN: "a", SOUTH_TOKEN: "b" }))
    assert.deepStrictEqual(valuesOf(companies, "name"), ["north", "south"])
  })
})

describe("the routes of alerts", () => {
  const route = (line: string, environment = {}) => read(`alerts: { routes: [{ name: team, ${line} }] }`, environment)

  test("have one receiver each, whose address is redacted", function* () {
    const URL_OF_TEAM = "https://hooks.example.com/secret"
    const { routes } = good(yield* route("slack: { url_env: URL_OF_TEAM }, digest: 1h", { URL_OF_TEAM })).alerts
    assert.deepInclude(routes[0], { name: "team", kinds: null, severityMin: "warning", digest: Duration.hours(1) })
    const { receiver } = routes[0]!
    assert.strictEqual(Redacted.value(receiver.url), URL_OF_TEAM)
    assert.notInclude(JSON.stringify(routes), "secret")
    const mail = good(
      yield* route("email: { to: [a@b.example], from: t@b.example, url_env: MAIL }", { MAIL: "smtp://127.0.0.1:25" })
    ).alerts.routes[0]!.receiver
    assert.deepInclude(mail, { type: "email", to: ["a@b.example"], allowPlain: true })
    assert.deepStrictEqual(good(yield* read("")).alerts.routes, [])
  })

  test("are rejected with their place, and without the address", function* () {
    const problem = (line: string, environment = {}) =>
      Effect.map(route(line, environment), (result) => wrong(result).join("\n"))
    assert.match(yield* problem("kinds: [late]"), /set exactly one of slack, http and email/)
    assert.match(yield* problem("slack: { url_env: U }"), /file:1:\d+: alerts\.routes\.0\.slack\.url_env: U is not set/)
    const open = yield* problem("slack: { url_env: U }", { U: "http://hooks.example.com/secret" })
    assert.match(open, /begins with https:/)
    assert.notInclude(open, "secret")
    assert.match(
      yield* problem("kinds: [tired], http: { url: https://a.example }"),
      /alerts\.routes\.0\.kinds\.0: expected "installation"/
    )
    assert.match(yield* problem("http: {}"), /either url or url_env/)
    const twice =
      "alerts: { routes: [{ name: a, http: { url: https://a.example } }, { name: a, http: { url: https://b.example } }] }"
    assert.match(wrong(yield* read(twice)).join(), /another route has the name a/)
  })
})
