/**
 * The real Postgres of a campaign: one server without durability, one database for each worker.
 *
 * Promise: every database is the result of the real migrations and the real table plan, with one difference:
 * `tributary.now()` returns the virtual time.
 */
import { rmSync } from "node:fs"
import { Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import { databaseAt, makeFolder, type Postgres, startPostgres } from "../../support/servers.ts"
import type { Bench } from "../World.ts"
import { resourcesUsed } from "../Plan.ts"
import { pushResources } from "../PushPlan.ts"
import { Sessions } from "./Sessions.ts"

/** Starts a server in a temporary folder. */
export const startServer = async (): Promise<Postgres> => {
  const server = await startPostgres(makeFolder("simulation"), false)
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  for (const setting of [
    "autovacuum = off",
    "jit = off",
    "synchronous_commit = off",
    "max_parallel_workers_per_gather = 0"
  ]) {
    await client.query(`alter system set ${setting}`)
  }
  await client.query("select pg_reload_conf()")
  await client.end()
  return server
}

const template = "simulation_template"

/** Applies the migrations and creates every missing table of the datasets. */
const makeTables = async (url: string): Promise<void> => {
  const tables = [...new Set([...resourcesUsed, ...pushResources])].map((path) =>
    tableOf(serviceV2.resources.get(path)!)
  )
  await Effect.runPromise(
    Effect.andThen(Migrations.migrate(), TablePlan.apply(tables)).pipe(
      Effect.provide(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(url)))))
    ) as Effect.Effect<unknown>
  )
}

/** Creates the migrated database that the workers' databases are copies of. */
export const prepare = async (url: string): Promise<void> => {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  await admin.query(`drop database if exists ${template} with (force)`)
  await admin.query(`create database ${template}`)
  await admin.end()
  await makeTables(databaseAt(url, template))
  const client = new pg.Client({ connectionString: databaseAt(url, template) })
  await client.connect()
  const folder = makeFolder("clock")
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
  // Every statement reads the file as it is at that moment, also in a transaction and after a wait for a lock.
  await client.query(`
    create function public.clock_path() returns text language sql volatile
      as $$ select ${client.escapeLiteral(`${folder}/`)} || current_database() $$;
    create or replace function tributary.now() returns timestamptz language sql volatile parallel safe
      as $$ select timestamptz 'epoch' + pg_read_file(public.clock_path())::bigint * interval '1 microsecond' $$`)
  await client.end()
}

/** A worker's own database, with everything that a seed needs. */
export const openBench = async (url: string, name: string): Promise<Bench> => {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  await admin.query(`drop database if exists ${name} with (force)`)
  await admin.query(`create database ${name} template ${template}`)
  await admin.end()
  const sessions = await Sessions.make(databaseAt(url, name))
  const { monitor } = sessions
  // A copy of a database blocks its pushes until a person has confirmed it.
  await monitor.query("update tributary.warehouse set identity = tributary.database_identity()")
  const { rows } = await monitor.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname in ('tributary', 'erp', 'erp_history') order by 1`
  )
  // Rows that the migrations insert stay.
  const cleared: Array<string> = []
  for (const { name: table } of rows) {
    const { rows: any } = await monitor.query<{ has: boolean }>(`select exists (select 1 from ${table}) as has`)
    if (any[0]?.has === false) cleared.push(table)
  }
  const { rows: sequences } = await monitor.query<{ name: string }>(
    "select format('%I.%I', schemaname, sequencename) as name from pg_sequences where schemaname = 'tributary'"
  )
  let seeds = 0
  const clear = async () => {
    const { rows: lost } = await monitor.query(
      `select 1 from unnest(array[${cleared.map((table) => `'${table}'`).join(", ")}]) name where to_regclass(name) is null`
    )
    // A seed with a lost table ended before a sync had created it again.
    if (lost.length > 0) await makeTables(databaseAt(url, name))
    const { rows: dirty } = await monitor.query<{ table: string; has: boolean }>(
      cleared.map((table) => `select '${table}' as "table", exists (select 1 from ${table}) as has`).join(" union all ")
    )
    const tables = dirty.filter(({ has }) => has).map(({ table }) => table)
    if (tables.length > 0) {
      await monitor.query(`truncate ${tables.join(", ")} cascade`)
      await monitor.query(sequences.map(({ name: sequence }) => `select setval('${sequence}', 1, false)`).join(";"))
    }
    await monitor.query("update tributary.change_feed set last_position = 0, removed_through = 0, history_from = null")
    if (++seeds % 100 === 0) {
      for (const table of [
        "pg_class",
        "pg_attribute",
        "pg_type",
        "pg_depend",
        "pg_index",
        "pg_shdepend",
        "pg_statistic"
      ]) {
        await monitor.query(`vacuum pg_catalog.${table}`)
      }
    }
  }
  const drop = async (paths: ReadonlyArray<string>) => {
    await monitor.query("delete from tributary.privacy_rules")
    for (const path of paths)
      await monitor.query(`drop table if exists erp."${path}", erp_history."${path}__superseded" cascade`)
  }
  return { sessions, monitor, clear, drop }
}
