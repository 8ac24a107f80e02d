/**
 * The migrations of the control plane.
 *
 * Promise: migrations run forward only, in the order of their numbers, all pending ones in one transaction: all or
 * none. They never block a reader or writer of the running version for long (`LockWait.ts`): an attempt that waits for
 * two seconds rolls back and is repeated. Of programs that start at the same time one migrates and the others wait.
 * Three cases are errors that name the file, and change nothing: a file that was changed after it ran, a new file with
 * a number before an applied one, and a database that a newer program has migrated.
 *
 * A database that has the last migration from before the baseline has exactly its tables: it gets the ledger of the
 * baseline, and goes on from there.
 */
import { createHash } from "node:crypto"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type * as SqlClient from "effect/sql/SqlClient"
import type pg from "pg"
import * as ReadFile from "../files/ReadFile.ts"
import { query, queryNamed } from "./Connection.ts"
import { Database, DatabaseError } from "./Database.ts"
import * as LockWait from "./LockWait.ts"
import { isDamage, isServerFault, remedyOf } from "./Remedy.ts"
import * as Statement from "./Statement.ts"

export class MigrationError extends Data.TaggedError("MigrationError")<{
  readonly file: string | undefined
  /** The line in the file, where Postgres reports it. */
  readonly line: number | undefined
  readonly message: string
}> {}

export const appliedStatement = Statement.make({
  name: "read the applied migrations",
  columns: { id: "int4", name: "text", checksum: "text" },
  text: "select id, name, checksum from tributary.migrations order by id"
})
export type AppliedMigration = Statement.RowOf<typeof appliedStatement>

/** One file of the folder: `0006_outbox.sql` has id 6 and name "outbox". */
export interface Migration extends AppliedMigration {
  readonly file: string
  readonly sql: string
}

export const clearSnapshotStatement = Statement.make({
  name: "clear the snapshot of other sessions",
  columns: { pg_stat_clear_snapshot: "void" },
  text: "select pg_stat_clear_snapshot()"
})

export interface MigrationOptions {
  /** Default: `migrations/` of this package, whatever the working directory is. */
  readonly folder?: string | undefined
  /** A database without control plane is a failure. Otherwise it gets one. */
  readonly mustExist?: boolean | undefined
  /** The limits of the wait for tables that other sessions use. */
  readonly lockTimeout?: LockWait.LockTimeout | undefined
}

export const folderDefault = fileURLToPath(new URL("../../migrations", import.meta.url))

/** Any constant will do, as long as every version of this program uses the same. */
const migrationsLock = "7305881473"
const turnTimeout = "60s"

/**
 * Applies the pending migrations and answers them. One connection holds the migration lock through all attempts, and
 * finds the sessions that block the other connection, which migrates.
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
        const applied = yield* readApplied(client)
        if (isBeforeBaseline(applied)) yield* adopt(client, baselineOf(migrations))
        const pending = yield* pendingOf(migrations, applied)
        if (pending.length === 0) return pending
        yield* ask(client, ledger)
        for (const migration of pending) yield* applyOne(client, migration)
        return pending
      })
      return yield* transaction(
        client,
        LockWait.bounded(
          "migrate",
          (statement, ...values) => queryNamed(client, statement, ...values),
          // A transaction sees the same snapshot of other sessions until it is cleared.
          (statement, ...values) =>
            Effect.andThen(queryNamed(turn, clearSnapshotStatement), queryNamed(turn, statement, ...values)),
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
        ? busy(`cannot migrate the warehouse: ${error.message}`)
        : error
    )
  )

const busy = (message: string) => new DatabaseError({ operation: "migrate", code: "55P03", message, isRetryable: true })

/** {@link migrate} through an existing pool: a database that is up to date costs one query there. */
export const ensure = (
  options: MigrationOptions = {}
): Effect.Effect<ReadonlyArray<Migration>, MigrationError | DatabaseError, Database | SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const migrations = yield* readMigrations(options.folder ?? folderDefault)
    const pending = yield* Statement.run(appliedStatement).pipe(
      Effect.flatMap((applied) => (isBeforeBaseline(applied) ? migrate(options) : pendingOf(migrations, applied))),
      Effect.result
    )
    if (options.mustExist === true && pending._tag === "Failure" && !(yield* hasLedger)) {
      const message = "there is no warehouse in this database yet: tributary sync makes and fills it"
      return yield* new MigrationError({ file: undefined, line: undefined, message })
    }
    // Any other difference is checked again, and reported, under the lock.
    return pending._tag === "Success" && pending.success.length === 0 ? [] : yield* migrate(options)
  })

