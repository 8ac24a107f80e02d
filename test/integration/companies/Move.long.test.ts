/**
 * The move of a company between two warehouses, with the real commands and the reference server: it goes on where it
 * stopped, a killed move is repeated or undone, and no pushed record is sent by both.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { query } from "../../../src/postgres/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { compare } from "../../../src/verify/Compare.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import { freshDatabase } from "../../support/postgres.ts"
import type { CommandRun } from "../../support/reference.ts"
import { until } from "../../support/until.ts"
import { makeWorld } from "../../support/world.ts"

const key = "a key of the test, with more than thirty-two characters"
const otherKey = "another key of the test, with more than thirty-two characters"
const resources = ["customers", "items", "invoices", "invoicelines"]

interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const succeed = (result: CommandResult) => {
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
const makeWarehouses = Effect.gen(function* () {
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
  ) => {
    const command = world.command(args, env(on.url, more))
    return command
  }
  const add = (on: { readonly url: string }, name: string, more: Readonly<Record<string, string>> = {}) =>
    Effect.map(
      run(
        on,
        ["company", "add", name, "--token-env", name.toUpperCase(), ...resources.flatMap((one) => ["--resource", one])],
        more
      ),
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
  return { world, from, to, run, start, add, state, differences, second }
})

const move = ["company", "move", "south", "--to-env", "OTHER", "--json"]

const checkpoints = `select resource, lane, cursor, full_scan_at::text as full_scan_at, full_scan_reason, shape
                       from tributary.checkpoints where company_id = 2 order by 1, 2`

type Warehouses = Effect.Success<typeof makeWarehouses>

/** Changes records of company 2 at the source. */
const change = ({ world }: Warehouses, name: string) =>
  Effect.gen(function* () {
    const [line] = yield* Effect.promise(() => world.reference.lines("/state?company=2&resource=customers"))
    const { id } = JSON.parse(line!) as { id: number }
    yield* world.control("POST", "/records", { company: 2, resource: "customers", records: [{ id, name }] })
  })

const rowsBehind = (database: Warehouses["from"]) =>
  Effect.gen(function* () {
    const tables = yield* database.query<{ name: string; condition: string }>(
      `select format('%I.%I', n.nspname, c.relname) as name, case a.attname when 'company' then 'company = ''south''' else a.attname || ' = 2' end as condition
         from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
        where n.nspname in ('erp', 'erp_history', 'tributary') and c.relkind = 'r' and a.attname in ('company', 'company_id', '_company_id')
          and c.relname not in ('activity', 'company_receipts', 'company_states')`
    )
    const found: Array<string> = []
    for (const { name, condition } of tables) {
      if ((yield* database.count(`${name} where ${condition}`)) > 0) found.push(name)
    }
    return found
  })

const scoped = <A, E>(test: Effect.Effect<A, E, Scope.Scope>) => Effect.scoped(test)

