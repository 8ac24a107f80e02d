/**
 * The warehouse as a second session sees it.
 *
 * Promise: plain SQL with every value as text; columns that only a newer engine has are read where they are.
 */
import type { Client } from "pg"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { ofWarehouse } from "../checkers/Canonical.ts"
import type { Entry, Held, Kept, Mark, Row, Run, Subject } from "../checkers/Checker.ts"
import { companyOf } from "./Sender.ts"

type Text = string | null
type TextRow = Readonly<Record<string, Text>>

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

/** Only what is text already: nothing is parsed by the driver. */
const texts = { getTypeParser: () => (value: string) => value }

export class Warehouse {
  private readonly client: Client
  private readonly hasLanes: boolean

  private constructor(client: Client, hasLanes: boolean) {
    this.client = client
    this.hasLanes = hasLanes
  }

  static async make(client: Client): Promise<Warehouse> {
    const { rowCount } = await client.query(
      "select 1 from information_schema.columns where table_schema = 'tributary' and table_name = 'checkpoints' and column_name = 'lane'"
    )
    return new Warehouse(client, rowCount === 1)
  }

  async ask(text: string, values: ReadonlyArray<unknown> = []): Promise<ReadonlyArray<TextRow>> {
    const { rows } = await this.client.query({ text, values: [...values], types: texts })
    return rows as ReadonlyArray<TextRow>
  }

  /** A table that was dropped, and that no sync has made again yet, has no rows. */
  private async askTable(text: string, values: ReadonlyArray<unknown>): Promise<ReadonlyArray<TextRow>> {
    try {
      return await this.ask(text, values)
    } catch (error) {
      if ((error as { readonly code?: string }).code === "42P01") return []
      throw error
    }
  }

  private lane(): string {
    return this.hasLanes ? "lane" : "'live'"
  }

  /** Which checkpoints there are, each with what changes when it does. */
  async checkpoints(): Promise<ReadonlyArray<{ company: number; resource: string; stamp: string }>> {
    const rows = await this.ask(
      "select company_id, resource, string_agg(xmin::text, ',' order by xmin::text) || ' ' || coalesce((select max(id) from tributary.runs r where r.company_id = c.company_id and r.resource = c.resource), 0) as stamp from tributary.checkpoints c group by 1, 2 order by 1, 2"
    )
    return rows.map((row) => ({ company: Number(row["company_id"]), resource: row["resource"]!, stamp: row["stamp"]! }))
  }

  async subject(company: number, resource: Resource): Promise<Subject> {
    const marks = await this.ask(
      `select ${this.lane()} as lane, fence, cursor, cursor_at, full_scan_at, full_wanted, scan_kind, scan_pages, shape from tributary.checkpoints where company_id = $1 and resource = $2`,
      [company, resource.path]
    )
    const columns = resource.fields.map(({ name }) => `t.${quoted(name)}::text`)
    const rows = await this.askTable(
      `select "id", "_version", "_op", "_deleted_at", "_run_id", "_observed_at", "_extra"::text as extra, ` +
        `array_to_json(array[${columns.join(", ")}])::text as columns from erp.${quoted(resource.path)} t where "_company_id" = $1 order by "id"`,
      [company]
    )
    const held = await this.ask(
      "select record_id, bytes, reason from tributary.quarantine where company_id = $1 and resource = $2 and resolved_at is null",
      [company, resource.path]
    )
    return {
      company,
      resource,
      marks: marks.map((row): Mark => ({
        lane: row["lane"]!,
        fence: BigInt(row["fence"]!),
        cursor: row["cursor"] ?? null,
        completedAt: `${row["cursor_at"]} ${row["full_scan_at"]}`,
        fullWanted: row["full_wanted"] ?? null,
        scanKind: row["scan_kind"] ?? null,
        scanPages: row["scan_pages"] === null ? null : Number(row["scan_pages"]),
        shape: row["shape"] ?? null
      })),
      rows: new Map(rows.map((row) => [row["id"]!, rowOf(resource, row)])),
      held: held.map((row): Held => ({ id: row["record_id"] ?? null, bytes: row["bytes"]!, reason: row["reason"]! }))
    }
  }

