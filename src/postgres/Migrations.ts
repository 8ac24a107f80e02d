/**
 * The control plane's tables, brought up to date.
 *
 * Promise: migrations run forward only, in the order of their numbers, all pending ones in one transaction: all or none.
 * They never block a reader or writer of the running version for long (`LockWait.ts`): the attempt rolls back after two
 * seconds and is repeated. Of programs that start at the same time one migrates and the others wait. A file that was changed after it ran, one that slipped in behind a
 * later one, and a database that a newer program has migrated are errors that name the file; nothing is changed then.
 */
import { createHash } from "node:crypto"
import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as SqlClient from "effect/sql/SqlClient"
import type pg from "pg"
import { query } from "./Connection.ts"
import { Database, DatabaseError } from "./Database.ts"
import * as LockWait from "./LockWait.ts"

export class MigrationError extends Data.TaggedError("MigrationError")<{
  readonly file: string | undefined
  /** Where in the file, when Postgres says so. */
  readonly line: number | undefined
  readonly message: string
}> {}

/** One file of the folder: `0006_outbox.sql` has id 6 and name "outbox". */
export interface Migration {
  readonly id: number
  readonly name: string
  readonly file: string
  readonly sql: string
  readonly checksum: string
}

/** One row of `tributary.migrations`. */
export interface AppliedMigration {
  readonly id: number
  readonly name: string
  readonly checksum: string
}

export interface MigrationOptions {
  /** Default: `migrations/` of this package, wherever the program was started. */
  readonly folder?: string | undefined
  /** Where other sessions use the tables. */
  readonly lockTimeout?: LockWait.LockTimeout | undefined
}

export const folderDefault = fileURLToPath(new URL("../../migrations", import.meta.url))

/** Any constant will do, as long as every version of this program uses the same. */
const migrationsLock = "7305881473"
const turnTimeout = "60s"

/**
 * Applies what is pending and answers with it. One connection holds the turn through all attempts, and sees who blocks
 * the other one, which migrates.
 */
export const migrate = (
  options: MigrationOptions = {}
): Effect.Effect<ReadonlyArray<Migration>, MigrationError | DatabaseError, Database> =>
  Effect.gen(function* () {
    const migrations = yield* readMigrations(options.folder ?? folderDefault)
    const { connect } = yield* Database
    const turn = yield* connect
    const attempt = Effect.gen(function* () {
      const client = yield* connect
      const apply = Effect.gen(function* () {
        const pending = yield* pendingOf(migrations, yield* readApplied(client))
        if (pending.length === 0) return pending
        yield* query(client, "migrate", ledger)
        for (const migration of pending) yield* applyOne(client, migration)
        return pending
      })
      return yield* transaction(
        client,
        LockWait.bounded(
          "migrate",
          (text) => query(client, "migrate", text),
          // What a transaction has seen of other sessions stays as it was, unless it is cleared.
          (text) =>
            Effect.andThen(query(turn, "migrate", "select pg_stat_clear_snapshot()"), query(turn, "migrate", text)),
          apply
        )
      )
    })
    return yield* transaction(
      turn,
      Effect.andThen(
        takeTurn(turn),
        LockWait.attempts("The migrations wait", Effect.scoped(attempt), options.lockTimeout)
      )
    )
  }).pipe(
    Effect.scoped,
    Effect.mapError((error) =>
      error instanceof DatabaseError && error.code === "55P03" && error.operation === "migrate"
        ? new DatabaseError({
            operation: error.operation,
            code: error.code,
            message: `cannot migrate the warehouse: ${error.message}`,
            isRetryable: true
          })
        : error
    )
  )

/** {@link migrate} through an existing pool: a database that is up to date costs one query there. */
export const ensure = (
  options: MigrationOptions = {}
): Effect.Effect<ReadonlyArray<Migration>, MigrationError | DatabaseError, Database | SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const migrations = yield* readMigrations(options.folder ?? folderDefault)
    const pending = yield* sql<AppliedMigration>`select id, name, checksum from tributary.migrations order by id`.pipe(
      Effect.flatMap((applied) => pendingOf(migrations, applied)),
      Effect.result
    )
    // Any other difference is checked again, and reported, under the lock.
    return pending._tag === "Success" && pending.success.length === 0 ? [] : yield* migrate(options)
  })

