/**
 * The warehouse as a second session sees it.
 *
 * Promise: plain SQL with every value as text. Each session prepares its statements once. Queries that belong together
 * take one round trip.
 */
import type { Client } from "pg"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { type Canonical, json, ofWarehouse, parseExactly, storedThrough } from "../checkers/Canonical.ts"
import type { Entry, QuarantinedRecord, RowVersion, Mark, Row, Run, Subject } from "../checkers/Checker.ts"
import type { Lenses } from "../checkers/Kept.ts"
import { companyName, companyOf } from "./Sender.ts"
import type { Source } from "./Source.ts"

type Text = string | null
type TextRow = Readonly<Record<string, Text>>

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

/** All rows as one JSON text, each an array of texts. */
const rowsOf = (columns: ReadonlyArray<string>, from: string, order: string): string =>
  `(select coalesce(json_agg(array[${columns.map((column) => `(${column})::text`).join(", ")}] order by ${order}), '[]') from ${from})::text`

const parsed = (text: Text | undefined) => JSON.parse(text!) as ReadonlyArray<ReadonlyArray<Text>>

const markColumns = "lane fence cursor cursor_read_at full_scan_at full_scan_reason kind pages shape".split(" ")

const runCounts = ["pages", "records", "inserted", "updated", "unchanged", "deleted", "quarantined"] as const
const runTexts = ["id", "company_id", "resource", "lane", "kind", "status", "fence"] as const
const runColumns = [...runTexts, ...runCounts, "error", "started_at", "quiet_since"]

const runOf = (row: ReadonlyArray<Text>): Run => {
  const [id, company, resource, lane, kind, status, fence] = row
  const counts = Object.fromEntries(runCounts.map((name, index) => [name, Number(row[runTexts.length + index])]))
  const [error, startedAt, quietSince] = row.slice(runTexts.length + runCounts.length)
  return {
    ...({ id, resource, lane, kind, status } as Pick<Run, "id" | "resource" | "lane" | "kind" | "status">),
    ...(counts as Pick<Run, (typeof runCounts)[number]>),
    company: Number(company),
    fence: BigInt(fence!),
    error: error ?? null,
    quietAt: quietSince === null || quietSince === undefined ? null : Date.parse(startedAt!)
  }
}

/** A checkpoint, with a text that changes whenever the checkpoint does. */
interface CheckpointStamp {
  readonly company: number
  readonly resource: string
  readonly stamp: string
}

const checkpointRows = rowsOf(
  ["company_id", "resource", "stamp"],
  `(select company_id, resource, string_agg(xmin::text, ',' order by xmin::text) || ' ' || coalesce((select max(id)
      from tributary.runs r where r.company_id = c.company_id and r.resource = c.resource), 0) as stamp
    from tributary.checkpoints c group by 1, 2) stamped`,
  "company_id, resource"
)

const stampOf = ([company, resource, stamp]: ReadonlyArray<Text>): CheckpointStamp => ({
  company: Number(company),
  resource: resource!,
  stamp: stamp!
})

const proofRows = rowsOf(
  ["company_id", "resource", "(extract(epoch from proven_at) * 1000000)::bigint"],
  "tributary.event_proofs",
  "company_id, resource"
)

const inboxRows = rowsOf(
  [
    ..."id company event_id event_type resource record_id state".split(" "),
    "coalesce(resolution, last_error)",
    "run_id",
    "(extract(epoch from occurred_at) * 1000000)::bigint"
  ],
  "tributary.inbox where $1::text is null or event_id = $1",
  "id"
)

const entryOf = (row: ReadonlyArray<Text>): Entry => {
  const [number, company, eventId, type, resource, recordId, state, reason, runId, occurredAt] = row
  return {
    number: number!,
    company: companyOf(company!),
    eventId: eventId!,
    type: type!,
    resource: resource ?? null,
    recordId: recordId ?? null,
    state: state!,
    reason: reason ?? null,
    runId: runId ?? null,
    occurredAt: occurredAt === null ? null : Number(occurredAt)
  }
}

/** The names under which a session keeps prepared statements. */
const names = new Map<string, string>()
const nameOf = (text: string): string => {
  let name = names.get(text)
  if (name === undefined) names.set(text, (name = `checker_${names.size}`))
  return name
}

/** Every result is text already: the driver parses nothing. */
const texts = { getTypeParser: () => (value: string) => value }

export class Warehouse {
  private readonly client: Client
  private readonly lenses: Lenses | null

  constructor(client: Client, lenses: Lenses | null) {
    this.client = client
    this.lenses = lenses
  }

