/**
 * The command `npm run bench`: the numbers that the product promises, measured in one run beside the ceilings of the
 * same work.
 *
 *     npm run bench -- --rows 200000 --page-size 250 --repeat 3 --only pipeline,quiet,million,webhook,push,start --json
 *     npm run bench -- --only pipeline --page-size 100,250,1000 --postgres 15,18
 *
 * Groups: `pipeline` (a full sync, every row changed, one in a hundred changed, memory), `every` (a first sync of every
 * resource), `quiet` (nothing changed, every resource), `million` (memory at 1,000,000 rows, and their export), `webhook`
 * (acknowledgements a second, and a steady rate of events down to their rows), `push` (100,000 records written to the
 * source), `start` (of commands, beside an empty program), `serve` (the cost of an idle `serve`, and its page), `first-load` (300 companies), `scale`
 * (10,000 idle companies). The last three take minutes and therefore run only on request. The exit code is 1 when the start of a
 * command exceeds its bound.
 *
 * Ratios matter most: machines differ and are busy with other things. Baseline and product alternate, and medians are
 * shown. Rates are those of the work; whole commands have lines of their own. `--postgres` takes major versions
 * (test/postgres/server.ts; with JIT where Debian installed it) instead of the embedded server. `test/bench/README.md` has
 * results.
 */
import { cpus } from "node:os"
import { pipeline } from "node:stream/promises"
import { Readable } from "node:stream"
import { parseArgs } from "node:util"
import { from as copyFrom, to as copyTo } from "pg-copy-streams"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { secondsSince } from "./measuring.ts"
import { type Figure, figure, isMissed, median, medianOf, plain, table } from "./Figures.ts"
import * as Stand from "./Stand.ts"
import { firstLoad } from "./first-load.ts"
import * as Pushes from "./pushes.ts"
import * as Scale from "./scale.ts"
import * as Serving from "./serving.ts"
import * as Start from "./start.ts"
import * as Webhooks from "./webhooks.ts"

const { values: flags } = parseArgs({
  options: {
    rows: { type: "string", default: "200000" },
    "page-size": { type: "string", default: "250" },
    repeat: { type: "string", default: "3" },
    only: { type: "string", default: "pipeline,quiet,million,webhook,push,start" },
    postgres: { type: "string" },
    json: { type: "boolean", default: false }
  }
})
const rows = Number(flags.rows)
const pageSizes = flags["page-size"].split(",").map(Number)
/** Of the groups that use one size: the first. */
const pageSize = pageSizes[0]!
const repeat = Math.max(1, Number(flags.repeat))
const groups = new Set(flags.only.split(","))

const resource = "invoicelines"
/** A resource with few records, which fit on one page. */
const small = "invoiceterms"
const million = 1_000_000
const changeBatch = 5_000
/** Longer than the overlap of a scan (300 s unless configured otherwise). */
const beyondOverlapSeconds = 600

const figures: Array<Figure> = []
const say = (line: string) => process.stderr.write(`${line}\n`)
const perRow = (seconds: number | null, count: number) =>
  seconds === null ? "?" : ((seconds / count) * 1e6).toFixed(1)
const costOf = (run: Stand.Run, count: number) =>
  `CPU us/row: client ${perRow(run.cpuSeconds, count)}, Postgres ${perRow(run.postgresCpuSeconds, count)}, ` +
  `server ${perRow(run.serverCpuSeconds, count)}`
/** The run with the median rate. */
const middle = <A extends { readonly seconds: number }>(runs: ReadonlyArray<A>): A =>
  runs.toSorted((a, b) => a.seconds - b.seconds)[runs.length >> 1]!

/** Changes every `step`-th record of the source. Returns the source's time before the first change. */
const change = async ({ reference }: Stand.Source, ids: number, step: number, mark: string): Promise<string> => {
  const { now } = (await reference.control("GET", "/clock")) as { now: string }
  let records: Array<{ id: number; description: string; qty: string }> = []
  for (let id = step; id <= ids; id += step) {
    records.push({ id, description: `${mark} line ${id}`, qty: `${id % 97}.500000` })
    if (records.length < changeBatch && id + step <= ids) continue
    await reference.control("POST", "/records", { company: 1, resource, records })
    records = []
  }
  return now
}

