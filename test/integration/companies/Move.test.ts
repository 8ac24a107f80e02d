/**
 * The rows of a company that moves: every table is copied with its references, whatever ids, formats and versions the
 * other server has. `npm run test:postgres` moves from another major version to the embedded server.
 */
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { protect } from "../../../src/catalogue/Protection.ts"
import { exclude } from "../../../src/connector/FieldRules.ts"
import * as CompanyRows from "../../../src/companies/CompanyRows.ts"
import * as CompanyStore from "../../../src/companies/CompanyStore.ts"
import { companyColumns, companyTables, tablesThat } from "../../../src/companies/CompanyTables.ts"
import * as Move from "../../../src/companies/Move.ts"
import * as Removal from "../../../src/companies/Removal.ts"
import { tableIdentitySql } from "../../../src/land/CheckpointIdentity.ts"
import { query as ask } from "../../../src/postgres/driver/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Statement from "../../../src/postgres/Statement.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import * as CountCompanies from "../../../src/tasks/CountCompanies.ts"
import * as WriteActivity from "../../../src/tasks/WriteActivity.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"
import { flowing, until, untilTrue } from "../../support/until.ts"
import { assertNone } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"
import { temporaryFolder } from "../../support/servers.ts"

const test = testWith(layerWarehouse)

const key = Redacted.make("a key of the test, with more than thirty-two characters")
/** The key of the target. */
const otherKey = Redacted.make("another key of the test, with more than thirty-two characters")
const token = Redacted.make("token-of-south")
const south = {
  company: "south",
  installation: null,
  url: "https://south.example",
  companyId: null,
  warehouseNumber: null,
  resources: ["customers"],
  excludeResources: ["users"],
  events: null
}
/** The company with its number. */
const south2 = { company: "south", companyId: 2n }
const fingerprint = "a".repeat(64)

/** A warehouse on the embedded server, which has the newest version. */
const layerEmbedded = Layer.effectDiscard(Migrations.migrate()).pipe(
  Layer.provideMerge(sqlLayer),
  Layer.provideMerge(
    Layer.unwrap(
      Effect.map(temporaryFolder, (folder) =>
        Database.layerEmbedded({ root: join(folder, "postgres"), port: 0, durable: false })
      )
    )
  ),
  Layer.orDie
)

/** Another warehouse. Where the tests run on another version of Postgres, it is on the embedded server. */
const otherWarehouse = Layer.build(
  Layer.fresh(process.env["TEST_POSTGRES_URL"] === undefined ? layerWarehouse : layerEmbedded)
)