/** What {@link migrate} would apply; changes nothing and takes no lock. */
export const pendingMigrations = (
  options: MigrationOptions = {}
): Effect.Effect<ReadonlyArray<Migration>, MigrationError | DatabaseError, Database> =>
  Effect.gen(function* () {
    const migrations = yield* readMigrations(options.folder ?? folderDefault)
    const client = yield* (yield* Database).connect
    return yield* pendingOf(migrations, yield* readApplied(client))
  }).pipe(Effect.scoped)

// ---------------------------------------------------------------------------------------------------------- the files

const fileName = /^(\d{4})_(.+)\.sql$/

export const readMigrations = (folder: string): Effect.Effect<ReadonlyArray<Migration>, MigrationError> =>
  Effect.try({
    try: () => {
      const migrations = readdirSync(folder)
        .filter((file) => file.endsWith(".sql"))
        .sort()
        .map((file) => readMigration(folder, file))
      for (const [index, migration] of migrations.entries()) {
        const before = migrations[index - 1]
        if (before?.id === migration.id) {
          throw refusal(migration.file, `has the same number as ${before.file}: give it the next free one`)
        }
      }
      return migrations
    },
    catch: (error) =>
      error instanceof MigrationError
        ? error
        : new MigrationError({
            file: undefined,
            line: undefined,
            message: `cannot read the migrations in ${folder}: ${error instanceof Error ? error.message : String(error)}`
          })
  })

const readMigration = (folder: string, file: string): Migration => {
  const [, id, name] = fileName.exec(file) ?? []
  if (id === undefined || name === undefined) {
    throw refusal(file, "is not named NNNN_name.sql")
  }
  // Line ends do not count: git may have changed them on the way to a Windows machine.
  const sql = readFileSync(join(folder, file), "utf8")
    .replace(/^\uFEFF/, "")
    .replaceAll("\r\n", "\n")
  return { id: Number(id), name, file, sql, checksum: createHash("sha256").update(sql).digest("hex") }
}

const refusal = (file: string, problem: string) =>
  new MigrationError({ file, line: undefined, message: `migration ${file} ${problem}` })

// ----------------------------------------------------------------------------------------------------------- the plan

const fileOf = (applied: AppliedMigration) => `${String(applied.id).padStart(4, "0")}_${applied.name}.sql`

/** What is to be applied; both lists by ascending id. Refuses every history that is not a prefix of the files. */
export const pendingOf = (
  migrations: ReadonlyArray<Migration>,
  applied: ReadonlyArray<AppliedMigration>
): Effect.Effect<ReadonlyArray<Migration>, MigrationError> => {
  const byId = new Map(migrations.map((migration) => [migration.id, migration]))
  const appliedIds = new Set(applied.map((row) => row.id))
  const latestApplied = applied.at(-1)?.id ?? -1
  const latestKnown = migrations.at(-1)?.id ?? -1
  const newest = applied.at(-1)
  if (newest !== undefined && newest.id > latestKnown) {
    return Effect.fail(
      refusal(
        fileOf(newest),
        "was applied by a newer version of this program, which this one must not touch: upgrade it, or use another database"
      )
    )
  }
  for (const row of applied) {
    const migration = byId.get(row.id)
    if (migration === undefined) {
      return Effect.fail(refusal(fileOf(row), "was applied to this database and is missing here: restore the file"))
    }
    if (migration.checksum !== row.checksum) {
      return Effect.fail(
        refusal(migration.file, "was changed after it was applied: undo the change and put it into a new file")
      )
    }
  }
  const late = migrations.find((migration) => migration.id < latestApplied && !appliedIds.has(migration.id))
  if (late !== undefined) {
    const next = String(latestKnown + 1).padStart(4, "0")
    return Effect.fail(
      refusal(
        late.file,
        `comes before one that was applied already (${String(latestApplied).padStart(4, "0")}): rename it to ${next}_${late.name}.sql`
      )
    )
  }
  return Effect.succeed(migrations.filter((migration) => migration.id > latestApplied))
}

// ------------------------------------------------------------------------------------------------------- the database

const ledger = `
  create schema if not exists tributary;
  create table if not exists tributary.migrations (
    id integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now()
  );
  comment on table tributary.migrations is 'What was applied to this dataset, written by the program itself.'`

