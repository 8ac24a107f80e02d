/** `tributary doctor` on installations with real faults: its findings, remedies and exit codes. */
import { chmodSync, readdirSync, writeFileSync } from "node:fs"
import { type AddressInfo, connect } from "node:net"
import { join } from "node:path"
import { createServer } from "node:tls"
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { generate } from "selfsigned"
import type { Finding } from "../../src/cli/doctor/Finding.ts"
import { hooked } from "../integration/subscriptions/commandSupport.ts"
import { makeWorld, type World } from "../support/world.ts"
import { liveTest } from "../support/live.ts"
import { valuesOf } from "../support/rows.ts"
import { assertNone } from "../support/assertions.ts"

interface Examined {
  readonly code: number | null
  /** The findings of a check that are not ok; if all are ok, all of them. */
  readonly of: (check: string) => ReadonlyArray<Finding>
  readonly all: ReadonlyArray<Finding>
}

/** Runs `tributary doctor`, and asserts that each finding that is not ok has a remedy. */
const examine = Effect.fnUntraced(function* (
  world: World,
  env: Readonly<Record<string, string>> = {},
  args: ReadonlyArray<string> = []
) {
  const run = yield* world.run(["doctor", "--json", ...args], env)
  assert.notStrictEqual(run.stdout, "", run.stderr)
  const { findings: all, code } = JSON.parse(run.stdout) as {
    readonly findings: ReadonlyArray<Finding>
    readonly code: number
  }
  assert.strictEqual(run.code, code)
  assertNone(all, ({ status, remedy }) => (status === "warning" || status === "failed") !== (remedy !== null))
  assertNone(all, ({ message }) => message.startsWith("the check itself failed"))
  return { code: run.code, all, of: (check) => all.filter((finding) => finding.check === check) } satisfies Examined
})

/** A finding in the form `check status: text -> remedy`, with a part of its text and of its remedy, if it has one. */
const parseExpected = (expected: string) => {
  const [, check = "", status, text = "", remedy = null] =
    /^(.+?) (ok|warning|failed|skipped): (.*?)(?: -> (.*))?$/.exec(expected) ?? assert.fail(expected)
  return { check, status, text, remedy }
}

/** Asserts the exit code, unless it is null, and that these are among the findings. */
const assertFindings = ({ all, code, of }: Examined, expectedCode: number | null, expected: ReadonlyArray<string>) => {
  if (expectedCode !== null) assert.strictEqual(code, expectedCode, JSON.stringify(all, null, 1))
  const missing = expected.filter((one) => {
    const { check, status, text, remedy } = parseExpected(one)
    return !of(check).some(
      (found) =>
        found.status === status &&
        found.message.includes(text) &&
        (remedy === null ? found.remedy === null : found.remedy?.includes(remedy) === true)
    )
  })
  assert.deepStrictEqual(missing, [], JSON.stringify(all, null, 1))
}

const empty = { data: ["--data", "empty"], company: 1 } as const

/** A TLS proxy in front of a server on loopback, with this certificate. */
const tlsFront = (baseUrl: string, pem: { readonly key: string; readonly cert: string }) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const { hostname, port, pathname } = new URL(baseUrl)
      const server = createServer(pem, (socket) => {
        const behind = connect(Number(port), hostname)
        socket.on("error", () => behind.destroy())
        behind.on("error", () => socket.destroy())
        socket.pipe(behind).pipe(socket)
      })
      server.on("tlsClientError", () => {})
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { server, url: `https://localhost:${(server.address() as AddressInfo).port}${pathname}` }
    }),
    ({ server }) => Effect.sync(() => server.close())
  ).pipe(Effect.map(({ url }) => url))

const dayMs = 24 * 60 * 60 * 1000

