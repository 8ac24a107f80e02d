/**
 * The used share of the request limit: by one resource without latency, and by several with the latency of a network.
 *
 * Promise: the source's own journal counts the answers with status 200, from the first one on.
 */
import type { Figure } from "./Figures.ts"
import type * as Stand from "./Stand.ts"

interface JournalEntry {
  readonly time: string
  readonly path: string
  readonly status: number | null
}

/** The requests that the source answered. */
export const journal = async ({ reference }: Stand.Source) =>
  ((await reference.control("GET", "/requests")) as { requests: ReadonlyArray<JournalEntry> }).requests

type Say = (line: string) => void

const pageSize = 100
const minutes = 2

/** Syncs at a limit until everything is read. */
const usedShare = async (
  stand: Stand.Stand,
  source: Stand.Source,
  perMinute: number,
  resources: ReadonlyArray<string>
) => {
  await source.reference.control("PUT", "/limits", { requestsPerMinute: perMinute })
  const warehouse = await stand.warehouse()
  const before = (await journal(source)).length
  const run = await stand.sync(source, warehouse, { requestsPerMinute: perMinute, pageSize }, resources)
  const entries = (await journal(source)).slice(before)
  await warehouse.close()
  await source.reference.stop()
  const began = Date.parse(entries[0]!.time)
  const inTime = entries.filter(
    ({ time, status }) => status === 200 && Date.parse(time) - began < minutes * 60_000
  ).length
  return {
    inTime,
    share: inTime / (perMinute * minutes),
    refused: entries.filter(({ status }) => status === 429).length,
    wholeSeconds: run.wholeSeconds
  }
}

export const quota = async (stand: Stand.Stand, say: Say): Promise<ReadonlyArray<Figure>> => {
  const perMinute = 600
  const needed = perMinute * (minutes + 0.2) * pageSize
  const source = await stand.source(["--data", "scale", "--rows", String(needed)], { pageSize })
  say(`quota: ${needed} rows by pages of ${pageSize} at ${perMinute} requests a minute`)
  const { inTime, refused, share, wholeSeconds } = await usedShare(stand, source, perMinute, ["invoicelines"])
  return [
    {
      what: `quota: used in ${minutes} minutes`,
      value: share,
      baseline: null,
      unit: "share",
      bound: { kind: "at least", limit: 0.98 },
      note: `${inTime} of ${perMinute * minutes} requests; the whole backfill took ${wholeSeconds.toFixed(0)} s`
    },
    {
      what: "quota: refused with 429",
      value: refused,
      baseline: null,
      unit: "requests",
      bound: { kind: "at most", limit: 0 },
      note: ""
    }
  ]
}

const latencyMs = 300
const chunk = 5_000

/** Several resources together, at the default limit, while each answer takes {@link latencyMs}. */
export const quotaWithLatency = async (stand: Stand.Stand, say: Say): Promise<ReadonlyArray<Figure>> => {
  const perMinute = 500
  // Their records need a name only.
  const resources = ["salesmen", "areas", "departments", "zones", "taxgroups", "costcenters"]
  const rows = Math.ceil((perMinute * (minutes + 0.5) * pageSize) / resources.length / chunk) * chunk
  const source = await stand.source(["--data", "empty"], { pageSize })
  const { reference } = source
  for (const resource of resources) {
    for (let from = 0; from < rows; from += chunk) {
      const records = Array.from({ length: chunk }, (_, at) => ({ name: `record ${from + at}` }))
      await reference.control("POST", "/records", { company: 1, resource, records })
    }
  }
  await reference.control("POST", "/faults", { rules: [{ path: "/*", kind: "delay", ms: latencyMs }] })
  say(`quota: ${resources.length} resources of ${rows} rows at ${perMinute} requests a minute and ${latencyMs} ms`)
  const { inTime, refused, share } = await usedShare(stand, source, perMinute, resources)
  return [
    {
      what: `quota: used in ${minutes} minutes at ${latencyMs} ms per answer`,
      value: share,
      baseline: null,
      unit: "share",
      bound: { kind: "at least", limit: 0.95 },
      note: `${inTime} of ${perMinute * minutes} requests; ${resources.length} resources of one company; ${refused} refused with 429`
    }
  ]
}
