/**
 * The settings of every session of this program: the one list.
 *
 * Promise: a session of a role, database or server with other defaults reads and writes the same values. The list has what
 * changes the meaning of a text, of a name or of a transaction, and what ends a session that waits. Dedicated connections
 * and landings set it by a statement, whose own names are qualified; pools set it as they connect. A setting that the
 * session may not change, or that a pooler does not pass on, is an error with its name: a value is never read by it.
 *
 * `default_transaction_read_only` is not in the list: a role that may only read is refused where a program writes. Locales
 * (`lc_…`) are not: no statement of this program formats by them.
 */
import * as Effect from "effect/Effect"
import type { Client } from "./driver/Connection.ts"
import { DatabaseError } from "./DatabaseError.ts"
import * as Statement from "./Statement.ts"

/** Each with its value. PgBouncer passes these on. */
const passedOn = {
  client_encoding: "UTF8",
  DateStyle: "ISO, MDY",
  standard_conforming_strings: "on",
  TimeZone: "UTC"
}

const always = {
  ...passedOn,
  array_nulls: "on",
  backslash_quote: "safe_encoding",
  bytea_output: "hex",
  client_min_messages: "notice",
  default_transaction_deferrable: "off",
  // Each statement sees what is committed by then.
  default_transaction_isolation: "read committed",
  exit_on_error: "off",
  extra_float_digits: "1",
  idle_session_timeout: "0",
  IntervalStyle: "postgres",
  // The role's limit for one statement is for people: a merge of a large table may take longer.
  lock_timeout: "0",
  quote_all_identifiers: "off",
  row_security: "on",
  // Names of this program are qualified. Functions, operators and types are those of Postgres, before any other schema.
  search_path: "public",
  statement_timeout: "0",
  timezone_abbreviations: "Default",
  transform_null_equals: "off",
  "tributary.as_of": "",
  "tributary.as_of_mode": "",
  xmlbinary: "base64",
  xmloption: "content"
}

/** Set only where the session has none of these values: the first one. Not every server knows them, or every role may. */
const otherwise: Readonly<Record<string, readonly [value: string, ...accepted: ReadonlyArray<string>]>> = {
  // A process that is suspended within a transaction does not block the others for longer.
  idle_in_transaction_session_timeout: ["10min", "0"],
  session_replication_role: ["origin"],
  synchronous_commit: ["on", "local", "remote_write", "remote_apply"],
  transaction_timeout: ["0"]
}

/**
 * During a statement the server checks every other second whether the client still exists: otherwise a statement and its
 * locks would outlive a killed process. It probes a silent client after half a minute: otherwise the locks of a machine
 * that lost power or network would stay for two hours. A server on Windows refuses them.
 */
const liveness = {
  client_connection_check_interval: "2s",
  tcp_keepalives_idle: "30s",
  tcp_keepalives_interval: "10s",
  tcp_keepalives_count: "3"
}

/** Whether a value could be read or written wrongly under the setting. A limit of time, or a notice, is loud instead. */
export const changesMeaning = (name: string): boolean =>
  !name.endsWith("_timeout") && !["client_min_messages", "exit_on_error"].includes(name)

/** The startup parameters of a pool's connections. */
export const startupParameters: Readonly<Record<string, string>> = always
/** Those that a pooler passes on. */
export const pooledParameters: Readonly<Record<string, string>> = passedOn

const lists = (settings: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, [value]]))

/** The wanted values of the settings that the session has otherwise; an unknown setting has none. */
const different = `from pg_catalog.jsonb_each($1::pg_catalog.text::pg_catalog.jsonb) as s(name, accepted)
          where not s.accepted operator(pg_catalog.?) pg_catalog.current_setting(s.name, true)`

export const setUpStatement = Statement.make({
  name: "set the session up",
  params: ["text"],
  columns: { pid: "int4", count: "int8" },
  text: `select pg_catalog.pg_backend_pid() as pid, (
          select pg_catalog.count(pg_catalog.set_config(s.name, s.accepted operator(pg_catalog.->>) 0, false)) ${different})`
})

/**
 * Paths of `public` and of this program's own schema are as good: Postgres' default path has that schema first for a role
 * of its name.
 */
export const differentStatement = Statement.make({
  name: "compare the settings of the session",
  params: ["text"],
  columns: { name: "text", value: "text" },
  text: `select s.name, s.accepted operator(pg_catalog.->>) 0 as value ${different}
            and not (s.name operator(pg_catalog.=) 'search_path'::pg_catalog.text
                     and pg_catalog.current_schemas(false) operator(pg_catalog.<@)
                         array['public'::pg_catalog.name, 'tributary'::pg_catalog.name])
          order by s.name`
})

/** The parameter of {@link differentStatement}. */
export const wanted = JSON.stringify({ ...lists(always), ...otherwise })

const dedicated = JSON.stringify({ ...lists(always), ...otherwise, ...lists(liveness) })

/** Sets a session up; answers the id of its server process. */
export const setUp = (client: Client): Effect.Effect<number, DatabaseError> => {
  const attempt = (settings: string) =>
    Effect.map(
      Effect.tryPromise({
        try: () => client.query<{ readonly pid: number }>(setUpStatement.text, [settings]),
        catch: DatabaseError.from(setUpStatement.name)
      }),
      ({ rows }) => rows[0]!.pid
    )
  return Effect.catchIf(
    attempt(dedicated),
    ({ isRetryable }) => !isRetryable,
    () => attempt(wanted)
  )
}

/** A session has settings with which values would be read wrongly, and that cannot be changed. */
export const differentError = (address: string, names: ReadonlyArray<string>): DatabaseError =>
  new DatabaseError({
    operation: "connect",
    code: undefined,
    message:
      `the sessions of Postgres at ${address} have other defaults for ${names.join(", ")}, which a pooler does not let ` +
      "this program change: use the direct address of the server, or reset them for the role and the database (alter role … reset …)" +
      (names.includes("search_path") ? ", and set search_path to public (alter role … set search_path = public)" : ""),
    isRetryable: false
  })
