/**
 * The rights of the three roles of a warehouse, as statements for the owner or an administrator.
 *
 * Promise: three roles. The statements mean the same for each role that runs them, before the first sync and after it: they name the
 * owner ({@link RoleNames.owner}), and end with an error where a dataset belongs to another role. The owner owns the tables and alone alters them: migrations, `tributary
 * schema apply`. The loader syncs: it reads and writes rows in the current and history datasets and the control plane,
 * and can create nothing but temporary tables. The reader reads the current records, the history, the models, and both as of a moment, in
 * read-only transactions with a time limit, and the control plane without its secrets. Objects that the owner creates
 * later are granted the same way, except the control plane's tables to the reader. A role that is created here may log
 * in but has no password yet: the owner sets one (`\password` in psql), or uses certificates. The role that runs them needs
 * the right to create roles, and a superuser also closes the functions of `ReaderFunctions.ts`. Statements can be run again; names reach them through {@link identifier} alone.
 */
import { identifier, literal } from "./Identifier.ts"
import { restrict } from "./ReaderFunctions.ts"
import type { Datasets } from "./Table.ts"

/** Every dataset of a warehouse. */
export interface AllDatasets extends Datasets {
  readonly models: string
  /** The models as of a moment. */
  readonly asOfModels: string
  readonly control: string
}

export interface RoleNames {
  /** The role that owns the datasets; default: the role that runs the statements. Any name of Postgres. */
  readonly owner?: string
  readonly loader: string
  readonly reader: string
}

export const roleNamesDefault: RoleNames = { loader: "tributary_loader", reader: "tributary_reader" }

/** The dataset of the control plane, as its migrations name it. */
export const controlDataset = "tributary"

/** Tables of the control plane that hold keys, secrets or password hashes, each with the columns that a reader sees. */
export const secretTables: Readonly<Record<string, ReadonlyArray<string>>> = {
  webhook_secrets: [],
  company_settings:
    "company installation url company_id resources exclude_resources webhook_events paused_at paused_by created_at updated_at".split(
      " "
    ),
  push_requests: "id company resource operation record_count state created_at failed_attempts status reason".split(" "),
  change_endpoints: (
    "name kind url origin only_company resources operations fields batch_max allow_private retry_hours state state_since reason " +
    "last_position process_id leased_until fence failing_since failures next_attempt_at succeeded_at attempts delivered created_at"
  ).split(" "),
  access_tokens: "name created_at created_by used_at".split(" "),
  warehouse: "is_this identity pause_reason confirmed_at company_revision password_set_at".split(" "),
  dashboard_sessions: []
}

const inList = (texts: ReadonlyArray<string>): string => `(${texts.map(literal).join(", ")})`

/** The columns that a reader sees of a secret table, as a condition on relation `c` and column `a`. */
const shownColumns = `a.attnum > 0 and not a.attisdropped and (${Object.entries(secretTables)
  .filter(([, columns]) => columns.length > 0)
  .map(([table, columns]) => `c.relname = ${literal(table)} and a.attname in ${inList(columns)}`)
  .join(" or ")})`

/**
 * A query for the parts of the control plane that a reader sees: `relname`, and `attname` where it sees that column
 * only. `condition` is about the relation `c`; `columnCondition` about its column `a`.
 */
export const controlSelect = (control: string, condition: string, columnCondition: string): string =>
  `select c.relname, null::name as attname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = ${literal(control)} and c.relkind in ('r', 'p', 'v')
      and c.relname not in ${inList(Object.keys(secretTables))} and ${condition}
   union all
   select c.relname, a.attname
     from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
    where n.nspname = ${literal(control)} and c.relkind = 'r' and ${shownColumns} and ${columnCondition}`

/** Grants a row of {@link controlSelect}, which PL/pgSQL holds in `variable`. */
export const grantControlRow = (control: string, reader: string, variable: string): string =>
  `execute format('grant select %s on %I.%I to ${identifier(reader)}',
     coalesce('(' || quote_ident(${variable}.attname) || ')', ''), ${literal(control)}, ${variable}.relname);`

/** Granted once; a table that the owner makes later is not seen until these statements are run again. */
const grantControl = (control: string, reader: string): string =>
  `do ${literal(`
declare one record;
begin
  for one in ${controlSelect(control, "true", "true")}
  loop
    ${grantControlRow(control, reader, "one")}
  end loop;
end`)}`

/** The maximum duration of a reader's statement. */
const statementTimeout = "60s"