/**
 * Kept to the end of the transaction, which has no other lock. A program that has to wait says so, and one that does not
 * get it in time says so too.
 */
const takeTurn = Effect.fnUntraced(function* (client: pg.Client): Effect.fn.Return<void, DatabaseError> {
  const ask = <Row extends pg.QueryResultRow>(text: string) => query<Row>(client, "migrate", text)
  yield* ask("set local idle_in_transaction_session_timeout = 0")
  const [first] = yield* ask<{ locked: boolean }>(`select pg_try_advisory_xact_lock(${migrationsLock}) as locked`)
  if (first?.locked === true) return
  yield* Effect.logInfo("Another program is migrating this database: waiting for it")
  yield* ask(`set local lock_timeout = '${turnTimeout}'`)
  yield* ask(`select pg_advisory_xact_lock(${migrationsLock})`).pipe(
    Effect.mapError((error) =>
      error.code === "55P03"
        ? new DatabaseError({
            operation: "migrate",
            code: error.code,
            message: `another program has been migrating this database for ${turnTimeout}: wait for it, or end it`,
            isRetryable: true
          })
        : error
    )
  )
})

const readApplied = (client: pg.Client): Effect.Effect<ReadonlyArray<AppliedMigration>, DatabaseError> =>
  query<{ found: boolean }>(
    client,
    "read the applied migrations",
    "select to_regclass('tributary.migrations') is not null as found"
  ).pipe(
    Effect.flatMap((rows) =>
      rows[0]?.found === true
        ? query<{ id: number; name: string; checksum: string }>(
            client,
            "read the applied migrations",
            "select id, name, checksum from tributary.migrations order by id"
          )
        : Effect.succeed([])
    )
  )

const currentTransaction = (client: pg.Client) =>
  query<{ id: string }>(client, "migrate", "select pg_current_xact_id()::text as id").pipe(
    Effect.map((rows) => rows[0]?.id)
  )

/** The file goes to the server as it is, as one message of the simple protocol: it may hold many statements. */
const applyOne = (client: pg.Client, migration: Migration): Effect.Effect<void, MigrationError | DatabaseError> =>
  Effect.gen(function* () {
    const before = yield* currentTransaction(client)
    yield* Effect.tryPromise({
      try: () => client.query(migration.sql),
      catch: (cause) => failureOf(migration, cause)
    })
    // Caught after the fact; but then the next start says what is wrong, since the row below is missing.
    if ((yield* currentTransaction(client)) !== before) {
      return yield* refusal(migration.file, "ends the transaction it runs in: take commit and rollback out of it")
    }
    yield* query(client, "migrate", "insert into tributary.migrations (id, name, checksum) values ($1, $2, $3)", [
      migration.id,
      migration.name,
      migration.checksum
    ])
  }).pipe(Effect.withSpan("Migrations.apply", { attributes: { file: migration.file } }))

/** A lost connection stays a DatabaseError; what Postgres has against the SQL names file and line. */
const failureOf = (migration: Migration, cause: unknown): MigrationError | DatabaseError => {
  const error = DatabaseError.from(`migrate ${migration.file}`)(cause)
  if (error.isRetryable || error.code === undefined) return error
  const line = lineOf(migration.sql, cause)
  return new MigrationError({
    file: migration.file,
    line,
    message: `migration ${migration.file}${line === undefined ? "" : `, line ${line}`}: ${error.message} (${error.code})`
  })
}

/** Postgres counts characters from 1, where one beyond the basic plane is one character. */
const lineOf = (sql: string, cause: unknown): number | undefined => {
  const position = Predicate.hasProperty(cause, "position") ? Number(cause.position) : Number.NaN
  if (!Number.isInteger(position) || position < 1) return undefined
  return (
    Array.from(sql)
      .slice(0, position - 1)
      .filter((character) => character === "\n").length + 1
  )
}

/** Commits when the work succeeds; otherwise the scope of the connection ends it, and the server rolls back. */
const transaction = <A, E>(client: pg.Client, work: Effect.Effect<A, E>): Effect.Effect<A, E | DatabaseError> =>
  query(client, "begin", "begin").pipe(
    Effect.andThen(work),
    Effect.onExit((exit) => (Exit.isSuccess(exit) ? query(client, "commit", "commit") : Effect.void))
  )
