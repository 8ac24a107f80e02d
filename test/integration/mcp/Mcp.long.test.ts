/** Assistants: questions to every tool, hostile inputs, and both transports. */
import * as http from "node:http"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { visibleLines } from "../../../src/web/Escape.ts"
import { type Answered, type Assistant, overHttp, overStdio } from "../../support/assistant.ts"
import { liveTest } from "../../support/live.ts"
import { firstLine, startCommand } from "../../support/reference.ts"
import { makeWorld, type World } from "../../support/world.ts"
import type { Books } from "../models/figures.ts"
import { hostile, instructions } from "./hostile.ts"
import { changed, questions } from "./questions.ts"
import { valuesOf } from "../../support/rows.ts"

const password = "dashboard-password-that-is-secret"
const companiesKey = "0123456789abcdef0123456789abcdef"
const planted = {
  sealed: "planted-sealed-signing-secret",
  token: "planted-company-token",
  body: "planted-body-of-a-push",
  key: "planted-idempotency-key",
  endpoint: "planted-endpoint-secret"
}

let world: World
let token: string
let scope: Scope.Closeable

const run = <A>(effect: Effect.Effect<A, unknown, Scope.Scope>) =>
  Effect.runPromise(Effect.provideService(effect, Scope.Scope, scope))

/** Records that try to instruct, one that cannot be landed, and a record that changes. */
const prepare = Effect.fnUntraced(function* () {
  const names = instructions.map((name, at) => ({ id: 8001 + at, customercode: `HOSTIL${at}`, name }))
  yield* world.control("POST", "/records", { company: 1, resource: "customers", records: names })
  yield* world.control("POST", "/records", {
    company: 1,
    resource: "items",
    records: [{ id: 9001, sku: "NUL-1", description: "a NUL \u0000 inside" }]
  })
  const first = yield* world.run(["sync"])
  assert.strictEqual(first.code, 4, first.stderr)
  const lines = yield* Effect.promise(() => world.reference.lines(`/state?company=1&resource=${changed.resource}`))
  const { lastchangedate: _, ...record } = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .find(({ id }) => id === changed.id)!
  yield* world.control("POST", "/records", {
    company: 1,
    resource: changed.resource,
    records: [{ ...record, [changed.field]: changed.to }]
  })
  const second = yield* world.run(["sync", changed.resource])
  assert.strictEqual(second.code, 0, second.stderr)
  for (const statement of [
    `insert into tributary.webhook_secrets (company, sealed, state) values ('main', '${planted.sealed}'::bytea, 'current')`,
    `insert into tributary.company_settings (company, url, token) values ('stored', 'https://127.0.0.1:1/v2', '${planted.token}')`,
    `insert into tributary.push_requests (company, resource, operation, idempotency_key, body, record_count)
       values ('main', 'customers', 'create', '${planted.key}', '${planted.body}', 1)`,
    `insert into tributary.change_endpoints (name, url, origin, secret, last_position)
       values ('there', 'https://127.0.0.1:1/changes', 'command', '${planted.endpoint}'::bytea, 0)`,
    `insert into tributary.violations (invariant, company_id, resource, record_id, detail, opened_at)
       select 'invoice_lines_add_up', company_id, 'invoices', 9, 'planted', tributary.now() from tributary.companies where company = 'main'`,
    `insert into tributary.delivery_gaps (company, resource, cause, detail) values ('main', 'orders', 'unobserved', 'not checked for two days')`
  ])
    yield* world.query(statement)
})

beforeAll(async () => {
  scope = await Effect.runPromise(Scope.make())
  world = await run(makeWorld({ data: ["--data", "demo"], company: 1 }))
  token = await world.reference.token(1)
  await run(prepare())
}, 120_000)

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)), 60_000)

const environment = () => ({
  DATABASE_URL: world.databaseUrl,
  SERVICE_API_URL: world.reference.baseUrl,
  SERVICE_API_TOKEN: token,
  TRIBUTARY_COMPANIES_KEY: companiesKey,
  TRIBUTARY_DASHBOARD_PASSWORD: password
})

const withAssistant = <A>(body: (assistant: Assistant) => Promise<A>): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(overStdio(world.folder, environment()), (assistant) => Effect.promise(() => body(assistant)))
    )
  )

/** Secrets as an answer might have them. */
const secrets = () => {
  const bytes = [planted.sealed, planted.endpoint]
  const { password: databasePassword } = new URL(world.databaseUrl)
  return [
    token,
    companiesKey,
    password,
    world.databaseUrl,
    decodeURIComponent(databasePassword),
    ...Object.values(planted),
    ...bytes.map((text) => Buffer.from(text).toString("hex")),
    ...bytes.map((text) => Buffer.from(text).toString("base64"))
  ].filter((text) => text !== "")
}

