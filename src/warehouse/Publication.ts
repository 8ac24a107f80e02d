/**
 * The publication of the current records for logical replication: its statements, and what keeps it from working.
 *
 * Promise: once the statements have run, the publication has every table of the current dataset whose changes it can
 * publish, with the rows of every company or of one. It has no table in which Postgres would refuse updates then. Tables and
 * settings that a publication has already stay: where they do not fit, that is a problem for a person. Nothing is changed
 * here.
 *
 * A publication must publish inserts, updates and deletes: a soft deletion is an update of `_deleted_at`, and `company remove
 * --erase` deletes.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { identifier, literal } from "./Identifier.ts"

export const nameDefault = "tributary"

export interface PublicationOptions {
  readonly name: string
  /** The dataset of the current records. */
  readonly dataset: string
  /** Publishes the rows of this company only (Postgres 15 and later); null publishes those of all. */
  readonly companyId: bigint | null
}

export interface PublicationPlan {
  /** To be run by the owner of the tables; none when the publication is up to date. */
  readonly statements: ReadonlyArray<string>
  /** What keeps the changes from a subscriber, or the publisher from writing, each with its remedy. */
  readonly problems: ReadonlyArray<string>
  /** Number of the tables that are published in the end. */
  readonly tables: number
}

export const serverStatement = Statement.make({
  name: "read the settings of logical replication",
  params: ["name"],
  columns: {
    version: "int4",
    walLevel: "text",
    walSenders: "int4",
    slots: "int4",
    publishes: "text[]?"
  },
  text: `select current_setting('server_version_num')::int as version, current_setting('wal_level') as "walLevel",
                current_setting('max_wal_senders')::int as "walSenders", current_setting('max_replication_slots')::int as slots,
                case when p.oid is not null then array_remove(array[case when p.pubinsert then 'insert' end,
                  case when p.pubupdate then 'update' end, case when p.pubdelete then 'delete' end,
                  case when p.pubtruncate then 'truncate' end], null) end as publishes
           from (select) one left join pg_publication p on p.pubname = $1`
})

/**
 * The tables of a dataset. `isPublished`: the publication has the table, whether by its name (`isNamed`) or with its dataset
 * or all tables. `identity`: `d` by the key, `f` by all columns, `i` by an index, `n` by nothing.
 */
export const publishedTablesStatement = Statement.make({
  name: "read the published tables",
  params: ["name", "name"],
  columns: {
    name: "name",
    identity: "text",
    hasKey: "bool",
    isPublished: "bool",
    isNamed: "bool",
    filter: "text?",
    isPart: "bool"
  },
  // Before Postgres 15 the view has neither row filters nor lists of columns.
  text: `select c.relname as name, c.relreplident::text as identity,
                exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary) as "hasKey",
                p.tablename is not null as "isPublished",
                exists (select from pg_publication_rel r join pg_publication o on o.oid = r.prpubid
                         where r.prrelid = c.oid and o.pubname = $1) as "isNamed",
                to_jsonb(p) ->> 'rowfilter' as filter,
                coalesce(jsonb_array_length(to_jsonb(p) -> 'attnames') < (
                  select count(*) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), false) as "isPart"
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
           left join pg_publication_tables p
             on p.pubname = $1 and p.schemaname = n.nspname and p.tablename = c.relname
          where n.nspname = $2 and c.relkind = 'r' and not c.relispartition
            and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = '_company_id' and not a.attisdropped)
          order by 1`
})

/** A slot without a subscriber keeps all WAL since it was last read; above this size it is reported. */
const retainedMax = 1024 ** 3

export const idleSlotsStatement = Statement.make({
  name: "read the slots without a subscriber",
  params: ["numeric"],
  columns: { slot: "name", retained: "text", isLost: "bool" },
  text: `select slot_name as slot, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) as retained,
                coalesce(wal_status = 'lost', false) as "isLost"
           from pg_replication_slots
          where slot_type = 'logical' and database = current_database() and not active
            and (wal_status = 'lost' or pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > $1)
          order by 1`
})

type Server = Statement.RowOf<typeof serverStatement>
type PublishedTable = Statement.RowOf<typeof publishedTablesStatement>

const needed = ["insert", "update", "delete"]

const tableSql = ({ dataset }: PublicationOptions, { name }: PublishedTable): string =>
  `${identifier(dataset)}.${identifier(name)}`