/** The migrations that {@link migrate} would apply; changes nothing and acquires no lock. */
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
            message: `cannot read the migrations in ${folder}: ${ReadFile.problemOf(folder, error).message}`
          })
  })

const readMigration = (folder: string, file: string): Migration => {
  const [, id, name] = fileName.exec(file) ?? []
  if (id === undefined || name === undefined) {
    throw refusal(file, "is not named NNNN_name.sql")
  }
  // Line ends do not count: git may change them on Windows.
  const sql = ReadFile.text(join(folder, file)).replaceAll("\r\n", "\n")
  return { id: Number(id), name, file, sql, checksum: createHash("sha256").update(sql).digest("hex") }
}

const refusal = (file: string, problem: string) =>
  new MigrationError({ file, line: undefined, message: `migration ${file} ${problem}` })

// ----------------------------------------------------------------------------------------------------------- the plan

const numberOf = (id: number) => String(id).padStart(4, "0")
const fileOf = ({ id, name }: AppliedMigration) => `${numberOf(id)}_${name}.sql`

/** The last of the files that the baseline replaced. */
const beforeBaseline = { id: 39, checksum: "1fac880fccf63addbe6fa769ad31924eca6a22b4240cd65aa1274c636c714908" }
/** The number of the last file of the baseline. */
const baselineLast = 9

const isBeforeBaseline = (applied: ReadonlyArray<AppliedMigration>): boolean =>
  applied.some(({ id, checksum }) => id === beforeBaseline.id && checksum === beforeBaseline.checksum)

const baselineOf = (migrations: ReadonlyArray<Migration>): ReadonlyArray<Migration> =>
  migrations.filter(({ id }) => id <= baselineLast)

/** The migrations to apply; both lists are by ascending id. Refuses every history that is not a prefix of the files. */
const pendingOf = Effect.fnUntraced(function* (
  migrations: ReadonlyArray<Migration>,
  ledger: ReadonlyArray<AppliedMigration>
): Effect.fn.Return<ReadonlyArray<Migration>, MigrationError> {
  const applied = isBeforeBaseline(ledger) ? baselineOf(migrations) : ledger
  const newest = applied.at(-1)
  const latestApplied = newest?.id ?? -1
  const latestKnown = migrations.at(-1)?.id ?? -1
  if (newest !== undefined && newest.id > latestKnown) {
    return yield* refusal(
      fileOf(newest),
      "was applied by a newer version of this program, or by one from before 0.1.0: upgrade this program, or use another database"
    )
  }
  for (const row of applied) {
    const migration = migrations.find(({ id }) => id === row.id)
    if (migration === undefined) {
      return yield* refusal(fileOf(row), "was applied to this database and is missing here: restore the file")
    }
    if (migration.checksum !== row.checksum) {
      return yield* refusal(
        migration.file,
        "was changed after it was applied: undo the change and make it in a new file"
      )
    }
  }
  const pending = migrations.filter(({ id }) => !applied.some((row) => row.id === id))
  const late = pending.find(({ id }) => id < latestApplied)
  if (late === undefined) return pending
  return yield* refusal(
    late.file,
    `comes before one that was applied already (${numberOf(latestApplied)}): rename it to ${numberOf(latestKnown + 1)}_${late.name}.sql`
  )
})

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

const ask = (client: pg.Client, text: string) => query(client, "migrate", text)

export const tryTurnStatement = Statement.make({
  name: "acquire the migration lock",
  columns: { locked: "bool" },
  text: `select pg_try_advisory_xact_lock(${migrationsLock}) as locked`
})
export const awaitTurnStatement = Statement.make({
  name: "wait for the migration lock",
  columns: { pg_advisory_xact_lock: "void" },
  text: `select pg_advisory_xact_lock(${migrationsLock})`
})

/**
 * Acquires the migration lock until the end of the transaction, which has no other lock. A wait is logged; a wait of
 * more than {@link turnTimeout} fails.
 */
