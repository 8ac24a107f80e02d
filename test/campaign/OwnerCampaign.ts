/**
 * A campaign of owners: several real `serve` processes share the companies of one warehouse, while they are killed,
 * suspended, stopped and cut off, and records change at the source.
 *
 * Promise: after each disturbance the time until every company has a live owner is measured. At the end no row differs
 * from the source.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type pg from "pg"
import { bucketCount as buckets } from "../../src/processes/Ownership.ts"
import { Chance } from "../fuzz/Chance.ts"
import type { CommandRun } from "../support/reference.ts"
import { compare, type Difference } from "./Difference.ts"
import { freeze, openStand, type Stand, thaw } from "./Stand.ts"

export const kinds = ["killed", "stopped", "suspended", "cut off", "Postgres killed"] as const
export type Kind = (typeof kinds)[number]

export interface OwnerOptions {
  readonly disturbances: number
  readonly processes: number
  readonly companies: number
  readonly seed: number
  readonly tell: (line: string) => void
}

export interface OwnerReport {
  /** Milliseconds until every company had a live owner again, by kind of disturbance. */
  readonly unownedMs: Readonly<Record<Kind, ReadonlyArray<number>>>
  readonly writes: number
  readonly recordsCompared: number
  readonly problems: ReadonlyArray<string>
  readonly seconds: number
}

const resources = ["salesmen", "areas", "customers"]
/** A longer time counts as lost. */
const ownedMaxMs = 60_000
const suspendedMs = 20_000
/** A process notices the loss of its locks within four seconds. */
const noticedMaxMs = 6_000

interface Process {
  readonly run: CommandRun
  readonly pid: number
}

/** The processes that may own companies, as the campaign knows them. */
class Fleet {
  readonly live = new Map<number, Process>()
  private readonly stand: Stand
  private readonly config: string
  private readonly databaseUrl: string

  constructor(stand: Stand, config: string, databaseUrl: string) {
    this.stand = stand
    this.config = config
    this.databaseUrl = databaseUrl
  }

  start(): Process {
    const run = this.stand.start(["serve", "--config", this.config, "--json"], {
      databaseUrl: this.databaseUrl,
      baseUrl: this.stand.reference.baseUrl
    })
    const process: Process = { run, pid: run.child.pid! }
    this.live.set(process.pid, process)
    return process
  }

  /** The number of companies whose recorded owner is among these processes. */
  async owned(pids: Iterable<number>): Promise<number> {
    return this.stand.withClient(this.databaseUrl, async (client) => {
      const { rows } = await client.query<{ owned: number }>(
        `select count(*)::int as owned from tributary.bucket_owners o join tributary.processes p using (process_id)
          where p.pid = any($1)`,
        [[...pids]]
      )
      return rows[0]!.owned
    })
  }

  /** Waits until a process has noticed that it lost its companies; some losses are over before. */
  async losesSome(): Promise<void> {
    const fromMs = performance.now()
    while (performance.now() - fromMs < noticedMaxMs) {
      if ((await this.owned(this.live.keys()).catch(() => 0)) < buckets) return
      await sleep(20)
    }
  }

  /** Waits until these processes own every bucket, and returns the time. */
  async ownsAll(pids: () => Iterable<number>, fromMs = performance.now()): Promise<number> {
    for (;;) {
      if ((await this.owned(pids()).catch(() => 0)) === buckets) return performance.now() - fromMs
      if (performance.now() - fromMs > ownedMaxMs) {
        const owned = await this.owned(pids())
        throw new Error(`only ${owned} of ${buckets} buckets have an owner after ${ownedMaxMs} ms`)
      }
      await sleep(50)
    }
  }
}

/** Ends the session with the locks of one process. */
const cutOff = async (client: pg.Client, drawn: number) => {
  const { rows } = await client.query<{ pid: number }>(
    "select pid from pg_locks where locktype = 'advisory' and objsubid = 2 group by pid having count(*) > 10 order by pid"
  )
  await client.query("select pg_terminate_backend($1)", [rows[drawn % rows.length]!.pid])
}

