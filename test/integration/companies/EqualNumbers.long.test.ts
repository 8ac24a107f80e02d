/**
 * Two reference servers whose companies have the same number and equal ids, in one warehouse: every way of the data keeps
 * them apart, and what is done to one changes nothing of the other.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { certificate } from "../../support/certificate.ts"
import { freePort } from "../../support/freePort.ts"
import { liveTest } from "../../support/live.ts"
import { freshDatabase } from "../../support/postgres.ts"
import { firstLine, type ReferenceProcess, startReference } from "../../support/reference.ts"
import { until } from "../../support/until.ts"
import { makeWorld } from "../../support/world.ts"

const resources = ["customers", "invoices", "invoicelines", "payments"]
const key = "a key of the test, with more than thirty-two characters"
const today = new Date()
const month = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 1, 1)).toISOString().slice(0, 7)

/** A company: its server, and its number in the warehouse. */
interface Side {
  readonly name: "north" | "south"
  readonly number: number
  readonly reference: ReferenceProcess
  readonly token: string
}

interface Customer {
  readonly id: number
  readonly name: string
  readonly externalid: string | null
}

/** The customers as the server has them, by id. */
const customersOf = ({ reference }: Side) =>
  Effect.map(
    Effect.promise(() => reference.lines("/state?company=1&resource=customers")),
    (lines) => new Map(lines.map((line) => JSON.parse(line) as Customer).map((one) => [one.id, one.name]))
  )

/** A warehouse with both companies, of servers with the same data but other names of the customers. */
const makeSides = Effect.gen(function* () {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  const other = yield* Effect.acquireRelease(
    Effect.promise(() => startReference(["--data", "demo"])),
    (server) => Effect.promise(() => server.stop())
  )
  const port = yield* Effect.promise(freePort)
  const { cert, key: certificateKey } = certificate(["localhost"])
  writeFileSync(join(world.folder, "cert.pem"), cert)
  writeFileSync(join(world.folder, "key.pem"), certificateKey)
  world.configure(`webhooks:
  listen: 127.0.0.1:${port}
  public_url: https://localhost:${port}
  certificate: cert.pem
  key: key.pem
  events: all
schedule: { default: off }
dashboard: { listen: off }
`)
  const sideOf = Effect.fnUntraced(function* (name: Side["name"], number: number, reference: ReferenceProcess) {
    const side: Side = { name, number, reference, token: yield* Effect.promise(() => reference.token(1)) }
    const control = (method: string, path: string, body: unknown) =>
      Effect.promise(() => reference.control(method, path, body))
    yield* control("PUT", "/limits", { requestsPerMinute: 1_000_000, allowPrivateReceivers: true })
    yield* control("POST", "/trust", { caPem: cert })
    const records = [...(yield* customersOf(side)).keys()].map((id) => ({ id, name: `${name} ${id}` }))
    yield* control("POST", "/records", { company: 1, resource: "customers", records })
    return side
  })
  const north = yield* sideOf("north", 1, world.reference)
  const south = yield* sideOf("south", 1_000_001, other)
  const target = Redacted.value(yield* freshDatabase)
  const env = {
    SERVICE_API_TOKEN: "",
    TRIBUTARY_COMPANIES_KEY: key,
    NORTH: north.token,
    SOUTH: south.token,
    HOME_WAREHOUSE: world.databaseUrl,
    TARGET: target
  }
  const runOn = Effect.fnUntraced(function* (databaseUrl: string, line: string) {
    const { code, stdout, stderr } = yield* world.run(line.split(" "), { ...env, DATABASE_URL: databaseUrl })
    assert.strictEqual(code, 0, `${line}: ${stdout}\n${stderr}`)
    return stdout
  })
  const run = (line: string) => runOn(world.databaseUrl, line)
  yield* run(`installation add one --url ${north.reference.baseUrl}`)
  // It goes along with its company.
  yield* run(`installation add two --url ${south.reference.baseUrl}`)
  const named = resources.map((one) => `--resource ${one}`).join(" ")
  yield* run(`company add north --installation one --token-env NORTH ${named}`)
  yield* run(`company add south --installation two --token-env SOUTH --warehouse-number ${south.number} ${named}`)
  yield* run("sync")
  const queryOn = <Row extends object>(databaseUrl: string, text: string) =>
    Effect.flatMap(SqlClient.SqlClient, (client) => client.unsafe<Row>(text)).pipe(
      Effect.provide(Layer.fresh(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(databaseUrl)))))),
      Effect.orDie
    )
  /** The warehouse has the customers of a company as its own server has them. */
  const assertEqual = Effect.fnUntraced(function* (side: Side, databaseUrl = world.databaseUrl) {
    const rows = yield* queryOn<{ id: string; name: string }>(
      databaseUrl,
      `select id::text, name from erp.customers where _company_id = ${side.number} and _deleted_at is null`
    )
    assert.deepStrictEqual(new Map(rows.map(({ id, name }) => [Number(id), name])), yield* customersOf(side))
  })
  /** A digest of every row of a company, in all tables. */
  const digestOf = Effect.fnUntraced(function* ({ name, number }: Side) {
    const tables = yield* world.query<{ text: string }>(
      `select format('select %L as table, count(*)::int as rows, coalesce(md5(string_agg(t::text, '' '' order by t::text)), '''') as digest from %I.%I t where %I = %L',
                n.nspname || '.' || c.relname, n.nspname, c.relname, a.attname, case a.attname when 'company' then '${name}' else '${number}' end) as text
         from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
        where n.nspname in ('erp', 'erp_history', 'tributary') and c.relkind = 'r' and a.attname in ('company', 'company_id', '_company_id')
          and c.relname not in ('activity', 'company_states')`
    )
    return yield* world.query<{ table: string; rows: number; digest: string }>(
      `${tables.map(({ text }) => text).join(" union all ")} order by 1, 2, 3`
    )
  })
  return { world, north, south, target, env, run, runOn, assertEqual, digestOf }
})

