/**
 * A campaign of deliveries: real senders share the endpoints of one warehouse, and real receivers keep a journal of what
 * they accepted, while processes are killed, answers are lost, and an endpoint is down for virtual days.
 *
 * Promise: at the end each journal has every change of the feed. The first arrivals of a record's changes are in order. A
 * change that arrived again has the same id and the same bytes. Processes are ended by their own ids only.
 */
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Layer, Logger, ManagedRuntime, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as ChangeFeed from "../../src/changes/ChangeFeed.ts"
import * as EndpointSecrets from "../../src/delivery/EndpointSecrets.ts"
import * as EndpointStore from "../../src/delivery/EndpointStore.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import { makeCompany } from "../support/feeding.ts"
import { clockIs } from "../support/postgres.ts"
import { quantile } from "../bench/measuring.ts"
import { firstLineOf, startProgram } from "../support/servers.ts"
import type { Part } from "./Campaign.ts"

const key = "0123456789abcdef0123456789abcdef"
const recordsMax = 2_000
/** Virtual days must not end an endpoint. */
const retryHours = 24 * 30
/** Bounds of the delay from commit to delivery at 500 changes a second. */
const delayMsMax = { p50: 300, p99: 1_500 }
const drainedMinMs = 240_000
/** Time for a change until an endpoint counts as stuck. */
const drainedMsPerChange = 6
const changesPerSecond = 500
const landingsPerSecond = 5

const perLandingMeasured = changesPerSecond / landingsPerSecond

/** New records and their changes in one statement, so that the load itself costs little. */
const landing = (firstId: number) => `
  with model as (select to_jsonb(t) as row from erp.things t limit 1),
       added as (
         insert into erp.things
         select (jsonb_populate_record(null::erp.things, m.row || jsonb_build_object('id', n, '_version', 1))).*
           from model m cross join generate_series(${firstId}, ${firstId + perLandingMeasured - 1}) n returning id, "_company_id")
  insert into tributary.change_batches (company_id, resource, history, ids, changes, began)
  select "_company_id", 'things', '"erp_history"."things"', array_agg(id order by id), count(*), tributary.now()
    from added group by 1`

/** Programs of the campaign, which are ended by their own ids. */
class Processes {
  private readonly running = new Set<ChildProcess>()

  start(name: string, args: ReadonlyArray<string>): ChildProcess {
    const child = startProgram(new URL(`../support/${name}`, import.meta.url), args)
    this.running.add(child)
    child.once("exit", () => this.running.delete(child))
    return child
  }

  async kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, "exit")
    child.kill("SIGKILL")
    await ended
  }

  async close(): Promise<void> {
    for (const child of this.running) await this.kill(child)
  }
}

/** A receiver that can be killed and starts again at its address. */
class Receiver {
  port = 0
  child: ChildProcess | null = null

  readonly name: string
  readonly journal: string
  readonly secret: string
  private readonly processes: Processes

  constructor(name: string, journal: string, secret: string, processes: Processes) {
    this.name = name
    this.journal = journal
    this.secret = secret
    this.processes = processes
  }

  async start(faults: boolean): Promise<void> {
    const args = ["--port", String(this.port), "--journal", this.journal, "--secret", this.secret]
    this.child = this.processes.start("changeReceiver.ts", [...args, ...(faults ? ["--faults"] : [])])
    this.port = Number(await firstLineOf(this.child))
  }

  async kill(): Promise<void> {
    if (this.child !== null) await this.processes.kill(this.child)
    this.child = null
  }
}

interface Arrival {
  readonly arrivedMs: number
  readonly landedMs: number
  readonly message: string
  readonly change: string
  readonly record: string
  readonly position: number
  readonly checksum: string
}

const readJournal = (file: string): ReadonlyArray<Arrival> =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.split(" ").length === 9)
    .map((line) => {
      const [arrived, landed, message, change, resource, id, , position, checksum] = line.split(" ")
      return {
        arrivedMs: Number(arrived),
        landedMs: Number(landed),
        message: message!,
        change: change!,
        record: `${resource}/${id}`,
        position: Number(position),
        checksum: checksum!
      }
    })

