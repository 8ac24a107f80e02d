/**
 * A comparison of warehouse and source by plain SQL, in both directions, with duplicates.
 *
 * Promise: written without `src/verify` and without the table plan. The types of columns come from the database itself.
 * The source's records are JSON text, and only Postgres parses and compares them.
 */
import type pg from "pg"

export interface Difference {
  readonly company: number
  readonly what: string
  readonly detail: string
}

const quote = (name: string) => `"${name.replaceAll('"', '""')}"`
const text = (value: string) => `'${value.replaceAll("'", "''")}'`

/** The SQL expression that reads a field from the record's JSON, by the type of its column. */
const reading = (field: string, dataType: string): string => {
  const value = `record->>${text(field)}`
  switch (dataType) {
    case "bigint":
    case "numeric":
    case "boolean":
    case "date":
    case "text":
      return `(${value})::${dataType}`
    case "timestamp with time zone":
      return `(${value})::timestamptz`
    case "jsonb":
      return `nullif(record->${text(field)}, 'null'::jsonb)`
    default:
      throw new Error(`the column ${field} has the type ${dataType}, which this comparison cannot read`)
  }
}

const shownMax = 5

/** Compares one resource, except the records with the ids in `apart`. */
export const compare = async (
  client: pg.Client,
  company: number,
  resource: string,
  state: ReadonlyArray<string>,
  apart: ReadonlySet<number>
): Promise<ReadonlyArray<Difference>> => {
  const { rows: columns } = await client.query<{ name: string; type: string }>(
    `select column_name as name, data_type as type from information_schema.columns
      where table_schema = 'erp' and table_name = $1 order by ordinal_position`,
    [resource]
  )
  const fields = columns.filter(({ name }) => !name.startsWith("_") && name !== "custom_fields")
  const fieldNames = fields.map(({ name }) => text(name)).join(", ")
  await client.query("begin")
  try {
    await client.query("create temp table source_lines (line text not null) on commit drop")
    const chunk = 500
    for (let at = 0; at < state.length; at += chunk) {
      await client.query("insert into source_lines select unnest($1::text[])", [state.slice(at, at + chunk)])
    }
    await client.query(`create temp view source_side as
      select ${fields.map(({ name, type }) => `${reading(name, type)} as ${quote(name)}`).join(", ")},
             (record - array[${fieldNames}, 'custom_fields'])::text as rest, nullif(record->'custom_fields', 'null')::text as custom
        from (select line::jsonb as record from source_lines) t`)
    await client.query(`create temp view warehouse_side as
      select ${fields.map(({ name }) => quote(name)).join(", ")},
             coalesce(_extra, '{}')::text as rest, custom_fields::text as custom
        from erp.${quote(resource)} where _company_id = ${company} and _deleted_at is null`)
    const sides = async (has: string, lacks: string) =>
      (
        await client.query<{ id: string; record: string }>(
          `select id::text as id, to_jsonb(d)::text as record from (select * from ${has} except all select * from ${lacks}) d
            where d.id <> all($1::bigint[]) order by d.id`,
          [[...apart]]
        )
      ).rows
    const missing = await sides("source_side", "warehouse_side")
    const surplus = await sides("warehouse_side", "source_side")
    const shown = (rows: typeof missing, what: string) =>
      rows.slice(0, shownMax).map(({ id, record }) => ({ company, what: `${resource} ${id} ${what}`, detail: record }))
    return [
      ...shown(missing, "of the source is missing or different in the warehouse"),
      ...shown(surplus, "of the warehouse is missing or different at the source"),
      ...(missing.length > shownMax || surplus.length > shownMax
        ? [{ company, what: `${resource}: ${missing.length} missing, ${surplus.length} surplus`, detail: "" }]
        : [])
    ]
  } finally {
    await client.query("rollback")
  }
}

/** What queries find: each row is a problem. */
const find = async (
  client: pg.Client,
  of: string,
  queries: Readonly<Record<string, string>>
): Promise<ReadonlyArray<Difference>> => {
  const differences: Array<Difference> = []
  for (const [what, query] of Object.entries(queries)) {
    const { rows } = await client.query<{ company: string; detail: string }>(`${query} limit ${shownMax}`)
    for (const { company, detail } of rows) differences.push({ company: Number(company), what: `${of}${what}`, detail })
  }
  return differences
}

/** Checks that the history has no gaps, and that the counts of the runs equal it. */
export const auditHistory = (client: pg.Client, resource: string): Promise<ReadonlyArray<Difference>> => {
  const view = `erp_history.${quote(resource)}`
  const versions = `(select v.*, lead(v._valid_from) over w as next_from, lead(v._version) over w as next_version,
      row_number() over w as place, lag(v._op) over w as op_before
    from ${view} v window w as (partition by v._company_id, v.id order by v._version)) v`
  const where = `select v._company_id as company, to_jsonb(v)::text as detail from ${versions} where`
  return find(client, `${resource}: `, {
    "versions are not 1, 2, 3 …": `${where} v._version <> v.place`,
    "a version does not end where the next one begins": `${where} v._valid_to is distinct from v.next_from`,
    "a version ends before it begins": `${where} v._valid_to is not null and v._valid_to < v._valid_from`,
    "an operation does not fit the version before": `${where} (v._op = 'insert') <> (v.place = 1 or v.op_before = 'delete')`,
    "the counts of a run differ from the history": `select coalesce(r.company_id, v.company_id) as company, jsonb_build_object('run', r.id, 'kind', r.kind, 'lane', r.lane,
         'status', r.status, 'counted', r.inserted + r.updated + r.deleted, 'versions', v.versions, 'run of the versions', v.run_id)::text as detail
       from (select * from tributary.runs where resource = ${text(resource)}) r
       full join (select _company_id as company_id, _run_id as run_id, count(*) as versions from ${view} group by 1, 2) v
         on v.company_id = r.company_id and v.run_id = r.id
      where coalesce(r.inserted + r.updated + r.deleted, -1) <> coalesce(v.versions, 0)`,
    "the counts of all runs differ from the history": `select r.company_id as company, (r.counted || ' counted, ' || v.versions || ' versions') as detail
       from (select company_id, sum(inserted + updated + deleted) as counted from tributary.runs where resource = ${text(resource)} group by 1) r
       join (select _company_id as company_id, count(*) as versions from ${view} group by 1) v using (company_id)
      where r.counted <> v.versions`
  })
}

/** Checks that nothing is left unfinished. */
export const auditRuns = (client: pg.Client): Promise<ReadonlyArray<Difference>> => {
  const of = (table: string) => `select company_id as company, to_jsonb(t)::text as detail from tributary.${table} t`
  return find(client, "", {
    "a run was left running": `${of("runs")} where status = 'running'`,
    "a record is in quarantine": `${of("quarantine")} where resolved_at is null`,
    "a refetch request was left open": of("refetch_requests"),
    "a scan was left unfinished": of("scans"),
    "a fence went back": `${of("checkpoints")}
      where fence < (select coalesce(max(fence), 0) from tributary.runs r
        where r.company_id = t.company_id and r.resource = t.resource and r.lane = t.lane)`
  })
}
