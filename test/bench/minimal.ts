/**
 * The baseline: a hand-written pipeline for this one job, as fast as possible.
 *
 * Pages over undici, `JSON.parse`, COPY text to a temporary stage, one INSERT ... ON CONFLICT a batch. The next page
 * is requested before this one is parsed, and a batch is loaded while the next is read. It keeps none of the
 * product's promises: no checkpoint, history, quarantine, fence, retry or type check, and of two versions the last
 * one wins.
 *
 * A process of its own, started by `bench.ts`; it prints one line of JSON.
 */
import { parseArgs } from "node:util"
import pg from "pg"
import { from as copyFrom } from "pg-copy-streams"
import { secondsSince } from "./measuring.ts"
import { openPages } from "./pages.ts"

const { values } = parseArgs({
  options: {
    tables: { type: "string" },
    "page-size": { type: "string" },
    batch: { type: "string", default: "5000" },
    since: { type: "string" }
  }
})
const requireValue = (value: string | undefined, name: string): string => {
  if (value === undefined) throw new Error(`${name} is missing`)
  return value
}
/** What is loaded, one after the other. `columns` are the fields in the order of the columns after `_company_id`. */
const tables = JSON.parse(requireValue(values.tables, "--tables")) as ReadonlyArray<{
  readonly resource: string
  readonly table: string
  readonly columns: ReadonlyArray<string>
}>
const pageSize = Number(requireValue(values["page-size"], "--page-size"))
const batchRows = Number(values.batch)
const company = "1"

const client = new pg.Client({ connectionString: requireValue(process.env["DATABASE_URL"], "DATABASE_URL") })
await client.connect()
await client.query("set temp_buffers = '64MB'; set enable_seqscan = off")
const listOf = (columns: ReadonlyArray<string>) => columns.map((name) => `"${name}"`).join(", ")
const mergeOf = (table: string, columns: ReadonlyArray<string>) =>
  `insert into ${table} ("_company_id", ${listOf(columns)}) select "_company_id", ${listOf(columns)} from stage ` +
  `on conflict ("_company_id", "id") do update set ` +
  columns.map((name) => `"${name}" = excluded."${name}"`).join(", ")

const load = async (merge: string, chunks: ReadonlyArray<string>): Promise<void> => {
  await client.query("begin; truncate stage")
  const copy = client.query(copyFrom("copy stage from stdin"))
  const finished = new Promise<void>((resolve, reject) => {
    copy.once("finish", resolve)
    copy.once("error", reject)
  })
  for (const chunk of chunks) {
    if (!copy.write(chunk)) await new Promise<void>((resolve) => copy.once("drain", () => resolve()))
  }
  copy.end()
  await finished
  await client.query(merge)
  await client.query("commit")
}

const special = /[\\\t\n\r]/
const escaped = (text: string): string =>
  special.test(text)
    ? text.replaceAll("\\", "\\\\").replaceAll("\t", "\\t").replaceAll("\n", "\\n").replaceAll("\r", "\\r")
    : text

/** COPY text of the records of a page, a line for each: the company, then the columns. */
const render = (page: Buffer, columns: ReadonlyArray<string>) => {
  const { data } = JSON.parse(page.toString("utf8")) as {
    readonly data: ReadonlyArray<Readonly<Record<string, unknown>>>
  }
  let text = ""
  for (const record of data) {
    text += company
    for (const name of columns) {
      const value = record[name]
      if (value === null || value === undefined) text += "\t\\N"
      else if (typeof value === "string") text += `\t${escaped(value)}`
      else if (typeof value === "object") text += `\t${escaped(JSON.stringify(value))}`
      else text += `\t${JSON.stringify(value)}`
    }
    text += "\n"
  }
  return { text, count: data.length }
}

const pages = openPages(
  requireValue(process.env["SERVICE_API_URL"], "SERVICE_API_URL"),
  requireValue(process.env["SERVICE_API_TOKEN"], "SERVICE_API_TOKEN")
)

const loadTable = async ({ resource, table, columns }: (typeof tables)[number]): Promise<number> => {
  await client.query(
    `drop table if exists stage; create temp table stage as select "_company_id", ${listOf(columns)} from ${table} limit 0`
  )
  const merge = mergeOf(table, columns)
  let rows = 0
  let chunks: Array<string> = []
  let batched = 0
  let loading = Promise.resolve()
  for await (const { page, isLast } of pages.read({ resource, pageSize, since: values.since })) {
    const { text, count } = render(page, columns)
    chunks.push(text)
    rows += count
    batched += count
    if (batched >= batchRows || isLast) {
      const batch = chunks
      chunks = []
      batched = 0
      // One batch is loaded while the next is read.
      await loading
      loading = load(merge, batch)
      loading.catch(() => undefined)
    }
  }
  await loading
  return rows
}

const began = performance.now()
let rows = 0
for (const table of tables) rows += await loadTable(table)
const seconds = secondsSince(began)
await client.end()
await pages.close()
process.stdout.write(`${JSON.stringify({ rows, seconds, peakKb: process.resourceUsage().maxRSS })}\n`)