/** The speed of COPY for the same rows, ready-made, into a table with the same key. */
const copyCeiling = async (warehouse: Stand.Warehouse, from: string): Promise<number> => {
  const chunks: Array<Buffer> = []
  await pipeline(warehouse.client.query(copyTo(`copy ${from} to stdout`)), async (source) => {
    for await (const chunk of source) chunks.push(chunk as Buffer)
  })
  await warehouse.query(`create table copied (like ${from} including all)`)
  const began = performance.now()
  await pipeline(Readable.from(chunks), warehouse.client.query(copyFrom("copy copied from stdin")))
  const seconds = secondsSince(began)
  await warehouse.query("drop table copied")
  return seconds
}

const requireRowCount = async (warehouse: Stand.Warehouse, table: string, expected: number) => {
  const [row] = await warehouse.query<{ n: string }>(`select count(*) as n from ${table}`)
  if (Number(row?.n) !== expected) throw new Error(`${table} holds ${row?.n} rows instead of ${expected}`)
}

const unlimited: Stand.SyncSettings = { requestsPerMinute: null, pageSize }

const minimalArgsOf = (tables: ReadonlyArray<{ readonly resource: string } & Stand.BareTable>, size: number) => [
  `--tables=${JSON.stringify(tables.map(({ resource: path, table, columns }) => ({ resource: path, table, columns })))}`,
  `--page-size=${size}`
]