export const createRole = (role: string): string =>
  `do ${literal(
    `begin if not exists (select from pg_roles where rolname = ${literal(role)}) then create role ${identifier(role)} login; end if; end`
  )}`

/** A role as a statement names it. */
export const ownerName = (owner: string | undefined): string =>
  owner === undefined ? "current_user" : `"${owner.replaceAll('"', '""')}"`

/** Ends with an error where a dataset belongs to another role than the owner, who could not make tables in it. */
const requireOwner = (datasets: ReadonlyArray<string>, owner: string): string =>
  `do ${literal(`
declare one record;
begin
  for one in select n.nspname, r.rolname, c.owner from pg_namespace n join pg_roles r on r.oid = n.nspowner,
       (select ${literal(owner)} as owner) c
     where n.nspname in ${inList(datasets)} and r.rolname <> c.owner
  loop
    raise exception 'the dataset % belongs to %, not to %', one.nspname, one.rolname, one.owner using hint = format(
      'Run first: alter schema %I owner to %I; or print the statements for its owner: tributary schema grants --owner %s',
      one.nspname, one.owner, one.rolname);
  end loop;
end`)}`

export const createSchemas = (datasets: ReadonlyArray<string>, owner: string | undefined): ReadonlyArray<string> => [
  ...(owner === undefined ? [] : [requireOwner(datasets, owner)]),
  ...datasets.map((dataset) => `create schema if not exists ${identifier(dataset)} authorization ${ownerName(owner)}`)
]

/** The name of the database is known to the session only. */
export const grantDatabase = (privileges: string, role: string): string =>
  `do ${literal(`begin execute format(${literal(`grant ${privileges} on database %I to ${identifier(role)}`)}, current_database()); end`)}`

/** Before Postgres 15 every role may create objects in the namespace "public". */
export const closePublic = `do ${literal(
  `begin if exists (select from pg_namespace where nspname = ${literal("public")}) then revoke create on schema public from public; end if; end`
)}`

/** A reader's transactions are read-only and have a time limit. */
export const readerSettings = (role: string): ReadonlyArray<string> =>
  [
    "default_transaction_read_only = on",
    `statement_timeout = ${literal(statementTimeout)}`,
    `idle_in_transaction_session_timeout = ${literal(statementTimeout)}`
  ].map((setting) => `alter role ${identifier(role)} set ${setting}`)

/** To be run in this order, by the owner of the datasets or by an administrator. */
export const statements = (datasets: AllDatasets, names: RoleNames = roleNamesDefault): ReadonlyArray<string> => {
  const owner = ownerName(names.owner)
  const defaults = `alter default privileges for role ${owner} in schema`
  const loader = identifier(names.loader)
  const reader = identifier(names.reader)
  const control = identifier(datasets.control)
  const loaded = [datasets.current, datasets.history, datasets.control].map(identifier)
  const models = [datasets.models, datasets.asOfModels].map(identifier)
  const read = [...[datasets.current, datasets.history, datasets.asOf].map(identifier), ...models]
  return [
    createRole(names.loader),
    createRole(names.reader),
    ...createSchemas(Object.values(datasets), names.owner),
    closePublic,
    grantDatabase("connect, temporary", names.loader),
    grantDatabase("connect", names.reader),
    ...loaded.flatMap((dataset) => [
      `grant usage on schema ${dataset} to ${loader}`,
      `grant select, insert, update, delete on all tables in schema ${dataset} to ${loader}`,
      `${defaults} ${dataset} grant select, insert, update, delete on tables to ${loader}`
    ]),
    `grant usage, select on all sequences in schema ${control} to ${loader}`,
    `${defaults} ${control} grant usage, select on sequences to ${loader}`,
    `grant execute on all functions in schema ${control} to ${loader}`,
    `${defaults} ${control} grant execute on functions to ${loader}`,
    `revoke all on schema ${control} from public, ${reader}`,
    `revoke all on all tables in schema ${control} from public, ${reader}`,
    `grant usage on schema ${control} to ${reader}`,
    grantControl(datasets.control, names.reader),
    ...read.flatMap((dataset) => [
      `grant usage on schema ${dataset} to ${reader}`,
      `grant select on all tables in schema ${dataset} to ${reader}`,
      `${defaults} ${dataset} grant select on tables to ${reader}`
    ]),
    ...models.flatMap((dataset) => [
      `grant execute on all functions in schema ${dataset} to ${reader}`,
      `${defaults} ${dataset} grant execute on functions to ${reader}`
    ]),
    ...readerSettings(names.reader),
    restrict(names.reader, [loader, owner])
  ]
}