/** The rows of a company, one or more in each table; `runs` has two. */
const rowsOf = (company: string, number: number): Readonly<Record<string, string>> => {
  const run = `(select max(id) from tributary.runs where company_id = ${number})`
  return {
    "tributary.companies": `(company, company_id, address, address_since) values ('${company}', ${number}, 'https://south.example', '2026-02-03 04:05:06.789012+00')`,
    "tributary.runs": `(company_id, resource, kind, fence, started_at, status) values
      (${number}, 'customers', 'full', 1, now(), 'done'), (${number}, 'customers', 'incremental', 2, now(), 'done')`,
    "tributary.checkpoints": `(company_id, resource, lane, fence, cursor, table_identity, shape, updated_at)
      values (${number}, 'customers', 'live', 7, '2026-02-03T04:05:06.7890120Z', ${tableIdentitySql(`'"erp"."customers"'`, `'"erp_history"."customers__superseded"'`)}, 'shape', now()),
             (${number}, 'items', 'live', 7, 'c', 'database=1 checkpoints=2 table=3 file=4', 'shape', now())`,
    "tributary.scans": `(company_id, resource, lane, run_id, kind, pages, started_at, refetch_generation)
      values (${number}, 'customers', 'live', ${run}, 'full', 1, now(), 1)`,
    "tributary.scan_ids": `(company_id, resource, lane, page, ids) values (${number}, 'customers', 'live', 1, array[1, 2])`,
    "tributary.refetch_requests": `(company_id, resource, field, value, requested_at) values (${number}, 'customers', 'id', '1', now())`,
    "tributary.change_batches": `(company_id, resource, history, ids, versions, changes, began, last_position, token)
      values (${number}, 'customers', '"erp_history"."customers"', array[1], array[2], 1, now(), nextval(pg_get_serial_sequence('tributary.change_batches', 'id')), 7)`,
    "tributary.quarantine": `(company_id, resource, reason, bytes, run_id, source, first_seen_at, last_seen_at)
      values (${number}, 'customers', 'odd', E'{"a":"\\\\u0009\\t\\n\\\\N"}', ${run}, 'GET', now(), now())`,
    "tributary.row_counts": `(company_id, resource, rows, deleted, run_id) values (${number}, 'customers', 1, 0, ${run}), (${number}, 'items', 0, 0, 0)`,
    "tributary.field_findings": `(company_id, resource, field, kind, rows, first_run_id, last_run_id, found_at)
      values (${number}, 'customers', 'age', 'volatile', 1, ${run}, ${run}, now())`,
    "tributary.unknown_fields": `(company_id, resource, field, first_seen_at, last_seen_at, sample_types, run_id)
      values (${number}, 'customers', 'colour', now(), now(), array['text', null, 'a"b,c'], ${run})`,
    "tributary.inbox": `(company, event_id, event_type, sent_at, body, run_id) values ('${company}', 'evt_1', 'customer.updated', now(), '\\x00ff5c', ${run})`,
    "tributary.webhook_secrets": `(company, subscription_id, sealed, state) values ('${company}', '7', '\\x0102', 'current')`,
    "tributary.subscriptions": `(company, subscription_id, url, events, state, checked_at) values ('${company}', '7', 'https://hooks', array['*'], 'active', now())`,
    "tributary.event_checks": `(company, checked_at, delay, age_max, expires_at, resources)
      values ('${company}', now(), '6 minutes', '12 minutes', now(), array['customers'])`,
    "tributary.delivery_gaps": `(company, resource, cause, detail, closed_by) values ('${company}', 'customers', 'event_lost', '', 'run ' || ${run})`,
    "tributary.pushes": `(company, resource, operation, source, content_hash, record_count) values ('${company}', 'customers', 'create', 'a file', 'hash', 1)`,
    "tributary.push_requests": `(company, resource, operation, idempotency_key, record_count) values ('${company}', 'customers', 'create', 'key of ${company}', 1)`,
    "tributary.outbox": `(company, resource, state, push_id, request_id, record) values ('${company}', 'customers', 'in_flight',
      (select id from tributary.pushes where company = '${company}'), (select id from tributary.push_requests where company = '${company}'), '{"b": 1.0, "a": "ü"}')`,
    "tributary.tasks": `(company, resource, kind, run_id) values ('${company}', 'customers', 'sync', ${run})`,
    "erp.customers": `(_company_id, id, _origin, _observed_at, _run_id) values (${number}, 1, 'scan', now(), ${run})`,
    "erp_history.customers__superseded": `(_company_id, id, _version, _origin, _observed_at, _valid_to, _run_id)
      values (${number}, 1, 1, 'scan', now(), now(), ${run} - 1)`
  }
}

const insertRows = Effect.fnUntraced(function* (company: string, number: number) {
  yield* TablePlan.apply([tableOf(serviceV2.resources.get("customers")!)])
  const rows = rowsOf(company, number)
  for (const [table, values] of Object.entries(rows)) yield* execute(`insert into ${table} ${values}`)
  return Object.keys(rows)
})

/** Two warehouses: the first has `south`, the second has `north` and used ids. */
const makeWarehouses = Effect.gen(function* () {
  yield* insertRows("south", 2)
  yield* execute(
    `insert into tributary.budgets (fingerprint, retry_after_at, used, rule, updated_at)
     values ('${fingerprint}', '2026-02-03 04:05:06.789012+00', '{0,5}', '{"pacedAt":1.5}', now())`
  )
  yield* CompanyStore.add(key, south, token)
  const target = yield* otherWarehouse
  yield* Effect.provideContext(
    Effect.gen(function* () {
      yield* insertRows("north", 1)
      // Other formats, in the sessions that begin from now on.
      const [{ name }] = (yield* execute<{ name: string }>("select current_database() as name")) as [{ name: string }]
      for (const setting of ["datestyle = 'SQL, DMY'", "bytea_output = 'escape'", "extra_float_digits = -15"]) {
        yield* execute(`alter database "${name}" set ${setting}`)
      }
    }),
    target
  )
  const move = {
    companyId: 2n,
    token,
    targetKey: otherKey,
    fingerprint,
    datasets: datasetsDefault,
    by: "a person"
  }
  const { resource } = protect(serviceV2.resources.get("customers")!, [{ pattern: "name", rule: exclude }])
  const ruled = { ...serviceV2, resources: new Map([...serviceV2.resources, ["customers", resource] as const]) }
  const refused = yield* Effect.flip(Move.prepareTables(target, ruled, move))
  assert.include(refused.message, "its privacy rules changed, and what is stored does not follow them yet")
  yield* Move.prepareTables(target, serviceV2, move)
  const begin = Effect.map(Move.begin("south"), (row) => ({ ...move, row }))
  return {
    target,
    begin,
    inTarget: <Row extends object>(text: string) => Effect.provideContext(execute<Row>(text), target)
  }
})