liveTest(
  "companies of two installations with equal numbers and ids are kept apart in every way of the data",
  function* () {
    const { world, north, south, target, env, run, runOn, assertEqual, digestOf } = yield* makeSides
    const sides = [north, south]
    const rowsBehind = (side: Side) =>
      Effect.map(digestOf(side), (tables) =>
        tables.flatMap(({ rows, table }) => (rows > 0 && table !== "tributary.receipts" ? [table] : []))
      )
    const both = (check: (side: Side) => Effect.Effect<unknown, unknown>) => Effect.forEach(sides, check)
    yield* both((side) => assertEqual(side))

    // Both have a subscription 1, and the same record changes at both.
    const serving = world.command(["serve", "--json"], env)
    yield* Effect.promise(() => firstLine(serving))
    yield* run("webhooks ensure")
    const change = Effect.fnUntraced(function* ({ name, reference, token }: Side, id: number, to: string) {
      const response = yield* Effect.promise(() =>
        fetch(`${reference.baseUrl}/customers/${id}`, {
          method: "PATCH",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "idempotency-key": to },
          body: JSON.stringify({ name: to })
        })
      )
      assert.isTrue(response.ok, `${name}: ${response.status}`)
      yield* Effect.promise(() => reference.control("POST", "/cycle"))
    })
    yield* both((side) => change(side, 1, `${side.name} by an event`))
    yield* both(({ name, number }) =>
      until(
        `the event of ${name}`,
        world.query<{ name: string }>(`select name from erp.customers where _company_id = ${number} and id = 1`),
        ([row]) => row?.name === `${name} by an event`
      )
    )
    assert.deepStrictEqual(yield* world.query("select 1 as one from tributary.inbox where state = 'dead_letter'"), [])
    assert.deepStrictEqual(
      yield* world.query("select company, subscription_id as id from tributary.subscriptions order by 1"),
      [
        { company: "north", id: "1" },
        { company: "south", id: "1" }
      ]
    )
    serving.child.kill("SIGTERM")
    yield* Effect.promise(() => serving.done)

    // The same externalids are pushed to both.
    yield* Effect.forEach(sides, ({ name }) =>
      Effect.gen(function* () {
        const records = [1, 2, 3].map((at) => ({
          externalid: `x-${at}`,
          customercode: `X${at}`,
          name: `${name} pushed ${at}`
        }))
        writeFileSync(
          join(world.folder, `${name}.ndjson`),
          records.map((record) => `${JSON.stringify(record)}\n`).join("")
        )
        yield* run(`push customers --company ${name} --from ${name}.ndjson`)
      })
    )
    yield* both((side) =>
      Effect.gen(function* () {
        const pushed = [...(yield* customersOf(side)).values()].filter((name) => name.includes(" pushed "))
        assert.deepStrictEqual(
          pushed,
          [1, 2, 3].map((at) => `${side.name} pushed ${at}`)
        )
        yield* assertEqual(side)
      })
    )

    // The feed of each ends with its own records.
    yield* both((side) =>
      Effect.gen(function* () {
        const lines = (yield* run(`changes customers --company ${side.name}`)).trim().split("\n")
        const changes = lines.map((line) => JSON.parse(line) as { companyId: number | string; after: Customer | null })
        assert.deepStrictEqual([...new Set(changes.map(({ companyId }) => Number(companyId)))], [side.number])
        const last = new Map(changes.flatMap(({ after }) => (after === null ? [] : [[after.id, after.name] as const])))
        assert.deepStrictEqual(last, yield* customersOf(side))
      })
    )
    yield* run("sync --full")
    yield* run("verify")
    const closed = yield* run(`close ${month}`)
    for (const { name, number } of sides) assert.include(closed, `company ${name} (${number}): ${month} is clean`)

    const ofNorth = yield* digestOf(north)
    assert.isAbove(ofNorth.filter(({ rows }) => rows > 0).length, 10)
    yield* run("company move south --to-env TARGET")
    yield* assertEqual(south, target)
    yield* runOn(target, "verify")
    assert.deepStrictEqual(yield* digestOf(north), ofNorth)
    assert.deepStrictEqual(yield* rowsBehind(south), [])

    yield* runOn(target, "company move south --to-env HOME_WAREHOUSE")
    yield* assertEqual(south)
    assert.deepStrictEqual(yield* digestOf(north), ofNorth)
    const ofSouth = yield* digestOf(south)
    yield* run("company remove north --erase --yes")
    assert.deepStrictEqual(yield* rowsBehind(north), [])
    assert.deepStrictEqual(yield* digestOf(south), ofSouth)
    yield* run("verify")
  },
  180_000
)
