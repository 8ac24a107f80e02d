/**
 * Read-only sessions: for SQL that a person wrote (`tributary query`, `tributary push --from "select …"`) and for the
 * dashboard ({@link pages}).
 *
 * Promise: the session reads and changes nothing. It runs one statement of the extended protocol, as a cursor, in a
 * read-only transaction with a statement timeout. The login is `DATABASE_READER_URL` if that is set. Otherwise an
 * embedded server, or a server that DATABASE_URL reaches as a superuser, gets the role `tributary_reader` with a login
 * of its own, whose password is derived from the superuser's: a statement cannot win back rights that its login never
 * had. An owner that is no superuser reads as itself, with `set role` where it may. A statement can undo that role; the
 * transaction is still read-only. An owner that can become a superuser, or may read files of the server, is refused.
 *
 * The reader sees the records, their history, the models, and the control plane without its secrets ({@link
 * Grants.secretTables}). A crash leaves at most a role without some of its grants; the next session adds them.
 *
 * The dashboard's statements are fixed. Where no reader can log in, or it may not read the control plane, the dashboard
 * reads as the owner in a read-only transaction, and `tributary doctor` reports it.
 */
import { createHmac } from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { Server } from "../postgres/Server.ts"
import { type Client, connect as connectTo, query, queryNamed } from "../postgres/driver/Connection.ts"
import { Database, poolLayer } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { parseUrl } from "../postgres/DatabaseUrl.ts"
import * as Statement from "../postgres/Statement.ts"
import * as Grants from "./Grants.ts"
import { identifier, literal } from "./Identifier.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "./Model.ts"
import * as ReaderFunctions from "./ReaderFunctions.ts"
import { datasetsDefault, type Datasets } from "./Table.ts"

export interface ReaderOptions {
  /** DATABASE_READER_URL; null where it is not set. */
  readonly url: Redacted.Redacted | null
  readonly datasets: Datasets
}

export const ReaderOptions = Context.Reference<ReaderOptions>("tributary/warehouse/ReaderOptions", {
  defaultValue: () => ({ url: null, datasets: datasetsDefault })
})

/** How a session becomes the reader. */
export type Login =
  | { readonly _tag: "Url"; readonly url: Redacted.Redacted }
  /** The role that this program creates with the rights of a superuser. */
  | { readonly _tag: "Own" }
  /** The owner, which drops its rights with `set role`. */
  | { readonly _tag: "Role" }
  /** The owner itself: there is no reader. */
  | { readonly _tag: "Owner"; readonly remedy: string }
  /** The owner has rights that a read-only transaction does not prevent, such as reading files of the server. */
  | { readonly _tag: "Refused"; readonly message: string; readonly remedy: string }

export const statementTimeout = "60s"
/** A push may pause for long between two fetches. */
const idleTimeout = "10min"
const lockTimeout = "5s"
const connectionsMax = 20
export const role = Grants.roleNamesDefault.reader
const mark = "Made by tributary for its own read-only sessions."

const makeReader =
  "run tributary schema grants | psql as an administrator, give the role a password, and set " +
  "DATABASE_READER_URL to log in as it"

/**
 * Roles that a read-only transaction does not restrict: superusers, and roles that reach files and programs of the
 * server. A session is refused if a statement can take one of them with `set_config('role', …)`, or is one. Null: there
 * is no such role.
 */
const powersSql = `select string_agg(rolname::text, ', ' order by rolname) from pg_roles
  where (rolsuper or rolname in ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program'))
    and pg_has_role(session_user, oid, 'member')`

export const readerStatement = Statement.make({
  name: "look for the reader",
  params: ["name", "text"],
  columns: { superuser: "bool", reader: "text?", ours: "bool", member: "bool", powers: "text?" },
  text: `select (select rolsuper from pg_roles where rolname = current_user) as superuser,
                (select rolname::text from pg_roles where rolname = $1) as reader,
                coalesce((select shobj_description(oid, 'pg_authid') = $2 from pg_roles where rolname = $1), false) as ours,
                coalesce((select pg_has_role(current_user, oid, 'member') from pg_roles where rolname = $1), false) as member,
                (${powersSql}) as powers`
})