/** Waits until a session of the source waits for a lock. */
const lockAwaited = until(
  "a statement waits for a lock",
  Effect.orDie(
    execute<{ n: number }>(
      "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )
  ),
  ([row]) => row!.n > 0
)

/** Gives the company away, while this happens before its copy is committed. */
const giveWhile = <R>(
  target: Move.Target,
  give: ReturnType<typeof Move.give>,
  during: Effect.Effect<unknown, SqlError, R>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const client = yield* Context.get(target, Database).connect
      yield* ask(client, "block", "begin; lock table tributary.checkpoints in exclusive mode")
      const giving = yield* Effect.forkScoped(Effect.exit(give))
      yield* until(
        "the copy waits",
        Effect.orDie(
          ask<{ n: number }>(
            client,
            "look",
            "select count(*)::int as n from pg_locks where not granted and relation = 'tributary.checkpoints'::regclass"
          )
        ),
        ([row]) => row!.n > 0
      )
      yield* during
      yield* ask(client, "release", "commit")
      return yield* flowing(Effect.flatten(Fiber.join(giving)))
    })
  )

/** Rows of `south` as a process of serve writes them. */
const insertDerived = Effect.gen(function* () {
  for (const statement of [
    `insert into tributary.activity (resolution, at, company, resource, runs) values ('hour', date_trunc('hour', now()), 'south', 'customers', 1)`,
    `insert into tributary.company_states (company, counted_at, state, severity, resources, failing, late, never_synced, blocked, paused,
       fresh, lateness, quarantined, dead_letters, gaps, rejected, subscriptions_down)
     values ('south', now(), 'fresh', 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) on conflict do nothing`,
    `insert into tributary.invariants (name, severity, statement, comment, resources, query)
     values ('rule', 'critical', 's', 'c', array['customers'], 'select 1') on conflict do nothing`,
    "insert into tributary.invariant_states (invariant, company_id) values ('rule', 2) on conflict do nothing"
  ])
    yield* execute(statement)
})

const derivedRows = execute<{ rows: number }>(
  `select (select count(*) from tributary.activity where company = 'south')::int + (select count(*) from tributary.company_states)::int
        + (select count(*) from tributary.invariant_states)::int as rows`
)

test("the tables with rows of companies are all in the list that decides what moves and what is deleted", function* () {
  const tables = yield* execute<{ name: string; column: string }>(
    `select 'tributary.' || c.relname as name, a.attname as column from pg_class c join pg_attribute a on a.attrelid = c.oid
          where c.relnamespace = 'tributary'::regnamespace and c.relkind in ('r', 'p') and a.attname ~ 'company'
            and not a.attisdropped and a.attname <> 'company_revision' order by 1, 2`
  )
  assert.sameMembers(Object.keys(companyTables), [...new Set(tables.map(({ name }) => name))])
  // Another name of such a column is that of a setting.
  assert.deepStrictEqual(
    tables
      .filter(({ column }) => !companyColumns.includes(column as "company"))
      .map(({ name, column }) => [name, column]),
    [
      ["tributary.alert_silences", "only_company"],
      ["tributary.change_endpoints", "only_company"]
    ]
  )
})

