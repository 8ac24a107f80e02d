import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import { load } from "../../src/configuration/Configuration.ts"
import { loadText, problemsOf } from "../support/configuration.ts"
import { test } from "../support/suite.ts"
import { assertEach } from "../support/assertions.ts"
import { valuesOf } from "../support/rows.ts"

describe("the configuration", () => {
  test("reads one company from the environment", function* () {
    const { companies, installation, databaseUrl } = yield* load(
      {},
      { SERVICE_API_URL: "https://erp.example/!/api/v2", SERVICE_API_TOKEN: "s3cret", DATABASE_URL: " " }
    )
    assertEach(companies, ({ name, url, token }) => [name, url, Redacted.value(token)], [
      ["main", "https://erp.example/!/api/v2", "s3cret"]
    ])
    assert.strictEqual(installation.requestsPerMinute, 500)
    assert.isNull(databaseUrl)
    assert.notInclude(
      JSON.stringify(companies, (_, value: unknown) => (typeof value === "bigint" ? 0 : value)),
      "s3cret"
    )
  })

  test("reads how requests to the source leave this machine", function* () {
    const environment = { HTTPS_PROXY: "http://user:s3cret@proxy.test:3128", OWN: "http://me:0wn@own.test" }
    const read = Effect.fnUntraced(function* (requests: string) {
      const { installation, installations, networkOf, proxies } = yield* loadText(
        `requests: { ${requests} }\ninstallations: [{ name: other, requests: { proxy: off } }, { name: same }]\n`,
        environment
      )
      const [top, other, same] = [installation, ...installations].map((one) => networkOf(one))
      assert.strictEqual(top, same)
      assert.deepStrictEqual(other, { proxies: null, secureContext: null, mistakes: [] })
      assert.notInclude(JSON.stringify([top, proxies]), "s3cret")
      return [top!.proxies, proxies].map((one) => (one === null ? null : Redacted.value(one.https!)))
    })
    const usual = "http://user:s3cret@proxy.test:3128/"
    assert.deepStrictEqual(yield* read(""), [usual, usual])
    assert.deepStrictEqual(yield* read("proxy: off"), [null, usual])
    assert.deepStrictEqual(yield* read("proxy: other.test:8080"), ["http://other.test:8080/", usual])
    assert.deepStrictEqual(yield* read("proxy_env: OWN"), ["http://me:0wn@own.test/", usual])
  })

  test("refuses a proxy or an authority that cannot be used, without a secret", function* () {
    const environment = { WRONG: "socks5://user:s3cret@a" }
    const address = "the address of a proxy, such as http://proxy.example.com:3128"
    const expected = `expected ${address}`
    for (const [requests, problem] of [
      ["proxy: ftp://a", `requests.proxy: expected off, or ${address}`],
      [
        "proxy: http://u:s3cret@a",
        "requests.proxy: expected an address without user and password: put one that has them into a variable"
      ],
      ["proxy_env: WRONG", `requests.proxy_env: ${expected}`],
      ["proxy_env: UNSET", "requests.proxy_env: UNSET is not set in the environment or .env"],
      ["proxy: off, proxy_env: WRONG", "requests.proxy_env: set either proxy or proxy_env"],
      ["ca_file: none.pem", "requests.ca_file: none.pem cannot be read (ENOENT"],
      ["ca_file: package.json", "requests.ca_file: package.json has no certificate in PEM"]
    ]) {
      const problems = yield* problemsOf(`requests: { ${requests} }\n`, environment)
      assert.lengthOf(problems, 1)
      assert.include(problems[0]!, problem!)
      assert.notInclude(problems[0]!, "s3cret")
    }
    assert.deepStrictEqual(yield* problemsOf("", { HTTPS_PROXY: "socks5://user:s3cret@a" }), [
      `HTTPS_PROXY: ${expected}`
    ])
  })

  test("removes the quotes around a variable, which docker run --env-file keeps", function* () {
    const { companies, databaseUrl } = yield* load(
      {},
      {
        SERVICE_API_URL: '"https://erp.example/!/api/v2"',
        SERVICE_API_TOKEN: "'\"half",
        DATABASE_URL: " 'postgres://u:p@127.0.0.1/d' "
      }
    )
    assertEach(companies, ({ url, token }) => [url, Redacted.value(token)], [
      ["https://erp.example/!/api/v2", "'\"half"]
    ])
    assert.strictEqual(Redacted.value(databaseUrl!), "postgres://u:p@127.0.0.1/d")
    assert.isNull((yield* load({}, { DATABASE_URL: '""' })).databaseUrl)
  })

  test("prefers the flag to the environment, and the company's own address to both", function* () {
    const yaml = "companies:\n  - { name: a, token_env: A }\n  - { name: b, url: https://b, token_env: A }\n"
    const environment = { SERVICE_API_URL: "https://env", A: "t" }
    const { companies } = yield* loadText(yaml, environment, { url: "https://flag" })
    assert.deepStrictEqual(valuesOf(companies, "url"), ["https://flag", "https://b"])
  })

  test("reports a mistake with its line and the allowed values", function* () {
    assert.deepStrictEqual(yield* problemsOf("paging:\n  mode: scroll\n"), [
      'file:2:9: paging.mode: expected "auto" | "cursor" | "page" | "offset" | "link" | "none"'
    ])
    assert.include((yield* problemsOf("warehouse:\n  connections: 9\n"))[0]!, "xpected a whole number from 10 to 1000")
    assert.deepStrictEqual(yield* problemsOf("budget:\n  per_minute: 3\n"), [
      "file:2:15: budget.per_minute: there is no such setting; allowed: requests_per_minute, reserve_percent, scope"
    ])
    const several = yield* problemsOf("sync:\n  concurrency: 0\ncompanies:\n  - url: x\n")
    assert.deepStrictEqual(several.length, 2)
    assert.include(several.join("\n"), "file:4:5: companies.0.name")
  })

  test("refuses an address with a space, a line break or another control character, where it is written", function* () {
    const hidden = ["\\r\\nX-Injected: 1", "\\0", "\\u0085", " "].map((text) => `"https://a.example/${text}"`)
    const settings = {
      "companies:\n  - name: a\n    token: t\n    url: ": "companies.0.url",
      "change_endpoints:\n  - name: a\n    secrets_env: [A]\n    url: ": "change_endpoints.0.url",
      "alerts:\n  routes:\n    - name: a\n      http:\n        url: ": "alerts.routes.0.http.url",
      "webhooks:\n  public_url: ": "webhooks.public_url",
      "dashboard:\n  public_url: ": "dashboard.public_url"
    }
    for (const [yaml, place] of Object.entries(settings)) {
      for (const address of hidden) {
        const problems = yield* problemsOf(`${yaml}${address}\n`)
        assert.match(problems.join("\n"), /expected an address without spaces, line breaks/i, `${place} ${address}`)
      }
    }
    const variables = {
      SERVICE_API_URL: "https://a.exa\tmple",
      SERVICE_API_TOKEN: "t",
      HOOK: "https://b.exa\nmple/in"
    }
    const [company, route] = yield* problemsOf(
      "alerts:\n  routes:\n    - name: a\n      slack: { url_env: HOOK }\n",
      variables
    )
    for (const problem of [company, route]) assert.include(problem, "an address has no spaces, line breaks")
  })

  test("reports invalid YAML, a missing file, and which token is missing, and never shows one", function* () {
    const problems = yield* problemsOf("companies: [\n")
    assert.lengthOf(problems, 1)
    assert.match(problems[0]!, /^file:2:1: /)
    const absent = yield* Effect.flip(load({ config: "/nowhere/tributary.yaml" }, {}))
    assert.include(absent.message, "there is no such file")
    assert.deepStrictEqual(
      yield* problemsOf("companies:\n  - name: north\n    url: https://n\n    token_env: NORTH\n"),
      ["company north: NORTH is not set in the environment or .env"]
    )
    assert.deepStrictEqual(
      yield* problemsOf(
        "companies:\n  - {name: a, url: https://a, token: x}\n  - {name: a, url: https://a, token: x}\n"
      ),
      ["two companies are called a"]
    )
  })

  test("has the settings of the webhook receiver", function* () {
    const yaml = `companies:
  - { name: a, url: https://a, token: x, webhook_secrets_env: [OLD, NEW], webhook_events: [orders.created] }
webhooks:
  listen: "0.0.0.0:443"
  public_url: https://hooks.example.com/erp/
  certificate: /etc/cert.pem
  key: /etc/key.pem
  events: [orders.created, invoices.posted]
  check_minutes: 1
`
    const read = yield* loadText(yaml, { OLD: "s1", NEW: "s2" })
    assert.strictEqual(`${read.webhooks.host}:${read.webhooks.port}`, "0.0.0.0:443")
    assert.strictEqual(read.webhooks.publicUrl, "https://hooks.example.com/erp")
    assert.deepStrictEqual(read.webhooks.tls, { certificate: "/etc/cert.pem", key: "/etc/key.pem" })
    assert.deepStrictEqual(read.companies[0]!.webhookSecrets.map(Redacted.value), ["s1", "s2"])
    assert.deepStrictEqual(read.companies[0]!.webhookEvents, ["orders.created"])
    assert.notMatch(JSON.stringify(read.companies[0]!.webhookSecrets), /s1|s2/)
    const spelt = yield* loadText("webhooks: { public_url: HTTPS://Hooks.Example.com:443/ERP// }\n")
    assert.strictEqual(spelt.webhooks.publicUrl, "https://hooks.example.com/ERP")
    const flagged = yield* load({ listen: "[::1]:0" }, {})
    assert.deepStrictEqual([flagged.webhooks.host, flagged.webhooks.port], ["::1", 0])
  })

  test("has the push settings, within the limits of the service", function* () {
    const yaml = "push: { batch_size: 1, use_batch: false, idempotency_max_age_hours: 1.5, concurrency: 16 }\n"
    assert.deepStrictEqual((yield* loadText(yaml)).push, {
      batchRecordsMax: 1,
      useBatch: false,
      keyAgeMax: Duration.minutes(90),
      concurrency: 16
    })
    const wrong = "push:\n  batch_size: 251\n  use_batch: maybe\n  idempotency_max_age_hours: 24\n  concurrency: 0\n"
    assert.deepStrictEqual(yield* problemsOf(wrong), [
      "file:2:15: push.batch_size: expected a whole number from 1 to 250",
      "file:3:14: push.use_batch: expected boolean",
      "file:4:30: push.idempotency_max_age_hours: expected a number from 1 to 23",
      "file:5:16: push.concurrency: expected a whole number from 1 to 16"
    ])
    assert.deepStrictEqual(yield* problemsOf("push:\n  size: 3\n"), [
      "file:2:9: push.size: there is no such setting; " +
        "allowed: batch_size, use_batch, idempotency_max_age_hours, concurrency"
    ])
  })

  test("reports a wrong webhook setting with its line and the allowed values", function* () {
    for (const [yaml, problem] of [
      [
        'events: ["*"]',
        "12: webhooks.events.0: expected event names one by one: the service takes no * for all of them"
      ],
      ["events: [orders]", "12: webhooks.events.0: expected an event name, <resource>.<verb>"],
      ["events: []", "11: webhooks.events: expected all, or at least one event; leave the"],
      ["tolerance_seconds: 299", "22: webhooks.tolerance_seconds: expected a whole number from 300 to 3600"],
      ["ahead_seconds: 3601", "18: webhooks.ahead_seconds: expected a whole number from 0 to 3600"],
      ["listen: 8085", "11: webhooks.listen: expected"],
      ["listen: 127.0.0.1:99999", "11: webhooks.listen: 99999 is no port"],
      ["listen: 0.0.0.0:8085", "11: webhooks.listen: 0.0.0.0 is reachable"],
      ["key: k.pem", "8: webhooks.key: set certificate too, or neither of the two"],
      ["public_url: http://x", "15: webhooks.public_url: is not https"],
      ["public_url: https://x/?a=1", "15: webhooks.public_url: carries a query"],
      ["port: 1", "9: webhooks.port: there is no such setting; allowed: listen, public_url"]
    ] as const) {
      const [found] = yield* problemsOf(`webhooks:\n  ${yaml}\n`)
      assert.isTrue(found?.startsWith(`file:2:${problem}`), `${yaml}: ${found}`)
    }
    assert.lengthOf(yield* problemsOf("allow_http: true\nwebhooks:\n  listen: 0.0.0.0:8085\n"), 0)
    assert.deepStrictEqual(
      yield* problemsOf("companies:\n  - {name: a, url: https://a, token: x, webhook_secrets_env: [A_SECRET]}\n"),
      ["file:2:63: companies.0.webhook_secrets_env.0: A_SECRET is not set in the environment or .env"]
    )
    // A secret that is given in place of its variable's name is not repeated in the message.
    for (const secret of ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "my own secret", "abc-def"]) {
      const problems = yield* problemsOf(
        `companies:\n  - {name: a, url: https://a, token: x, webhook_secrets_env: [${secret}]}\n`
      )
      assert.match(problems.join(), /webhook_secrets_env\.0: the variable that is named is not set/)
      assert.notInclude(problems.join(), secret)
    }
    const flag = yield* Effect.flip(load({ listen: "8085" }, {}))
    assert.strictEqual(flag.message, "--listen: expected host:port, for example 127.0.0.1:8085")
  })

  test("has a rate budget of 500 per token, less the reserve, at least one, or unlimited", function* () {
    for (const [yaml, perMinute, scope] of [
      ["{}", 500, "token"],
      ["budget: { reserve_percent: 10 }", 450, "token"],
      ["budget: { requests_per_minute: 600, reserve_percent: 15, scope: install }", 510, "install"],
      ["budget: { requests_per_minute: 1, reserve_percent: 90 }", 1, "token"],
      ["budget: { requests_per_minute: unlimited, reserve_percent: 20 }", null, "token"]
    ] as const) {
      const { requestsPerMinute, budgetScope } = (yield* loadText(yaml)).installation
      assert.deepStrictEqual([requestsPerMinute, budgetScope], [perMinute, scope])
    }
    assert.lengthOf(yield* problemsOf("budget: { reserve_percent: 91 }"), 1)
  })

  test("names the mistakes of an endpoint with their places", function* () {
    const problems = yield* problemsOf(
      `change_endpoints:
  - { name: one, url: "http://app.example.com/", secrets_env: [ONE] }
  - { name: one, url: "https://app.example.com/", secrets_env: [TWO], batch: 1 }
`,
      { TWO: "plain" }
    )
    const text = problems.join("\n")
    assert.match(text, /file:2:\d+: change_endpoints.0.url: an address begins with https/)
    assert.match(text, /file:2:\d+: change_endpoints.0.secrets_env.0: ONE is not set/)
    assert.match(text, /file:3:\d+: change_endpoints.1.secrets_env.0: TWO is no secret of Standard Webhooks/)
    assert.include(text, "two endpoints are called one")
  })

  test("has the rules of the file, in the form of the built-in ones", function* () {
    const sql = "select company_id, 'things' as resource, id, 'x' as detail from {{things}} where price <= 0"
    const { invariants } = yield* loadText(`invariants:
  - name: priced
    sql: |
      -- A price is positive.
      ${sql};
  - { name: counted, severity: critical, statement: All count., sql: "select 1 from erp.gadgets", resources: [gadgets] }
`)
    const [priced, counted] = ["A price is positive.", "All count."]
    assert.deepStrictEqual(invariants, [
      { name: "priced", severity: "warning", statement: priced, comment: priced, resources: ["things"], sql },
      {
        name: "counted",
        severity: "critical",
        statement: counted,
        comment: counted,
        resources: ["gadgets"],
        sql: "select 1 from erp.gadgets"
      }
    ])
  })

  test("names the mistakes of a rule with their places", function* () {
    const problems = yield* problemsOf(`invariants:
  - { name: one, sql: "select 1" }
  - { name: one, sql: "select 1 from {{things}}" }
  - { name: both, sql: "select 1 from {{things}}", file: x.sql }
  - { name: none }
  - name: missing
    file: /nowhere/rule.sql
  - { name: today, sql: "select {{as_of}} from {{things}}" }
`)
    const text = problems.join("\n")
    assert.match(text, /file:2:\d+: invariants\.0\.sql: its SQL names no table/)
    assert.match(text, /file:3:\d+: invariants\.1\.name: another rule has the name one/)
    assert.match(text, /file:4:\d+: invariants\.2\.name: set either sql or file/)
    assert.match(text, /file:5:\d+: invariants\.3\.name: set either sql or file/)
    assert.match(text, /file:7:\d+: invariants\.4\.file: \/nowhere\/rule\.sql does not exist/)
    assert.match(text, /file:8:\d+: invariants\.5\.sql: its SQL names \{\{as_of\}\}/)
    const [severity] = yield* problemsOf('invariants:\n  - { name: a, severity: fatal, sql: "select 1" }\n')
    assert.strictEqual(severity, 'file:2:26: invariants.0.severity: expected "warning" | "critical"')
  })
})
