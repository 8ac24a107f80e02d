/**
 * The promised figures of pushes: the number of requests, the speed beside the server's own limit, and the memory.
 *
 * Promise: the baseline is the same bodies from a bare loop with as many concurrent requests. Both meet a server that
 * was reset and a warehouse of their own, and take turns. The server counts the requests, and its history shows each
 * record once.
 */
import { Chance } from "../fuzz/Chance.ts"
import { draw, ndjson, resource } from "../campaign/PushFile.ts"
import { type Figure, figure, median, medianOf } from "./Figures.ts"
import type { PushRun, PushOptions, Source, Stand } from "./Stand.ts"

const batchSize = 250
const concurrency = 4

const fileOf = (stand: Stand, records: number): string => {
  const chance = new Chance(records)
  return stand.write(
    `push-${records}.ndjson`,
    ndjson(Array.from({ length: records }, (_, place) => draw(chance, `r${place}`)))
  )
}

/** Resets the server to its state at its start. */
const reset = async ({ reference }: Source): Promise<Source> => {
  await reference.control("POST", "/reset", {})
  await reference.control("PUT", "/limits", { requestsPerMinute: null })
  return { reference, token: await reference.token(1) }
}

interface Request {
  readonly method: string
  readonly path: string
}

/** Number of write requests, as the server counts them. */
const callsOf = async ({ reference }: Source) => {
  const { requests } = (await reference.control("GET", "/requests")) as { readonly requests: ReadonlyArray<Request> }
  const writes = requests.filter(({ method }) => method !== "GET")
  const batches = writes.filter(({ path }) => path === `/${resource}/batch`)
  return { writes: writes.length, batches: batches.length, reads: requests.length - writes.length }
}

/** Number of records that the server has not created exactly once. */
const notOnce = async ({ reference }: Source, records: number): Promise<number> => {
  const times = new Map<string, number>()
  for (const line of await reference.lines(`/history?company=1&resource=${resource}`)) {
    const { op, record } = JSON.parse(line) as { readonly op: string; readonly record: { readonly externalid: string } }
    if (op === "insert") times.set(record.externalid, (times.get(record.externalid) ?? 0) + 1)
  }
  let wrong = times.size - records
  for (let place = 0; place < records; place += 1) if (times.get(`push-r${place}`) !== 1) wrong += 1
  return Math.abs(wrong)
}

interface PushMeasurement extends PushRun {
  /** The counts of the server. */
  readonly serverCalls: Awaited<ReturnType<typeof callsOf>>
  readonly notOnce: number
  /** Records in the warehouse, and those of them that the push itself landed. */
  readonly shown: number
  readonly byPush: number
}

/** Pushes the records into a server that was reset. */
const pushOnce = async (
  stand: Stand,
  source: Source,
  options: PushOptions,
  records: number
): Promise<PushMeasurement> => {
  const fresh = await reset(source)
  const warehouse = await stand.warehouse()
  const run = await stand.push(fresh, warehouse, options)
  const serverCalls = await callsOf(fresh)
  const [row] = await warehouse.query<{ shown: string; pushed: string }>(
    `select count(*) as shown, count(*) filter (where _origin = 'push') as pushed from erp.${resource}`
  )
  await warehouse.close()
  return {
    ...run,
    serverCalls,
    notOnce: await notOnce(fresh, records),
    shown: Number(row!.shown),
    byPush: Number(row!.pushed)
  }
}

const pushOptionsOf = (stand: Stand, records: number): PushOptions => ({
  file: fileOf(stand, records),
  resource,
  batchSize,
  concurrency
})

export const pushes = async (
  stand: Stand,
  settings: {
    readonly records: number
    readonly few: number
    readonly repeat: number
    readonly say: (line: string) => void
  }
): Promise<ReadonlyArray<Figure>> => {
  const source = await stand.source(["--data", "empty"], { pageSize: null })
  const many = pushOptionsOf(stand, settings.records)
  const few = pushOptionsOf(stand, settings.few)
  const baselines: Array<{ readonly seconds: number; readonly wholeSeconds: number }> = []
  const runs: Array<PushMeasurement> = []
  const small: Array<PushMeasurement> = []
  const post = async () => {
    const warehouse = await stand.warehouse()
    baselines.push(await stand.post(await reset(source), warehouse, many))
    await warehouse.close()
  }
  const push = async () => {
    runs.push(await pushOnce(stand, source, many, settings.records))
  }
  for (let round = 1; round <= settings.repeat; round += 1) {
    settings.say(`push, round ${round} of ${settings.repeat}`)
    // The state of the machine may change between two runs, so they alternate.
    await (round % 2 === 1 ? post() : push())
    await (round % 2 === 1 ? push() : post())
    small.push(await pushOnce(stand, source, few, settings.few))
  }
  await source.reference.stop()
  const count = settings.records.toLocaleString("en-US")
  const rate = (all: ReadonlyArray<{ readonly seconds: number }>) =>
    settings.records / median(all.map(({ seconds }) => seconds))
  const last = runs.at(-1)!
  const each = (cpuSeconds: number | null) =>
    cpuSeconds === null ? "?" : ((cpuSeconds / settings.records) * 1e6).toFixed(1)
  const wholeSeconds = (all: ReadonlyArray<{ readonly wholeSeconds: number }>) =>
    median(all.map((run) => run.wholeSeconds))
  const most = (of: (run: PushMeasurement) => number) => Math.max(...runs.map(of))
  return [
    figure(
      `push of ${count} records: batch calls`,
      "requests",
      most(({ serverCalls }) => serverCalls.batches),
      {
        atMost: Math.ceil(settings.records / batchSize),
        note: `the server counted ${runs.map(({ serverCalls }) => serverCalls.batches).join(", ")}; ${most(({ serverCalls }) => serverCalls.writes - serverCalls.batches)} other writes, ${most(({ serverCalls }) => serverCalls.reads)} reads`
      }
    ),
    figure(
      "push: records not created exactly once",
      "rows",
      most((run) => run.notOnce),
      { atMost: 0, note: `${last.shown} in the warehouse, ${last.byPush} by the push itself` }
    ),
    figure("push", "rows/s", rate(runs), {
      baseline: rate(baselines),
      atLeast: 0.9,
      note:
        `beside a bare loop, ${concurrency} requests under way; rounds ${runs.map(({ seconds }, round) => (baselines[round]!.seconds / seconds).toFixed(2)).join(" ")}; ` +
        `CPU us/record: client ${each(last.cpuSeconds)}, Postgres ${each(last.postgresCpuSeconds)}, server ${each(last.serverCpuSeconds)}`
    }),
    figure("push, whole command", "rows/s", settings.records / wholeSeconds(runs), {
      baseline: settings.records / wholeSeconds(baselines),
      note: `${wholeSeconds(runs).toFixed(2)} s to ${wholeSeconds(baselines).toFixed(2)} s; the file checked and stored before`
    }),
    figure(
      `push: memory, ${count} records beside ${settings.few.toLocaleString("en-US")}`,
      "MB",
      medianOf(runs.map((run) => run.peakMb)),
      {
        baseline: medianOf(small.map((run) => run.peakMb)),
        atMost: 1.2
      }
    )
  ]
}
