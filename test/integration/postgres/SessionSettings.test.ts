/** Sessions of a hostile role: every kind of connection has the settings of the one list, or names what it cannot change. */
import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { read } from "../../../src/cli/query.ts"
import type { Server } from "../../../src/postgres/Server.ts"
import { open, query } from "../../../src/postgres/driver/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Reader from "../../../src/warehouse/Reader.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { makeHostile, oddSettings } from "../../support/hostileRole.ts"
import * as pgbouncer from "../../support/pgbouncer.ts"
import { freshDatabase, sql } from "../../support/postgres.ts"
import { flowing } from "../../support/until.ts"
import { test } from "../../support/suite.ts"

/** Values whose text depends on a setting, and names that a path can shadow. */
const sample = `select row(now() > '2020-01-01', lower('ABC'), md5('x'), 1::int8 = 1::int8, 1.5 + 1.5, date '2026-02-03',
    timestamptz '2026-02-03 04:05:06+00', interval '1 day 2 hours', decode('61ff', 'hex'), 0.1::float8 + 0.2::float8,
    '{null}'::text[], 'a\\b', '04:05 IST'::timetz, current_setting('timezone'), null = null, count(1::int8),
    nullif(current_setting('tributary.as_of', true), ''), to_char(timestamp '2026-02-03', 'YYYY'),
    (select count(*) > 100 from pg_class))::text as text`

/** Settings without a meaning for values, which sessions may keep. */
const kept = new Set(
  "check_function_bodies default_text_search_config escape_string_warning jit jit_above_cost lc_monetary lc_numeric lc_time plan_cache_mode work_mem".split(
    " "
  )
)

/** A database, and a role without rights of a superuser that is hostile in it. */
const hostile = Effect.gen(function* () {
  const url = yield* freshDatabase
  const role = `hostile_${randomUUID().slice(0, 8)}`
  const administer = <A, E>(work: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
    Effect.orDie(
      Effect.flatMap(SqlClient.SqlClient, work).pipe(
        Effect.provide(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(url))))
      )
    )
  yield* Effect.acquireRelease(
    administer((sql) =>
      Effect.gen(function* () {
        yield* sql.unsafe(`create role ${role} login password 'not-a-secret'`)
        yield* makeHostile(sql, [role])
      })
    ),
    () => administer((sql) => Effect.andThen(sql.unsafe(`drop owned by ${role}`), sql.unsafe(`drop role ${role}`)))
  )
  const named = new URL(Redacted.value(url))
  named.username = role
  named.password = "not-a-secret"
  return { plain: url, url: Redacted.make(named.href), role, administer }
})

const pooled = (url: Redacted.Redacted, statement: string) =>
  sql.unsafe<{ readonly text: string }>(statement).pipe(
    Effect.map(([row]) => row!.text),
    Effect.provide(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(url))))
  )

/** The answer of each kind of session. */
const answers = (url: Redacted.Redacted, statement: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const database = yield* Database
      const server: Server = database
      const ask = (client: Parameters<typeof query>[0]) =>
        Effect.map(query<{ readonly text: string }>(client, "ask", statement), ([row]) => row!.text)
      return {
        dedicated: yield* ask(yield* database.connect),
        landing: yield* database.landings.use({ class: 0, party: "", dueAt: 0 }, ask),
        opened: yield* Effect.acquireUseRelease(open(server), ask, (client) => Effect.promise(() => client.end())),
        pool: yield* pooled(url, statement),
        reader: (yield* Effect.provideService(read(statement), Reader.ReaderOptions, {
          url,
          datasets: datasetsDefault
        })).rows[0]![0]!
      }
    })
  ).pipe(Effect.provide(Database.layerUrl(url)))

describe("a role with every odd setting, and functions, operators and types of its own", () => {
  test("gets the values of a plain role, and keeps none of its settings, in every kind of session", function* () {
    const { plain, url } = yield* hostile
    const expected = yield* pooled(plain, sample)
    for (const [kind, text] of Object.entries(yield* answers(url, sample))) assert.strictEqual(text, expected, kind)
    const names = Object.keys(oddSettings).filter((name) => !kept.has(name))
    const statement = `select string_agg(n || '=' || current_setting(n, true), ';' order by n) as text
                           from unnest(array[${names.map((name) => `'${name}'`).join(", ")}]) n`
    for (const [kind, text] of Object.entries(yield* answers(url, statement))) {
      const values = new Map(text.split(";").map((pair) => pair.split("=", 2) as [string, string]))
      assert.isAbove(values.size, 20)
      // A reader has limits and names of its own.
      const own = kind === "reader" ? ["search_path", "statement_timeout", "lock_timeout"] : []
      for (const [name, value] of values)
        if (!own.includes(name)) assert.notStrictEqual(value, oddSettings[name], `${kind} ${name}`)
    }
  })

  test("gets an error that names a setting which only a superuser may change", function* () {
    const { url, role, administer } = yield* hostile
    yield* administer((sql) => sql.unsafe(`alter role ${role} set session_replication_role = replica`))
    yield* administer((sql) => sql.unsafe(`alter role ${role} set exit_on_error = off`))
    const error = yield* Effect.flip(
      Effect.scoped(Effect.flatMap(Database, ({ connect }) => connect)).pipe(Effect.provide(Database.layerUrl(url)))
    )
    assert.match(error.message, /permission denied to set parameter "session_replication_role"/)
  })

  it.effect.skipIf(pgbouncer.absent !== null)(
    "is refused behind a pooler that keeps its settings, by their names",
    () =>
      Effect.gen(function* () {
        const { url, role, administer } = yield* hostile
        const through = yield* flowing(pgbouncer.pooled(url, "session", 10))
        const error = yield* Effect.flip(pooled(through, "select 'x' as text"))
        assert.strictEqual(error._tag, "DatabaseError")
        assert.match(error.message, /other defaults for .*bytea_output.*search_path.*set search_path = public/)
        assert.notMatch(error.message, /_timeout/)
        const database = new URL(Redacted.value(url)).pathname.slice(1)
        yield* administer((sql) => sql.unsafe(`alter role ${role} in database ${database} reset all`))
        yield* administer((sql) =>
          sql.unsafe(`alter role ${role} in database ${database} set statement_timeout = '1min'`)
        )
        const usual = yield* flowing(pgbouncer.pooled(url, "session", 10))
        assert.strictEqual(yield* pooled(usual, "select current_setting('search_path') as text"), '"$user", public')
      }).pipe(Effect.scoped)
  )
})