/** The company of a row filter, as Postgres prints it; null for any other filter. */
const companyOf = (filter: string): bigint | null => {
  const digits = /^\(_company_id = '?(\d+)'?(?:::bigint)?\)$/.exec(filter)?.[1]
  return digits === undefined ? null : BigInt(digits)
}

/** Why the changes of a table cannot be published; null when they can. */
const obstacleOf = (options: PublicationOptions, table: PublishedTable): string | null => {
  const { name, identity, hasKey, isPublished, filter, isPart } = table
  const other = "choose another --name"
  if (isPublished && (filter === null ? null : companyOf(filter)) !== options.companyId) {
    const rows = filter === null ? "the rows of every company" : `the rows where ${filter}`
    return `the publication ${options.name} has ${rows} of the table ${name}: ${other}`
  }
  if (isPart) return `the publication ${options.name} has only some columns of the table ${name}: ${other}`
  if (!hasKey && identity !== "f")
    return `the table ${name} has no key: run alter table ${tableSql(options, table)} add primary key ("_company_id", "id")`
  if (identity === "i")
    return `the table ${name} is identified by an index: run alter table ${tableSql(options, table)} replica identity default`
  return null
}

const statementsOf = (
  options: PublicationOptions,
  { publishes }: Server,
  tables: ReadonlyArray<PublishedTable>
): ReadonlyArray<string> => {
  const name = identifier(options.name)
  const where = options.companyId === null ? "" : ` where (_company_id = ${options.companyId})`
  const usable = tables.filter((table) => obstacleOf(options, table) === null)
  const identities = usable.flatMap((table) =>
    table.identity === "n" ? [`alter table ${tableSql(options, table)} replica identity default`] : []
  )
  const added = usable.filter(({ isPublished }) => !isPublished)
  const list = added.map((table) => `${tableSql(options, table)}${where}`).join(", ")
  if (publishes === null) return [...identities, `create publication ${name}${list === "" ? "" : ` for table ${list}`}`]
  const all = [...new Set([...publishes, ...needed])]
  return [
    ...identities,
    ...(all.length === publishes.length
      ? []
      : [`alter publication ${name} set (publish = ${literal(all.join(", "))})`]),
    ...(list === "" ? [] : [`alter publication ${name} add table ${list}`])
  ]
}

const problemsOf = (
  options: PublicationOptions,
  server: Server,
  tables: ReadonlyArray<PublishedTable>,
  slots: ReadonlyArray<Statement.RowOf<typeof idleSlotsStatement>>
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  if (server.walLevel !== "logical")
    problems.push(`wal_level is ${server.walLevel}: set wal_level = logical in Postgres, and restart it`)
  for (const [setting, value] of [
    ["max_wal_senders", server.walSenders],
    ["max_replication_slots", server.slots]
  ] as const)
    if (value === 0)
      problems.push(`${setting} is 0, which excludes every subscriber: set it to 10 and restart Postgres`)
  if (tables.length === 0) problems.push(`the dataset ${options.dataset} has no table yet: run tributary sync first`)
  const isWide = tables.some(({ isPublished, isNamed }) => isPublished && !isNamed)
  if (isWide && options.companyId !== null)
    problems.push(`the publication ${options.name} is for all tables and every company: choose another --name`)
  else problems.push(...tables.flatMap((table) => obstacleOf(options, table) ?? []))
  for (const { slot, retained, isLost } of slots) {
    const drop = `drop it (select pg_drop_replication_slot(${literal(slot)}))`
    problems.push(
      isLost
        ? `the slot ${slot} has lost changes: ${drop}, and copy the tables again`
        : `the slot ${slot} has no subscriber, and Postgres keeps ${retained} of WAL for it: start the subscriber, or ${drop}`
    )
  }
  return problems
}

/** The lowest version whose publications have row filters. */
export const rowFilterVersion = 150_000

/** Plans the publication. Row filters need {@link rowFilterVersion}; `null` where the server is older. */
export const plan = Effect.fn("Publication.plan")(function* (options: PublicationOptions) {
  const [server] = yield* Statement.run(serverStatement, [options.name])
  if (options.companyId !== null && server!.version < rowFilterVersion) return null
  const tables = yield* Statement.run(publishedTablesStatement, [options.name, options.dataset])
  const slots = yield* Statement.run(idleSlotsStatement, [retainedMax])
  return {
    statements: statementsOf(options, server!, tables),
    problems: problemsOf(options, server!, tables, slots),
    tables: tables.filter((table) => obstacleOf(options, table) === null).length
  } satisfies PublicationPlan
})