describe("the rows of a company that serve writes", () => {
  test("are all deleted when it moves, also those that are being written, and its feed is readable there", function* () {
    const { target, begin, inTarget } = yield* makeWarehouses
    yield* insertDerived
    const move = yield* begin
    yield* Move.give(move, target)
    // A process of serve writes again before the move is complete, and commits while the rows are being deleted.
    const client = yield* (yield* Database).connect
    yield* ask(client, "write", "begin; select from tributary.activity_watermarks for update")
    yield* ask(
      client,
      "write",
      "insert into tributary.activity_watermarks (resolution, through) values ('hour', now()) on conflict do nothing"
    )
    yield* ask(client, "write", "commit; begin; select from tributary.activity_watermarks for update")
    yield* ask(
      client,
      "write",
      `insert into tributary.activity (resolution, at, company, resource, runs)
         values ('hour', date_trunc('hour', now()) - interval '1 hour', 'south', 'customers', 1)`
    )
    const completing = yield* Effect.forkScoped(Move.complete(south2, move.row.moveId!, target))
    yield* lockAwaited
    yield* ask(client, "write", "commit")
    assert.isTrue(yield* Fiber.join(completing))
    assert.deepStrictEqual(yield* derivedRows, [{ rows: 0 }])
    yield* Statement.run(CountCompanies.countStatement, [["south"]])
    yield* Effect.forEach([1, 2], () => WriteActivity.writeActivity(() => [{ company: "south", fingerprint }]))
    assert.deepStrictEqual(yield* derivedRows, [{ rows: 0 }])
    // No program has read the feed of the target yet.
    const changes = yield* inTarget<{ position: bigint; id: bigint }>(
      'select "position", id from tributary.changes_after(0, 1000, 2)'
    )
    assert.deepStrictEqual(valuesOf(changes, "id"), [1n])
    assert.isTrue(changes[0]!.position > 0n)
  })

  test("are all deleted when it is erased", function* () {
    yield* makeWarehouses
    yield* insertDerived
    yield* execute(
      `insert into tributary.change_endpoints (name, url, origin, last_position, secret) values ('a', 'https://a.example', 'command', 0, '\\x00')`
    )
    yield* execute(
      `insert into tributary.change_retries (endpoint, position, company_number, resource, record_id, next_attempt_at)
         values ('a', 1, 2, 'customers', 1, now())`
    )
    const receipt = yield* Removal.erase("south", 2n, "a person", ["erp", "erp_history"])
    assert.deepStrictEqual(yield* derivedRows, [{ rows: 0 }])
    assert.strictEqual(receipt.rows["tributary.change_retries"], 1)
    assert.strictEqual(receipt.rows["tributary.company_states"], 1)
    assert.deepStrictEqual(yield* execute("select from tributary.change_retries"), [])
  })
})