const assertNoSecret = (text: string, what: string) => {
  for (const secret of secrets()) assert.isFalse(text.includes(secret), `${what} reveals a secret`)
}

/** What every answer has. */
const assertContext = ({ answer }: Answered, what: string) => {
  assert.isString(answer?.["records_are_data"], what)
  for (const name of ["freshness", "open_gaps", "sql", "remarks"]) assert.isArray(answer?.[name], `${what}: ${name}`)
}

/** Every row, every object and every right of the database, as one digest. */
const digest = async () => {
  const tables = await run(
    world.query<{ name: string; row: string }>(
      `select format('%I.%I', n.nspname, c.relname) as name,
              case c.relkind when 'S' then 'row(t.last_value, t.is_called)' else 't' end as row from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'm', 'S') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' order by 1`
    )
  )
  const rows: Array<unknown> = [tables]
  for (const { name, row } of tables) {
    rows.push(
      await run(
        world.query(`select md5(coalesce(string_agg(${row}::text, ',' order by ${row}::text), '')) from ${name} t`)
      )
    )
  }
  for (const statement of [
    "select oid::text, relname::text, relkind::text, relacl::text, relnatts::text from pg_class where relnamespace::regnamespace::text !~ '^pg_(toast|temp)' order by 1",
    "select nspname::text, nspacl::text from pg_namespace where nspname !~ '^pg_(temp|toast_temp)' order by 1",
    "select proname::text, proacl::text, md5(prosrc) from pg_proc where pronamespace::regnamespace::text <> 'pg_catalog' order by 1, 3",
    // Other tests use the same server.
    "select rolname::text, rolsuper, md5(rolpassword) from pg_authid where rolname = 'tributary_reader' order by 1",
    "select count(*)::int from pg_largeobject_metadata",
    "select setconfig::text from pg_db_role_setting where setrole = 'tributary_reader'::regrole order by 1",
    "select objoid::text, objsubid, md5(description) from pg_description where objoid >= 16384 order by 1, 2"
  ])
    rows.push(await run(world.query(statement)))
  return JSON.stringify(rows)
}

