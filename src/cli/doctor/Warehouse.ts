/**
 * The warehouse: can it be reached, is it fit, may this user do what loading takes, and what has been left lying there.
 *
 * Promise: nothing is made or migrated. An embedded server that stands still is started for the time of the check; one
 * that was never made is not made.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as Grants from "../../warehouse/Grants.ts"
import * as LaneLock from "../../warehouse/LaneLock.ts"
import { modelsDatasetDefault } from "../../warehouse/Model.ts"
import * as Reader from "../../warehouse/Reader.ts"
import { Database, type DatabaseError, sqlLayer } from "../../postgres/Database.ts"
import { binaries } from "../../postgres/embedded/DataDirectory.ts"
import * as Migrations from "../../postgres/Migrations.ts"
import * as PushPause from "../../outbox/PushPause.ts"
import * as Output from "../Output.ts"
import { describe, type WarehouseError } from "../Warehouse.ts"
import { about, counted, type Finding, type Kind } from "./Finding.ts"
import { size, space } from "./Machine.ts"

export interface OpenedWarehouse {
  readonly findings: ReadonlyArray<Finding>
  /** Null where it cannot be asked. */
  readonly context: Context.Context<Database | SqlClient.SqlClient> | null
  /** Why; empty where it can. */
  readonly reason: string
}

/** The oldest version that the tests run on (test/postgres/run.ts). */
const versionMin = 140_000

const kindOf = (error: { readonly isRetryable: boolean }): Kind => (error.isRetryable ? "unreachable" : "configuration")

/** A sentence of the database's errors, which end in what to do: cut at the first colon or semicolon outside brackets. */
const apart = (sentence: string): { readonly message: string; readonly remedy: string } => {
  let depth = 0
  for (let at = 0; at < sentence.length; at += 1) {
    if (sentence[at] === "(") depth += 1
    if (sentence[at] === ")") depth -= 1
    if (depth === 0 && /^[:;] /.test(sentence.slice(at, at + 2))) {
      return { message: sentence.slice(0, at), remedy: sentence.slice(at + 2) }
    }
  }
  return { message: sentence, remedy: "see what the server's own log says" }
}

/** Connects; ends with the scope. */
export const open = Effect.fnUntraced(function* (
  settings: Configuration
): Effect.fn.Return<OpenedWarehouse, never, Scope.Scope> {
  const { ok, warning, failed } = about("database")
  const none = (finding: Finding, reason: string): OpenedWarehouse => ({ findings: [finding], context: null, reason })
  const root = join(settings.home, "postgres")
  const { connectionsMax } = settings
  if (settings.databaseUrl === null) {
    const found = yield* Effect.result(binaries)
    if (found._tag === "Failure") {
      return none(
        failed("configuration", found.failure.message, found.failure.hint ?? "set DATABASE_URL to a Postgres server"),
        "there is no Postgres"
      )
    }
    if (!existsSync(join(root, "pg18", "PG_VERSION"))) {
      return none(
        warning(`the embedded Postgres does not exist yet (${root})`, "npx tributary sync makes it and fills it"),
        "there is no warehouse yet"
      )
    }
  }
  const database: Layer.Layer<Database, WarehouseError> =
    settings.databaseUrl === null
      ? Database.layerEmbedded({ root, connectionsMax })
      : Database.layerUrl(settings.databaseUrl, { connectionsMax })
  const began = yield* Clock.currentTimeMillis
  const built = yield* Effect.result(Layer.build(Layer.provideMerge(sqlLayer, database)))
  if (built._tag === "Failure") {
    const error = built.failure
    const { message, remedy } = apart(describe(error))
    const kind = error._tag === "DatabaseError" ? kindOf(error) : "unreachable"
    return none(failed(kind, message, remedy), "the database cannot be used")
  }
  const { describe: server } = Context.get(built.success, Database)
  const took = (yield* Clock.currentTimeMillis) - began
  return { findings: [ok(`${server} answers (${took} ms)`)], context: built.success, reason: "" }
})

