/** The database role of the pages: the reader, or the owner if there is none. */
import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { statements } from "../../src/warehouse/Grants.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "../../src/warehouse/Model.ts"
import * as Reader from "../../src/warehouse/Reader.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import { DatabaseError } from "../../src/postgres/DatabaseError.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import { ask, type Reply, seed, showing, shownCompany } from "../support/pages.ts"
import { freshDatabase, sql } from "../support/postgres.ts"
import { test } from "../support/suite.ts"

const companies = [shownCompany("north", 1n)]
const as = (url: Redacted.Redacted) => sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(url)))

/** A connection URL for the same database and another role. */
const loginAs = (url: Redacted.Redacted, role: string) => {
  const other = new URL(Redacted.value(url))
  other.username = role
  other.password = "not-a-secret"
  return Redacted.make(other.href)
}

const filled = Effect.andThen(Migrations.migrate(), seed([["north", 1]], ["things"], 20))

/** The page, once the reader role is connected. */
const shown = (url: string) =>
  ask(url).pipe(
    Effect.filterOrFail(({ status }: Reply) => status !== 503),
    Effect.retry({ times: 50_000 })
  )

/** Hides the runs from a reader, but not from their owner. */
const hideRuns = Effect.andThen(
  sql.unsafe("alter table tributary.runs enable row level security"),
  sql.unsafe("alter table tributary.quarantine enable row level security")
)

/** A temporary role that is dropped with the scope. */
const makeRole = (admin: Redacted.Redacted, options: string) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const role = `test_${randomUUID().slice(0, 8)}`
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe(`create role ${role} login password 'not-a-secret' ${options}`)
      return role
    }).pipe(Effect.provide(as(admin))),
    (role) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql.unsafe(`reassign owned by ${role} to current_user`)
        yield* sql.unsafe(`drop owned by ${role}`)
        yield* sql.unsafe(`drop role ${role}`)
      }).pipe(Effect.provide(as(admin)), Effect.orDie)
  )

const codeOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error) => DatabaseError.from("try")(error).code)

/** Asserts the limits of a page's session. */
const assertBound = Effect.fnUntraced(function* ({ sql, role }: Reader.Pages) {
  const inPage = (statement: string) =>
    codeOf(
      sql.withTransaction(
        Effect.andThen(
          sql`select set_config('transaction_read_only', 'on', true),
                     set_config('role', coalesce(${role}::text, current_setting('role')), true)`,
          sql.unsafe(statement)
        )
      )
    )
  for (const secret of [
    "select password_hash from tributary.warehouse",
    "select session_key from tributary.warehouse",
    "select id from tributary.dashboard_sessions",
    "select sealed from tributary.webhook_secrets",
    "select idempotency_key from tributary.push_requests",
    "select body from tributary.push_requests",
    "select * from tributary.push_requests"
  ]) {
    assert.strictEqual(yield* inPage(secret), "42501", secret)
  }
  assert.strictEqual(yield* inPage("delete from tributary.runs"), "25006")
})

// Roles are of the whole server: the second test leaves the reader as an administrator makes it.
describe("the pages", { shuffle: false }, () => {
  it.effect("read as the reader role that this program creates", () =>
    Effect.gen(function* () {
      yield* filled
      yield* hideRuns
      const sql = yield* SqlClient.SqlClient
      const url = yield* showing(companies)
      const runs = yield* shown(`${url}/runs`)
      assert.strictEqual(runs.status, 200)
      assert.notInclude(runs.text, "/runs/1")
      // A table that is created while the pages are served.
      yield* sql.unsafe("alter table tributary.runs disable row level security")
      yield* sql.unsafe("revoke select on tributary.runs from tributary_reader")
      assert.include((yield* shown(`${url}/runs`)).text, 'href="/runs/')
      const pages = yield* Reader.pages
      assert.isNull(pages.asOwner)
      const [session] = yield* pages.sql`
          select session_user::text as login, current_setting('default_transaction_read_only') as readonly,
                 current_setting('statement_timeout') as timeout`
      assert.deepStrictEqual(session, { login: "tributary_reader", readonly: "on", timeout: "1min" })
      yield* assertBound(pages)
    }).pipe(Effect.scoped, Effect.provide(Layer.unwrap(Effect.map(freshDatabase, as))))
  )

  test("read as the owner in read-only transactions, or as DATABASE_READER_URL", function* () {
    const admin = yield* freshDatabase
    const owner = yield* makeRole(admin, "")
    const reader = yield* makeRole(admin, "")
    const administer = <A, E>(work: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
      Effect.provide(Effect.flatMap(SqlClient.SqlClient, work), as(admin))
    const database = new URL(Redacted.value(admin)).pathname.slice(1)
    yield* administer((sql) => sql.unsafe(`grant create on database ${database} to ${owner}`))
    const readerUrl = loginAs(admin, reader)
    const asReader = Effect.provideService(Reader.ReaderOptions, { url: readerUrl, datasets: datasetsDefault })

    yield* Effect.gen(function* () {
      yield* filled
      const url = yield* showing(companies)
      const runs = yield* shown(`${url}/runs`)
      assert.include(runs.text, 'href="/runs/')
      const pages = yield* Reader.pages
      assert.match(pages.asOwner?.remedy ?? "", /schema grants/)

      // A reader that lacks rights of this version is not used.
      assert.match((yield* asReader(Reader.pages)).asOwner?.reason ?? "", /permission denied|may not read .*runs/)
    }).pipe(Effect.scoped, Effect.provide(as(loginAs(admin, owner))))

    const names = { loader: owner, reader }
    const all = {
      ...datasetsDefault,
      models: modelsDatasetDefault,
      asOfModels: asOfModelsDataset,
      control: "tributary"
    }
    yield* administer((sql) =>
      Effect.forEach(statements(all, names), (statement) => sql.unsafe(statement), { discard: true })
    )
    yield* Effect.gen(function* () {
      const pages = yield* asReader(Reader.pages)
      assert.isNull(pages.asOwner)
      yield* assertBound(pages)
      yield* hideRuns
      const url = yield* asReader(showing(companies))
      const runs = yield* shown(`${url}/runs`)
      assert.strictEqual(runs.status, 200)
      assert.notInclude(runs.text, 'href="/runs/')
    }).pipe(Effect.scoped, Effect.provide(as(loginAs(admin, owner))))

    // The role `tributary_reader` itself, of which the owner is a member.
    yield* administer((sql) =>
      Effect.forEach(
        [...statements(all, { ...names, reader: "tributary_reader" }), `grant tributary_reader to ${owner}`],
        (statement) => sql.unsafe(statement),
        { discard: true }
      )
    )
    yield* Effect.gen(function* () {
      const pages = yield* Reader.pages
      assert.deepInclude(pages, { role: "tributary_reader", asOwner: null })
      yield* assertBound(pages)
    }).pipe(Effect.scoped, Effect.provide(as(loginAs(admin, owner))))
    yield* administer((sql) => sql.unsafe(`revoke tributary_reader from ${owner}`))
  })
})
