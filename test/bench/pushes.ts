/**
 * The promised figures of pushes: the number of requests, the speed beside the server's own limit, and the memory.
 *
 * Promise: the baseline is the same bodies from a bare loop with as many concurrent requests. Both meet a server that
 * was reset and a warehouse of their own, and take turns. The server counts the requests, and its history shows each
 * record once.
 */
import { Chance } from "../fuzz/Chance.ts"
import { draw, ndjson, resource } from "../campaign/PushFile.ts"
import { type Figure, median, medianOf } from "./Figures.ts"
import type { PushRun, PushWish, Source, Stand } from "./Stand.ts"

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

export interface Pushed extends PushRun {
  /** The counts of the server. */
  readonly asked: Awaited<ReturnType<typeof callsOf>>
  readonly notOnce: number
  /** Records in the warehouse, and those of them that the push itself landed. */
  readonly shown: number
  readonly byPush: number
}

/** Pushes the records into a server that was reset. */
export const pushOnce = async (stand: Stand, source: Source, wish: PushWish, records: number): Promise<Pushed> => {
  const fresh = await reset(source)
  const warehouse = await stand.warehouse()
  const run = await stand.push(fresh, warehouse, wish)
  const asked = await callsOf(fresh)
  const [held] = await warehouse.query<{ shown: string; pushed: string }>(
    `select count(*) as shown, count(*) filter (where _origin = 'push') as pushed from erp.${resource}`
  )
  await warehouse.close()
  return {
    ...run,
    asked,
    notOnce: await notOnce(fresh, records),
    shown: Number(held!.shown),
    byPush: Number(held!.pushed)
  }
}

export const wishOf = (stand: Stand, records: number): PushWish => ({
  file: fileOf(stand, records),
  resource,
  batchSize,
  concurrency
})

export const pushes = async (
  stand: Stand,
  wish: {
    readonly records: number
    readonly few: number
    readonly repeat: number
    readonly say: (line: string) => void
  }
): Promise<ReadonlyArray<Figure>> => {
  const source = await stand.source(["--data", "empty"], { pageSize: null })
  const many = wishOf(stand, wish.records)
  const few = wishOf(stand, wish.few)
  const baselines: Array<{ readonly seconds: number; readonly wholeSeconds: number }> = []
  const runs: Array<Pushed> = []
  const small: Array<Pushed> = []
  const post = async () => {
    const warehouse = await stand.warehouse()
    baselines.push(await stand.post(await reset(source), warehouse, many))
    await warehouse.close()
  }
  const push = async () => {
    runs.push(await pushOnce(stand, source, many, wish.records))
  }
  for (let round = 1; round <= wish.repeat; round += 1) {
    wish.say(`push, round ${round} of ${wish.repeat}`)
    // The state of the machine may change between two runs, so they alternate.
    await (round % 2 === 1 ? post() : push())
    await (round % 2 === 1 ? push() : post())
    small.push(await pushOnce(stand, source, few, wish.few))
  }
  await source.reference.stop()
  const count = wish.records.toLocaleString("en-US")
  const rate = (all: ReadonlyArray<{ readonly seconds: number }>) =>
    wish.records / median(all.map(({ seconds }) => seconds))
  const last = runs.at(-1)!
  const each = (cpuSeconds: number | null) =>
    cpuSeconds === null ? "?" : ((cpuSeconds / wish.records) * 1e6).toFixed(1)
  const peakMb = medianOf(runs.map((run) => run.peakMb))
  const most = (of: (run: Pushed) => number) => Math.max(...runs.map(of))
  return [
    {
      what: `push of ${count} records: batch calls`,
      value: most(({ asked }) => asked.batches),
      baseline: null,
      unit: "requests",
      bound: { kind: "at most", limit: Math.ceil(wish.records / batchSize) },
      note: `the server counted ${runs.map(({ asked }) => asked.batches).join(", ")}; ${most(({ asked }) => asked.writes - asked.batches)} other writes, ${most(({ asked }) => asked.reads)} reads`
    },
    {
      what: "push: records not created exactly once",
      value: most((run) => run.notOnce),
      baseline: null,
      unit: "rows",
      bound: { kind: "at most", limit: 0 },
      note: `${last.shown} in the warehouse, ${last.byPush} by the push itself`
    },
    {
      what: "push",
      value: rate(runs),
      baseline: rate(baselines),
      unit: "rows/s",
      bound: { kind: "at least", limit: 0.9 },
      note:
        `beside a bare loop, ${concurrency} requests under way; rounds ${runs.map(({ seconds }, round) => (baselines[round]!.seconds / seconds).toFixed(2)).join(" ")}; ` +
        `CPU us/record: client ${each(last.cpuSeconds)}, Postgres ${each(last.postgresCpuSeconds)}, server ${each(last.serverCpuSeconds)}`
    },
    {
      what: "push, whole command",
      value: wish.records / median(runs.map(({ wholeSeconds }) => wholeSeconds)),
      baseline: wish.records / median(baselines.map(({ wholeSeconds }) => wholeSeconds)),
      unit: "rows/s",
      bound: null,
      note: `${median(runs.map(({ wholeSeconds }) => wholeSeconds)).toFixed(2)} s to ${median(baselines.map(({ wholeSeconds }) => wholeSeconds)).toFixed(2)} s; the file checked and stored before`
    },
    {
      what: `push: memory, ${count} records beside ${wish.few.toLocaleString("en-US")}`,
      value: peakMb,
      baseline: medianOf(small.map((run) => run.peakMb)),
      unit: "MB",
      bound: { kind: "at most", limit: 1.2 },
      note: ""
    }
  ]
}
