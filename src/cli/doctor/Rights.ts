/** The checks of rights in the warehouse: those of the loader, of the reader, and of the dashboard. */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as Grants from "../../warehouse/Grants.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "../../warehouse/Model.ts"
import * as Reader from "../../warehouse/Reader.ts"
import { openFunctionsStatement } from "../../warehouse/ReaderFunctions.ts"
import { Database } from "../../postgres/Database.ts"
import * as Output from "../Output.ts"
import { about, type About, type Finding, type Findings } from "./Finding.ts"
import { DatabaseError } from "../../postgres/DatabaseError.ts"
import * as Remedy from "../../postgres/Remedy.ts"
import * as Statement from "../../postgres/Statement.ts"

export const serverStatement = Statement.make({
  name: "look at the database server",
  columns: {
    version: "text",
    number: "int4",
    encoding: "text",
    standby: "bool",
    readonly: "text",
    maycreate: "bool",
    maytemp: "bool",
    user: "text",
    database: "text",
    bytes: "float8",
    max: "int4",
    reserved: "int4",
    used: "int4",
    limit: "int4",
    own: "int4"
  },
  text: `select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
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
})

/** The rights of the user; `barred` counts the tables that it may not write. */
export const rightsStatement = Statement.make({
  name: "look at the rights of the user",
  params: ["text[]"],
  columns: { name: "text", mayuse: "bool", maycreate: "bool", tables: "int4", barred: "int4" },
  text: `select n.nspname::text as name, has_schema_privilege(n.oid, 'usage') as mayuse,
            has_schema_privilege(n.oid, 'create') as maycreate,
            count(c.oid)::int as tables,
            (count(c.oid) filter (where not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
              and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))))::int as barred
       from pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relkind = 'r'
      where n.nspname = any($1::text[])
      group by n.oid, n.nspname order by n.nspname`
})

/** Whether the user may create and write the datasets. */
export const rights = Effect.fnUntraced(function* (
  { ok, failed }: About,
  { datasets }: Configuration,
  { standby, readonly, maycreate, maytemp, user, database }: Statement.RowOf<typeof serverStatement>
): Effect.fn.Return<Findings, DatabaseError, SqlClient.SqlClient> {
  const wanted = [...Object.values(datasets), modelsDatasetDefault, asOfModelsDataset, "tributary"]
  const rows = yield* Statement.run(rightsStatement, [wanted])
  const findings: Array<Finding> = []
  const fail = (message: string, remedy: string) => findings.push(failed("configuration", message, remedy))
  const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
  const grant = (what: string) => `as an administrator: grant ${what} to ${quoted(user)}`
  if (standby) fail("this server is a standby, which takes no changes", "name the primary server in DATABASE_URL")
  if (readonly === "on") {
    fail(
      "its transactions are read-only by default",
      `as an administrator: alter role ${quoted(user)} set default_transaction_read_only = off`
    )
  }
  const absent = wanted.filter((name) => !rows.some((row) => row.name === name))
  if (!maycreate && absent.length > 0) {
    fail(`${user} may not create the datasets ${absent.join(", ")}`, grant(`create on database ${quoted(database)}`))
  }
  if (!maytemp)
    fail(
      `${user} may not make temporary tables, which loading needs`,
      grant(`temporary on database ${quoted(database)}`)
    )
  for (const { name, mayuse, maycreate: may, tables, barred } of rows) {
    if (!mayuse || !may) {
      fail(
        `${user} may not ${mayuse ? "create in" : "use"} the dataset ${name}`,
        grant(`usage, create on schema ${quoted(name)}`)
      )
    }
    if (barred > 0) {
      fail(
        `${user} may not write ${barred} of ${Output.plural(tables, "table")} of ${name}`,
        `give the tables to ${user}, or use the role that made them; see tributary schema grants`
      )
    }
  }
  return findings.length > 0 ? findings : [ok(`${user} may create and write in ${wanted.join(", ")}`)]
})

/** The role of SQL that a person writes, and the role of the dashboard. */
export const reader = (its: About, { readerUrl: url, datasets }: Configuration) =>
  Effect.gen(function* () {
    const login = yield* Reader.loginOf
    const finding = yield* dashboard(about("dashboard reader"), login)
    return [queries(its, login), finding, ...(yield* functions(about("reader functions")))]
  }).pipe(
    Effect.provideService(Reader.ReaderOptions, { url, datasets }),
    Effect.catch((error) =>
      Effect.succeed([
        its.warning(error.message, (error instanceof DatabaseError ? Remedy.remedyOf(error) : null) ?? Remedy.readLog)
      ])
    )
  )

/** Logs in as the reader, except where that creates the role. */
const dashboard = ({ ok, warning }: About, login: Reader.Login) =>
  Effect.map(login._tag === "Own" ? Effect.succeed(null) : Reader.skippedPages(login), (skipped) =>
    skipped === null
      ? ok("the dashboard reads as the reader")
      : warning(
          `the dashboard reads in read-only transactions, but with the rights of DATABASE_URL: ${skipped.reason}`,
          skipped.remedy
        )
  )

/** What every role may execute on a server that this program does not close by itself. */
const functions = Effect.fnUntraced(function* ({ ok, warning }: About) {
  const { embedded } = yield* Database
  if (embedded) return []
  const [row] = yield* Statement.run(openFunctionsStatement)
  const names = row?.names ?? []
  if (names.length === 0) return [ok("a reader may execute no function that writes or locks")]
  const shown = ["pg_logical_emit_message", "pg_advisory_lock", "pg_notify"].filter((name) => names.includes(name))
  return [
    warning(
      `a reader may execute ${names.length} functions that write WAL, lock or end sessions (${[...shown, "…"].join(", ")})`,
      "run tributary schema grants | psql as a superuser, which closes them"
    )
  ]
})

const queries = ({ ok, warning }: About, login: Reader.Login): Finding => {
  const role = Grants.roleNamesDefault.reader
  const queries = "query and push --from a query"
  switch (login._tag) {
    case "Url":
      return ok(`${queries} run as DATABASE_READER_URL says`)
    case "Own":
      return ok(`${queries} run as ${role}, which they create`)
    case "Role":
      return warning(
        `${queries} run in a read-only transaction as ${role}, which a statement can leave`,
        "give the role a password, and set DATABASE_READER_URL to log in as it"
      )
    case "Owner":
      return warning(`${queries} run in a read-only transaction, but with the rights of DATABASE_URL`, login.remedy)
    case "Refused":
      return warning(`${queries} are refused: ${login.message}`, login.remedy)
  }
}