/** What is wrong with the arrivals at an endpoint. */
const compare = (name: string, arrivals: ReadonlyArray<Arrival>, positions: ReadonlySet<number>, isBatch: boolean) => {
  const problems: Array<string> = []
  const first = new Map<string, Arrival>()
  const reached = new Map<string, number>()
  for (const one of arrivals) {
    const earlier = first.get(one.change)
    if (earlier !== undefined) {
      if (earlier.checksum !== one.checksum) problems.push(`${name}: ${one.change} arrived with other contents`)
      if (!isBatch && earlier.message !== one.message) problems.push(`${name}: ${one.change} arrived under another id`)
      continue
    }
    first.set(one.change, one)
    const before = reached.get(one.record) ?? -1
    if (one.position < before) problems.push(`${name}: ${one.record}: position ${one.position} after ${before}`)
    reached.set(one.record, Math.max(before, one.position))
  }
  const arrived = new Set([...first.values()].map(({ position }) => position))
  const missing = [...positions].filter((position) => !arrived.has(position))
  if (missing.length > 0) problems.push(`${name}: ${missing.length} changes are missing, the first is ${missing[0]}`)
  const foreign = [...arrived].filter((position) => !positions.has(position))
  if (foreign.length > 0) problems.push(`${name}: ${foreign.length} arrivals are not of the feed`)
  return { problems: problems.slice(0, 10), duplicates: arrivals.length - first.size }
}

const options = {
  changes: 200_000,
  /** Kills of senders and of receivers. */
  kills: 60,
  /** Virtual days for which an endpoint is down. */
  "down-days": 3,
  /** Seconds of 500 changes each, whose delay is measured at the end; 0: none. */
  latency: 20
}