/** The login that a session would use. Changes nothing. */
export const loginOf: Effect.Effect<Login, DatabaseError, Database> = Effect.gen(function* (): Effect.fn.Return<
  Login,
  DatabaseError,
  Database | Scope.Scope
> {
  const { url } = yield* ReaderOptions
  if (url !== null) return { _tag: "Url", url }
  const database = yield* Database
  const client = yield* database.connect
  const [row] = yield* queryNamed(client, readerStatement, [role, mark])
  if (row === undefined) return { _tag: "Owner", remedy: makeReader }
  const { user, password } = database.endpoint
  if (row.superuser) {
    if (database.embedded) return { _tag: "Own" }
    if (row.reader !== null && !row.ours) {
      return {
        _tag: "Refused",
        message: `${user} is a superuser, and the role ${role} was not made by tributary`,
        remedy: `give ${role} a password, and set DATABASE_READER_URL to log in as it`
      }
    }
    if (Redacted.value(password) === "") {
      return { _tag: "Refused", message: `${user} is a superuser without a password`, remedy: makeReader }
    }
    return { _tag: "Own" }
  }
  if (row.powers !== null) {
    return { _tag: "Refused", message: `${user} can take the rights of ${row.powers}`, remedy: makeReader }
  }
  return row.member ? { _tag: "Role" } : { _tag: "Owner", remedy: makeReader }
}).pipe(Effect.scoped)

export const settingsStatement = Statement.make({
  name: "set the session of the reader up",
  params: ["text"],
  columns: { count: "int8" },
  text: "select count(set_config(key, value, false)) from jsonb_each_text($1::text::jsonb)"
})

const refusal = (message: string) =>
  new DatabaseError({ operation: "read as the reader", code: undefined, message, isRetryable: false })

export const serverOf = (url: Redacted.Redacted): Effect.Effect<Server, DatabaseError> =>
  Effect.map(parseUrl(url, "DATABASE_READER_URL"), (endpoint) => ({
    endpoint,
    describe: "the reader's database",
    embedded: false
  }))

export const logIn = Effect.fnUntraced(function* (login: Login) {
  const database = yield* Database
  switch (login._tag) {
    case "Refused":
      return yield* refusal(`SQL is not run as this user of the database: ${login.message}; ${login.remedy}`)
    case "Url": {
      const reader = yield* connectTo(yield* serverOf(login.url))
      yield* refusePower(reader)
      return reader
    }
    case "Own":
      return yield* asOwnReader(database)
    case "Role":
    case "Owner":
      return yield* database.connect
  }
})

/** A read-only transaction of the reader; it ends with the scope, and is rolled back. */
export const connect: Effect.Effect<Client, DatabaseError, Database | Scope.Scope> = Effect.flatMap(loginOf, (login) =>
  connectAs(login)
)

/** {@link connect} by a known login. */
export const connectAs = (login: Login) => Effect.flatMap(logIn(login), (client) => begin(login, client))

/** {@link connectAs}, without a look at the rights of the role that this program creates: it must exist. */
export const connectGranted = (login: Login) =>
  login._tag === "Own"
    ? Effect.flatMap(Database, (database) => connectTo(ownReader(database))).pipe(
        Effect.flatMap((client) => begin(login, client))
      )
    : connectAs(login)

const begin = Effect.fnUntraced(function* (login: Login, client: Client) {
  const settings = {
    default_transaction_read_only: "on",
    statement_timeout: statementTimeout,
    idle_in_transaction_session_timeout: idleTimeout,
    lock_timeout: lockTimeout
  }
  yield* queryNamed(client, settingsStatement, [JSON.stringify(settings)])
  if (login._tag === "Role") yield* query(client, "begin to read", `set role ${identifier(role)}`)
  yield* query(client, "begin to read", "begin transaction read only")
  return client
})

/** The read access of the dashboard. */
export interface Pages {
  readonly sql: SqlClient.SqlClient
  /** The role that each transaction takes with `set local role`; null where the login is enough. */
  readonly role: string | null
  /** Grants the reader what was created since; does nothing where this program does not grant. */
  readonly grant: Effect.Effect<void, DatabaseError>
  /** Why the owner reads instead of the reader; null where the reader reads. */
  readonly asOwner: SkippedPages | null
  /** As {@link connect}, without another look for the reader and its rights. */
  readonly connect: Effect.Effect<Client, DatabaseError, Database | Scope.Scope>
}