describe("the rows of a company that moves", () => {
  test("are all copied, with ids that are free in the target, and every reference", function* () {
    const { target, begin, inTarget } = yield* makeWarehouses
    const relations = (yield* execute<{ name: string }>(
      Removal.relationsStatement.text.replace("$1", "array['tributary', 'erp', 'erp_history']")
    )).map(({ name }) => name)
    assert.sameMembers(
      Object.keys(rowsOf("south", 2)),
      relations.filter((name) => !tablesThat("deleted").includes(name))
    )
    // Every column that may have an id of Postgres is known; `record_id` is the source's.
    const columns = yield* execute<{ column: string }>(
      `select attname as column from pg_attribute a join pg_class c on c.oid = a.attrelid
          where c.relnamespace = 'tributary'::regnamespace and c.relkind = 'r' and atttypid = 'bigint'::regtype and attnum > 0
            and attidentity = '' and attname ~ '(_id|generation)$' and attname not in ('company_id', 'record_id')`
    )
    assertNone(
      columns.map(({ column }) => column),
      (column) => CompanyRows.references[column] === undefined
    )

    const move = yield* begin
    const receipt = yield* Move.give(move, target)
    assert.isTrue(yield* Move.complete(south2, move.row.moveId!, target))
    assert.strictEqual(receipt.rows["tributary.runs"], 2)
    assert.sameMembers(Object.keys(receipt.rows), Object.keys(rowsOf("south", 2)))
    const [runs] = yield* inTarget<{ first: bigint; last: bigint; north: bigint }>(
      `select min(id) filter (where company_id = 2) as first, max(id) filter (where company_id = 2) as last,
                max(id) filter (where company_id = 1) as north from tributary.runs`
    )
    assert.isTrue(runs!.first > runs!.north)
    const found = yield* inTarget<{ id: bigint }>(
      `select run_id as id from tributary.scans where company_id = 2
         union all select run_id from tributary.quarantine where company_id = 2
         union all select run_id from tributary.row_counts where company_id = 2 and resource = 'customers'
         union all select first_run_id from tributary.field_findings where company_id = 2
         union all select last_run_id from tributary.field_findings where company_id = 2
         union all select run_id from tributary.unknown_fields where company_id = 2
         union all select run_id from tributary.inbox where company = 'south'
         union all select run_id from tributary.tasks where company = 'south'
         union all select substr(closed_by, 5)::bigint from tributary.delivery_gaps where company = 'south'
         union all select _run_id from erp.customers where _company_id = 2
         union all select _run_id + 1 from erp_history.customers__superseded where _company_id = 2`
    )
    assert.deepStrictEqual(
      valuesOf(found, "id"),
      found.map(() => runs!.last)
    )
    assert.deepStrictEqual(
      (yield* inTarget<{ other: string }>(
        `select o.record::text as record, p.company as pushed, r.idempotency_key as key, i.body, q.bytes,
                  (select run_id::int from tributary.row_counts where company_id = 2 and resource = 'items') as none,
                  (select generation = refetch_generation from tributary.refetch_requests f
                     join tributary.scans c using (company_id, resource) where c.company_id = 2) as refetch,
                  (select array_agg(table_identity = ${tableIdentitySql(`'"erp"."customers"'`, `'"erp_history"."customers__superseded"'`)} order by resource)
                     from tributary.checkpoints where company_id = 2) as identities,
                  (select table_identity from tributary.checkpoints where company_id = 2 and resource = 'items') as other,
                  (select retry_after_at = '2026-02-03 04:05:06.789012+00' from tributary.budgets) as pause,
                  (select used[2] from tributary.budgets) as permits
             from tributary.outbox o join tributary.pushes p on p.id = o.push_id
             join tributary.push_requests r on r.id = o.request_id, tributary.inbox i, tributary.quarantine q
            where o.company = 'south' and i.company = 'south' and q.company_id = 2`
      )).map((one): Record<string, unknown> => ({ ...one, other: one.other.includes("altered=") })),
      [
        {
          record: '{"b": 1.0, "a": "ü"}',
          pushed: "south",
          key: "key of south",
          body: new Uint8Array([0, 255, 92]),
          bytes: '{"a":"\\u0009\t\n\\N"}',
          none: 0,
          refetch: true,
          identities: [true, false],
          other: true,
          pause: true,
          permits: 5
        }
      ]
    )
    // Rows that begin now have ids of their own.
    const [added] = yield* inTarget<{ id: bigint }>(
      "insert into tributary.runs (company_id, resource, kind, fence, started_at) values (1, 'a', 'full', 1, now()) returning id"
    )
    assert.isTrue(added!.id > runs!.last)
    const [stored] = yield* Effect.provideContext(CompanyStore.read, target)
    const varying = { updatedAt: null, sealed: null, version: null }
    assert.strictEqual(Redacted.value(CompanyStore.tokenOf(otherKey, stored!)!), "token-of-south")
    assert.deepStrictEqual({ ...stored, ...varying }, { ...move.row, moveId: null, moveState: null, ...varying })
    assert.deepStrictEqual(yield* CompanyStore.read, [])
    assert.strictEqual((yield* Move.countRows({ company: "south", companyId: 2n }, datasetsDefault)).size, 0)
  })

  test("stay where another program adds one during the copy, and are copied again where it changes one", function* () {
    const { target, begin, inTarget } = yield* makeWarehouses
    const move = yield* begin
    const insert = execute(
      "insert into tributary.outbox (company, resource, record) values ('south', 'customers', '{}')"
    )
    const error = yield* Effect.flip(giveWhile(target, Move.give(move, target), insert))
    assert.include(error.message, "changed rows of the company while they were copied (tributary.outbox)")
    assert.deepStrictEqual(yield* inTarget("select company from tributary.company_settings"), [])
    const update = execute("update tributary.tasks set paused_by = 'a person' where company = 'south'")
    assert.strictEqual((yield* giveWhile(target, Move.give(move, target), update)).rows["tributary.outbox"], 2)
    assert.isFalse(yield* CompanyStore.resume("south"))
    yield* Move.complete(south2, move.row.moveId!, target)
    const tasks = yield* inTarget("select paused_by as by from tributary.tasks where company = 'south'")
    assert.deepStrictEqual(tasks, [{ by: "a person" }])
  })

  test("stay where the move is undone, or the company is changed, before it is given away, and not later", function* () {
    const { target, begin } = yield* makeWarehouses
    const move = yield* begin
    assert.isTrue(yield* CompanyStore.resume("south"))
    assert.include((yield* Effect.flip(Move.give(move, target))).message, "was undone meanwhile")
    const again = yield* begin
    assert.strictEqual(again.row.moveId, move.row.moveId)
    yield* CompanyStore.rotateToken(key, south, Redacted.make("another token"))
    assert.include((yield* Effect.flip(Move.give(again, target))).message, "was changed meanwhile")
    const [row] = yield* CompanyStore.read
    assert.strictEqual(Redacted.value(CompanyStore.tokenOf(key, row!)!), "another token")
    const resumed: Array<boolean> = []
    const resume = Effect.map(CompanyStore.resume("south"), (was) => resumed.push(was))
    yield* giveWhile(target, Move.give(yield* begin, target), Effect.andThen(Effect.forkDetach(resume), lockAwaited))
    yield* untilTrue("it is answered", () => resumed.length === 1)
    assert.deepStrictEqual(resumed, [false])
    // No further attempt may delete the copy, which is the only one now.
    assert.include((yield* Effect.flip(begin)).message, "has moved meanwhile")
  })
})