interface ServerRow {
  readonly version: string
  readonly number: number
  readonly encoding: string
  readonly standby: boolean
  readonly readonly: string
  readonly maycreate: boolean
  readonly maytemp: boolean
  readonly user: string
  readonly database: string
  readonly bytes: number
  readonly max: number
  readonly reserved: number
  readonly used: number
  readonly limit: number
  readonly own: number
}

interface DatasetRow {
  readonly name: string
  readonly mayuse: boolean
  readonly maycreate: boolean
  readonly tables: number
  readonly barred: number
}

/** Version, encoding, rights, connections, size. */
export const fitness = Effect.fnUntraced(function* (
  settings: Configuration
): Effect.fn.Return<ReadonlyArray<Finding>, SqlError | DatabaseError, Database | SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const { embedded, endpoint } = database
  const budget = yield* database.budget
  const [row] = yield* sql.unsafe<ServerRow>(
    `select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
            current_setting('server_encoding') as encoding, pg_is_in_recovery() as standby,
            current_setting('default_transaction_read_only') as readonly,
            has_database_privilege(current_database(), 'create') as maycreate,
            has_database_privilege(current_database(), 'temp') as maytemp,
            current_user::text as user, current_database()::text as database,
            pg_database_size(current_database())::float8 as bytes,
            current_setting('max_connections')::int as max,
            current_setting('superuser_reserved_connections')::int as reserved,
            (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as used,
            (select rolconnlimit from pg_roles where rolname = current_user) as limit,
            (select count(*)::int from pg_stat_activity where usename = current_user) as own`
  )
  if (row === undefined) return []
  const version = about("database version")
  const encoding = about("encoding")
  const connections = about("connections")
  const { connections: needed } = budget
  const ofServer = row.max - row.reserved - row.used
  const left = row.limit < 0 ? ofServer : Math.min(ofServer, row.limit - row.own)
  const leftTold = `${left} of ${row.limit < 0 ? row.max : Math.min(row.max, row.limit)} are free, a process takes up to ${needed}`
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
          `make a database with: create database ... encoding 'UTF8' template template0`
        ),
    ...(yield* rights(settings, row)),
    ...(yield* reader(settings)),
    left >= needed
      ? connections.ok(leftTold)
      : connections.warning(leftTold, "raise max_connections, close other programs, or set warehouse.connections"),
    ...(yield* serverDisk(embedded, endpoint.host, row.bytes))
  ]
})

const rights = Effect.fnUntraced(function* (
  { datasets }: Configuration,
  { standby, readonly, maycreate, maytemp, user, database }: ServerRow
): Effect.fn.Return<ReadonlyArray<Finding>, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { ok, failed } = about("rights")
  const wanted = [datasets.current, datasets.history, modelsDatasetDefault, "tributary"]
  const rows = yield* sql.unsafe<DatasetRow>(
    `select n.nspname::text as name, has_schema_privilege(n.oid, 'usage') as mayuse,
            has_schema_privilege(n.oid, 'create') as maycreate,
            count(c.oid)::int as tables,
            (count(c.oid) filter (where not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
              and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))))::int as barred
       from pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relkind = 'r'
      where n.nspname in (select jsonb_array_elements_text($1::jsonb))
      group by n.oid, n.nspname order by n.nspname`,
    [JSON.stringify(wanted)]
  )
  const findings: Array<Finding> = []
  const wrong = (what: string, remedy: string) => findings.push(failed("configuration", what, remedy))
  const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
  const grant = (what: string) => `as an administrator: grant ${what} to ${quoted(user)}`
  if (standby) wrong("this server is a standby, which takes no changes", "name the primary server in DATABASE_URL")
  if (readonly === "on") {
    wrong(
      "its transactions are read-only by default",
      `as an administrator: alter role ${quoted(user)} set default_transaction_read_only = off`
    )
  }
  const absent = wanted.filter((name) => !rows.some((row) => row.name === name))
  if (!maycreate && absent.length > 0) {
    wrong(`${user} may not create the datasets ${absent.join(", ")}`, grant(`create on database ${quoted(database)}`))
  }
  if (!maytemp)
    wrong(
      `${user} may not make temporary tables, which loading does`,
      grant(`temporary on database ${quoted(database)}`)
    )
  for (const { name, mayuse, maycreate: may, tables, barred } of rows) {
    if (!mayuse || !may) {
      wrong(
        `${user} may not ${mayuse ? "create in" : "use"} the dataset ${name}`,
        grant(`usage, create on schema ${quoted(name)}`)
      )
    }
    if (barred > 0) {
      wrong(
        `${user} may not write ${barred} of ${tables} tables of ${name}`,
        `give the tables to ${user}, or use the role that made them; see npx tributary schema grants`
      )
    }
  }
  return findings.length > 0 ? findings : [ok(`${user} may create and write in ${wanted.join(", ")}`)]
})