describe("tributary company move", () => {
  it.live(
    "moves every row; syncing continues from the checkpoints, and a pending record is pushed once",
    () =>
      scoped(
        Effect.gen(function* () {
          const warehouses = yield* makeWarehouses
          const { world, from, to, run, start, add, state, differences } = warehouses
          // History, an inferred column here, another one there, and ids that collide.
          const records = (company: number, more: Readonly<Record<string, unknown>>) =>
            world.control("POST", "/records", { company, resource: "items", records: [{ id: 990_001, ...more }] })
          yield* records(2, { colour: "red", weight: 3 })
          yield* change(warehouses, "Changed once")
          succeed(yield* run(from, ["sync"]))
          succeed(yield* run(from, ["schema", "apply", "--field", "items.colour"]))
          yield* change(warehouses, "Changed twice")
          succeed(yield* run(from, ["sync"]))
          yield* records(1, { weight: 4 })
          yield* add(to, "north", { TRIBUTARY_COMPANIES_KEY: otherKey })
          const there = { TRIBUTARY_COMPANIES_KEY: otherKey }
          succeed(yield* run(to, ["sync"], there))
          succeed(yield* run(to, ["schema", "apply", "--field", "items.weight"], there))
          succeed(yield* run(from, ["company", "pause", "south"]))
          yield* from.query(
            `insert into tributary.outbox (company, resource, record)
             values ('south', 'customers', '{"externalid": "moved-1", "customercode": "MOVED1", "name": "Moved"}')`
          )
          const before = yield* from.query(checkpoints)
          const counts = yield* from.query(
            "select (select count(*) from erp_history.customers) as versions, (select count(*) from tributary.runs) as runs"
          )
          const versions = "erp_history.customers where _company_id = 2"
          const runs =
            "erp.customers c join tributary.runs r on r.id = c._run_id and r.company_id = c._company_id and r.resource = 'customers' where c._company_id = 2"
          const joined = yield* from.count(runs)
          assert.isAbove(joined, 0)
          assert.strictEqual(yield* from.count(runs.replace("erp.customers c", "erp.customers c left")), joined)

          const args = [...move, "--to-key-env", "TO_KEY"]
          const shown = succeed(yield* run(from, [...args, "--dry-run"], { TO_KEY: otherKey }))
          assert.strictEqual((JSON.parse(shown.stdout) as { rows: Record<string, number> }).rows["tributary.outbox"], 1)
          assert.strictEqual(yield* to.count("erp.customers where _company_id = 2"), 0)

          // Processes of both warehouses run, and notice the move by themselves.
          start(from, ["serve"])
          start(to, ["serve"], there)
          for (const one of [from, to]) {
            yield* until("serve is alive", one.count("tributary.processes_alive"), (processes) => processes === 1, 60)
          }
          const began = performance.now()
          const moved = JSON.parse(succeed(yield* run(from, args, { TO_KEY: otherKey })).stdout) as {
            rows: Record<string, number>
            left: object
          }
          yield* Effect.logInfo(`moved in ${Math.round(performance.now() - began)} ms: ${JSON.stringify(moved.rows)}`)
          assert.deepStrictEqual(moved.left, {})
          assert.deepStrictEqual(yield* rowsBehind(from), [])
          assert.strictEqual(yield* from.count("tributary.company_receipts where action = 'move'"), 1)
          assert.deepStrictEqual(yield* to.query(checkpoints), before)
          assert.deepStrictEqual(
            yield* to.query(
              `select (select count(*) from ${versions}) as versions, (select count(*) from tributary.runs where company_id = 2) as runs`
            ),
            counts
          )
          assert.strictEqual(yield* to.count(runs), joined)
          assert.deepStrictEqual(
            yield* to.query(
              "select colour, weight::text as weight, _extra from erp.items where id = 990001 and _company_id = 2"
            ),
            [{ colour: "red", weight: "3", _extra: null }]
          )
          assert.deepStrictEqual(yield* differences(to), [])

          // It is paused there as it was here.
          assert.include((yield* run(to, ["sync", "--company", "south"], there)).stderr, "company south is paused")
          const [{ last }] = (yield* to.query<{ last: string }>(
            "select max(id)::text as last from tributary.runs"
          )) as [{ last: string }]
          yield* change(warehouses, "Changed after the move")
          succeed(yield* run(to, ["company", "resume", "south"], there))
          const outcome = "select outcome, attempts from tributary.outbox where company = 'south'"
          yield* until(
            "the record is pushed",
            to.query<{ outcome: string | null }>(outcome),
            (rows) => rows.length === 1 && rows[0]!.outcome === "created",
            60
          )
          yield* until("the rows are equal", differences(to), (found) => found.length === 0, 60)
          const [firstRun] = yield* to.query<{ kind: string; updated: number }>(
            `select kind, updated::int as updated from tributary.runs
              where company_id = 2 and resource = 'customers' and lane = 'live' and id > ${last} order by id limit 1`
          )
          assert.deepStrictEqual({ ...firstRun }, { kind: "incremental", updated: 1 })
          assert.lengthOf(
            (yield* state("customers")).filter((record) => record.includes('"moved-1"')),
            1
          )
          assert.deepStrictEqual(yield* rowsBehind(from), [])
          succeed(yield* run(to, ["verify", "--company", "south"], there))
        })
      ),
    { timeout: 400_000 }
  )

  it.live(
    "can be repeated, or undone, after a kill at each step; then the company can move back",
    () =>
      scoped(
        Effect.gen(function* () {
          const warehouses = yield* makeWarehouses
          const { from, to, run, start, differences } = warehouses
          succeed(yield* run(to, ["company", "list"]))
          const back = ["company", "move", "south", "--to-env", "DATABASE_URL", "--json"]
          const stateOf = (on: Warehouses["from"]) =>
            Effect.map(
              on.query<{ state: string | null }>("select move_state as state from tributary.company_settings"),
              (rows) => rows.map((row) => row.state ?? "active")
            )
          /** A session that runs these statements, and keeps its locks. */
          const block = Effect.fnUntraced(function* (on: Warehouses["from"], statement: string) {
            const client = yield* on.connect
            const locked = client.query(`begin; ${statement}`)
            return { locked: Effect.promise(() => locked), release: Effect.promise(() => client.query("commit")) }
          })
          const locks = (on: Warehouses["from"]) =>
            on.count("pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
          const waits = (on: Warehouses["from"], sessions = 1) =>
            until("the move waits", locks(on), (waiting) => waiting === sessions, 60)
          /** Kills the move, and the statement that waits: a server may run it after the end of its client. */
          const kill = (command: CommandRun) =>
            Effect.gen(function* () {
              command.child.kill("SIGKILL")
              yield* Effect.promise(() => command.done)
              for (const on of [from, to]) {
                yield* on.query(
                  "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
                )
              }
            })
          const companyRow = "select from tributary.companies where company = 'south' for update"
          const settingsRow = "select from tributary.company_settings where company = 'south' for update"

          // The company is stopped; a process has not ended its work.
          yield* from.query(
            "insert into tributary.processes (process_id, companies, company_revision) values ('p', '{}', 0)"
          )
          const stopped = start(from, move)
          yield* until("the company is stopped", stateOf(from), (states) => states[0] === "leaving", 60)
          yield* kill(stopped)
          const refused = yield* run(from, ["sync", "--company", "south"])
          assert.strictEqual(refused.code, 2)
          assert.include(refused.stderr, "company south is moving to another warehouse")
          yield* from.query("delete from tributary.processes")
          succeed(yield* run(from, ["company", "resume", "south"]))
          succeed(yield* run(from, ["sync", "--company", "south"]))

          // While it is copied.
          const copy = yield* block(to, "lock table tributary.checkpoints in exclusive mode")
          yield* copy.locked
          const copying = start(from, move)
          yield* waits(to)
          assert.deepStrictEqual(yield* stateOf(from), ["leaving"])
          yield* kill(copying)
          yield* copy.release
          yield* until("the copy is undone", rowsBehind(to), (tables) => tables.length === 0, 20)

          // It is copied, and not given away.
          const deletion = yield* block(from, companyRow)
          yield* deletion.locked
          const copied = start(from, move)
          yield* waits(from)
          assert.deepStrictEqual(yield* stateOf(to), ["arriving"])
          yield* kill(copied)
          yield* deletion.release
          yield* until("the deletion is undone", locks(from), (waiting) => waiting === 0, 20)
          assert.deepStrictEqual(yield* stateOf(from), ["leaving"])
          assert.include((yield* run(to, ["company", "resume", "south"])).stdout, "was not paused")
          assert.include((yield* run(to, ["sync", "--company", "south"])).stderr, "arriving from another warehouse")
          yield* until(
            "no session is left",
            from.count("pg_stat_activity where datname = current_database() and state like 'idle in%'"),
            (n) => n === 0,
            20
          )
          succeed(yield* run(from, ["company", "resume", "south"]))
          yield* change(warehouses, "Changed after the move was undone")
          succeed(yield* run(from, ["sync", "--company", "south"]))
          assert.deepStrictEqual(yield* differences(from), [])

          // It is given away, and the source still has its settings. The copy of the earlier attempt is replaced.
          const again = yield* block(from, companyRow)
          yield* again.locked
          const given = start(from, move)
          yield* waits(from)
          const settings = yield* block(from, settingsRow)
          yield* waits(from, 2)
          yield* again.release
          yield* settings.locked
          yield* waits(from)
          yield* kill(given)
          yield* settings.release
          assert.deepStrictEqual([yield* stateOf(from), yield* stateOf(to)], [["leaving"], ["arriving"]])
          assert.include((yield* run(from, ["company", "resume", "south"])).stdout, "was not paused")
          const completed = succeed(yield* run(from, move))
          assert.isTrue((JSON.parse(completed.stdout) as { isNew: boolean }).isNew)
          assert.deepStrictEqual([yield* stateOf(from), yield* stateOf(to)], [[], ["active"]])
          assert.deepStrictEqual(yield* rowsBehind(from), [])
          assert.deepStrictEqual(yield* differences(to), [])

          // Back again: the settings are gone there, and the company is not active here.
          const third = yield* block(to, companyRow)
          yield* third.locked
          const returning = start(to, back)
          yield* waits(to)
          const arrival = yield* block(from, settingsRow)
          yield* arrival.locked
          yield* third.release
          yield* waits(from)
          yield* kill(returning)
          yield* arrival.release
          assert.deepStrictEqual([yield* stateOf(from), yield* stateOf(to)], [["arriving"], []])
          succeed(yield* run(to, back))
          assert.deepStrictEqual([yield* stateOf(from), yield* stateOf(to)], [["active"], []])
          assert.isFalse((JSON.parse(succeed(yield* run(to, back)).stdout) as { isNew: boolean }).isNew)
          yield* change(warehouses, "Changed after it came back")
          succeed(yield* run(from, ["sync", "--company", "south"]))
          assert.deepStrictEqual(yield* differences(from), [])
          assert.strictEqual(
            yield* from.count("tributary.runs where company_id = 2 and resource = 'customers' and kind = 'full'"),
            1
          )
        })
      ),
    { timeout: 400_000 }
  )

  it.live(
    "is refused with the reason where the target does not fit, and changes nothing",
    () =>
      scoped(
        Effect.gen(function* () {
          const { from, to, run, add } = yield* makeWarehouses
          const refused = Effect.fnUntraced(function* (
            reason: string,
            args: ReadonlyArray<string> = move,
            more: Readonly<Record<string, string>> = {}
          ) {
            const { code, stderr } = yield* run(from, args, more)
            assert.strictEqual(code, 2, stderr)
            assert.include(stderr, reason)
          })
          yield* refused("already", ["company", "move", "south", "--to-env", "DATABASE_URL"])
          yield* refused("has no company west", ["company", "move", "west", "--to-env", "OTHER"])
          yield* refused("does not open the token of company south", move, { TRIBUTARY_COMPANIES_KEY: otherKey })
          assert.strictEqual((yield* run(from, ["company", "move", "south"])).code, 1)
          assert.strictEqual(yield* from.count("tributary.company_settings where move_state is not null"), 0)

          yield* from.query("update tributary.installation set pause_reason = 'a test'")
          yield* from.query("insert into tributary.outbox (company, resource) values ('south', 'customers')")
          yield* refused("Pushes are paused: a test")
          yield* from.query("update tributary.installation set pause_reason = null")
          yield* from.query("delete from tributary.outbox")

          yield* to.query("insert into tributary.migrations (id, name, checksum) values (9999, 'later', '')")
          yield* refused("was applied by a newer version")
          yield* to.query("delete from tributary.migrations where id = 9999")

          // The number of the company has rows there, of another name.
          yield* to.query("insert into tributary.companies (company, company_id) values ('other', 2)")
          yield* refused("tributary.companies")
          yield* to.query("delete from tributary.companies")

          yield* to.query("create table erp.customers_kept (like erp.customers)")
          yield* to.query("alter table erp.customers add column remark text")
          yield* refused("remark is missing here and text in the target")
          yield* to.query("alter table erp.customers drop column remark")
          assert.deepStrictEqual(yield* rowsBehind(to), [])

          yield* add(to, "south")
          yield* refused("the target has a company south already")
          succeed(yield* run(to, ["company", "remove", "south", "--erase", "--yes"]))
          succeed(yield* run(from, move))
        })
      ),
    { timeout: 400_000 }
  )
})