const measurePipeline = async (stand: Stand.Stand, size: number) => {
  const bare = Stand.bareTable(resource, "minimal")
  const minimalArgs = minimalArgsOf([{ resource, ...bare }], size)
  const settings: Stand.SyncSettings = { requestsPerMinute: null, pageSize: size }
  const source = await stand.source(["--data", "scale", "--rows", String(rows)], { pageSize: size })
  const all = {
    raw: [] as Array<Stand.FetchResult>,
    parsed: [] as Array<Stand.FetchResult>,
    copied: [] as Array<number>,
    minimalFull: [] as Array<Stand.MinimalRun>,
    full: [] as Array<Stand.SyncRun>,
    minimalChanged: [] as Array<Stand.MinimalRun>,
    changed: [] as Array<Stand.SyncRun>,
    again: [] as Array<Stand.SyncRun>,
    still: [] as Array<Stand.SyncRun>,
    percent: [] as Array<Stand.SyncRun>,
    fullWritten: 0,
    percentWritten: 0
  }
  for (let round = 1; round <= repeat; round++) {
    say(`round ${round} of ${repeat}`)
    if (round > 1) await source.reference.control("POST", "/reset", {})
    const fresh = round === 1 ? source : { ...source, token: await source.reference.token(1) }
    if (round > 1) {
      await source.reference.control("PUT", "/limits", { requestsPerMinute: null })
      if (size > 250) await source.reference.control("PUT", "/dialect", { pageMax: size })
    }
    // The server renders each record once. From then on every reader gets it at the same cost.
    await Stand.fetchAll(fresh, { resource, pageSize: size, parse: false })
    all.raw.push(await Stand.fetchAll(fresh, { resource, pageSize: size, parse: false }))
    all.parsed.push(await Stand.fetchAll(fresh, { resource, pageSize: size, parse: true }))

    const ours = await stand.warehouse()
    const theirs = await stand.warehouse()
    await theirs.query(bare.create)
    const both = async (
      baselines: Array<Stand.MinimalRun>,
      products: Array<Stand.SyncRun>,
      ...more: ReadonlyArray<string>
    ) => {
      const baseline = async () => void baselines.push(await stand.minimal(fresh, theirs, [...minimalArgs, ...more]))
      const product = async () => void products.push(await stand.sync(fresh, ours, settings, [resource]))
      // The state of the machine may change between two runs, so they alternate.
      for (const run of round % 2 === 1 ? [baseline, product] : [product, baseline]) await run()
    }
    await both(all.minimalFull, all.full)
    await requireRowCount(ours, `erp.${resource}`, rows)
    await requireRowCount(theirs, "minimal", rows)
    all.fullWritten = await Stand.rowsWritten(ours)
    all.copied.push(await copyCeiling(theirs, "minimal"))

    const since = await change(fresh, rows, 1, "changed")
    await Stand.fetchAll(fresh, { resource, pageSize: size, since, parse: false })
    await both(all.minimalChanged, all.changed, "--since", since)
    const { updated } = all.changed.at(-1)!.totals
    if (updated !== rows) throw new Error(`${updated} rows updated instead of ${rows}`)
    const afterChanged = await Stand.rowsWritten(ours)

    // A scan begins before its cursor: recent changes are read again and not written. Time passes at the source, and
    // then there is nothing to read.
    await fresh.reference.control("POST", "/clock", { advanceSeconds: beyondOverlapSeconds })
    all.again.push(await stand.sync(fresh, ours, settings, [resource]))
    all.still.push(await stand.sync(fresh, ours, settings, [resource]))
    const afterStill = await Stand.rowsWritten(ours)
    if (afterStill !== afterChanged) throw new Error(`a quiet sync wrote ${afterStill - afterChanged} rows`)
    const sinceFew = await change(fresh, rows, 100, "again")
    await Stand.fetchAll(fresh, { resource, pageSize: size, since: sinceFew, parse: false })
    all.percent.push(await stand.sync(fresh, ours, settings, [resource]))
    all.percentWritten = (await Stand.rowsWritten(ours)) - afterStill
    await ours.close()
    await theirs.close()
  }
  await source.reference.stop()

  type Timed = ReadonlyArray<{ readonly seconds: number }>
  const secondsOf = (runs: Timed) => median(runs.map(({ seconds }) => seconds))
  const rate = (runs: Timed) => rows / secondsOf(runs)
  const whole = (runs: ReadonlyArray<Stand.Run>) => median(runs.map(({ wholeSeconds }) => wholeSeconds))
  const wholes = (ours: ReadonlyArray<Stand.Run>, theirs: ReadonlyArray<Stand.Run>) =>
    `${whole(ours).toFixed(2)} s to ${whole(theirs).toFixed(2)} s`
  const peak = (runs: ReadonlyArray<Stand.Run>) => medianOf(runs.map(({ peakMb }) => peakMb))
  const [fullSeconds, stillSeconds] = [secondsOf(all.full), secondsOf(all.still)]
  const ratios = (ours: Timed, theirs: Timed) =>
    ours.map(({ seconds }, index) => (theirs[index]!.seconds / seconds).toFixed(2)).join(" ")
  const measured = [
    figure("ceiling: fetch, bytes only", "rows/s", rate(all.raw), {
      note: `${Math.round(all.raw[0]!.bytes / rows)} bytes a record`
    }),
    figure("ceiling: fetch and JSON.parse", "rows/s", rate(all.parsed), { baseline: rate(all.raw) }),
    figure("ceiling: COPY, keyed table", "rows/s", rows / median(all.copied)),
    figure("full sync", "rows/s", rate(all.full), {
      baseline: rate(all.minimalFull),
      atLeast: 0.8,
      note: `rounds ${ratios(all.full, all.minimalFull)}`
    }),
    figure("full sync, whole command", "rows/s", rows / whole(all.full), {
      baseline: rows / whole(all.minimalFull),
      atLeast: 0.8,
      note: `${wholes(all.full, all.minimalFull)}; programs started and ended, tables made`
    }),
    figure("every row changed", "rows/s", rate(all.changed), {
      baseline: rate(all.minimalChanged),
      atLeast: 0.6,
      note: `rounds ${ratios(all.changed, all.minimalChanged)}; history included`
    }),
    figure("every row changed, whole command", "rows/s", rows / whole(all.changed), {
      baseline: rows / whole(all.minimalChanged),
      atLeast: 0.6,
      note: wholes(all.changed, all.minimalChanged)
    }),
    figure("nothing changed, every row read again", "rows/s", rate(all.again), {
      baseline: rate(all.full),
      note: `all changed within the overlap before the cursor: ${all.again[0]!.totals.records} records read, none written`
    }),
    figure("nothing changed, one resource", "s", stillSeconds, {
      baseline: fullSeconds,
      atMost: 0.1,
      note: `${all.still[0]!.totals.requests} requests, ${all.still[0]!.totals.records} records read`
    }),
    figure("1 % changed: rows written", "rows", all.percentWritten, {
      baseline: all.fullWritten,
      atMost: 0.02,
      note: `${all.percent[0]!.totals.updated} updated, each with its earlier version kept`
    }),
    figure("1 % changed: time beyond a quiet sync", "s", Math.max(0, secondsOf(all.percent) - stillSeconds), {
      baseline: fullSeconds,
      atMost: 0.02,
      note: `a quiet sync of the resource takes ${stillSeconds.toFixed(2)} s`
    }),
    figure(`memory: peak at ${rows.toLocaleString("en-US")} rows`, "MB", peak(all.full), {
      atMost: 250,
      note: `the minimal pipeline: ${peak(all.minimalFull)?.toFixed(0) ?? "?"} MB; every row changed: ${peak(all.changed)?.toFixed(0) ?? "?"} MB`
    })
  ]
  say(`full sync:         ${costOf(middle(all.full), rows)}`)
  say(`  minimal:         ${costOf(middle(all.minimalFull), rows)}`)
  say(`every row changed: ${costOf(middle(all.changed), rows)}`)
  say(`  read again:      ${costOf(middle(all.again), rows)}`)
  say(`  minimal:         ${costOf(middle(all.minimalChanged), rows)}`)
  const prefix = pageSizes.length === 1 ? "" : `pages of ${size}: `
  figures.push(...measured.map((one) => ({ ...one, what: `${prefix}${one.what}` })))
  return peak(all.full)
}

