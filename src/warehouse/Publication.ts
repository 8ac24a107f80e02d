/**
 * The publication of the current records for logical replication: its statements, and what keeps it from working.
 *
 * Promise: once the statements have run, the publication has every table of the current dataset, with the rows of every
 * company or of one. Tables that other people added stay. Nothing is changed here.
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
    publishesAll: "bool?",
    publishes: "text?"
  },
  text: `select current_setting('server_version_num')::int as version, current_setting('wal_level') as "walLevel",
                current_setting('max_wal_senders')::int as "walSenders", current_setting('max_replication_slots')::int as slots,
                p.puballtables as "publishesAll",
                case when p.oid is not null then concat_ws(', ', case when p.pubinsert then 'insert' end,
                  case when p.pubupdate then 'update' end, case when p.pubdelete then 'delete' end) end as publishes
           from (select) one left join pg_publication p on p.pubname = $1`
})

export const publishedTablesStatement = Statement.make({
  name: "read the published tables",
  params: ["name", "name"],
  columns: { name: "name", identity: "text", hasKey: "bool", isPublished: "bool", filter: "text?" },
  // Before Postgres 15 the view has no row filters.
  text: `select c.relname as name, c.relreplident::text as identity,
                exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary) as "hasKey",
                p.tablename is not null as "isPublished", to_jsonb(p) ->> 'rowfilter' as filter
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
           left join pg_publication_tables p
             on p.pubname = $1 and p.schemaname = n.nspname and p.tablename = c.relname
          where n.nspname = $2 and c.relkind in ('r', 'p') and not c.relispartition
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

/** The condition on the rows of a company, as Postgres prints it. */
const filterOf = ({ companyId }: PublicationOptions): string | null =>
  companyId === null ? null : `(_company_id = ${companyId})`

const statementsOf = (
  options: PublicationOptions,
  { publishesAll, publishes }: Server,
  tables: ReadonlyArray<PublishedTable>
): ReadonlyArray<string> => {
  const name = identifier(options.name)
  const filter = filterOf(options)
  const quoted = (table: PublishedTable) => `${identifier(options.dataset)}.${identifier(table.name)}`
  const published = (table: PublishedTable) => `${quoted(table)}${filter === null ? "" : ` where ${filter}`}`
  const isUnlike = ({ isPublished, filter: present }: PublishedTable) => isPublished && present !== filter
  const alter = (action: string, changed: ReadonlyArray<string>) =>
    changed.length === 0 ? [] : [`alter publication ${name} ${action} table ${changed.join(", ")}`]
  const identities = tables.flatMap((table) =>
    table.identity === "n" ? [`alter table ${quoted(table)} replica identity default`] : []
  )
  if (publishes === null) {
    const list = tables.length === 0 ? "" : ` for table ${tables.map(published).join(", ")}`
    return [...identities, `create publication ${name}${list}`]
  }
  const isIncomplete = publishes !== "insert, update, delete"
  return [
    ...identities,
    ...(isIncomplete ? [`alter publication ${name} set (publish = 'insert, update, delete')`] : []),
    ...(publishesAll === true
      ? []
      : [
          ...alter("drop", tables.filter(isUnlike).map(quoted)),
          ...alter("add", tables.filter((table) => !table.isPublished || isUnlike(table)).map(published))
        ])
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
  if (tables.length === 0)
    problems.push(`the dataset ${options.dataset} has no table yet: run npx tributary sync first`)
  if (server.publishesAll === true && options.companyId !== null)
    problems.push(`the publication ${options.name} is for all tables and every company: choose another --name`)
  for (const { name, hasKey } of tables)
    if (!hasKey) problems.push(`the table ${name} has no key: run npx tributary schema apply`)
  for (const { slot, retained, isLost } of slots)
    problems.push(
      isLost
        ? `the slot ${slot} has lost changes: drop it (select pg_drop_replication_slot(${literal(slot)})), and copy the tables again`
        : `the slot ${slot} has no subscriber, and Postgres keeps ${retained} of WAL for it: start the subscriber, or drop it (select pg_drop_replication_slot(${literal(slot)}))`
    )
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
    tables: tables.length
  } satisfies PublicationPlan
})
