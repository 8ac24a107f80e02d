/**
 * The checks of the warehouse: its server, its migrations and its clock.
 *
 * Promise: nothing is created or migrated. A stopped embedded server is started for the time of the check; one that
 * does not exist is not created.
 */
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as ReadFile from "../../files/ReadFile.ts"
import { Database, type DatabaseError, sqlLayer } from "../../postgres/Database.ts"
import { binaries } from "../../postgres/embedded/DataDirectory.ts"
import * as Migrations from "../../postgres/Migrations.ts"
import * as Remedy from "../../postgres/Remedy.ts"
import * as Statement from "../../postgres/Statement.ts"
import type { FailureKind } from "../Exit.ts"
import { databaseLayer, describe, embeddedRoot } from "../Warehouse.ts"
import type { ClockOffset } from "./Network.ts"
import {
  about,
  type About,
  check,
  type Checked,
  checkTimeout,
  type Finding,
  type Findings,
  type Tables,
  within
} from "./Finding.ts"
import { serverDisk, size } from "./Machine.ts"
import { reader, rights, serverStatement } from "./Rights.ts"

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
  return { message: sentence, remedy: Remedy.readLog }
}

/** Connects for the scope. */
const open = Effect.fnUntraced(function* (
  { ok, warning, failed }: About,
  settings: Configuration
): Effect.fn.Return<Checked<Tables["Service"]>, never, Scope.Scope> {
  const unusable = (finding: Finding, reason: string) => ({ findings: [finding], value: { context: null, reason } })
  const root = embeddedRoot(settings)
  if (settings.databaseUrl === null) {
    const found = yield* Effect.result(binaries)
    if (found._tag === "Failure") {
      return unusable(
        failed("configuration", found.failure.message, found.failure.hint ?? "set DATABASE_URL to a Postgres server"),
        "there is no Postgres"
      )
    }
    const initialised = yield* Effect.result(
      ReadFile.attempt(root, () => ReadFile.exists(join(root, "pg18", "PG_VERSION")))
    )
    if (initialised._tag === "Failure") {
      const { message, remedy } = splitRemedy(initialised.failure.message)
      return unusable(failed("configuration", message, remedy), "the database cannot be used")
    }
    if (!initialised.success) {
      return unusable(
        warning(`the embedded Postgres does not exist yet (${root})`, "tributary sync creates and fills it"),
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
  return { findings: [ok(`${server} answers (${took} ms)`)], value: { context: built.success, reason: "" } }
})

/** Version, encoding, rights, connections, size. */
const fitness = Effect.fnUntraced(function* (
  settings: Configuration
): Effect.fn.Return<Findings, DatabaseError, Database | SqlClient.SqlClient> {
  const database = yield* Database
  const { connections: needed } = yield* database.budget
  const [row] = yield* Statement.run(serverStatement)
  if (row === undefined) return []
  const version = about("database version")
  const encoding = about("encoding")
  const connections = about("connections")
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
    ...(yield* rights(about("rights"), settings, row)),
    ...(yield* reader(about("reader"), settings)),
    left >= needed
      ? connections.ok(freeText)
      : connections.warning(freeText, "raise max_connections, close other programs, or set warehouse.connections"),
    about("size").ok(`the database takes ${size(row.bytes)}`),
    ...(database.embedded ? [] : [yield* serverDisk(about("disk"), database.endpoint.host)])
  ]
})

/** Whether the control tables are those of this version. */
const migrations = Effect.fnUntraced(function* ({
  ok,
  warning,
  failed
}: About): Effect.fn.Return<Checked<boolean>, never, Database> {
  const read = yield* Effect.result(
    Effect.all([Migrations.readMigrations(Migrations.folderDefault), Migrations.pendingMigrations()])
  )
  if (read._tag === "Failure") {
    const error = read.failure
    const { message, remedy } = splitRemedy(error.message)
    const kind = error._tag === "DatabaseError" ? kindOf(error) : "configuration"
    return { findings: [failed(kind, message, remedy)], value: null }
  }
  const [{ length: all }, pending] = read.success
  const finding =
    pending.length === 0
      ? ok(`all ${all} are applied`)
      : pending.length === all
        ? warning(
            "the database is empty: nothing was synced into it yet",
            "tributary sync creates its tables and fills them"
          )
        : warning(
            `${pending.length} of ${all} are not applied yet (${pending.map(({ file }) => file).join(", ")})`,
            "the next command that uses the warehouse applies them; stop older versions of the program first: they refuse a migrated warehouse"
          )
  return { findings: [finding], value: pending.length === 0 }
})

export const clockStatement = Statement.make({
  name: "read the server's clock",
  columns: { now: "float8" },
  text: "select (extract(epoch from clock_timestamp()) * 1000)::float8 as now"
})

/** The difference of the warehouse's clock to this machine's; null where it does not answer. */
const clock = Effect.gen(function* () {
  const began = yield* Clock.currentTimeMillis
  const [row] = yield* Statement.run(clockStatement)
  const ended = yield* Clock.currentTimeMillis
  return row === undefined ? null : { aheadMs: row.now - (began + ended) / 2, uncertainMs: (ended - began) / 2 }
}).pipe(
  Effect.timeout(checkTimeout),
  Effect.orElseSucceed(() => null)
)

interface CheckedWarehouse {
  readonly findings: Findings
  readonly tables: Tables["Service"]
  readonly clock: ClockOffset | null
}

/** Connects for the scope, and checks the server. */
export const checkWarehouse = Effect.fnUntraced(function* (
  settings: Configuration
): Effect.fn.Return<CheckedWarehouse, never, Scope.Scope> {
  const database = about("database")
  const opened = yield* within(
    database,
    open(database, settings),
    settings.databaseUrl === null ? openTimeout : checkTimeout
  )
  const tables = opened.value ?? { context: null, reason: "the database does not answer" }
  if (tables.context === null) return { findings: opened.findings, tables, clock: null }
  const its = about("migrations")
  const [serverFindings, migrated, offset] = yield* Effect.all(
    [check("database", null, () => fitness(settings)), within(its, migrations(its)), clock],
    { concurrency: "unbounded" }
  ).pipe(Effect.provideContext(tables.context))
  return {
    findings: [...opened.findings, ...serverFindings, ...migrated.findings],
    tables: migrated.value === true ? tables : { context: null, reason: "the warehouse's tables are not up to date" },
    clock: offset
  }
})