/** A first sync of every resource, beside the minimal pipeline for the same records. */
const measureEvery = async (stand: Stand.Stand) => {
  const source = await stand.source(["--data", "demo"], { pageSize: null })
  const tables = [...serviceV2.resources.keys()].map((path) => ({
    resource: path,
    ...Stand.bareTable(path, `minimal_${path}`)
  }))
  const ours: Array<Stand.SyncRun> = []
  const theirs: Array<Stand.MinimalRun> = []
  for (let round = 0; round < repeat; round++) {
    const [own, bare] = [await stand.warehouse(), await stand.warehouse()]
    for (const { create } of tables) await bare.query(create)
    theirs.push(await stand.minimal(source, bare, minimalArgsOf(tables, 250)))
    ours.push(await stand.sync(source, own, { requestsPerMinute: null, pageSize: null }, []))
    await own.close()
    await bare.close()
  }
  await source.reference.stop()
  const seconds = (runs: ReadonlyArray<Stand.Run>) => median(runs.map(({ wholeSeconds }) => wholeSeconds))
  const { totals } = ours[0]!
  const { rows: minimalRows } = theirs[0]!
  figures.push(
    figure("first sync of every resource, whole command", "rows/s", totals.records / seconds(ours), {
      baseline: minimalRows / seconds(theirs),
      atLeast: 0.9,
      note: `${totals.records} records of ${tables.length} resources: ${seconds(ours).toFixed(2)} s to ${seconds(theirs).toFixed(2)} s for ${minimalRows} (no cancelled ones); migrations and tables included`
    })
  )
}

const measureMillion = async (stand: Stand.Stand, peakMb: number | null) => {
  const source = await stand.source(["--data", "scale", "--rows", String(million)], { pageSize })
  const warehouse = await stand.warehouse()
  const run = await stand.sync(source, warehouse, unlimited, [resource])
  await requireRowCount(warehouse, `erp.${resource}`, million)
  const exported = await stand.exportParquet(source, warehouse, resource)
  if (exported.rows !== million) throw new Error(`${exported.rows} rows exported instead of ${million}`)
  await warehouse.close()
  await source.reference.stop()
  figures.push(
    figure("memory: peak at 1,000,000 rows", "MB", run.peakMb, {
      atMost: 250,
      note: `${Math.round(million / run.seconds).toLocaleString("en-US")} rows/s, the server's first rendering included`
    }),
    figure("export of 1,000,000 rows as Parquet", "s", exported.wholeSeconds, {
      atMost: 60,
      note: "the whole command"
    }),
    figure("the same: peak memory", "MB", exported.peakMb, { atMost: 300 }),
    figure(`memory: 1,000,000 rows beside ${rows.toLocaleString("en-US")}`, "MB", run.peakMb, {
      baseline: peakMb,
      atMost: 1.2
    })
  )
}