describe("an assistant", () => {
  it("gets the answers of the source's own records to a question for every tool", async () => {
    const state = new Map<string, ReadonlyArray<Record<string, unknown>>>()
    const resources = ["customers", "orders", "invoices", "items"]
    for (const resource of resources) {
      const lines = await world.reference.lines(`/state?company=1&resource=${resource}`)
      const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      // The record in quarantine is not in the warehouse, as the answers say.
      state.set(
        resource,
        records.filter(({ id }) => !(resource === "items" && id === 9001))
      )
    }
    const books: Books = { company: 1, of: (resource) => state.get(resource)! }
    await withAssistant(async (assistant) => {
      for (const { question, tool, args, expected, actual } of questions) {
        const answered = await assistant.call(tool, args)
        assert.isFalse(answered.isError, `${question} ${answered.text}`)
        assertContext(answered, question)
        assertNoSecret(answered.text, question)
        assert.deepEqual(actual(answered.data!, answered.answer!), expected(books), question)
      }
    })
  })

  it("gets freshness, open gaps and SQL of the tables behind views and functions", () =>
    withAssistant(async (assistant) => {
      const { answer, data } = await assistant.call("query", {
        sql: "select count(*) from open_order_lines, query_to_xml('select id from erp.vendors limit 1', true, true, '')"
      })
      const resources = (answer!["freshness"] as ReadonlyArray<{ resource: string }>).map(({ resource }) => resource)
      assert.includeMembers(resources, ["orders", "orderlines", "vendors"])
      assert.includeMembers(data!["tables"] as Array<string>, [
        "erp_models.open_order_lines",
        "erp.orders",
        "erp.vendors"
      ])
      assert.deepEqual(valuesOf(answer!["open_gaps"] as ReadonlyArray<{ resource: string }>, "resource"), ["orders"])
      assert.include(JSON.stringify(answer!["sql"]), "open_order_lines")
    }))

  it("gets no present records by a query as of a moment, and names of list_tables that work with and without it", () =>
    withAssistant(async (assistant) => {
      const { data } = await assistant.call("list_tables", { search: "customers", kind: "resource" })
      const table = (data!["tables"] as ReadonlyArray<Record<string, string>>).find(
        ({ name }) => name === "erp.customers"
      )!
      const count = (name: string, as_of?: string) =>
        assistant.call("query", { sql: `select count(*) from ${name}`, ...(as_of === undefined ? {} : { as_of }) })
      const refused = await count(table["name"]!, "2020-01-01")
      assert.isTrue(refused.isError)
      assert.include(refused.text, "erp.customers contains the present records")
      assert.include(refused.text, "query_name")
      assert.deepEqual((await count(table["query_name"]!, "2020-01-01")).data!["rows"], [["0"]])
      assert.notDeepEqual((await count(table["query_name"]!)).data!["rows"], [["0"]])
    }))

  it("changes nothing and reveals nothing by hostile inputs", async () => {
    await withAssistant(async (assistant) => {
      // The first query grants the reader its rights.
      await assistant.call("query", { sql: "select 1" })
      const before = await digest()
      const waiting = [...hostile]
      const wrong: Array<string> = []
      const work = async () => {
        for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
          const what = `${one.tool} ${JSON.stringify(one.args).slice(0, 200)}`
          const answered = await assistant.call(one.tool, one.args)
          assertNoSecret(JSON.stringify(answered), what)
          assert.isBelow(answered.text.length, 3_000_000, what)
          assert.strictEqual(visibleLines(answered.text), answered.text, what)
          if (one.expected === "refused" && !answered.isError) wrong.push(`${what}: ${answered.text.slice(0, 300)}`)
          if (!answered.isError) assertContext(answered, what)
        }
      }
      await Promise.all([work(), work(), work(), work()])
      assert.deepEqual(wrong, [])
      assert.strictEqual(await digest(), before)
      assert.isFalse((await assistant.call("query", { sql: "select 1" })).isError)
    })
    const locks = await run(
      world.query(
        "select 1 from pg_locks l join pg_database d on d.oid = l.database where locktype = 'advisory' and datname = current_database()"
      )
    )
    assert.lengthOf(locks, 0)
  }, 300_000)

  it("sees instructions in records as data, with invisible characters as escapes", () =>
    withAssistant(async (assistant) => {
      const { data, answer, text } = await assistant.call("query", {
        sql: "select name from customers where id >= 8001 order by id"
      })
      const names = (data!["rows"] as ReadonlyArray<ReadonlyArray<string>>).map(([name]) => name)
      assert.deepEqual(names.slice(0, 2), instructions.slice(0, 2))
      assert.strictEqual(names[2], "\\u{202e}esrever\\u{202c} \\u{200b}hidden\\u{2066} text")
      assert.strictEqual(names[3], "tags \\u{e0064}\\u{e0065}\\u{e006c}\\u{e0065}\\u{e0074}\\u{e0065}")
      assert.strictEqual(names[4], instructions[4])
      assert.strictEqual(names[5], "\\x1b[2J\\x07 control")
      assert.deepEqual(JSON.parse(text), answer)
      assert.match(String(answer!["records_are_data"]), /It is data/)
      assert.match(assistant.client.getInstructions() ?? "", /Never follow an instruction/)
    }))

  it("sees of every tool that it only reads", () =>
    withAssistant(async (assistant) => {
      const { tools } = await assistant.client.listTools()
      assert.lengthOf(tools, 10)
      for (const { name, annotations, description, inputSchema, outputSchema } of tools) {
        assert.deepEqual(
          [annotations?.readOnlyHint, annotations?.destructiveHint, annotations?.openWorldHint],
          [true, false, false],
          name
        )
        assert.isAbove(description?.length ?? 0, 50, name)
        assert.isFalse(inputSchema["additionalProperties"], name)
        assert.isDefined(outputSchema?.properties?.["freshness"], name)
      }
    }))

  it("gets a remedy where nothing was synced, and where the reader could read secrets", async () => {
    const url = new URL(world.databaseUrl)
    const owner = `owner_${process.pid}`
    await run(world.query(`create role ${owner} login password 'not-a-secret'`))
    await run(world.query(`grant usage on schema tributary to ${owner}`))
    await run(world.query(`grant select on all tables in schema tributary to ${owner}`))
    const readerUrl = new URL(url)
    readerUrl.username = owner
    readerUrl.password = "not-a-secret"
    const asked = async (env: Record<string, string>, tool: string, args: Record<string, unknown>) =>
      Effect.runPromise(
        Effect.scoped(
          Effect.flatMap(overStdio(world.folder, { ...environment(), ...env }), (assistant) =>
            Effect.promise(() => assistant.call(tool, args))
          )
        )
      )
    const refused = await asked({ DATABASE_READER_URL: readerUrl.href }, "query", { sql: "select 1" })
    assert.isTrue(refused.isError)
    assert.include(refused.text, "no_reader")
    assert.include(refused.text, "webhook_secrets")
    await run(world.query(`drop owned by ${owner}`))
    await run(world.query(`drop role ${owner}`))
    const away = await asked({ DATABASE_URL: "postgres://someone:hunter2secret@127.0.0.1:1/none" }, "freshness", {})
    assert.isTrue(away.isError)
    assert.include(away.text, "warehouse_unreachable")
    assert.notInclude(away.text, "hunter2secret")
    assert.notInclude(away.text, "127.0.0.1")
    assert.include((await asked({ DATABASE_URL: "" }, "freshness", {})).text, "no_warehouse")
  })
})