const takeTurn = Effect.fnUntraced(function* (client: pg.Client): Effect.fn.Return<void, DatabaseError> {
  yield* ask(client, "set local idle_in_transaction_session_timeout = 0")
  const [first] = yield* queryNamed(client, tryTurnStatement)
  if (first?.locked === true) return
  yield* Effect.logInfo("Another program is migrating this database: waiting for it")
  yield* ask(client, `set local lock_timeout = '${turnTimeout}'`)
  yield* queryNamed(client, awaitTurnStatement).pipe(
    Effect.mapError((error) =>
      error.code === "55P03"
        ? busy(`another program has been migrating this database for ${turnTimeout}: wait for it, or end it`)
        : error
    )
  )
})

export const ledgerStatement = Statement.make({
  name: "look for the table of migrations",
  columns: { exists: "bool" },
  text: "select to_regclass('tributary.migrations') is not null as exists"
})

const hasLedger = Effect.map(Statement.run(ledgerStatement), ([ledger]) => ledger?.exists === true)

const readApplied = (client: pg.Client): Effect.Effect<ReadonlyArray<AppliedMigration>, DatabaseError> =>
  Effect.flatMap(queryNamed(client, ledgerStatement), ([ledger]) =>
    ledger?.exists === true ? queryNamed(client, appliedStatement) : Effect.succeed([])
  )

export const forgetStatement = Statement.make({
  name: "forget the migrations from before the baseline",
  text: "delete from tributary.migrations"
})

/** Records the baseline in the place of the files that it replaced. */
const adopt = Effect.fnUntraced(function* (client: pg.Client, baseline: ReadonlyArray<Migration>) {
  yield* queryNamed(client, forgetStatement)
  for (const migration of baseline) yield* record(client, migration)
})

const record = (client: pg.Client, { id, name, checksum }: Migration) =>
  queryNamed(client, recordStatement, [id, name, checksum])

export const transactionStatement = Statement.make({
  name: "look at the transaction of the migrations",
  columns: { id: "text" },
  text: "select pg_current_xact_id()::text as id"
})

export const recordStatement = Statement.make({
  name: "record a migration",
  params: ["int4", "text", "text"],
  text: "insert into tributary.migrations (id, name, checksum) values ($1, $2, $3)"
})

/** The file goes to the server as it is, as one message of the simple protocol: it may hold many statements. */
const applyOne = (client: pg.Client, migration: Migration): Effect.Effect<void, MigrationError | DatabaseError> =>
  Effect.gen(function* () {
    const [before] = yield* queryNamed(client, transactionStatement)
    yield* Effect.tryPromise({
      try: () => client.query(migration.sql),
      catch: (cause) => failureOf(migration, cause)
    })
    // Detected after the commit: the row below is missing then, so that the next start fails with an error too.
    const [after] = yield* queryNamed(client, transactionStatement)
    if (after?.id !== before?.id) {
      return yield* refusal(migration.file, "ends the transaction it runs in: take commit and rollback out of it")
    }
    yield* record(client, migration)
  }).pipe(Effect.withSpan("Migrations.apply", { attributes: { file: migration.file } }))

/** A lost connection stays a DatabaseError; an error in the SQL names file and line. */
const failureOf = (migration: Migration, cause: unknown): MigrationError | DatabaseError => {
  const error = DatabaseError.from(`migrate ${migration.file}`)(cause)
  if (error.isRetryable || error.code === undefined || isServerFault(error)) return error
  const line = lineOf(migration.sql, cause)
  // Its own statement names what is missing.
  const remedy = isDamage(error) ? null : remedyOf(error)
  return new MigrationError({
    file: migration.file,
    line,
    message: `migration ${migration.file}${line === undefined ? "" : `, line ${line}`}: ${error.message} (${error.code})${remedy === null ? "" : `: ${remedy}`}`
  })
}

/** Postgres counts characters from 1, where one beyond the basic plane is one character. */
const lineOf = (sql: string, cause: unknown): number | undefined => {
  const position = Predicate.hasProperty(cause, "position") ? Number(cause.position) : Number.NaN
  if (!Number.isInteger(position) || position < 1) return undefined
  return Array.from(sql)
    .slice(0, position - 1)
    .join("")
    .split("\n").length
}

/** Commits when the work succeeds; otherwise the scope of the connection ends it, and the server rolls back. */
const transaction = <A, E>(client: pg.Client, work: Effect.Effect<A, E>): Effect.Effect<A, E | DatabaseError> =>
  query(client, "begin", "begin").pipe(
    Effect.andThen(work),
    Effect.onExit((exit) => (Exit.isSuccess(exit) ? query(client, "commit", "commit") : Effect.void))
  )