/** Why the reader cannot read for the dashboard. */
export interface SkippedPages {
  readonly reason: string
  readonly remedy: string
}

const grantAgain = "run tributary schema grants | psql as the owner of the tables"

/** The parts of the control plane that the session may not read; null where it may read all but the secrets. */
export const unreadableStatement = Statement.make({
  name: "look at the rights of the reader",
  columns: { names: "text?" },
  text: `select string_agg(distinct relname, ', ' order by relname) as names from (${Grants.controlSelect(
    Grants.controlDataset,
    "not has_table_privilege(c.oid, 'select')",
    "not has_column_privilege(c.oid, a.attnum, 'select')"
  )}) lacking`
})

/** Why the reader of this login cannot read for the dashboard; null where it can. Logs in as it. */
export const skippedPages = (login: Login): Effect.Effect<SkippedPages | null, DatabaseError, Database> => {
  if (login._tag === "Owner") return Effect.succeed({ reason: "there is no reader", remedy: login.remedy })
  if (login._tag === "Refused") return Effect.succeed({ reason: login.message, remedy: login.remedy })
  return connectAs(login).pipe(
    Effect.flatMap((client) => queryNamed(client, unreadableStatement)),
    Effect.scoped,
    Effect.map(([row]) => row?.names ?? null),
    Effect.map((names) => (names === null ? null : { reason: `the reader may not read ${names}`, remedy: grantAgain })),
    Effect.catchIf(
      ({ isRetryable }) => !isRetryable,
      ({ message }) => Effect.succeed({ reason: message, remedy: makeReader })
    )
  )
}

/** The dashboard's own pool, as the reader where that is possible; ends with the scope. */
export const pages: Effect.Effect<Pages, DatabaseError, Database | SqlClient.SqlClient | Scope.Scope> = Effect.gen(
  function* () {
    const database = yield* Database
    const login = yield* loginOf
    const options = yield* ReaderOptions
    const owner = { sql: yield* SqlClient.SqlClient, role: null, grant: Effect.void, connect }
    const asOwner = yield* skippedPages(login)
    if (asOwner !== null) return { ...owner, asOwner }
    if (login._tag === "Role") return { ...owner, role, asOwner }
    const reader = login._tag === "Url" ? yield* serverOf(login.url) : ownReader(database)
    const pool = yield* Layer.build(
      poolLayer(reader, (yield* database.budget).pages, { statement_timeout: statementTimeout })
    )
    return {
      sql: Context.get(pool, SqlClient.SqlClient),
      role: null,
      connect: connectGranted(login),
      grant: login._tag === "Own" ? Effect.provideService(grantIn(database), ReaderOptions, options) : Effect.void,
      asOwner
    }
  }
)

/** Runs before each fetch of a cursor: a statement can change the limit of the statements that follow. */
export const limitTime = (client: Client, timeout = statementTimeout): Effect.Effect<unknown, DatabaseError> =>
  query(client, "limit the time", `set local statement_timeout = ${literal(timeout)}`)

export const powersStatement = Statement.make({
  name: "look at the powers of the reader",
  columns: { powers: "text?" },
  text: `select (${powersSql}) as powers`
})

const refusePower = Effect.fnUntraced(function* (client: Client) {
  const [row] = yield* queryNamed(client, powersStatement)
  if (row !== undefined && row.powers !== null) {
    return yield* refusal(
      `DATABASE_READER_URL names a role that can take the rights of ${row.powers}; name one that may only read: ${makeReader}`
    )
  }
})

/**
 * Two processes may create or grant the same at once; the one that fails tries again. XX000: a catalogue row was just
 * updated.
 */
const collided = (error: DatabaseError): boolean => ["42710", "23505", "XX000"].includes(error.code ?? "")

type DatabaseShape = Context.Service.Shape<typeof Database>