/** The requests that the source answered. */
const journalOf = async ({ reference }: Stand.Source) =>
  ((await reference.control("GET", "/requests")) as { readonly requests: ReadonlyArray<{ readonly path: string }> })
    .requests

const measureQuiet = async (stand: Stand.Stand) => {
  const source = await stand.source(["--data", "demo"], { pageSize: null })
  const warehouse = await stand.warehouse()
  await stand.sync(source, warehouse, unlimited, [])
  // The second sync reads the overlap of the first one.
  await stand.sync(source, warehouse, unlimited, [])
  const written = await Stand.rowsWritten(warehouse)
  const before = (await journalOf(source)).length
  const run = await stand.sync(source, warehouse, unlimited, [])
  const journalEntries = (await journalOf(source)).slice(before)
  const writtenNow = (await Stand.rowsWritten(warehouse)) - written
  const requests = new Map<string, number>()
  for (const { path } of journalEntries) {
    const name = /^\/([a-z0-9_]+)/.exec(path)?.[1] ?? path
    requests.set(name, (requests.get(name) ?? 0) + 1)
  }
  const following = [...serviceV2.resources.values()].filter(({ modifiedSince }) => modifiedSince)
  const total = following.reduce((sum, { path }) => sum + (requests.get(path) ?? 0), 0)
  const more = following
    .filter(({ path }) => requests.get(path) !== 1)
    .map(({ path }) => `${path} ${requests.get(path) ?? 0}`)
  await warehouse.close()
  await source.reference.stop()
  figures.push(
    figure("nothing changed: requests", "requests", total, {
      baseline: following.length,
      atMost: 1,
      note: `one for each resource with modifiedsince${more.length === 0 ? "" : `, except ${more.join(", ")}`}; ${journalEntries.length - total} for the others and to begin`
    }),
    figure("nothing changed: rows written", "rows", writtenNow, {
      atMost: 0,
      note: `${run.totals.records} records read of the resources without modifiedsince`
    }),
    figure("nothing changed: whole command", "s", run.wholeSeconds, {
      note: `${serviceV2.resources.size} resources`
    })
  )
}

const measure = async (stand: Stand.Stand) => {
  let peakMb: number | null = null
  if (groups.has("quiet")) await measureQuiet(stand)
  if (groups.has("every")) await measureEvery(stand)
  if (groups.has("pipeline")) for (const size of pageSizes) peakMb = await measurePipeline(stand, size)
  if (groups.has("million")) await measureMillion(stand, peakMb)
  if (groups.has("webhook"))
    figures.push(...(await Webhooks.acknowledgements(stand)), ...(await Webhooks.steadyRate(stand)))
  if (groups.has("push")) figures.push(...(await Pushes.pushes(stand, { records: 100_000, few: 20_000, repeat, say })))
  if (groups.has("start")) {
    const starts = await Start.start(stand, small)
    if (starts.some(isMissed)) process.exitCode = 1
    figures.push(...starts)
  }
  if (groups.has("serve")) figures.push(...(await Serving.serving(stand, say)))
  if (groups.has("first-load")) figures.push(...(await firstLoad(stand, say)))
  if (groups.has("scale")) figures.push(...(await Scale.atSize(stand, { companies: 10_000, resources: 86 }, say)))
}

say(
  `${rows.toLocaleString("en-US")} ${resource}, pages of ${pageSizes.join(", ")}, ${repeat} rounds, ${cpus().length} cores ` +
    `(${cpus()[0]?.model ?? "unknown"}), Node ${process.version}`
)
const versions = flags.postgres === undefined ? [null] : flags.postgres.split(",")
for (const version of versions) {
  const stand = await Stand.open(version)
  figures.splice(0)
  try {
    await measure(stand)
  } finally {
    await stand.close()
  }
  if (versions.length > 1) process.stdout.write(`\nPostgres ${version}`)
  process.stdout.write(flags.json ? `${JSON.stringify(plain(figures))}\n` : `\n${table(figures)}\n`)
}
