/**
 * The checks of the warehouse: its server, its migrations and its clock.
 *
 * Promise: nothing is created or migrated. A stopped embedded server is started for the time of the check; one that
 * does not exist is not created.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Configuration } from "../../configuration/Configuration.ts"
import { Database, type DatabaseError, sqlLayer } from "../../postgres/Database.ts"
import { binaries } from "../../postgres/embedded/DataDirectory.ts"
import * as Migrations from "../../postgres/Migrations.ts"
import * as Statement from "../../postgres/Statement.ts"
import type { FailureKind } from "../Exit.ts"
import { databaseLayer, describe } from "../Warehouse.ts"
import { about, type About, boundedQuery, checkTimeout, type Finding, type Findings, within } from "./Finding.ts"
import { size, space } from "./Machine.ts"
import { reader, rights, serverStatement } from "./Rights.ts"

interface OpenedWarehouse {
  readonly findings: Findings
  /** Null where it cannot be queried. */
  readonly context: Context.Context<Database | SqlClient.SqlClient> | null
  /** Why it cannot be queried; empty where it can. */
  readonly reason: string
}

/** The tables of the warehouse, or the reason why they cannot be queried. */
export type WarehouseTables = Pick<OpenedWarehouse, "context" | "reason">

/** A check with the warehouse, or without it where it cannot be queried. */
export const provideTables = <R>(
  { context }: WarehouseTables,
  check: Effect.Effect<Findings, never, R>
): Effect.Effect<Findings, never, Exclude<R, Database | SqlClient.SqlClient>> =>
  Effect.provideContext(check, (context ?? Context.empty()) as Context.Context<Database | SqlClient.SqlClient>)

/** A check that queries the warehouse; skipped where that cannot be queried. */
export const queryTables = <E extends { readonly message: string }, R>(
  tables: WarehouseTables,
  subject: About,
  check: Effect.Effect<Findings, E, R>
): Effect.Effect<Findings, never, Exclude<R, Database | SqlClient.SqlClient>> =>
  tables.context === null
    ? Effect.succeed([subject.skipped(tables.reason)])
    : provideTables(tables, boundedQuery(subject, check))

/** An embedded server may have to recover first. */
const openTimeout = Duration.seconds(30)

/** The oldest version that the tests run on (test/postgres/run.ts). */
const versionMin = 140_000

const kindOf = (error: { readonly isRetryable: boolean }): FailureKind =>
  error.isRetryable ? "unreachable" : "configuration"

/** A database error ends in its remedy: cut at the first colon or semicolon outside brackets. */
const splitRemedy = (sentence: string): { readonly message: string; readonly remedy: string } => {
  let depth = 0
  for (let at = 0; at < sentence.length; at += 1) {
    if (sentence[at] === "(") depth += 1
    if (sentence[at] === ")") depth -= 1
    if (depth === 0 && /^[:;] /.test(sentence.slice(at, at + 2))) {
      return { message: sentence.slice(0, at), remedy: sentence.slice(at + 2) }
    }
  }
  return { message: sentence, remedy: "read the log of the database server" }
}

/** Connects for the scope. */
const open = Effect.fnUntraced(function* (
  settings: Configuration
): Effect.fn.Return<OpenedWarehouse, never, Scope.Scope> {
  const { ok, warning, failed } = about("database")
  const unusable = (finding: Finding, reason: string): OpenedWarehouse => ({
    findings: [finding],
    context: null,
    reason
  })
  const root = join(settings.dataDirectory, "postgres")
  if (settings.databaseUrl === null) {
    const found = yield* Effect.result(binaries)
    if (found._tag === "Failure") {
      return unusable(
        failed("configuration", found.failure.message, found.failure.hint ?? "set DATABASE_URL to a Postgres server"),
        "there is no Postgres"
      )
    }
    if (!existsSync(join(root, "pg18", "PG_VERSION"))) {
      return unusable(
        warning(`the embedded Postgres does not exist yet (${root})`, "npx tributary sync creates and fills it"),
        "there is no warehouse yet"
      )
    }
  }
  const began = yield* Clock.currentTimeMillis
  const built = yield* Effect.result(Layer.build(Layer.provideMerge(sqlLayer, databaseLayer(settings))))
  if (built._tag === "Failure") {
    const error = built.failure
    const { message, remedy } = splitRemedy(describe(error))
    const kind = error._tag === "DatabaseError" ? kindOf(error) : "unreachable"
    return unusable(failed(kind, message, remedy), "the database cannot be used")
  }
  const { describe: server } = Context.get(built.success, Database)
  const took = (yield* Clock.currentTimeMillis) - began
  return { findings: [ok(`${server} answers (${took} ms)`)], context: built.success, reason: "" }
})