/** As whom SQL runs that a person writes, and as whom the dashboard reads. */
const reader = ({ readerUrl: url, datasets }: Configuration) =>
  Effect.flatMap(Reader.loginOf, (login) => Effect.all([queries(login), dashboard(login)])).pipe(
    Effect.provideService(Reader.ReaderOptions, { url, datasets }),
    Effect.catch(({ message }) =>
      Effect.succeed([about("reader").warning(message, "see what the server's own log says")])
    )
  )

/** Logs in as the reader, except where that would make it. */
const dashboard = (login: Reader.Login) => {
  const { ok, warning } = about("dashboard reader")
  return Effect.map(login._tag === "Own" ? Effect.succeed(null) : Reader.skippedPages(login), (unread) =>
    unread === null
      ? ok("the dashboard reads as the reader")
      : warning(
          `the dashboard reads in read-only transactions, but with the rights of DATABASE_URL: ${unread.reason}`,
          unread.remedy
        )
  )
}

const queries = (login: Reader.Login) => {
  const { ok, warning } = about("reader")
  return Effect.sync((): Finding => {
    switch (login._tag) {
      case "Url":
        return ok("query and push --from a query run as DATABASE_READER_URL says")
      case "Own":
        return ok(`query and push --from a query run as ${Grants.roleNamesDefault.reader}, which they make themselves`)
      case "Role":
        return warning(
          `query and push --from a query run in a read-only transaction as ${Grants.roleNamesDefault.reader}, which a statement can leave`,
          `give the role a password, and set DATABASE_READER_URL to log in as it`
        )
      case "Owner":
        return warning(
          "query and push --from a query run in a read-only transaction, but with the rights of DATABASE_URL",
          login.remedy
        )
      case "Refused":
        return warning(`query and push --from a query are refused: ${login.message}`, login.remedy)
    }
  })
}

const isThisMachine = (host: string): boolean =>
  host.startsWith("/") || host === "localhost" || host === "::1" || host.startsWith("127.")

const serverDisk = Effect.fnUntraced(function* (embedded: boolean, host: string, bytes: number) {
  const told = about("size").ok(`the database takes ${size(bytes)}`)
  if (embedded) return [told]
  const sql = yield* SqlClient.SqlClient
  const cannot = about("disk").skipped("how much is free on the server's disk cannot be asked over SQL")
  if (!isThisMachine(host)) return [told, cannot]
  // Only an administrator may ask where the data is.
  const [row] = yield* sql
    .unsafe<{ folder: string }>("select current_setting('data_directory') as folder")
    .pipe(Effect.orElseSucceed(() => []))
  return [told, row === undefined || !existsSync(row.folder) ? cannot : yield* space("disk", row.folder, "the server")]
})

export interface MigrationState {
  readonly findings: ReadonlyArray<Finding>
  /** Whether what the control plane holds can be asked. */
  readonly isCurrent: boolean
}

