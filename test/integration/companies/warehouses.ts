/** Two warehouses and the commands that move a company between them. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { compare } from "../../../src/verify/Compare.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import { freshDatabase } from "../../support/postgres.ts"
import { makeWorld } from "../../support/world.ts"

const key = "a key of the test, with more than thirty-two characters"
export const otherKey = "another key of the test, with more than thirty-two characters"
const resources = ["customers", "items", "invoices", "invoicelines"]

interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export const succeed = (result: CommandResult) => {
  assert.strictEqual(result.code, 0, `${result.stdout}\n${result.stderr}`)
  return result
}

/** A database, as a test looks at it. */
const databaseOf = Effect.fnUntraced(function* (url: string) {
  const connect = yield* Effect.map(Layer.build(Layer.fresh(Database.layerUrl(Redacted.make(url)))), (context) =>
    Effect.flatMap(Database, (database) => database.connect).pipe(Effect.provideContext(context))
  )
  const client = yield* connect
  return {
    url,
    connect,
    query: <Row extends object>(text: string) =>
      Effect.orDie(query<Row & Record<string, unknown>>(client, "look", text)),
    count: (from: string) =>
      Effect.map(
        Effect.orDie(query<{ n: number }>(client, "count", `select count(*)::int as n from ${from}`)),
        ([row]) => row!.n
      )
  }
})

/** Two warehouses; the first has `south`, company 2, with its first sync. */
export const makeWarehouses = Effect.gen(function* () {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  const from = yield* databaseOf(world.databaseUrl)
  const to = yield* databaseOf(Redacted.value(yield* freshDatabase))
  const [first, second] = yield* Effect.promise(() => Promise.all([world.reference.token(1), world.reference.token(2)]))
  world.configure(`webhooks: { listen: "127.0.0.1:0" }
schedule: { default: { every: 5s, jitter_seconds: 0 } }
dashboard: { listen: off }
`)
  const environment = {
    SERVICE_API_TOKEN: "",
    TRIBUTARY_COMPANIES_KEY: key,
    NORTH: first,
    SOUTH: second,
    OTHER: to.url
  }
  const env = (on: string, more: Readonly<Record<string, string>>) => ({ ...environment, DATABASE_URL: on, ...more })
  const run = (
    on: { readonly url: string },
    args: ReadonlyArray<string>,
    more: Readonly<Record<string, string>> = {}
  ) => world.run(args, env(on.url, more))
  const start = (
    on: { readonly url: string },
    args: ReadonlyArray<string>,
    more: Readonly<Record<string, string>> = {}
  ) => world.command(args, env(on.url, more))
  const add = (on: { readonly url: string }, name: string) =>
    Effect.map(
      run(on, [
        "company",
        "add",
        name,
        "--token-env",
        name.toUpperCase(),
        ...resources.flatMap((one) => ["--resource", one])
      ]),
      succeed
    )
  yield* add(from, "south")
  succeed(yield* run(from, ["sync"]))
  const state = (resource: string) =>
    Effect.promise(() => world.reference.lines(`/state?company=2&resource=${resource}`))
  /** The differences between the rows of `south` and the server's own state. */
  const differences = Effect.fnUntraced(function* (on: { readonly url: string }) {
    const found: Array<string> = []
    // The columns of items are inferred in part; tributary verify knows them.
    for (const resource of resources.filter((one) => one !== "items")) {
      const result = yield* compare(tableOf(serviceV2.resources.get(resource)!), 2n, yield* state(resource)).pipe(
        Effect.provide(Layer.fresh(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(on.url)))))),
        Effect.orDie
      )
      if (result.differences.length > 0) found.push(`${resource}: ${JSON.stringify(result.differences.slice(0, 2))}`)
    }
    return found
  })
  return { world, from, to, run, start, add, differences }
})

export const move = ["company", "move", "south", "--to-env", "OTHER", "--json"]

export type Warehouses = Effect.Success<typeof makeWarehouses>

/** Changes records of company 2 at the source. */
export const change = ({ world }: Warehouses, name: string) =>
  Effect.gen(function* () {
    const [line] = yield* Effect.promise(() => world.reference.lines("/state?company=2&resource=customers"))
    const { id } = JSON.parse(line!) as { id: number }
    yield* world.control("POST", "/records", { company: 2, resource: "customers", records: [{ id, name }] })
  })

export const rowsBehind = (database: Warehouses["from"]) =>
  Effect.gen(function* () {
    const tables = yield* database.query<{ name: string; condition: string }>(
      `select format('%I.%I', n.nspname, c.relname) as name, case a.attname when 'company' then 'company = ''south''' else a.attname || ' = 2' end as condition
         from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
        where n.nspname in ('erp', 'erp_history', 'tributary') and c.relkind = 'r' and a.attname in ('company', 'company_id', '_company_id')
          and c.relname not in ('activity', 'receipts', 'company_states')`
    )
    const found: Array<string> = []
    for (const { name, condition } of tables) {
      if ((yield* database.count(`${name} where ${condition}`)) > 0) found.push(name)
    }
    return found
  })