export const ownReader = ({ endpoint, embedded, describe }: Server): Server => {
  const password = createHmac("sha256", Redacted.value(endpoint.password))
    .update("tributary reader 1")
    .digest("base64url")
  return { endpoint: { ...endpoint, user: role, password: Redacted.make(password) }, describe, embedded }
}

const grantIn = (database: DatabaseShape) =>
  Effect.scoped(Effect.flatMap(database.connect, (owner) => grant(owner, database.embedded))).pipe(
    Effect.retry({ times: 5, while: collided })
  )

const asOwnReader = Effect.fnUntraced(function* (database: DatabaseShape) {
  const server = ownReader(database)
  const password = Redacted.value(server.endpoint.password)
  const reader = connectTo(server)
  yield* grantIn(database)
  return yield* reader.pipe(
    // The role was just created without a password, or the superuser's password has changed since.
    Effect.catchIf(
      (error) => error.code === "28P01" || error.code === "28000",
      () =>
        Effect.scoped(Effect.flatMap(database.connect, (owner) => setPassword(owner, password))).pipe(
          Effect.retry({ times: 5, while: collided }),
          Effect.andThen(reader)
        )
    )
  )
})

/** The server's log must not hold the password. */
const setPassword = (owner: Client, password: string) =>
  query(
    owner,
    "give the reader its password",
    `begin;
     set local log_statement = 'none'; set local log_min_duration_statement = -1; set local log_min_error_statement = 'panic';
     alter role ${identifier(role)} password ${literal(password)};
     commit`
  )

/** Some of the role's own settings, as its catalogue row has them. */
const readerConfig = `array['default_transaction_read_only=on', 'temp_file_limit=${ReaderFunctions.tempFileLimit}']`

/** Creates the role, and grants what it lacks; an up-to-date warehouse costs one read of its catalogue. */
const grant = Effect.fnUntraced(function* (owner: Client, embedded: boolean) {
  const { datasets } = yield* ReaderOptions
  const name = identifier(role)
  const names = (texts: ReadonlyArray<string>) =>
    `array[${texts.map((text) => literal(identifierText(text))).join(", ")}]`
  const recordDatasets = [...Object.values(datasets), modelsDatasetDefault, asOfModelsDataset]
  const records = names(recordDatasets)
  const schemas = names([...recordDatasets, Grants.controlDataset])
  const body = `
    declare lacking record;
    begin
      perform pg_advisory_xact_lock(${grantLock});
      if not exists (select from pg_roles where rolname = ${literal(role)}) then
        create role ${name} login nosuperuser nocreatedb nocreaterole noinherit noreplication
          connection limit ${connectionsMax};
        comment on role ${name} is ${literal(mark)};
      end if;
      if not exists (select from pg_roles where rolname = ${literal(role)}
                      and rolconfig @> ${readerConfig}) then
        alter role ${name} set default_transaction_read_only = on;
        alter role ${name} set statement_timeout = ${literal(statementTimeout)};
        alter role ${name} set temp_file_limit = ${literal(ReaderFunctions.tempFileLimit)};
      end if;
      for lacking in
        select nspname from pg_namespace
         where nspname = any (${schemas}) and not has_schema_privilege(${literal(role)}, oid, 'usage')
      loop
        execute format('grant usage on schema %I to ${name}', lacking.nspname);
      end loop;
      for lacking in
        select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = any (${records}) and c.relkind in ('r', 'p', 'v', 'm')
           and not has_table_privilege(${literal(role)}, c.oid, 'select')
      loop
        execute format('grant select on %I.%I to ${name}', lacking.nspname, lacking.relname);
      end loop;
      for lacking in ${Grants.controlSelect(
        Grants.controlDataset,
        `not has_table_privilege(${literal(role)}, c.oid, 'select')`,
        `not has_column_privilege(${literal(role)}, c.oid, a.attnum, 'select')`
      )}
      loop
        ${Grants.grantControlRow(Grants.controlDataset, role, "lacking")}
      end loop;
      ${embedded ? ReaderFunctions.close("lacking", []) : ""}
    end`
  yield* query(owner, "grant the reader its rights", `do ${literal(body)}`)
})

const identifierText = (name: string): string => {
  identifier(name)
  return name
}

/** Any constant will do. */
const grantLock = "7305881479"
