/** Settings of a database or a role. With each of them rows are correct, or an error names the setting. */
import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { query } from "../../../src/postgres/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import { makeWorld } from "../../support/world.ts"

const resources = ["customers", "items", "invoices", "invoicelines"]

/** Settings that change how values are read or written, how a transaction behaves, or how names are resolved. */
const odd: Readonly<Record<string, string>> = {
  default_transaction_isolation: "serializable",
  default_transaction_deferrable: "on",
  synchronous_commit: "off",
  statement_timeout: "2min",
  lock_timeout: "1min",
  idle_in_transaction_session_timeout: "30s",
  search_path: "nowhere",
  timezone: "Asia/Kathmandu",
  datestyle: "SQL, DMY",
  intervalstyle: "sql_standard",
  bytea_output: "escape",
  extra_float_digits: "-15",
  standard_conforming_strings: "off",
  escape_string_warning: "off",
  backslash_quote: "off",
  array_nulls: "off",
  transform_null_equals: "on",
  row_security: "off",
  quote_all_identifiers: "on",
  client_encoding: "LATIN1",
  client_min_messages: "debug1",
  plan_cache_mode: "force_generic_plan",
  jit: "on",
  jit_above_cost: "0"
}

const prepared = Effect.fnUntraced(function* (settings: Readonly<Record<string, string>>) {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  world.configure("budget: { requests_per_minute: unlimited }\nsync: { custom_fields: true }\n")
  const administer = <A, E>(work: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
    Effect.flatMap(SqlClient.SqlClient, work).pipe(
      Effect.provide(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(world.databaseUrl)))))
    )
  const database = new URL(world.databaseUrl).pathname.slice(1)
  yield* administer((sql) =>
    Effect.forEach(Object.entries(settings), ([name, value]) =>
      sql.unsafe(`alter database ${database} set ${name} = ${name === "search_path" ? value : `'${value}'`}`)
    )
  )
  return { ...world, administer, database }
})

describe("a database with unusual default settings", () => {
  it.live(
    "has correct rows after a sync",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* prepared(odd)
          const first = yield* world.run(["sync", ...resources])
          assert.strictEqual(first.code, 0, first.stderr)
          const [session] = yield* Effect.scoped(
            Effect.flatMap(Database, ({ connect }) => connect).pipe(
              Effect.flatMap((client) =>
                query(
                  client,
                  "look",
                  "select current_setting('statement_timeout') as timeout, current_setting('transaction_isolation') as isolation"
                )
              ),
              Effect.provide(Database.layerUrl(Redacted.make(world.databaseUrl)))
            )
          )
          assert.deepStrictEqual(session, { timeout: "0", isolation: "read committed" })
          const verified = yield* world.run(["verify", ...resources])
          assert.strictEqual(verified.code, 0, verified.stdout + verified.stderr)
        })
      ),
    120_000
  )

  it.live(
    "has correct rows when the settings belong to a role without superuser rights",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* prepared({})
          const role = `odd_${randomUUID().slice(0, 8)}`
          yield* Effect.acquireRelease(
            world.administer((sql) =>
              Effect.gen(function* () {
                yield* sql.unsafe(`create role ${role} login password 'not-a-secret'`)
                yield* sql.unsafe(`grant create, temporary on database ${world.database} to ${role}`)
                for (const [name, value] of Object.entries(odd)) {
                  yield* sql.unsafe(`alter role ${role} set ${name} = ${name === "search_path" ? value : `'${value}'`}`)
                }
              })
            ),
            () =>
              Effect.orDie(
                world.administer((sql) =>
                  Effect.andThen(sql.unsafe(`drop owned by ${role} cascade`), sql.unsafe(`drop role ${role}`))
                )
              )
          )
          const url = new URL(world.databaseUrl)
          url.username = role
          url.password = "not-a-secret"
          const env = { DATABASE_URL: url.href }
          const first = yield* world.run(["sync", ...resources], env)
          assert.strictEqual(first.code, 0, first.stderr)
          const again = yield* world.run(["sync", "--full", ...resources], env)
          assert.strictEqual(again.code, 0, again.stderr)
          const verified = yield* world.run(["verify", ...resources], env)
          assert.strictEqual(verified.code, 0, verified.stdout + verified.stderr)
        })
      ),
    120_000
  )

  it.live(
    "makes sync end with code 2 when it is read-only",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* prepared({ default_transaction_read_only: "on" })
          const done = yield* world.run(["sync", ...resources])
          assert.strictEqual(done.code, 2, done.stderr)
          assert.include(done.stderr, "read-only")
        })
      ),
    60_000
  )
})