  /** The columns of a row. Rules remove columns, so that those that exist are read from its JSON. */
  private columns(resource: Resource): ReadonlyArray<string> {
    const isFixed = this.lenses === null
    return [
      ...(isFixed ? [] : ["t.custom_fields"]),
      ...metaColumns.map((name) => `t.${quoted(name)}`),
      ...resource.fields.map(({ name }) => (isFixed ? `t.${quoted(name)}` : `to_jsonb(t) ->> '${name}'`))
    ]
  }

  private row(resource: Resource, values: ReadonlyArray<Text>): Row {
    const { lenses } = this
    if (lenses === null) return rowOf(values, (columns, extra) => [ofWarehouse(resource, columns, extra)])
    const [custom = null, ...others] = values
    return rowOf(others, (columns, extra) =>
      [lenses.open, lenses.kept].map((lens) => ofWarehouse(resource, columns, extra, custom, lens(resource)))
    )
  }

  /** A record of the feed: without the members that have a rule, which a rewrite changes in place. */
  record(resource: Resource, text: string): string {
    const { lenses } = this
    if (lenses === null) return text
    const place = text.indexOf(" ")
    const members = storedThrough(lenses.open(resource), parseExactly(text.slice(place + 1))) as object
    const shown = Object.entries(members).filter(([, value]) => value !== null && json(value) !== "{}")
    return text.slice(0, place + 1) + json(Object.fromEntries(shown))
  }

  /** The places of texts that match in all tables, each with the name of its table. */
  async find(pattern: string): Promise<ReadonlyArray<readonly [table: string, text: string]>> {
    const tables = await this.ask(
      `select format('%I.%I', n.nspname, c.relname) as name,
              string_agg(format(case when a.atttypid = 'bytea'::regtype then $f$encode(%I, 'escape')$f$ else '%I::text' end, a.attname), ', ' order by a.attnum) as columns
         from pg_class c join pg_namespace n on n.oid = c.relnamespace
         join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relkind = 'r' and n.nspname in ('tributary', 'erp', 'erp_history') group by 1 order by 1`
    )
    const found: Array<readonly [string, string]> = []
    for (const { name, columns } of tables) {
      const rows = await this.client.query<{ text: string }>(
        `select distinct m[1] as text from ${name} t, regexp_matches(concat_ws(' ', ${columns}), $1, 'g') m order by 1`,
        [pattern]
      )
      for (const { text } of rows.rows) found.push([name!, text])
    }
    return found
  }

  async ask(text: string, values: ReadonlyArray<unknown> = []): Promise<ReadonlyArray<TextRow>> {
    const { rows } = await this.client.query({ name: nameOf(text), text, values: [...values], types: texts })
    return rows as ReadonlyArray<TextRow>
  }

  /** A table that was dropped, and that no sync has created again yet, has no rows: `rows` is then empty. */
  private async askTable(rows: string, text: string, values: ReadonlyArray<unknown>): Promise<TextRow> {
    try {
      return (await this.ask(text, values))[0]!
    } catch (error) {
      if ((error as { readonly code?: string }).code !== "42P01") throw error
      const without = text.replace(rows, () => "'[]'")
      return (await this.ask(without, values))[0]!
    }
  }

  async checkpoints(): Promise<ReadonlyArray<CheckpointStamp>> {
    const [row] = await this.ask(`select ${checkpointRows} as checkpoints`)
    return parsed(row!["checkpoints"]).map(stampOf)
  }

  async subject(company: number, resource: Resource): Promise<Subject> {
    return (await this.landed(company, resource)).subject
  }

