/**
 * Roles with every odd setting at once, and with a schema of functions, operators and types that shadow those of Postgres.
 *
 * The settings belong to the role in this database, so that they go with it; the schema precedes `pg_catalog` on the
 * path. Time limits are long enough for the statement that changes them. Settings that a version of Postgres does not know are left out.
 */
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type * as SqlClient from "effect/sql/SqlClient"

const shadow = "hostile"

/** Settings of a role that change how values are read or written, how names resolve, or when a session ends. */
export const oddSettings: Readonly<Record<string, string>> = {
  array_nulls: "off",
  backslash_quote: "off",
  bytea_output: "escape",
  check_function_bodies: "off",
  client_encoding: "LATIN1",
  client_min_messages: "debug1",
  datestyle: "German, DMY",
  default_text_search_config: "simple",
  default_transaction_deferrable: "on",
  default_transaction_isolation: "serializable",
  escape_string_warning: "off",
  exit_on_error: "on",
  extra_float_digits: "-15",
  idle_in_transaction_session_timeout: "5s",
  idle_session_timeout: "5s",
  intervalstyle: "sql_standard",
  jit: "on",
  jit_above_cost: "0",
  lc_monetary: "C.UTF-8",
  lc_numeric: "C.UTF-8",
  lc_time: "C.UTF-8",
  lock_timeout: "4s",
  plan_cache_mode: "force_generic_plan",
  quote_all_identifiers: "on",
  row_security: "off",
  search_path: `${shadow}, pg_catalog, public`,
  standard_conforming_strings: "off",
  statement_timeout: "5s",
  synchronous_commit: "off",
  timezone: "Asia/Kathmandu",
  timezone_abbreviations: "India",
  transaction_timeout: "5s",
  transform_null_equals: "on",
  "tributary.as_of": "2001-01-01",
  "tributary.as_of_mode": "source",
  work_mem: "64kB",
  xmlbinary: "hex",
  xmloption: "document"
}

/** Each takes precedence over the one of Postgres where the path has the schema first. */
const shadows: ReadonlyArray<string> = [
  `create schema ${shadow}`,
  `create function ${shadow}.now() returns timestamptz language sql as $$ select timestamptz '1999-01-01' $$`,
  `create function ${shadow}.lower(text) returns text language sql as $$ select 'shadow' $$`,
  `create function ${shadow}.md5(text) returns text language sql as $$ select 'shadow' $$`,
  `create function ${shadow}.to_char(timestamp, text) returns text language sql as $$ select 'shadow' $$`,
  `create function ${shadow}.current_setting(text, boolean) returns text language sql as $$ select 'shadow' $$`,
  `create function ${shadow}.set_config(text, text, boolean) returns text language sql as $$ select 'shadow' $$`,
  `create function ${shadow}.count(int8) returns int8 language sql as 'select 0::int8'`,
  `create function ${shadow}.has_schema_privilege(oid, text) returns bool language sql as 'select true'`,
  `create function ${shadow}.unequal(int8, int8) returns bool language sql as 'select false'`,
  `create operator ${shadow}.= (function = ${shadow}.unequal, leftarg = int8, rightarg = int8)`,
  `create function ${shadow}.unequal(text, text) returns bool language sql as 'select false'`,
  `create operator ${shadow}.= (function = ${shadow}.unequal, leftarg = text, rightarg = text)`,
  `create function ${shadow}.add(numeric, numeric) returns numeric language sql as 'select 0::numeric'`,
  `create operator ${shadow}.+ (function = ${shadow}.add, leftarg = numeric, rightarg = numeric)`,
  `create type ${shadow}.jsonb as enum ('shadow')`,
  `create domain ${shadow}.date as pg_catalog.text`,
  `create table ${shadow}.pg_class as select 1 as oid`,
  `grant usage on schema ${shadow} to public`,
  `grant select on all tables in schema ${shadow} to public`
]

/** Gives the roles all of it in the current database. The session must be a superuser's. */
export const makeHostile = (sql: SqlClient.SqlClient, roles: ReadonlyArray<string>): Effect.Effect<void, SqlError> =>
  Effect.gen(function* () {
    for (const statement of shadows) yield* sql.unsafe(statement)
    const [at] = yield* sql<{ name: string }>`select current_database()::text as name`
    const known = yield* sql<{ name: string }>`select lower(name) as name from pg_settings`
    const names = new Set(known.map(({ name }) => name))
    for (const role of roles)
      for (const [name, value] of Object.entries(oddSettings)) {
        if (!names.has(name) && !name.includes(".")) continue
        const setting = name === "search_path" ? value : `'${value}'`
        yield* sql.unsafe(`alter role ${role} in database ${at!.name} set ${name} = ${setting}`)
      }
  })
