/**
 * A fresh database for every test, on the one server of the run (`postgres-global.ts`).
 *
 * Promise: a test sees no row of another one, also when they run at the same time. Its database is dropped with its
 * scope.
 */
import { randomUUID } from "node:crypto"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { inject } from "vitest"
import { query } from "../../src/postgres/driver/Connection.ts"
import { Database, type DatabaseError, sqlLayer } from "../../src/postgres/Database.ts"
import { databaseAt } from "./servers.ts"

/** The server of the run, as its superuser; for tests that need a database of another name. */
export const serverUrl = Effect.sync(() => Redacted.make(inject("postgresUrl")))

const administer = (statement: string): Effect.Effect<void, DatabaseError> =>
  Effect.gen(function* () {
    const client = yield* (yield* Database).connect
    yield* query(client, statement.slice(0, 40), statement)
  }).pipe(Effect.scoped, Effect.provide(Layer.unwrap(Effect.map(serverUrl, Database.layerUrl))))

const urlOf = (name: string) => Effect.map(serverUrl, (url) => Redacted.make(databaseAt(Redacted.value(url), name)))

export type Template<E> = Effect.Effect<string, E>
export const migrated: Template<never> = Effect.sync(() => inject("migratedDatabase"))

const databaseFrom = <E>(template: Template<E>): Effect.Effect<Redacted.Redacted, DatabaseError | E, Scope.Scope> =>
  Effect.gen(function* () {
    const name = `test_${randomUUID().replaceAll("-", "")}`
    const from = yield* template
    yield* Effect.acquireRelease(administer(`create database ${name} template ${from} ${inject("copyStrategy")}`), () =>
      Effect.orDie(administer(`drop database if exists ${name} with (force)`))
    )
    return yield* urlOf(name)
  })

/** A database to copy. The first test of the run that needs it copies another one and fills the copy. */
export const makeTemplate = <E, E2>(
  name: string,
  from: Template<E>,
  fill: Effect.Effect<unknown, E2, Database | SqlClient.SqlClient>
): Template<DatabaseError | E | E2> =>
  Effect.gen(function* () {
    const client = yield* (yield* Database).connect
    yield* query(client, "lock the template", `select pg_advisory_lock(hashtext('${name}'))`)
    const existing = yield* query(client, "find the template", `select from pg_database where datname = '${name}'`)
    if (existing.length > 0) return name
    yield* query(client, "remove a part", `drop database if exists ${name}_filling`)
    yield* query(client, "create the template", `create database ${name}_filling template ${yield* from}`)
    const filling = sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(yield* urlOf(`${name}_filling`))))
    yield* Effect.provide(fill, Layer.fresh(filling))
    yield* query(client, "rename the template", `alter database ${name}_filling rename to ${name}`)
    return name
  }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Layer.unwrap(Effect.map(serverUrl, Database.layerUrl)))))

/** The URL of an empty database that is dropped with the scope, even if connections are open. */
export const freshDatabase = databaseFrom(Effect.succeed("template1"))

/** The same as a layer. `Layer.fresh` is not needed: every build creates its own database. */
export const layerDatabase: Layer.Layer<Database, DatabaseError> = Layer.unwrap(
  Effect.map(freshDatabase, Database.layerUrl)
)

/** The URL of the database. */
export const databaseUrl = Effect.map(Database, ({ endpoint: { host, port, user, password, database } }) =>
  Redacted.make(`postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`)
)

/** The database of a URL as another process uses it: with its own connections and locks. */
export const processAt = (
  url: Redacted.Redacted
): Effect.Effect<Context.Service.Shape<typeof Database>, DatabaseError, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(Database.layerUrl(url))), (context) => Context.get(context, Database))

/** The same database, as {@link processAt}. */
export const otherProcess = Effect.flatMap(databaseUrl, processAt)

/** Also with the pool for ordinary queries. */
export const layerSql = Layer.provideMerge(sqlLayer, layerDatabase)

/** A copied database counts as a copy of an installation (`PushPause.ts`). This makes it an installation of its own. */
const ownInstallation = Layer.effectDiscard(
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`update tributary.warehouse set identity = tributary.database_identity()`
  )
)

/** A warehouse with what this database has. */
export const warehouseFrom = <E>(template: Template<E>) =>
  ownInstallation.pipe(
    Layer.provideMerge(sqlLayer),
    Layer.provideMerge(Layer.unwrap(Effect.map(databaseFrom(template), Database.layerUrl))),
    Layer.orDie
  )

/** The same, with all migrations applied. */
export const layerWarehouse = warehouseFrom(migrated)

/** The statement that makes this SQL expression the warehouse's time; quotes in it are doubled. */
export const clockIs = (expression: string) =>
  `create or replace function tributary.now() returns timestamptz language sql volatile parallel safe as 'select ${expression}'`

/** The same, where the time is always this one. */
export const pagesNow = "2026-11-28T09:37:12Z"
export const layerPages = Layer.effectDiscard(
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(clockIs(`timestamptz ''${pagesNow}''`)))
).pipe(Layer.orDie, Layer.provideMerge(layerWarehouse))

/** Stops the warehouse's clock, so that "5 s ago" is read a moment later as well. */
export const stopClock = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.flatMap(sql<{ now: string }>`select tributary.now()::text as now`, ([row]) =>
    sql.unsafe(clockIs(`timestamptz ''${row!.now}''`))
  )
)

/** Sets the warehouse's clock forward by a minute; its time. What follows is later, also if the machine's clock is set back. */
export const passMinute = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ minutes: number }>`
    select round(extract(epoch from tributary.now() - clock_timestamp()) / 60)::int as minutes`
  yield* sql.unsafe(clockIs(`clock_timestamp() + interval ''${row!.minutes + 1} minutes''`))
  const [now] = yield* sql<{ time: string }>`select tributary.now()::text as time`
  return now!.time
})

/** Runs a statement in the warehouse of the test. */
export const execute = <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
  Effect.flatMap(SqlClient.SqlClient, (client) => client.unsafe<Row>(text, values))

const tagged = <Row extends object = Record<string, unknown>>(
  texts: TemplateStringsArray,
  ...values: ReadonlyArray<unknown>
) => Effect.flatMap(SqlClient.SqlClient, (client) => client<Row>(texts, ...values))

/** The client of the warehouse of the test, as each effect finds it. */
export const sql = Object.assign(tagged, {
  unsafe: execute,
  withTransaction: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(SqlClient.SqlClient, (client) => client.withTransaction(effect))
})