  /** A resource and its last runs, the latest first. */
  async landed(company: number, resource: Resource): Promise<{ subject: Subject; runs: ReadonlyArray<Run> }> {
    const ours = "where company_id = $1 and resource = $2"
    const rows = rowsOf(this.columns(resource), `erp.${quoted(resource.path)} t where "_company_id" = $1`, '"id"')
    const row = await this.askTable(
      rows,
      `select ${rowsOf(markColumns, `tributary.checkpoints left join tributary.scans using (company_id, resource, lane) ${ours}`, "lane")} as marks, ${rows} as rows,
        ${rowsOf(["record_id", "bytes", "reason"], `tributary.quarantine ${ours} and resolved_at is null`, "record_id")} as quarantine,
        ${rowsOf(runColumns, `(select * from tributary.runs ${ours} order by id desc limit 12) r`, "id desc")} as runs`,
      [company, resource.path]
    )
    const subject: Subject = {
      company,
      resource,
      marks: parsed(row["marks"]).map(
        ([lane, fence, cursor, cursorAt, fullScanAt, fullScanReason, scanKind, scanPages, shape]): Mark => ({
          lane: lane!,
          fence: BigInt(fence!),
          cursor: cursor ?? null,
          completedAt: `${cursorAt} ${fullScanAt}`,
          fullScanReason: fullScanReason ?? null,
          scanKind: scanKind ?? null,
          scanPages: scanPages === null ? null : Number(scanPages),
          shape: shape ?? null
        })
      ),
      rows: new Map(
        parsed(row["rows"])
          .map((values) => this.row(resource, values))
          .map((one) => [one.id, one])
      ),
      quarantine: parsed(row["quarantine"]).map(([id, bytes, reason]): QuarantinedRecord => ({
        id: id ?? null,
        bytes: bytes!,
        reason: reason!
      }))
    }
    return { subject, runs: parsed(row["runs"]).map(runOf) }
  }

  /** The whole ledger, the latest run first. */
  async runs(): Promise<ReadonlyArray<Run>> {
    const [row] = await this.ask(`select ${rowsOf(runColumns, "tributary.runs", "id desc")} as runs`)
    return parsed(row!["runs"]).map(runOf)
  }

  /** The live records of a table as the change feed shows them: version and JSON, by id. */
  async feedRows(company: number, resource: Resource) {
    const rows = rowsOf(
      ["id", `"_version"`, "record"],
      `erp_history.${quoted(resource.path)} where "_company_id" = $1 and "_valid_to" is null and "_op" <> 'delete'`,
      "id"
    )
    const row = await this.askTable(
      rows,
      `select ${rows} as rows, (select coalesce(bool_and(table_identity is not null), true) from tributary.checkpoints
          where company_id = $1 and resource = $2 and lane = 'live')::text as fed,
        (to_regclass('erp_history.${quoted(resource.path)}') is null)::text as dropped`,
      [company, resource.path]
    )
    return {
      rows: new Map(
        parsed(row["rows"]).map(([id, version, record]) => [id!, this.record(resource, `${version} ${record}`)])
      ),
      isFed: row["fed"] === "true",
      /** A rewrite under other rules drops the view. The plan of the tables makes it again. */
      isDropped: this.lenses !== null && row["dropped"] === "true"
    }
  }

  /** Every version of every row, read from the tables beneath the view. */
  async history(company: number, resource: Resource): Promise<ReadonlyArray<RowVersion>> {
    const list = (table: string, validTo: string) =>
      rowsOf([validTo, ...this.columns(resource)], `${table} t where "_company_id" = $1`, '"id", "_version"')
    const superseded = list(`erp_history.${quoted(`${resource.path}__superseded`)}`, `"_valid_to"`)
    const present = list(`erp.${quoted(resource.path)}`, "null")
    const both = `${superseded} as superseded, ${present}`
    const row = await this.askTable(both, `select ${both} as present, $1::bigint`, [company])
    if (row["superseded"] === undefined) return []
    return [...parsed(row["superseded"]), ...parsed(row["present"])].map(([validTo, ...values]): RowVersion => {
      const { id, version, op, runId, observedAt, deleted, value } = this.row(resource, values)
      return { id, version, op, runId, deleted, value, validFrom: observedAt, validTo: validTo ?? null }
    })
  }

  /** The rows of a query as of a moment or position; the message of the refusal where it fails. */
  async asOf(company: number, resource: Resource, moment: string): Promise<ReadonlyArray<Row> | string> {
    await this.ask("select set_config('tributary.as_of', $1, false)", [moment])
    try {
      const rows = rowsOf(
        this.columns(resource),
        `erp_asof.${quoted(resource.path)} t where "_company_id" = $1`,
        '"id"'
      )
      const [row] = await this.ask(`select ${rows} as rows`, [company])
      return parsed(row!["rows"]).map((values) => this.row(resource, values))
    } catch (error) {
      const { code, message } = error as { readonly code?: string; readonly message: string }
      if (code !== "TB001" && code !== "TB002") throw error
      return message
    } finally {
      await this.ask("select set_config('tributary.as_of', '', false)")
    }
  }

  /** Whether a rewrite under other privacy rules has locked a table, which no other session can read meanwhile. */
  async isRewritten(): Promise<boolean> {
    if (this.lenses === null) return false
    const rows = await this.ask(
      `select 1 from pg_locks l join pg_class c on c.oid = l.relation
        where l.mode = 'AccessExclusiveLock' and l.database = (select oid from pg_database where datname = current_database())
          and c.relnamespace in ('erp'::regnamespace, 'erp_history'::regnamespace) limit 1`
    )
    return rows.length > 0
  }