/** A certificate for localhost. Its validity begins and ends these numbers of days from now. */
const madeFor = (fromDays: number, toDays: number) =>
  Effect.promise(async () => {
    const now = Date.now()
    const { private: key, cert } = await generate([{ name: "commonName", value: "localhost" }], {
      notBeforeDate: new Date(now + fromDays * dayMs),
      notAfterDate: new Date(now + toDays * dayMs),
      extensions: [
        { name: "basicConstraints", cA: true },
        { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }
      ]
    })
    return { key, cert }
  })

describe("tributary doctor", () => {
  liveTest("passes a new installation, reports the missing migrations and changes nothing", function* () {
    const world = yield* makeWorld(empty)
    const fresh = yield* examine(world)
    assert.strictEqual(fresh.code, 0)
    const well = ["node", "time zones", "configuration", "database", "database version", "encoding", "rights"]
    const far = ["connections", "address", "clock", "token", "scopes", "budget", "page"]
    for (const check of [...well, ...far]) {
      assert.isTrue(fresh.of(check).length > 0 && fresh.of(check).every(({ status }) => status === "ok"), check)
    }
    assertFindings(fresh, null, [
      "migrations warning: nothing was synced into it yet -> tributary sync",
      "freshness skipped: not up to date",
      "subscription skipped: webhooks.public_url is not set"
    ])
    assert.deepStrictEqual(
      yield* world.query("select nspname from pg_namespace where nspname in ('tributary', 'erp')"),
      []
    )
    // Doctor does not create an embedded Postgres that does not exist yet.
    const embedded = yield* examine(world, { DATABASE_URL: "" })
    assertFindings(embedded, 0, ["database warning: does not exist yet -> tributary sync creates and fills it"])
    assert.isAbove(embedded.of("disk").length, 0)
    assert.deepStrictEqual(readdirSync(world.folder), [])

    const shown = yield* world.run(["doctor"])
    assert.strictEqual(shown.code, 0)
    assert.match(shown.stdout, /^ok {7}token +main: accepted, company 1/m)
    assert.match(shown.stdout, /^WARNING {2}migrations .*\n +-> tributary sync/m)
    assert.match(shown.stdout, /^WARNING {2}reader functions .*pg_logical_emit_message/m)
    assert.match(shown.stdout, /\n\n\d+ checks: \d+ ok, 2 warnings, \d+ skipped\n$/)
    const unknownCompany = yield* world.run(["doctor", "--company", "unknown"])
    assert.strictEqual(unknownCompany.code, 2)
    assert.include(unknownCompany.stderr, 'there is no company "unknown"; configured: main')
  })

  liveTest("reports a wrong configuration, token, scope, licence and address", function* () {
    const world = yield* makeWorld(empty)
    const bare = yield* examine(world, { SERVICE_API_URL: "", SERVICE_API_TOKEN: "" })
    assertFindings(bare, 2, ["configuration failed: no source is configured -> tributary init"])
    // Checks that do not need the source run all the same.
    assertFindings(bare, null, ["rights ok: may create and write"])

    const wrong = yield* examine(world, { SERVICE_API_TOKEN: "a-token-that-is-unknown" })
    assertFindings(wrong, 3, [
      "token failed: 401 -> check that it was copied whole",
      "scopes skipped: the token was not accepted"
    ])
    assert.notInclude(JSON.stringify(wrong.all), "a-token-that-is-unknown")

    const revoked = yield* Effect.promise(() => world.reference.token(1))
    yield* world.control("POST", "/tokens/revoke", { token: revoked })
    assertFindings(yield* examine(world, { SERVICE_API_TOKEN: revoked }), 3, [
      "token failed: token_revoked -> issue a new one"
    ])

    const poor = yield* Effect.promise(() => world.reference.token(1, ["customers:read", "payroll:read"]))
    yield* world.control("PUT", "/companies/1", { features: { payroll: false } })
    assertFindings(yield* examine(world, { SERVICE_API_TOKEN: poor }), 0, [
      "scopes warning: the token lacks the scope orders:read:  -> give the token",
      "scopes warning: the module payroll is not licensed:  -> give the token"
    ])

    world.configure(
      [
        "companies:",
        "  - name: north",
        "    token_env: NORTH_TOKEN",
        "    resources: [customers, orders, orderlines]",
        "  - name: twin",
        "    token_env: SERVICE_API_TOKEN",
        "freshness: { resources: { custommers: 5 } }",
        "schedule: { resources: { ordders: off } }",
        "budget: { requests_per_minute: 900 }"
      ].join("\n")
    )
    assertFindings(yield* examine(world, { NORTH_TOKEN: poor }), 3, [
      "scopes failed: the token lacks the scope orders:read: orders, orderlines -> leave the resources out",
      "configuration warning: freshness.resources names custommers -> correct or remove it",
      "configuration warning: schedule.resources names ordders -> correct or remove it",
      "token warning: north and twin are tokens of the same company, 1 -> leave one of them out",
      "budget warning: 900 requests a minute -> 600 or less"
    ])
    const one = yield* examine(world, { NORTH_TOKEN: poor }, ["--company", "twin"])
    assert.strictEqual(one.code, 0)
    assert.deepStrictEqual(valuesOf(one.of("scopes"), "subject"), ["twin"])

    world.configure("companies:\n  - { name: a, token_env: NORTH_TOKEN, resources: [nonsense] }\n")
    assertFindings(yield* examine(world, { NORTH_TOKEN: poor }), 2, [
      'configuration failed: company a: there is no resource "nonsense" -> correct'
    ])
    world.configure("freshnes: {}\n")
    assertFindings(yield* examine(world), 2, [
      "configuration failed: freshnes: there is no such setting -> tributary init",
      "node ok: Node "
    ])
    world.configure("{}\n")

    assertFindings(yield* examine(world, { SERVICE_API_URL: "http://127.0.0.1:1/!/api/v2" }), 5, [
      "address failed: ECONNREFUSED -> whether the service is up"
    ])
    assertFindings(yield* examine(world, { SERVICE_API_URL: "https://erp.invalid/!/api/v2" }), 5, [
      "address failed: the name erp.invalid is not known -> the spelling of the address"
    ])
    assertFindings(yield* examine(world, { SERVICE_API_URL: world.reference.baseUrl.replace("/v2", "/v9") }), 2, [
      "token failed:  -> "
    ])

    writeFileSync(join(world.folder, ".env"), "A=1\n")
    chmodSync(join(world.folder, ".env"), 0o644)
    writeFileSync(join(world.folder, ".gitignore"), "node_modules\n")
    assertFindings(yield* examine(world), null, [
      ".env warning: mode 644 -> chmod 600 .env",
      ".env warning: .gitignore does not name it -> add a line .env"
    ])
  })

  liveTest("reports untrusted, expired and soon expiring certificates, and a clock difference", function* () {
    const world = yield* makeWorld(empty)
    const trusted = (pem: string) => {
      const file = join(world.folder, "ca.pem")
      writeFileSync(file, pem)
      return file
    }
    const good = yield* madeFor(-10, 400)
    const url = yield* tlsFront(world.reference.baseUrl, good)
    assertFindings(yield* examine(world, { SERVICE_API_URL: url }), 5, [
      "address failed: DEPTH_ZERO_SELF_SIGNED_CERT -> NODE_EXTRA_CA_CERTS="
    ])
    const accepted = yield* examine(world, { SERVICE_API_URL: url, NODE_EXTRA_CA_CERTS: trusted(good.cert) })
    assertFindings(accepted, 0, ["certificate ok: valid for 399 more days", "token ok: accepted, company 1"])
    const other = yield* examine(world, {
      SERVICE_API_URL: url.replace("localhost", "127.0.0.1"),
      NODE_EXTRA_CA_CERTS: trusted(good.cert)
    })
    assertFindings(other, null, [
      "address failed: ERR_TLS_CERT_ALTNAME_INVALID -> the name that the certificate is for"
    ])

    const old = yield* madeFor(-20, -3)
    const expired = yield* examine(world, {
      SERVICE_API_URL: yield* tlsFront(world.reference.baseUrl, old),
      NODE_EXTRA_CA_CERTS: trusted(old.cert)
    })
    assertFindings(expired, 5, ["address failed: CERT_HAS_EXPIRED -> renew the certificate"])
    const short = yield* madeFor(-20, 5)
    const soon = yield* examine(world, {
      SERVICE_API_URL: yield* tlsFront(world.reference.baseUrl, short),
      NODE_EXTRA_CA_CERTS: trusted(short.cert)
    })
    assertFindings(soon, 0, ["certificate warning: valid for 4 more days -> renew it"])
    assertFindings(yield* examine(world, { SERVICE_API_URL: world.reference.baseUrl.replace("http:", "https:") }), 5, [
      "address failed: does not speak TLS -> check the port"
    ])

    // Certificate files of a listener of this process.
    for (const [name, text] of [
      ["cert.pem", short.cert],
      ["key.pem", short.key],
      ["other.pem", good.key]
    ] as const) {
      writeFileSync(join(world.folder, name), text)
    }
    world.configure(
      "webhooks: { certificate: cert.pem, key: key.pem }\ndashboard: { certificate: cert.pem, key: other.pem }\n"
    )
    assertFindings(yield* examine(world), 2, [
      "webhook certificate warning: valid for 4 more days -> renew it",
      "page certificate failed: other.pem is not the key of -> the two files of one certificate"
    ])

    world.configure("{}\n")
    yield* world.control("POST", "/clock", { advanceSeconds: 930 })
    assertFindings(yield* examine(world), 0, [
      "clock warning: the service's clock is 15 min ahead of this machine's -> NTP"
    ])
    world.configure("webhooks: { public_url: 'https://hooks.invalid' }\n")
    assertFindings(yield* examine(world), null, [
      "clock failed: webhook deliveries are refused -> NTP",
      "webhook address failed: the name hooks.invalid is not known -> spelling"
    ])
  })

  liveTest("reports a database that is unreachable, unsuitable or migrated by another version", function* () {
    const world = yield* makeWorld(empty)
    const at = (parts: Partial<Record<"username" | "password" | "pathname", string>>) => ({
      DATABASE_URL: Object.assign(new URL(world.databaseUrl), parts).href
    })
    const away = yield* examine(world, { DATABASE_URL: "postgres://a:s3cretword@127.0.0.1:1/x" })
    assertFindings(away, 5, ["database failed: cannot reach Postgres at 127.0.0.1:1 (ECONNREFUSED) -> start it"])
    assert.notInclude(JSON.stringify(away.all), "s3cretword")
    // The checks of the source run all the same.
    assertFindings(away, null, ["token ok: accepted"])
    const locked = yield* examine(world, at({ password: "not-the-password" }))
    assertFindings(locked, 2, ["database failed: refused the password -> check DATABASE_URL"])
    const absent = yield* examine(world, at({ pathname: "/not_there" }))
    assertFindings(absent, 2, ['database failed: has no database "not_there" -> create it'])
    assertFindings(yield* examine(world, { DATABASE_URL: "mysql://x/y" }), 2, [
      "database failed: DATABASE_URL must begin with postgres:// -> it has the form"
    ])

    // A user with read permission only.
    const role = `doctor_${process.pid}`
    const latin = `latin_${process.pid}`
    yield* Effect.acquireRelease(world.query(`create role ${role} login password 'look'`), () =>
      Effect.ignore(world.query(`drop role if exists ${role}`))
    )
    const [database] = yield* world.query<{ name: string }>("select current_database() as name")
    yield* world.query(`revoke create, temporary on database ${database!.name} from public`)
    const looking = at({ username: role, password: "look" })
    assertFindings(yield* examine(world, looking), 2, [
      "rights failed: may not create the datasets erp, erp_history -> grant create on database",
      "rights failed: may not make temporary tables -> grant temporary on database",
      "dashboard reader warning: but with the rights of DATABASE_URL: there is no reader -> tributary schema grants | psql as an administrator"
    ])
    yield* world.query(`alter role ${role} connection limit 3`)
    assertFindings(yield* examine(world, looking), null, [
      "connections warning: of 3 are free -> raise max_connections"
    ])
    // The server may still count the connections of the previous command.
    yield* world.query(`alter role ${role} connection limit -1`)

    yield* Effect.acquireRelease(
      world.query(`create database ${latin} encoding 'LATIN1' locale 'C' template template0`),
      () => Effect.ignore(world.query(`drop database if exists ${latin} with (force)`))
    )
    const narrowText = yield* examine(world, at({ pathname: `/${latin}` }))
    assertFindings(narrowText, 2, ["encoding failed: encoded as LATIN1 -> encoding 'UTF8' template template0"])

    const synced = yield* world.run(["sync", "customers"])
    assert.strictEqual(synced.code, 0, synced.stderr)
    assertFindings(yield* examine(world, looking), null, [
      "rights failed: may not use the dataset tributary -> grant usage, create on schema",
      "rights failed: table of erp -> tributary schema grants"
    ])
    assertFindings(yield* examine(world), 0, ["migrations ok: are applied"])

    const [last] = yield* world.query<{ id: number }>("select max(id) as id from tributary.migrations")
    yield* world.query("create table public.kept as select * from tributary.migrations")
    yield* world.query(`delete from tributary.migrations where id = ${last!.id}`)
    assertFindings(yield* examine(world), 0, ["migrations warning: 1 of -> applies them"])
    yield* world.query("insert into tributary.migrations select * from public.kept on conflict do nothing")
    yield* world.query("insert into tributary.migrations (id, name, checksum) values (9999, 'later', 'x')")
    assertFindings(yield* examine(world), 2, [
      "migrations failed: 9999_later.sql was applied by a newer version -> upgrade this program"
    ])
    yield* world.query("delete from tributary.migrations where id = 9999")
    yield* world.query("update tributary.migrations set checksum = 'x' where id = 1")
    const changed = yield* examine(world)
    assertFindings(changed, 2, ["migrations failed: was changed after it was applied -> undo the change"])
  })

  liveTest("reports what is late, paused, abandoned or needs a person", function* () {
    const world = yield* makeWorld(empty)
    world.configure(
      "companies:\n  - { name: main, token_env: SERVICE_API_TOKEN, resources: [customers, orders, invoices] }\n"
    )
    const first = yield* world.run(["sync", "customers", "orders"])
    assert.strictEqual(first.code, 0, first.stderr)
    yield* world.query(
      `update tributary.runs set started_at = started_at - interval '3 hours' where resource = 'customers'`
    )
    yield* world.query(
      `insert into tributary.runs (company_id, resource, kind, status, fence, resumed, started_at)
             values (1, 'orders', 'full', 'running', 1, false, tributary.now() - interval '2 hours')`
    )
    yield* world.query(
      `insert into tributary.quarantine (company_id, resource, reason, bytes, run_id, source, first_seen_at, last_seen_at)
             select 1, 'customers', 'x', '{}', min(id), 'GET /customers', now(), now() from tributary.runs`
    )
    yield* world.query(
      `insert into tributary.inbox (company, event_id, event_type, sent_at, body, state, last_error)
             values ('main', 'evt_1', 'items.created', now(), '', 'dead_letter', 'x')`
    )
    yield* world.query(
      `insert into tributary.tasks (company, resource, kind, paused_at, failures, error, remedy)
             values ('main', 'customers', 'sync', tributary.now(), 0, null, null),
                    ('main', 'orders', 'sync', null, 3, 'it was refused', 'ask a person')`
    )
    yield* world.query(
      `insert into tributary.field_findings (company_id, resource, field, kind, runs, rows, first_run_id, last_run_id, found_at)
             values (1, 'customers', 'age', 'volatile', 3, 40, 1, 1, tributary.now()),
                    (1, 'customers', 'url', 'volatile', 2, 40, 1, 1, tributary.now()),
                    (1, 'orders', 'name', 'absent', 1, 25, 1, 1, tributary.now())`
    )
    const late = yield* examine(world)
    assertFindings(late, 0, [
      "fields warning: customers.age: changed in 40 records -> ignore_fields: [age]",
      "fields warning: orders.name: no record of the last full scan -> ask the operator"
    ])
    assert.lengthOf(late.of("fields"), 2)
    assertFindings(late, null, [
      "freshness warning: 1 of 3 resources late: customers (3 h, target 15 min) -> tributary serve",
      "freshness warning: never read: invoices -> tributary sync",
      "runs warning: 1 run is recorded as running -> tributary sync ends them",
      "quarantine warning: 1 record could not be landed -> tributary.quarantine",
      "events warning: 1 dead letter -> webhooks replay",
      "serve warning: no tributary serve runs for main -> tributary serve",
      "schedule warning: 1 task is paused: main customers -> resume them",
      "schedule warning: main orders 3 times in a row: it was refused -> ask a person"
    ])

    assertFindings(late, null, ["source ok: the warehouse's rows come from this source"])
    const [source] = yield* world.query<{ address: string }>("select address from tributary.companies")
    yield* world.query("update tributary.companies set address = 'https://earlier.example.com/!/api/v2'")
    assertFindings(yield* examine(world), 2, [
      "source failed: come from https://earlier.example.com -> --accept-new-source"
    ])
    yield* world.query(`update tributary.companies set address = '${source!.address}'`)

    yield* world.query("update tributary.budgets set retry_after_at = tributary.now() + interval '10 minutes'")
    const paused = yield* examine(world)
    assertFindings(paused, 0, [
      "budget warning: an answer requested a pause (Retry-After) -> tributary budget release",
      "token warning: requests are paused for another -> utary budget release"
    ])
    const requests = yield* world.control("GET", "/requests")
    assert.strictEqual(
      JSON.stringify(requests).match(/\/me/g)?.length,
      3,
      "the sync and two runs of doctor asked, and none while requests are paused"
    )
  })

  liveTest("reports the state of subscriptions, and decrypts the secrets", function* () {
    const { world, configure, run, url } = yield* hooked
    configure(`webhooks:\n  public_url: ${url}\n`)
    const token = yield* Effect.promise(() => world.reference.token(1))
    const other = yield* Effect.promise(() => world.reference.token(1))
    const synced = yield* world.run(["sync"], { MAIN_TOKEN: token })
    assert.strictEqual(synced.code, 0, synced.stderr)
    const none = yield* examine(world, { MAIN_TOKEN: token })
    assertFindings(none, null, [
      `subscription warning: there is none for ${url}/hooks/main -> tributary webhooks ensure --company main`,
      "signing secrets warning: every delivery is refused -> tributary webhooks ensure",
      "webhook address failed: DEPTH_ZERO_SELF_SIGNED_CERT -> NODE_EXTRA_CA_CERTS"
    ])

    yield* run(0, ["ensure"], { MAIN_TOKEN: token })
    const report = yield* examine(world, { MAIN_TOKEN: token })
    // ensure has reported that the source does not know nothings.created. No command can change that.
    assertFindings(report, null, [
      "subscription skipped: nothing was delivered yet",
      "signing secrets ok: 1 can be decrypted"
    ])
    assertFindings(yield* examine(world, { MAIN_TOKEN: other }), 2, [
      "signing secrets failed: cannot be decrypted with this token -> creates another"
    ])

    yield* run(0, ["pause"], { MAIN_TOKEN: token })
    const paused = yield* examine(world, { MAIN_TOKEN: token })
    assertFindings(paused, null, ["subscription warning: is paused -> tributary webhooks ensure --company main"])
    const poor = yield* Effect.promise(() => world.reference.token(1, ["customers:read"]))
    const barred = yield* examine(world, { MAIN_TOKEN: poor })
    assert.strictEqual(barred.of("subscription")[0]?.status, "failed")
    assertFindings(barred, null, ["subscription failed: insufficient_scope -> setup:read"])
  })
})
