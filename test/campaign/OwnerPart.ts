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
import type { CommandRun } from "../support/reference.ts"
import { quantile } from "../bench/measuring.ts"
import { companiesYaml, numbersTo, type Part } from "./Campaign.ts"
import { freeze, type Stand, thaw } from "./Stand.ts"

/** How long a company may be without an owner after 99 of 100 disturbances. */
const promisedMs = { killed: 12_000, stopped: 3_000, suspended: 12_000, "cut off": 12_000, "Postgres killed": 12_000 }
type Kind = keyof typeof promisedMs
const kinds = Object.keys(promisedMs) as ReadonlyArray<Kind>

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

export const owners: Part = {
  options: { disturbances: 100, processes: 4, companies: 24 },
  companies: ({ companies }) => numbersTo(companies!),
  run: async (campaign, given) => {
    const { chance, count, problem, stand, tell } = campaign
    const [disturbances, processes] = [Math.max(1, given["disturbances"]!), Math.max(1, given["processes"]!)]
    const ids = numbersTo(given["companies"]!)
    const unownedMs = new Map<Kind, Array<number>>(kinds.map((kind) => [kind, []]))
    const writingEnds = new AbortController()
    stand.alsoClose(async () => writingEnds.abort())
    const databaseUrl = await stand.database()
    const config = stand.configure(
      "owners.yaml",
      `${companiesYaml(ids, resources)}
webhooks: { listen: 127.0.0.1:0 }
dashboard: { listen: off }
schedule: { default: { every: 5s, jitter_seconds: 0 } }
`
    )
    const writing = (async () => {
      for (let writes = 1; !writingEnds.signal.aborted; writes += 1) {
        const records = [{ name: `area ${writes}` }]
        await stand.reference.control("POST", "/records", { company: chance.pick(ids), resource: "areas", records })
        count("records written meanwhile")
        await sleep(200)
      }
    })()
    const fleet = new Fleet(stand, config, databaseUrl)
    for (let started = 0; started < processes; started++) fleet.start()
    await fleet.ownsAll(() => fleet.live.keys())

    for (let done = 0; done < disturbances; done++) {
      const kind = chance.pick(kinds)
      const victim = chance.pick([...fleet.live.values()])
      const others = () => [...fleet.live.keys()].filter((pid) => pid !== victim.pid)
      const fromMs = performance.now()
      if (kind === "killed" || kind === "stopped") {
        victim.run.child.kill(kind === "killed" ? "SIGKILL" : "SIGTERM")
        const { code } = await victim.run.done
        if (kind === "stopped" && code !== 0) problem(`a stopped process ended with ${code}`)
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
      unownedMs.get(kind)!.push(Math.round(ms))
      tell(`${done + 1}/${disturbances}: ${kind}, owned again after ${(ms / 1000).toFixed(1)} s`)
      if (kind === "suspended") {
        await sleep(Math.max(0, suspendedMs - ms))
        thaw(victim.pid)
      }
      if (kind === "killed" || kind === "stopped") fleet.start()
      for (const { pid, run } of fleet.live.values())
        if (run.child.exitCode !== null) problem(`process ${pid} ended with ${run.child.exitCode}`)
      await fleet.ownsAll(() => fleet.live.keys())
      await sleep(chance.between(0, 3000))
    }

    writingEnds.abort()
    await writing
    for (const { run } of fleet.live.values()) run.child.kill("SIGTERM")
    for (const { run } of fleet.live.values()) await run.done
    await campaign.settle(["sync", "--config", config], { databaseUrl, baseUrl: stand.reference.baseUrl })
    await campaign.compareAll(databaseUrl, "at the end", ids, resources)
    for (const [kind, all] of unownedMs) {
      if (all.length === 0) continue
      const slow = quantile(all, 0.99)
      count(`times ${kind}`, all.length)
      count(`median ms until owned again: ${kind}`, quantile(all, 0.5))
      count(`most ms until owned again: ${kind}`, quantile(all, 1))
      if (slow > promisedMs[kind]) problem(`${kind}: owned again after ${slow} ms, promised ${promisedMs[kind]} ms`)
    }
  }
}