export const ownerCampaign = async (options: OwnerOptions): Promise<OwnerReport> => {
  const { companies, disturbances, processes, seed, tell } = options
  const began = performance.now()
  const chance = new Chance(seed)
  const numbers = Array.from({ length: companies }, (_, index) => index + 1)
  const stand = await openStand(numbers)
  const unownedMs = Object.fromEntries(kinds.map((kind) => [kind, new Array<number>()])) as unknown as Record<
    Kind,
    Array<number>
  >
  const problems: Array<string> = []
  let writes = 0
  const writingEnds = new AbortController()
  try {
    const databaseUrl = await stand.database()
    const config = stand.configure(
      "owners.yaml",
      [
        "webhooks: { listen: 127.0.0.1:0 }",
        "dashboard: { listen: off }",
        "budget: { requests_per_minute: unlimited }",
        "schedule: { default: { every: 5s, jitter_seconds: 0 } }",
        "companies:",
        ...numbers.map((one) => `  - { name: c${one}, token_env: TOKEN_${one}, resources: [${resources.join(", ")}] }`)
      ].join("\n")
    )
    const write = async () => {
      const company = chance.between(1, companies)
      await stand.reference.control("POST", "/records", {
        company,
        resource: "areas",
        records: [{ name: `area ${(writes += 1)}` }]
      })
    }
    const writing = (async () => {
      while (!writingEnds.signal.aborted) {
        await write()
        await sleep(200)
      }
    })()
    const fleet = new Fleet(stand, config, databaseUrl)
    for (let count = 0; count < processes; count++) fleet.start()
    await fleet.ownsAll(() => fleet.live.keys())

    for (let done = 0; done < disturbances; done++) {
      const kind = kinds[chance.between(0, kinds.length - 1)]!
      const victim = [...fleet.live.values()][chance.between(0, fleet.live.size - 1)]!
      const others = () => [...fleet.live.keys()].filter((pid) => pid !== victim.pid)
      const fromMs = performance.now()
      if (kind === "killed" || kind === "stopped") {
        victim.run.child.kill(kind === "killed" ? "SIGKILL" : "SIGTERM")
        const { code } = await victim.run.done
        if (kind === "stopped" && code !== 0) problems.push(`a stopped process ended with ${code}`)
        fleet.live.delete(victim.pid)
      } else if (kind === "suspended") await freeze(victim.pid)
      else {
        if (kind === "cut off") {
          const drawn = chance.below(1000)
          await stand.withClient(databaseUrl, (client) => cutOff(client, drawn))
        } else await stand.killPostgres(false)
        await fleet.losesSome()
      }
      const ms = await fleet.ownsAll(kind === "suspended" ? others : () => fleet.live.keys(), fromMs)
      unownedMs[kind].push(Math.round(ms))
      tell(`${done + 1}/${disturbances}: ${kind}, owned again after ${(ms / 1000).toFixed(1)} s`)
      if (kind === "suspended") {
        await sleep(Math.max(0, suspendedMs - ms))
        thaw(victim.pid)
      }
      if (kind === "killed" || kind === "stopped") fleet.start()
      for (const { pid, run } of fleet.live.values())
        if (run.child.exitCode !== null) problems.push(`process ${pid} ended with ${run.child.exitCode}`)
      await fleet.ownsAll(() => fleet.live.keys())
      await sleep(chance.between(0, 3000))
    }

    writingEnds.abort()
    await writing
    for (const { run } of fleet.live.values()) run.child.kill("SIGTERM")
    for (const { run } of fleet.live.values()) await run.done
    const last = await stand.start(["sync", "--config", config], {
      databaseUrl,
      baseUrl: stand.reference.baseUrl
    }).done
    if (last.code !== 0) problems.push(`the last sync ended with ${last.code}: ${last.stderr}`)
    let recordsCompared = 0
    const differences: Array<Difference> = []
    for (const company of numbers)
      for (const resource of resources) {
        const state = await stand.reference.lines(`/state?company=${company}&resource=${resource}`)
        recordsCompared += state.length
        differences.push(
          ...(await stand.withClient(databaseUrl, (client) => compare(client, company, resource, state, new Set())))
        )
      }
    problems.push(...differences.map(({ company, what, detail }) => `company ${company}: ${what}: ${detail}`))
    return { unownedMs, writes, recordsCompared, problems, seconds: (performance.now() - began) / 1000 }
  } finally {
    writingEnds.abort()
    await stand.close()
  }
}