  async time(): Promise<string> {
    return (await this.ask("select tributary.now()::text as now"))[0]!["now"]!
  }

  /** Stores the numbers of the companies, as a first sync does. */
  async nameCompanies(companies: ReadonlyArray<number>, source: Source, sameNumber: number | null): Promise<void> {
    for (const company of companies) {
      if (sameNumber !== null) {
        await this.ask(
          "insert into tributary.companies (company, company_id, source_number, address) values ($1, $2, $3, $4)",
          [companyName(company), company, sameNumber === company ? null : sameNumber, source.addressOf(company)]
        )
        continue
      }
      await this.ask("insert into tributary.companies (company, company_id) values ($1, $2)", [
        companyName(company),
        company
      ])
    }
  }

  /** The inbox, or its rows with one event id. */
  async inbox(eventId: string | null = null): Promise<ReadonlyArray<Entry>> {
    const [row] = await this.ask(`select ${inboxRows} as inbox`, [eventId])
    return parsed(row!["inbox"]).map(entryOf)
  }

  async inboxAndCheckpoints() {
    const text = `select ${inboxRows} as inbox, ${checkpointRows} as checkpoints, ${proofRows} as proofs`
    const [row] = await this.ask(text, [null])
    return {
      proofs: parsed(row!["proofs"]).map(([company, resource, provenAt]) => ({
        company: Number(company),
        resource: resource!,
        provenAt: Number(provenAt)
      })),
      entries: parsed(row!["inbox"]).map(entryOf),
      checkpoints: parsed(row!["checkpoints"]).map(stampOf)
    }
  }

  /** The open gaps, as texts. */
  async gaps(): Promise<ReadonlyArray<string>> {
    const rows = await this.ask(
      "select company, resource, cause, detail, began_at, ended_at from tributary.delivery_gaps where closed_at is null order by id"
    )
    return rows.map(
      (row) =>
        `${row["company"]}/${row["resource"]} ${row["cause"]} from ${row["began_at"]} to ${row["ended_at"]}: ${row["detail"]}`
    )
  }

  /** When the next retry is due, in microseconds; null when there is none. */
  async due(): Promise<number | null> {
    const [row] = await this.ask(
      `select (extract(epoch from min(next_attempt_at)) * 1000000)::bigint as due from (
         select next_attempt_at from tributary.inbox where state = 'pending' union all
         select next_attempt_at from tributary.delivery_gaps where closed_at is null) waiting`
    )
    return row!["due"] === null ? null : Number(row!["due"])
  }

  /** Whether a run has reported that the clock was set back. */
  async noticedClock(): Promise<boolean> {
    const rows = await this.ask(
      "select 1 from tributary.runs where note like '%clock is % behind%' or error_kind = 'ClockWentBack' limit 1"
    )
    return rows.length > 0
  }

  async count(table: string): Promise<number> {
    const existing = await this.ask("select to_regclass($1)::text as existing", [table])
    if (existing[0]?.["existing"] === null) return 0
    const rows = await this.ask(`select count(*) as count from ${table}`)
    return Number(rows[0]!["count"])
  }

  /** Refetch requests that no run may leave open: those of a resource wait while the mass-delete guard stops its scan. */
  async unansweredRefetches(): Promise<number> {
    const rows = await this.ask(
      `select count(*) as count from tributary.refetch_requests r where not exists (
         select 1 from tributary.checkpoints c where c.company_id = r.company_id and c.resource = r.resource
            and c.lane = 'live' and c.full_scan_reason like '%mass-delete guard%')`
    )
    return Number(rows[0]!["count"])
  }
}

const metaColumns = "id _version _op _deleted_at _run_id _observed_at _extra".split(" ")

/** `valuesOf` returns the value that is compared at each commit, and the one that is compared after healing. */
const rowOf = (
  row: ReadonlyArray<Text>,
  valuesOf: (columns: ReadonlyArray<Text>, extra: Text) => ReadonlyArray<Canonical>
): Row => {
  const [id, version, op, deletedAt, runId, observedAt, extra, ...columns] = row
  const [value, kept = value] = valuesOf(columns, extra ?? null)
  return {
    id: id!,
    version: Number(version),
    op: op!,
    deleted: deletedAt !== null,
    runId: runId ?? null,
    observedAt: observedAt!,
    value: value!,
    kept: kept!
  }
}
