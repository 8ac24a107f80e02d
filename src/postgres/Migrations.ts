/**
 * The migrations of the control plane.
 *
 * Promise: migrations run forward only, in the order of their numbers, all pending ones in one transaction: all or
 * none. They never block a reader or writer of the running version for long (`LockWait.ts`): an attempt that waits for
 * two seconds rolls back and is repeated. Of programs that start at the same time one migrates and the others wait.
 * These cases are errors that name the file, and change nothing: a file that was changed after it ran, a new file with
 * a number before an applied one, a file that ends the transaction, and a database that a newer program has migrated.
 */
import { createHash } from "node:crypto"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as SqlClient from "effect/sql/SqlClient"
import * as ReadFile from "../files/ReadFile.ts"
import { Database, DatabaseError, poolLayer } from "./Database.ts"
import { causesOf } from "./DatabaseError.ts"
import * as LockWait from "./LockWait.ts"
import * as Query from "./Query.ts"
import { isDamage, isServerFault, remedyOf } from "./Remedy.ts"
import * as Statement from "./Statement.ts"
import { control } from "./Tables.ts"
import { outside, transaction } from "./Transaction.ts"

export class MigrationError extends Data.TaggedError("MigrationError")<{
  readonly file: string | undefined
  /** The line in the file, where Postgres reports it. */
  readonly line: number | undefined
  readonly message: string
}> {}

interface AppliedMigration {
  readonly id: number
  readonly name: string
  readonly checksum: string
}

/** One file of the folder: 0006_outbox.sql has id 6 and name "outbox". */
export interface Migration extends AppliedMigration {
  readonly file: string
  readonly sql: string
}

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