/** Version, encoding, rights, connections, size. */
const fitness = Effect.fnUntraced(function* (
  settings: Configuration
): Effect.fn.Return<Findings, SqlError | DatabaseError, Database | SqlClient.SqlClient> {
  const database = yield* Database
  const { embedded, endpoint } = database
  const budget = yield* database.budget
  const [row] = yield* Statement.run(serverStatement)
  if (row === undefined) return []
  const version = about("database version")
  const encoding = about("encoding")
  const connections = about("connections")
  const { connections: needed } = budget
  const ofServer = row.max - row.reserved - row.used
  const left = row.limit < 0 ? ofServer : Math.min(ofServer, row.limit - row.own)
  const freeText = `${left} of ${row.limit < 0 ? row.max : Math.min(row.max, row.limit)} are free, a process takes up to ${needed}`
  return [
    row.number >= versionMin
      ? version.ok(`Postgres ${row.version}`)
      : version.failed(
          "configuration",
          `Postgres ${row.version}`,
          "Postgres 14 or later is needed: upgrade the server"
        ),
    row.encoding === "UTF8"
      ? encoding.ok("UTF8")
      : encoding.failed(
          "configuration",
          `the database is encoded as ${row.encoding}, which cannot hold every text`,
          `create a database with: create database ... encoding 'UTF8' template template0`
        ),
    ...(yield* rights(settings, row)),
    ...(yield* reader(settings)),
    left >= needed
      ? connections.ok(freeText)
      : connections.warning(freeText, "raise max_connections, close other programs, or set warehouse.connections"),
    ...(yield* serverDisk(embedded, endpoint.host, row.bytes))
  ]
})

const isThisMachine = (host: string): boolean =>
  host.startsWith("/") || host === "localhost" || host === "::1" || host.startsWith("127.")

export const directoryStatement = Statement.make({
  name: "look for the folder of the server",
  columns: { folder: "text" },
  text: "select current_setting('data_directory') as folder"
})

const serverDisk = Effect.fnUntraced(function* (embedded: boolean, host: string, bytes: number) {
  const used = about("size").ok(`the database takes ${size(bytes)}`)
  if (embedded) return [used]
  const unknown = about("disk").skipped("SQL does not show the free space of the server's disk")
  if (!isThisMachine(host)) return [used, unknown]
  // Only an administrator may read this setting.
  const [row] = yield* Effect.orElseSucceed(Statement.run(directoryStatement), () => [])
  return [used, row === undefined || !existsSync(row.folder) ? unknown : yield* space("disk", row.folder, "the server")]
})

interface MigrationState {
  readonly findings: Findings
  /** Whether the control tables can be queried. */
  readonly isCurrent: boolean
}

/** Whether the control tables are those of this version. */
const migrations: Effect.Effect<MigrationState, never, Database> = Effect.gen(function* () {
  const { ok, warning, failed } = about("migrations")
  const known = yield* Effect.result(Migrations.readMigrations(Migrations.folderDefault))
  const pending = yield* Effect.result(Migrations.pendingMigrations())
  if (pending._tag === "Failure") {
    const error = pending.failure
    const { message, remedy } = splitRemedy(error.message)
    const kind = error._tag === "DatabaseError" ? kindOf(error) : "configuration"
    return { findings: [failed(kind, message, remedy)], isCurrent: false }
  }
  const all = known._tag === "Success" ? known.success.length : 0
  const open = pending.success.length
  return {
    isCurrent: open === 0,
    findings: [
      open === 0
        ? ok(`all ${all} are applied`)
        : open === all
          ? warning(
              "the database is empty: nothing was synced into it yet",
              "npx tributary sync creates its tables and fills them"
            )
          : warning(
              `${open} of ${all} are not applied yet (${pending.success.map(({ file }) => file).join(", ")})`,
              "the next command that uses the warehouse applies them; stop older versions of the program first: they refuse a migrated warehouse"
            )
    ]
  }
})

export const clockStatement = Statement.make({
  name: "read the server's clock",
  columns: { now: "float8" },
  text: "select (extract(epoch from clock_timestamp()) * 1000)::float8 as now"
})

/** The difference of the warehouse's clock to this machine's. */
const clock = Effect.gen(function* () {
  const began = yield* Clock.currentTimeMillis
  const [row] = yield* Statement.run(clockStatement)
  const ended = yield* Clock.currentTimeMillis
  return row === undefined ? null : { aheadMs: row.now - (began + ended) / 2, uncertainMs: (ended - began) / 2 }
})

export interface CheckedWarehouse {
  readonly findings: Findings
  readonly tables: WarehouseTables
  /** The difference of its clock to this machine's; null where it did not answer. */
  readonly clock: Effect.Success<typeof clock>
}

/** Connects for the scope, and checks the server. */
export const check = Effect.fnUntraced(function* (
  settings: Configuration
): Effect.fn.Return<CheckedWarehouse, never, Scope.Scope> {
  const database = about("database")
  const opened = yield* within(
    database,
    open(settings),
    (finding): OpenedWarehouse => ({ findings: [finding], context: null, reason: "the database does not answer" }),
    settings.databaseUrl === null ? openTimeout : checkTimeout
  )
  const { context } = opened
  if (context === null) return { findings: opened.findings, tables: opened, clock: null }
  const [serverFindings, migrated, offset] = yield* Effect.all(
    [
      boundedQuery(database, fitness(settings)),
      within(about("migrations"), migrations, (finding): MigrationState => ({ findings: [finding], isCurrent: false })),
      clock.pipe(
        Effect.timeout(checkTimeout),
        Effect.orElseSucceed(() => null)
      )
    ],
    { concurrency: "unbounded" }
  ).pipe(Effect.provideContext(context))
  return {
    findings: [...opened.findings, ...serverFindings, ...migrated.findings],
    tables: migrated.isCurrent ? opened : { context: null, reason: "the warehouse's tables are not up to date" },
    clock: offset
  }
})
