/**
 * Datasets of the warehouse that are restored from an older copy (class T2).
 *
 * Promise: the copy is of one moment, and it is restored in one transaction when no landing is open. Tables of the rows
 * are created anew, or emptied (by truncate or delete) and filled, with their history or without it, or the history alone. Of `tributary`, the tables of the sync are restored
 * with their sequences, so that ids of runs are used again. The checkpoints are created anew, as pg_restore does. The
 * request budget stays: an earlier budget would allow the same minute's requests twice. {@link Losses} records which
 * runs were in the ledger after the restore. From the first success after it, the checkers require every row.
 */
import type { Client } from "pg"
import { chance } from "../kernel/Chance.ts"
import { Actor, type Scene } from "../kernel/Scene.ts"
import { momentOf } from "../Plan.ts"
import { againMicros, type Losses, lockNotAvailable, undefinedTable } from "./Losses.ts"

const scopes = ["rows and control plane", "rows", "control plane"] as const
/** Parts of the rows that are restored alone. */
const parts = ["rows", "rows", "current rows", "history"] as const
type Scope = (typeof scopes)[number] | (typeof parts)[number]

/** The tables that a sync writes, except the request budget. */
const controlTables = [
  "checkpoints",
  "runs",
  "scans",
  "scan_ids",
  "quarantine",
  "refetch_requests",
  "sql_names",
  "unknown_fields",
  "field_findings",
  "companies",
  "change_batches",
  "change_feed"
].map((name) => `tributary.${name}`)

/** A table that was dropped exists again when the next sync has created it. */
const againMicrosMax = 250_000

/** The schema of a copy. */
const backupOf = (place: number): string => `backup_${place}`

/**
 * The sequences of the tables that are restored. A sequence of a table that stays would return ids that the table has.
 */
const sequencesSql = `select q.name, s.last_value::text as value from unnest(array[${controlTables
  .map((name) => `'${name}'`)
  .join(", ")}]::regclass[]) as t
  join pg_attribute a on a.attrelid = t and a.attidentity <> ''
  cross join lateral (select pg_get_serial_sequence(t::text, a.attname) as name) q
  join pg_sequences s on format('%I.%I', s.schemaname, s.sequencename) = q.name
  order by q.name`

export class Restores extends Actor {
  private readonly chance = chance(this.drawn.seed, "warehouse restores")
  /** A stream of its own: it changes no draw of older seeds. */
  private readonly parts = chance(this.drawn.seed, "restored parts")
  private readonly client: Client
  private readonly losses: Losses
  private readonly rowTables = this.drawn.resources.flatMap((path) => [
    `erp."${path}"`,
    `erp_history."${path}__superseded"`
  ])
  private stopped = false

  constructor(scene: Scene, client: Client, losses: Losses) {
    super(scene)
    this.client = client
    this.losses = losses
  }

  begin(): void {
    const { chance, drawn, kernel } = this
    if (drawn.later.warehouseRestores === 0) return
    kernel.work(async () => {
      // A row table may be missing for a while. Waiting for a missing control table would never end.
      const { rows } = await this.client.query<{ name: string }>(
        "select name from unnest($1::text[]) as name where to_regclass(name) is null",
        [controlTables]
      )
      if (rows.length > 0) throw new Error(`there is no ${rows.map(({ name }) => name).join(", ")}`)
      // Removes the copies of earlier seeds.
      for (let place = 0; place < drawn.later.warehouseRestores; place++)
        await this.client.query(`drop schema if exists ${backupOf(place)} cascade`)
    })
    // One after the other: a copy is restored before the next one is made.
    const share = 0.95 / drawn.later.warehouseRestores
    for (let place = 0; place < drawn.later.warehouseRestores; place++) {
      const all = chance.pick(scopes)
      // Rules that are stored as applied say nothing about rows that are restored without them.
      const isAlone = all === "rows" && drawn.later.rules.length === 0
      const scope = isAlone ? this.parts.pick(parts) : all === "rows" ? "rows and control plane" : all
      const refill = chance.chance(0.4) ? this.parts.pick(["truncate", "delete from"] as const) : null
      const isDuringRun = chance.chance(0.6)
      const delay = chance.skewed(100, 200_000)
      const copied = 0.03 + share * (place + 0.6 * chance.next())
      const restored = 0.03 + share * (place + 0.7 + 0.3 * chance.next())
      kernel.after(momentOf(drawn, copied), null, () => this.copy(place, scope))
      const restore = () => this.restore(place, scope, refill)
      kernel.after(momentOf(drawn, restored), null, () => {
        if (isDuringRun) this.losses.arm(() => kernel.after(delay, null, restore))
        else restore()
      })
    }
  }