  async runs(company: number | null, resource: string | null, limit: number): Promise<ReadonlyArray<Run>> {
    const rows = await this.ask(
      `select id, company_id, resource, ${this.lane()} as lane, kind, status, fence, pages, records, inserted, updated, unchanged,
         deleted, quarantined, error from tributary.runs
       where ($1::bigint is null or company_id = $1) and ($2::text is null or resource = $2) order by id desc limit $3`,
      [company, resource, limit]
    )
    return rows.map((row): Run => ({
      id: row["id"]!,
      company: Number(row["company_id"]),
      resource: row["resource"]!,
      lane: row["lane"]!,
      kind: row["kind"]!,
      status: row["status"]!,
      fence: BigInt(row["fence"]!),
      pages: Number(row["pages"]),
      records: Number(row["records"]),
      inserted: Number(row["inserted"]),
      updated: Number(row["updated"]),
      unchanged: Number(row["unchanged"]),
      deleted: Number(row["deleted"]),
      quarantined: Number(row["quarantined"]),
      error: row["error"] ?? null
    }))
  }

  /** Every version of every row, read from the tables beneath the view. */
  async history(company: number, resource: Resource): Promise<ReadonlyArray<Kept>> {
    const columns = resource.fields.map(({ name }) => `t.${quoted(name)}::text`)
    const select = (table: string, validTo: string) =>
      `select "id", "_version", "_op", "_deleted_at", "_run_id", "_observed_at", ${validTo} as valid_to, "_extra"::text as extra, ` +
      `array_to_json(array[${columns.join(", ")}])::text as columns from ${table} t where "_company_id" = $1`
    const rows = await this.askTable(
      `${select(`erp_history.${quoted(`${resource.path}__superseded`)}`, `"_valid_to"`)} union all ${select(`erp.${quoted(resource.path)}`, "null")}`,
      [company]
    )
    return rows.map((row): Kept => {
      const { id, version, op, runId, observedAt, deleted, value } = rowOf(resource, row)
      return { id, version, op, runId, deleted, value, validFrom: observedAt, validTo: row["valid_to"] ?? null }
    })
  }

  /** The inbox, or what stands there under one number. */
  async inbox(eventId: string | null = null): Promise<ReadonlyArray<Entry>> {
    const rows = await this.ask(
      `select id, company, event_id, event_type, resource, record_id, state, reason, run_id,
              (extract(epoch from occurred_at) * 1000000)::bigint as occurred_at from tributary.inbox
        where $1::text is null or event_id = $1 order by id`,
      [eventId]
    )
    return rows.map((row): Entry => ({
      number: row["id"]!,
      company: companyOf(row["company"]!),
      eventId: row["event_id"]!,
      type: row["event_type"]!,
      resource: row["resource"] ?? null,
      recordId: row["record_id"] ?? null,
      state: row["state"]!,
      reason: row["reason"] ?? null,
      runId: row["run_id"] ?? null,
      occurredAt: row["occurred_at"] === null ? null : Number(row["occurred_at"])
    }))
  }

  /** Gaps that are open, in words. */
  async gaps(): Promise<ReadonlyArray<string>> {
    const rows = await this.ask(
      "select company, resource, cause, detail, began_at, ended_at from tributary.gaps where closed_at is null order by id"
    )
    return rows.map(
      (row) =>
        `${row["company"]}/${row["resource"]} ${row["cause"]} from ${row["began_at"]} to ${row["ended_at"]}: ${row["detail"]}`
    )
  }

  /** When the next of what is tried again is due, in microseconds; null when nothing is. */
  async due(): Promise<number | null> {
    const [row] = await this.ask(
      `select (extract(epoch from min(due_at)) * 1000000)::bigint as due from (
         select due_at from tributary.inbox where state = 'waiting' union all
         select due_at from tributary.gaps where closed_at is null) waiting`
    )
    return row!["due"] === null ? null : Number(row!["due"])
  }

  /** Whether a run has said that the clock was set back. */
  async noticedClock(): Promise<boolean> {
    const rows = await this.ask(
      "select 1 from tributary.runs where note like '%clock is % behind%' or error_kind = 'ClockWentBack' limit 1"
    )
    return rows.length > 0
  }

  async count(table: string): Promise<number> {
    const known = await this.ask("select to_regclass($1)::text as known", [table])
    if (known[0]?.["known"] === null) return 0
    const rows = await this.ask(`select count(*) as count from ${table}`)
    return Number(rows[0]!["count"])
  }
}

const rowOf = (resource: Resource, row: TextRow): Row => {
  const columns = JSON.parse(row["columns"]!) as ReadonlyArray<string | null>
  return {
    id: row["id"]!,
    version: Number(row["_version"]),
    op: row["_op"]!,
    deleted: row["_deleted_at"] !== null,
    runId: row["_run_id"] ?? null,
    observedAt: row["_observed_at"]!,
    value: ofWarehouse(resource, columns, row["extra"] ?? null)
  }
}