/** Connections of its own: one for the migration lock, one that migrates, one that finds the sessions that block it. */
const onOwnPool = <A, E>(work: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.flatMap(Database, (server) => Effect.provide(work, poolLayer(server, 3)))

/** Applies the pending migrations and answers them. It holds the migration lock through all attempts. */
export const migrate = (
  options: MigrationOptions = {}
): Effect.Effect<ReadonlyArray<Migration>, MigrationError | DatabaseError, Database> =>
  Effect.gen(function* () {
    const migrations = yield* readMigrations(options.folder ?? folderDefault)
    const apply = Effect.gen(function* () {
      const pending = yield* pendingOf(migrations, yield* readApplied)
      if (pending.length === 0) return pending
      yield* execute(ledger, DatabaseError.from("migrate"))
      for (const migration of pending) yield* applyOne(migration)
      return pending
    })
    const attempt = outside(transaction(LockWait.bounded("migrate", apply)))
    const attempts = LockWait.attempts("The migrations wait", attempt, options.lockTimeout)
    return yield* transaction(Effect.andThen(takeTurn, attempts))
  }).pipe(
    onOwnPool,
    Effect.mapError((error) =>
      error._tag === "DatabaseError" && error.code === "55P03" && error.operation === "migrate"
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
    const pending = yield* Effect.result(Effect.flatMap(applied, (rows) => pendingOf(migrations, rows)))
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
    return yield* pendingOf(migrations, yield* readApplied)
  }).pipe(onOwnPool)

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

/** The migrations to apply; both lists are by ascending id. Refuses every history that is not a prefix of the files. */
const pendingOf = Effect.fnUntraced(function* (
  migrations: ReadonlyArray<Migration>,
  applied: ReadonlyArray<AppliedMigration>
): Effect.fn.Return<ReadonlyArray<Migration>, MigrationError> {
  const [oldest, newest] = [applied[0], applied.at(-1)]
  const latestApplied = newest?.id ?? -1
  const latestKnown = migrations.at(-1)?.id ?? -1
  if (oldest !== undefined && oldest.id === migrations[0]?.id && oldest.name !== migrations[0].name) {
    return yield* refusal(fileOf(oldest), "is from before 0.1.0, and so is this warehouse: use another database")
  }
  if (newest !== undefined && newest.id > latestKnown) {
    return yield* refusal(fileOf(newest), "was applied by a newer version of this program: upgrade this program")
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

const applied = Query.run(control.selectFrom("tributary.migrations").select(["id", "name", "checksum"]).orderBy("id"))

export const ledgerStatement = Statement.make({
  name: "look for the table of migrations",
  columns: { exists: "bool" },
  text: "select to_regclass('tributary.migrations') is not null as exists"
})

const hasLedger = Effect.map(Statement.run(ledgerStatement), ([row]) => row?.exists === true)

const readApplied = Effect.flatMap(hasLedger, (exists) => (exists ? applied : Effect.succeed([])))

export const tryTurnStatement = Statement.make({
  name: "acquire the migration lock",
  columns: { locked: "bool" },
  text: `select pg_try_advisory_xact_lock(${migrationsLock}) as locked from (
    select set_config('lock_timeout', '${turnTimeout}', true), set_config('idle_in_transaction_session_timeout', '1h', true)) s`
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
const takeTurn = Effect.gen(function* () {
  const [first] = yield* Statement.run(tryTurnStatement)
  if (first?.locked === true) return
  yield* Effect.logInfo("Another program is migrating this database: waiting for it")
  yield* Effect.mapError(Statement.run(awaitTurnStatement), (error) =>
    error.code === "55P03"
      ? busy(`another program has been migrating this database for ${turnTimeout}: wait for it, or end it`)
      : error
  )
})

export const textStatement = Statement.make({
  name: "pass the text of a migration",
  params: ["text"],
  columns: { set_config: "text" },
  text: "select set_config('tributary.migration', $1, true)"
})

export const executeStatement = Statement.make({
  name: "migrate",
  text: "do $$ begin execute current_setting('tributary.migration'); end $$"
})

/** One statement for the driver, whatever the text holds. Within it Postgres refuses to end the transaction. */
const execute = <E>(text: string, failure: (cause: unknown) => E) =>
  Effect.andThen(
    Statement.run(textStatement, [text]),
    Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.mapError(sql.unsafe(executeStatement.text), failure))
  )

const applyOne = (migration: Migration) =>
  Effect.andThen(
    execute(migration.sql, failureOf(migration)),
    Query.run(
      control
        .insertInto("tributary.migrations")
        .values({ id: migration.id, name: migration.name, checksum: migration.checksum })
    )
  ).pipe(Effect.withSpan("Migrations.apply", { attributes: { file: migration.file } }))

/** A lost connection stays a DatabaseError; an error in the SQL names file and line. */
const failureOf =
  (migration: Migration) =>
  (cause: unknown): MigrationError | DatabaseError => {
    const error = DatabaseError.from(`migrate ${migration.file}`)(cause)
    if (error.isRetryable || error.code === undefined || isServerFault(error)) return error
    if (error.code === "0A000" && error.message.includes("transaction commands")) {
      return refusal(migration.file, "ends the transaction it runs in: take commit and rollback out of it")
    }
    const line = lineOf(migration.sql, cause)
    // Its own statement names what is missing.
    const remedy = isDamage(error) ? null : remedyOf(error)
    return new MigrationError({
      file: migration.file,
      line,
      message: `migration ${migration.file}${line === undefined ? "" : `, line ${line}`}: ${error.message} (${error.code})${remedy === null ? "" : `: ${remedy}`}`
    })
  }

/**
 * The line of the statement that failed, which is the whole file or the body of one of its functions. Postgres counts
 * characters from 1, where one beyond the basic plane is one character.
 */
const lineOf = (sql: string, cause: unknown): number | undefined => {
  for (const error of causesOf(cause)) {
    if (!Predicate.hasProperty(error, "internalQuery") || !Predicate.hasProperty(error, "internalPosition")) continue
    const text = String(error.internalQuery)
    const before = Array.from(text)
      .slice(0, Number(error.internalPosition) - 1)
      .join("")
    const at = sql.indexOf(text)
    return at < 0 ? undefined : `${sql.slice(0, at)}${before}`.split("\n").length
  }
  return undefined
}