/** Starts `serve` with a dashboard; answers its address. */
const serving = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>) {
  const command = yield* Effect.acquireRelease(
    Effect.sync(() =>
      world.command(["serve", "--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--json"], {
        ...environment(),
        ...env
      })
    ),
    ({ child, done }) =>
      Effect.andThen(
        Effect.sync(() => child.kill("SIGTERM")),
        Effect.promise(() => done)
      )
  )
  return (JSON.parse(yield* Effect.promise(() => firstLine(command))) as { readonly dashboard: string }).dashboard
})

const initialize = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } }
})

/** The status of a request to initialize. `fetch` would not send these headers. */
const statusOf = (url: string, headers: http.OutgoingHttpHeaders, body = initialize) =>
  new Promise<number>((resolve, reject) => {
    const request = http.request(
      url,
      {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers }
      },
      (response) => {
        response.resume()
        resolve(response.statusCode!)
      }
    )
    request.on("error", reject)
    request.end(body)
  })

describe("the endpoint of assistants at the dashboard", () => {
  liveTest("needs a token, and answers the same tools", function* () {
    const url = `${yield* serving({})}/mcp`
    const made = yield* Effect.promise(
      () =>
        startCommand(["serve", "tokens", "add", "assistant"], {
          cwd: world.folder,
          env: environment()
        }).done
    )
    const bearer = { authorization: `Bearer ${made.stdout.split("\n")[0]}` }
    assert.strictEqual(yield* Effect.promise(() => statusOf(url, { authorization: `Bearer ${password}` })), 401)
    const status = (headers: http.OutgoingHttpHeaders, body?: string) =>
      Effect.promise(() => statusOf(url, headers, body))
    assert.strictEqual(yield* status({}), 401)
    assert.strictEqual(yield* status({ authorization: "Bearer wrong" }), 401)
    assert.strictEqual(yield* status({ authorization: `Basic ${btoa(`x:${password}`)}` }), 401)
    assert.strictEqual(yield* status({ ...bearer, origin: "https://evil.example" }), 403)
    assert.strictEqual(yield* status({ ...bearer, origin: new URL(url).origin }), 403)
    assert.strictEqual(yield* status(bearer, "x".repeat(100_000)), 413)
    assert.strictEqual(yield* status(bearer), 200)
    // The other forms of the dashboard still need a session.
    assert.strictEqual(yield* Effect.promise(() => statusOf(new URL("/tasks/run", url).href, bearer)), 403)

    const assistant = yield* overHttp(url, bearer)
    const answered = yield* Effect.promise(() => assistant.call("query", { sql: "select count(*) from orders" }))
    assert.isFalse(answered.isError, answered.text)
    assert.deepEqual(answered.data!["rows"], [["150"]])
    assertContext(answered, "over HTTP")
    for (const { tool, args } of hostile.filter((one, at) => at % 9 === 0 && JSON.stringify(one).length < 60_000)) {
      const one = yield* Effect.promise(() => assistant.call(tool, args))
      assertNoSecret(JSON.stringify(one), tool)
    }
    const plan = yield* Effect.promise(() => assistant.call("plan_sync", { resources: ["orders"] }))
    assert.isFalse(plan.isError, plan.text)
    const checked = yield* Effect.promise(() =>
      assistant.call("dry_run_push", {
        resource: "customers",
        records: '{"externalid":"h-1","customercode":"H1","name":"H"}',
        company: "main"
      })
    )
    assert.isFalse(checked.isError, checked.text)
    yield* Effect.promise(() => assistant.end())
  })

  liveTest("without a password answers this machine by its own names only", function* () {
    const url = `${yield* serving({ TRIBUTARY_DASHBOARD_PASSWORD: "" })}/mcp`
    const status = (headers: http.OutgoingHttpHeaders) => Effect.promise(() => statusOf(url, headers))
    assert.strictEqual(yield* status({}), 200)
    assert.strictEqual(yield* status({ host: "evil.example" }), 403)
    assert.strictEqual(yield* status({ "x-forwarded-for": "10.0.0.1" }), 403)
    assert.strictEqual(yield* status({ "sec-fetch-site": "cross-site" }), 403)
    assert.strictEqual(yield* status({ origin: new URL(url).origin }), 403)
    const assistant = yield* overHttp(url, {})
    const answered = yield* Effect.promise(() => assistant.call("freshness", { resource: "orders" }))
    assert.isFalse(answered.isError, answered.text)
  })
})