/** Whether the control plane's tables are those that this program knows. */
export const migrations: Effect.Effect<MigrationState, never, Database> = Effect.gen(function* () {
  const { ok, warning, failed } = about("migrations")
  const known = yield* Effect.result(Migrations.readMigrations(Migrations.folderDefault))
  const pending = yield* Effect.result(Migrations.pendingMigrations())
  if (pending._tag === "Failure") {
    const error = pending.failure
    const { message, remedy } = apart(error.message)
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
              "npx tributary sync makes its tables and fills them"
            )
          : warning(
              `${open} of ${all} are not applied yet (${pending.success.map(({ file }) => file).join(", ")})`,
              "the next command that uses the warehouse applies them; stop older programs first, which would refuse it then"
            )
    ]
  }
})

/** The warehouse's clock minus ours, in milliseconds, and how far that may be off. */
export const clock = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const began = yield* Clock.currentTimeMillis
  const [row] = yield* sql.unsafe<{ now: number }>(
    "select (extract(epoch from clock_timestamp()) * 1000)::float8 as now"
  )
  const ended = yield* Clock.currentTimeMillis
  return row === undefined ? null : { aheadMs: row.now - (began + ended) / 2, uncertainMs: (ended - began) / 2 }
})

// ------------------------------------------------------------------------------------------------- what was left there

interface LeftRow {
  readonly runs: number
  readonly oldestms: number | null
  readonly quarantined: number
  readonly dead: number
  readonly refused: number
  /** How far the last landing lies in the future of the warehouse's clock. */
  readonly behindms: number | null
}

/** A clock that goes back by less is corrected as clocks are. */
const clockBackMsMax = 60_000

/** What waits for a person, and runs whose process is gone. */
export const leftovers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql.unsafe<LeftRow>(
    `with running as (
       select r.began_at from tributary.runs r
        where r.status = 'running' and not ${LaneLock.isHeldSql("r")})
     select (select count(*)::int from running) as runs,
            (select (max(extract(epoch from tributary.now() - began_at)) * 1000)::float8 from running) as oldestms,
            (select count(*)::int from tributary.quarantine where resolved_at is null) as quarantined,
            (select count(*)::int from tributary.inbox where state = 'dead') as dead,
            (select count(*)::int from tributary.outbox where state = 'refused') as refused,
            (select extract(epoch from max(updated_at) - tributary.now()) * 1000 from tributary.checkpoints)::float8 as behindms`
  )
  if (row === undefined) return []
  const held = yield* PushPause.read
  const one = (check: string, number: number, none: string, some: string, remedy: string): Finding =>
    number === 0 ? about(check).ok(none) : about(check).warning(some, remedy)
  return [
    one(
      "runs",
      row.runs,
      "none was left behind",
      `${counted(row.runs, "run is", "runs are")} called running although the process is gone, the oldest for ${Output.elapsed(row.oldestms ?? 0)}`,
      "npx tributary sync ends them and goes on where they stopped"
    ),
    one(
      "quarantine",
      row.quarantined,
      "empty",
      `${counted(row.quarantined, "record", "records")} could not be landed`,
      `npx tributary query "select resource, record_id, field, reason from tributary.quarantine where resolved_at is null"`
    ),
    one(
      "events",
      row.dead,
      "none is dead",
      `${counted(row.dead, "event was", "events were")} given up`,
      "npx tributary status says why; npx tributary webhooks replay tries them again"
    ),
    one(
      "outbox",
      row.refused,
      "nothing was refused",
      `${counted(row.refused, "pushed record was", "pushed records were")} refused by the source`,
      "npx tributary push status says why"
    ),
    ...((row.behindms ?? 0) < clockBackMsMax
      ? []
      : [
          about("time").warning(
            `the warehouse's clock is ${Output.elapsed(row.behindms ?? 0)} behind its last landing`,
            "set the clock of the database's host right; the next run of each resource reads every record"
          )
        ]),
    ...(held === null
      ? []
      : [
          about("pushes").warning(
            PushPause.sentence(held),
            `compare what waits with the source, then: ${PushPause.releaseCommand}`
          )
        ])
  ]
})