export const deliveries: Part = {
  options,
  companies: () => [],
  run: async (campaign, given) => {
    const { chance, count, problem, stand, tell } = campaign
    const {
      changes,
      kills,
      "down-days": downDays,
      latency: latencySeconds
    } = given as Readonly<Record<keyof typeof options, number>>
    const processes = new Processes()
    stand.alsoClose(() => processes.close())
    const database = await stand.database()
    const warehouse = Layer.provideMerge(sqlLayer, Database.layerUrl(Redacted.make(database)))
    const runtime = ManagedRuntime.make(warehouse.pipe(Layer.provideMerge(Logger.layer([]))))
    const run = <A, E>(effect: Effect.Effect<A, E, SqlClient.SqlClient | Database>): Promise<A> =>
      runtime.runPromise(effect)
    const execute = <Row extends object>(text: string) =>
      run(Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text)))
    await run(Effect.scoped(Migrations.ensure()))
    /** The virtual time, in hours after the real one. */
    let offsetHours = 0
    const advance = async (hours: number) => {
      offsetHours += hours
      await execute(clockIs(`clock_timestamp() + interval ''${offsetHours} hours''`))
    }

    const receivers: Array<Receiver> = []
    for (const [name, batchMax] of [
      ["single", 1],
      ["batches", 100],
      ["down", 50]
    ] as const) {
      const secret = await Effect.runPromise(EndpointSecrets.generate)
      const receiver = new Receiver(name, stand.configure(`${name}.log`, ""), Redacted.value(secret), processes)
      await receiver.start(true)
      const definition = {
        name,
        url: `http://127.0.0.1:${receiver.port}/`,
        company: null,
        resources: null,
        operations: null,
        fields: null,
        batchMax,
        allowPrivate: true,
        retryHours
      }
      const sealed = await Effect.runPromise(EndpointSecrets.seal(name, Redacted.make(key), secret))
      await run(EndpointStore.add(definition, sealed, ChangeFeed.beginning))
      receivers.push(receiver)
    }
    const down = receivers[2]!
    await down.kill()

    let started = 0
    const startSender = () =>
      processes.start("changeSender.ts", ["--database", database, "--key", key, "--id", `sender-${(started += 1)}`])
    const senders = [startSender(), startSender()]

    let killed = 0
    const disturb = async () => {
      const kind = chance.below(3)
      killed += 1
      if (kind < 2) {
        const place = chance.below(senders.length)
        await processes.kill(senders[place]!)
        senders[place] = startSender()
      } else {
        const victim = receivers[chance.below(2)]!
        await victim.kill()
        await sleep(chance.between(0, 1500))
        await victim.start(true)
      }
    }
    const source = makeCompany(1n)
    let landed = 0
    const land = async (times: number) => {
      for (let index = 0; index < times; index += 1)
        source.put(chance.between(1, recordsMax), `name ${chance.below(1e9)}`)
      await run(source.sync())
      await run(ChangeFeed.order)
      const [row] = await execute<{ count: bigint }>("select last_position as count from tributary.change_feed")
      landed = Number(row!.count)
    }
    const perLanding = Math.min(1_500, Math.max(50, Math.ceil(changes / 40)))
    const everyMs = Math.max(300, (changes * 0.6) / Math.max(1, kills))
    const disturbing = (async () => {
      for (let left = kills; left > 0; left -= 1) {
        await sleep(chance.between(everyMs / 2, everyMs * 1.5))
        await disturb()
      }
    })()
    for (let landings = 0, days = 0; ; landings += 1) {
      await land(perLanding)
      if (landed >= changes && days >= downDays) break
      if (days < downDays && landed > (changes * (days + 1)) / (downDays + 2)) {
        days += 1
        await advance(24)
        tell(`virtual day ${days}: ${landed} changes landed, ${killed} kills`)
      }
      if (landings % 20 === 0) tell(`${landed} changes landed, ${killed} kills`)
    }
    await disturbing
    const [bounded] = (await run(EndpointStore.list)).filter(({ name }) => name === "down")
    if (Number(bounded!.waiting) > 1_200) problem(`${bounded!.waiting} changes wait for the endpoint that is down`)
    if (bounded!.state !== "active") problem(`the endpoint that is down is ${bounded!.state}`)
    await down.start(true)
    tell("the endpoint that was down is up")
    const giveUpAt = Date.now() + drainedMinMs + drainedMsPerChange * changes
    for (let drained = false; !drained;) {
      await sleep(1_000)
      const endpoints = await run(EndpointStore.list)
      drained = endpoints.every(({ lag, waiting }) => lag === 0n && waiting === 0n)
      // What failed is due soon. Each step of the clock ends the leases, too.
      if (!drained && endpoints.every(({ lag }) => lag === 0n)) await advance(5)
      if (!drained && Date.now() > giveUpAt) {
        problem(
          `not drained: ${endpoints.map(({ name, state, lag, waiting, dead }) => `${name} ${state} ${lag}/${waiting}/${dead}`).join(", ")}`
        )
        break
      }
    }
    tell("every change is delivered")
    const dead = await execute<{ count: bigint }>("select count(*) from tributary.change_retries where state = 'dead'")
    if (Number(dead[0]!.count) > 0) problem(`${dead[0]!.count} dead letters`)

    const measure = async () => {
      await execute(clockIs("clock_timestamp()"))
      for (const receiver of receivers) {
        await receiver.kill()
        await receiver.start(false)
      }
      await run(EndpointStore.pause("batches", "the measurement"))
      await run(EndpointStore.pause("down", "the measurement"))
      // The leases are of the virtual time.
      await execute("update tributary.change_endpoints set leased_until = null, next_attempt_at = null")
      await sleep(3_000)
      const { number: from } = await run(ChangeFeed.end)
      for (let index = 0; index < latencySeconds * landingsPerSecond; index += 1) {
        const next = performance.now() + 1000 / landingsPerSecond
        await execute(landing(recordsMax + 1 + index * perLandingMeasured))
        await sleep(Math.max(0, next - performance.now()))
      }
      await sleep(3_000)
      const delays = readJournal(receivers[0]!.journal)
        .filter(({ position }) => position > Number(from))
        .map(({ arrivedMs, landedMs }) => arrivedMs - landedMs)
      for (const name of ["batches", "down"]) await run(EndpointStore.resume(name, null))
      await sleep(5_000)
      for (const [name, share] of [
        ["p50", 0.5],
        ["p99", 0.99]
      ] as const) {
        const ms = quantile(delays, share)
        count(`ms from commit to delivery at ${changesPerSecond} changes a second, ${name}`, ms)
        if (ms > delayMsMax[name]) problem(`the delay is above its bound: ${name} ${ms} of ${delayMsMax[name]} ms`)
      }
    }
    if (latencySeconds > 0) await measure()
    const rows = await execute<{ position: bigint }>("select position from tributary.changes")
    const positions = new Set(rows.map(({ position }) => Number(position)))
    for (const { name, journal } of receivers) {
      const all = readJournal(journal)
      const found = compare(name, all, positions, name !== "single")
      for (const text of found.problems) problem(text)
      count("arrivals of a change again", found.duplicates)
      count(`arrivals at the endpoint ${name}`, all.length)
    }
    count("changes", positions.size)
    count("senders and receivers killed", killed)
    await runtime.dispose()
  }
}