  stop(): void {
    this.stopped = true
  }

  /** The applied privacy rules are a part of the control plane. */
  private get controlTables(): ReadonlyArray<string> {
    return this.drawn.later.rules.length === 0 ? controlTables : [...controlTables, "tributary.privacy_rules"]
  }

  private tablesOf(scope: Scope): ReadonlyArray<string> {
    const rowTables = this.rowTables.filter((name) =>
      scope === "current rows"
        ? name.startsWith("erp.")
        : scope === "history"
          ? name.startsWith("erp_history.")
          : scope !== "control plane"
    )
    return [...rowTables, ...(scope.endsWith("control plane") ? this.controlTables : [])]
  }

  /** Runs the statements in one transaction. While a landing or an earlier loss blocks it, tries again later. */
  private whenFree(body: () => Promise<void>, tables: ReadonlyArray<string>, mode: string, again = againMicros): void {
    this.kernel.work(async () => {
      if (this.stopped) return
      await this.client.query("begin")
      try {
        await this.client.query(`lock table ${tables.join(", ")} in ${mode} mode nowait`)
        await body()
        await this.client.query("commit")
      } catch (error) {
        await this.client.query("rollback")
        const { code } = error as { readonly code?: string }
        if (code !== lockNotAvailable && code !== undefinedTable) throw error
        this.kernel.after(again, null, () => this.whenFree(body, tables, mode, Math.min(2 * again, againMicrosMax)))
      }
    })
  }

  private copy(place: number, scope: Scope): void {
    const backup = backupOf(place)
    const tables = this.tablesOf(scope)
    const body = async () => {
      const { client } = this
      await client.query(`create schema ${backup}`)
      for (const [index, table] of tables.entries())
        await client.query(`create table ${backup}."${index}" as table ${table}`)
      await client.query(`create table ${backup}.sequences as ${sequencesSql}`)
      this.log("db", `T2 ${scope}: a copy is made`)
    }
    this.whenFree(body, tables, "access share")
  }

  /** Gives a table that is made anew the columns of its copy. */
  private async restoreColumns(table: string, copy: string): Promise<void> {
    const { rows } = await this.client.query<{ change: string }>(
      `select case when b.attname is null then format('drop column %I', t.attname)
                   when t.attname is null then format('add column %I %s', b.attname, format_type(b.atttypid, b.atttypmod))
                   else format('alter column %I type %s using null', b.attname, format_type(b.atttypid, b.atttypmod)) end as change
         from (select * from pg_attribute where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped) t
         full join (select * from pg_attribute where attrelid = '${copy}'::regclass and attnum > 0 and not attisdropped) b using (attname)
        where t.attname is null or b.attname is null or (t.atttypid, t.atttypmod) <> (b.atttypid, b.atttypmod)`
    )
    for (const { change } of rows) await this.client.query(`alter table ${table} ${change}`)
  }

  private restore(place: number, scope: Scope, refill: string | null): void {
    const backup = backupOf(place)
    const tables = this.tablesOf(scope)
    const body = async () => {
      const { client } = this
      const ask = async (text: string) => (await client.query<{ answer: string | null }>(text)).rows[0]!.answer
      // The copy is not made yet.
      if ((await ask(`select to_regclass('${backup}.sequences')::text as answer`)) === null) return
      const measure = `(select coalesce(sum("_version"), 0) || ' ' || count(*) from `
      const isOther = async (table: string, index: number) =>
        (await ask(
          `select case when ${measure}${table}) = ${measure}${backup}."${index}") then null else 'other' end as answer`
        )) !== null
      let isOtherRows = false
      for (const [index, table] of tables.entries())
        if (table.startsWith("erp.")) isOtherRows ||= await isOther(table, index)
      const lastRun = BigInt((await ask("select coalesce(max(id), 0)::text as answer from tributary.runs"))!)
      const openRuns = (await ask(
        "select count(*) as answer from tributary.runs where status = 'running' and pages > 0"
      ))!
      const { rows: views } = await client.query<{ name: string; text: string }>(
        `select format('tributary.%I', relname) as name, pg_get_viewdef(oid) as text from pg_class
          where relnamespace = 'tributary'::regnamespace and relkind = 'v' order by relname`
      )
      for (const [index, table] of tables.entries()) {
        if (table === "tributary.checkpoints" || (table.startsWith("erp") && refill === null)) {
          const [schema, name] = table.split(".") as [string, string]
          await client.query(
            `create table public.${name} (like ${table} including all); drop table ${table} cascade; alter table public.${name} set schema ${schema}`
          )
        } else
          await client.query(
            `${table.startsWith("erp") ? refill : "truncate"} ${table}${table === "tributary.scans" ? " cascade" : ""}`
          )
        if (this.drawn.later.rules.length > 0 && table.startsWith("erp") && refill === null)
          await this.restoreColumns(table, `${backup}."${index}"`)
        // Privacy rules may have changed the columns since: a person fills those that are left.
        const { rows } = await client.query<{ name: string }>(
          `select quote_ident(attname) as name from pg_attribute b where attrelid = '${backup}."${index}"'::regclass and attnum > 0
              and exists (select from pg_attribute t where t.attrelid = '${table}'::regclass and t.attname = b.attname and t.atttypid = b.atttypid)`
        )
        const columns = rows.map(({ name }) => name).join(", ")
        await client.query(
          `insert into ${table} (${columns}) overriding system value select ${columns} from ${backup}."${index}"`
        )
      }
      // A table that is dropped takes its views along; none refers to a view after it in the alphabet.
      for (const { name, text } of views) {
        if ((await ask(`select to_regclass('${name}')::text as answer`)) === null)
          await client.query(`create view ${name} as ${text}`)
      }
      if (scope.endsWith("control plane"))
        await client.query(
          `select setval(name::regclass, coalesce(value::bigint, 1), value is not null) from ${backup}.sequences`
        )
      await client.query(`drop schema ${backup} cascade`)
      const { rows: runs } = await client.query<{
        company: string
        path: string
        id: string
        pages: number
      }>(
        "select company_id::text as company, resource as path, id::text, pages::int from tributary.runs order by runs.id"
      )
      this.log(
        "db",
        `! T2 ${scope} restored, ${refill ?? "made anew"}${isOtherRows ? ", with other rows" : ""}; the last run was ${lastRun}, and is ${runs.at(-1)?.id ?? 0}`
      )
      this.fired(`T2 ${scope} restored`)
      if (isOtherRows) this.fired("T2 rows went back")
      if (Number(openRuns) > 0) this.fired("T2 in the middle of a run")
      if (BigInt(runs.at(-1)?.id ?? 0) < lastRun) this.fired("T2 ids of runs are used again")
      this.losses.restored({
        hasRows: scope !== "control plane" && scope !== "history",
        isPart: scope === "current rows" || scope === "history",
        isOtherRows,
        isNoticedByRuns: refill !== "delete from" || scope.endsWith("control plane"),
        lastRun: scope.endsWith("control plane") ? lastRun : null,
        runs
      })
    }
    this.whenFree(body, [...new Set([...tables, "tributary.runs", "tributary.checkpoints"])], "access exclusive")
  }
}
