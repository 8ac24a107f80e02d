/**
 * The campaign of pushes: real `tributary push` processes against a real Postgres and a real server with faults in
 * between. They are killed with -9 again and again, and started again with the same arguments.
 *
 * Promise: for any kills, in the end every record has an outcome, the source holds every record of the files exactly
 * once and no other, and the warehouse shows it before and after one sync. No key was ever used for two requests or
 * sent before it was stored. The report contains every problem and the seed.
 */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { Chance } from "../fuzz/Chance.ts"
import type { CommandRun } from "../support/reference.ts"
import { type Moment, never, openTap, type Tap, type CommandWatch } from "../support/tap.ts"
import { auditHistory, auditRuns, compare } from "./Difference.ts"
import { openPushChaos, type Write } from "./PushChaos.ts"
import { differences } from "./PushDifference.ts"
import {
  change,
  csv,
  draw as drawRecord,
  type ExpectedRecord,
  type PushRecord,
  ndjson,
  poisoned,
  poisonMark,
  resource
} from "./PushFile.ts"
import { describePlace, draw, drawAtWork, type Place, watchFor } from "./PushPlaces.ts"
import { freeze, openStand, shareOf, thaw } from "./Stand.ts"

export interface PushCampaignOptions {
  readonly kills: number
  readonly postgresKills: number
  /** Number of records in the first files. More are created if these are pushed before the kills are over. */
  readonly records: number
  readonly seed: number
  readonly tell: (line: string) => void
}

export interface PushCampaignReport {
  readonly seed: number
  readonly seconds: number
  /** Number of faults of requests, by kind. */
  readonly chaos: Readonly<Record<string, number>>
  /** Number of kills, by the work of the process. */
  readonly killed: Readonly<Record<string, number>>
  readonly sums: Readonly<Record<string, number>>
  readonly problems: ReadonlyArray<string>
}

/** A dialect of the source, and a form of input. */
interface Variant {
  readonly name: string
  readonly dialect: { readonly batchStatus: "integer" | "text"; readonly uniqueExternalid: boolean }
  readonly form: "ndjson" | "csv" | "select"
}
const variants: ReadonlyArray<Variant> = [
  { name: "as documented", dialect: { batchStatus: "integer", uniqueExternalid: false }, form: "ndjson" },
  { name: "status of items as text", dialect: { batchStatus: "text", uniqueExternalid: false }, form: "csv" },
  { name: "externalid unique", dialect: { batchStatus: "integer", uniqueExternalid: true }, form: "select" }
]
const companyOf = (chapter: number) => 11 + chapter

/** Client timeout and number of attempts. One second is the smallest timeout that can be configured. */
const clientTimeoutSeconds = 1
const attemptsMax = 3
const keyLifeSeconds = 25 * 3600
/** The exit codes of a finished push: nothing rejected, or something. */
const ended = new Set<number | null>([0, 4])
const stopped = 5
const runsMax = 12
const pollMs = 100

interface Attempt extends Awaited<CommandRun["done"]> {
  /** Whether the process reached its place. */
  readonly isStruck: boolean
}

export const pushCampaign = async (options: PushCampaignOptions): Promise<PushCampaignReport> => {
  const { seed, tell } = options
  const began = process.hrtime.bigint()
  const seconds = () => Number(process.hrtime.bigint() - began) / 1e9
  const chance = new Chance(seed)
  const problems: Array<string> = []
  const problem = (text: string) => {
    problems.push(text)
    tell(`PROBLEM ${text}`)
  }
  const chaosCounts: Record<string, number> = {}
  const killed: Record<string, number> = {}
  const sums: Record<string, number> = {}
  const add = (to: Record<string, number>, what: string, times = 1) => (to[what] = (to[what] ?? 0) + times)
  const stand = await openStand(variants.map((_, chapter) => companyOf(chapter)))
  const { reference } = stand
  const closing: Array<() => Promise<void>> = []

  const chapter = async (
    number: number,
    variant: Variant,
    share: {
      readonly kills: number
      readonly served: number
      readonly postgresKills: number
      readonly records: number
    }
  ) => {
    const company = companyOf(number)
    const name = `c${company}`
    const token = stand.tokens.get(company)!
    const setting = {
      batchSize: chance.pick([5, 10, 25]),
      concurrency: chance.pick([2, 4, 8]),
      useBatch: chance.is(0.85)
    }
    tell(`chapter ${number + 1}, ${variant.name}: ${JSON.stringify(setting)}`)
    await reference.control("PUT", "/dialect", variant.dialect)
    const databaseUrl = await stand.database()
    const ask = <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
      stand.withClient(databaseUrl, async (client) => (await client.query<Row>(text, [...values])).rows)
    const config = stand.configure(
      `push-${number}.yaml`,
      `companies: [{ name: ${name}, token_env: TOKEN_${company}, resources: [${resource}] }]
budget: { requests_per_minute: unlimited }
requests: { timeout_seconds: ${clientTimeoutSeconds}, attempts_max: ${attemptsMax} }
push:
  batch_size: ${setting.batchSize}
  concurrency: ${setting.concurrency}
  use_batch: ${setting.useBatch}
webhooks: { listen: "127.0.0.1:0" }
schedule: { default: off }
dashboard: { listen: off }
`
    )
    const direct = { databaseUrl, baseUrl: reference.baseUrl }
    const settle = async (what: string, args: ReadonlyArray<string>) => {
      const run = await stand.start([...args, "--config", config, "--json"], direct).done
      if (run.code !== 0) problem(`${what} ended with ${run.code ?? run.signal}: ${run.stderr.slice(-1500)}`)
      return run
    }
    // Applies the migrations and creates the tables, so that only pushes are killed.
    await settle("the first sync", ["sync"])

    /** Checks that a request is in the ledger, with its key and its bytes, before it is sent. */
    const isStored = async ({ method, path, key, body }: Write) => {
      for (let tries = 1; ; tries += 1) {
        const rows = await ask<{ state: string; operation: string; body: string | null }>(
          "select state, operation, body from tributary.push_requests where idempotency_key = $1",
          [key]
        ).catch(() => null)
        if (rows === null && tries < 5) continue
        const [call] = rows ?? []
        if (rows === null) add(sums, "requests that could not be looked up in the ledger")
        else if (call === undefined)
          problem(`${method} ${path} was sent with the key ${key}, which is not in the ledger`)
        else if (call.state === "open" && (call.body ?? "") !== body)
          problem(`${method} ${path} was sent with other bytes than the ledger has: ${body} and ${call.body}`)
        else add(sums, "requests found in the ledger before they were sent")
        return
      }
    }
    const chaos = await openPushChaos({
      upstream: reference.baseUrl,
      chance: new Chance(chance.below(2 ** 31)),
      clientTimeoutMs: clientTimeoutSeconds * 1000,
      poisonMark,
      onFirst: isStored
    })
    closing.push(chaos.close)
    const tap = async (): Promise<Tap> => {
      const opened = await openTap({ baseUrl: chaos.baseUrl, databaseUrl })
      closing.push(opened.close)
      return opened
    }
    const taps = [await tap(), await tap()] as const

    // -------------------------------------------------------------------------------------------- the expected records
    const expected = new Map<string, ExpectedRecord>()
    let marks = 0
    const api = async (method: string, path: string, body?: unknown): Promise<unknown> => {
      const response = await fetch(`${reference.baseUrl}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
      return response.json()
    }

    /** Writes records in the input form of this chapter. Returns the arguments of the command that pushes them. */
    const give = async (
      records: ReadonlyArray<Partial<PushRecord>>,
      flags: ReadonlyArray<string>
    ): Promise<ReadonlyArray<string>> => {
      const file = `push-${number}-${(marks += 1)}`
      const words = ["push", resource, ...flags, "--company", name, "--config", config, "--json", "--from"]
      if (variant.form === "ndjson") return [...words, stand.configure(`${file}.ndjson`, ndjson(records))]
      if (variant.form === "csv") return [...words, stand.configure(`${file}.csv`, csv(records))]
      const columns = Object.keys(Object.assign({}, ...records) as object)
      const types: Readonly<Record<string, string>> = {
        estimatedhours: "numeric",
        offsetdays: "integer",
        assignrole: "boolean",
        parentitemid: "bigint"
      }
      // In a dataset that the role for queries may read.
      const view = `erp.${file.replaceAll("-", "_")}`
      await ask(
        `create table ${view} (place integer, ${columns.map((one) => `${one} ${types[one] ?? "text"}`).join(", ")})`
      )
      await ask(`insert into ${view} select * from json_populate_recordset(null::${view}, $1)`, [
        JSON.stringify(records.map((record, place) => ({ place, ...record })))
      ])
      return [...words, `select ${columns.join(", ")} from ${view} order by place`]
    }

    const drawCreates = (count: number): ReadonlyArray<PushRecord> => {
      const records = Array.from({ length: count }, () => drawRecord(chance, `${company}-${(marks += 1)}`))
      const poison = new Map([
        [chance.below(count), "unknown"],
        [chance.below(count), "refused"]
      ] as const)
      return records.map((record, place) => {
        const kind = poison.get(place) ?? null
        const one = kind === null ? record : poisoned(record, kind)
        expected.set(one.externalid, { record: one, poison: kind, changes: 0, isCancelled: false })
        return one
      })
    }
    const giveCreates = (count: number) => give(drawCreates(count), [])
    /** Inserts records by SQL. */
    const insertCreates = (count: number) =>
      ask(
        "insert into tributary.outbox (company, resource, record) select $1, $2, value from json_array_elements($3)",
        [name, resource, JSON.stringify(drawCreates(count))]
      )
    const isHealthy = (one: ExpectedRecord) => one.poison === null && !one.isCancelled
    const some = (count: number): ReadonlyArray<ExpectedRecord> => {
      const all = [...expected.values()].filter(isHealthy)
      return Array.from({ length: Math.min(count, all.length) }, () => all.splice(chance.below(all.length), 1)[0]!)
    }
    const giveUpdates = (count: number) => {
      const records = some(count).map((one, place) => {
        // One record in ten is pushed unchanged.
        if (place % 10 !== 9) {
          one.record = change(chance, one.record)
          one.changes += 1
        }
        const { externalid, description, estimatedhours, assignrole } = one.record
        return { externalid, description, estimatedhours, assignrole }
      })
      return give(records, ["--update"])
    }
    const giveCancels = (count: number) => {
      const records = some(count).map((one) => {
        one.isCancelled = true
        return { externalid: one.record.externalid }
      })
      return give(records, ["--cancel"])
    }

    /** Changes another field of a record, as another client, just before a push changes it. */
    const meddled = new Set<string>()
    const meddle = async (moment: Moment) => {
      if (moment.kind !== "request" || moment.stage !== "asked" || moment.method !== "PATCH") return
      const id = moment.path.slice(moment.path.lastIndexOf("/") + 1)
      if (meddled.has(id) || !chance.is(0.2)) return
      meddled.add(id)
      const before = (await api("GET", `/${resource}/${id}`)) as { readonly externalid: string }
      const offsetdays = 500 + chance.below(100)
      const one = expected.get(before.externalid)!
      one.record = { ...one.record, offsetdays }
      one.changes += 1
      await api("PATCH", `/${resource}/${id}`, { offsetdays })
      add(sums, "records changed by another client in between")
    }

    // ----------------------------------------------------------------------------------------------- running processes
    const attempt = async (
      through: Tap,
      args: ReadonlyArray<string>,
      place: Place | null,
      strike: (command: CommandRun, watched: CommandWatch) => Promise<void>,
      isDone: (() => Promise<boolean>) | null = null
    ): Promise<Attempt> => {
      const state = { isStruck: false }
      const isAt = place === null ? () => false : watchFor(place)
      const started = Promise.withResolvers<CommandRun>()
      const hit = async () => {
        state.isStruck = true
        await strike(await started.promise, watched)
      }
      const watched: CommandWatch = through.watch(async (moment) => {
        try {
          await meddle(moment)
          if (isAt(moment) && !state.isStruck) await hit()
        } catch (error) {
          problem(`the campaign itself failed: ${String(error)}`)
        }
      })
      const command = stand.start(args, through)
      add(sums, "processes started")
      started.resolve(command)
      if (place?.kind === "start") void hit()
      const timer = place?.kind === "time" ? setTimeout(() => void hit(), place.ms) : undefined
      if (place?.kind === "report") command.child.stdout!.once("data", () => void hit())
      if (isDone !== null) {
        while (command.child.exitCode === null && command.child.signalCode === null && !(await isDone())) {
          await sleep(pollMs)
        }
        command.child.kill("SIGTERM")
      }
      const end = await command.done
      clearTimeout(timer)
      return { ...end, isStruck: state.isStruck }
    }
    const kill =
      (place: Place) =>
      async ({ child }: CommandRun) => {
        if (child.kill("SIGKILL")) add(killed, describePlace(place))
        await never
      }
    const checkEnd = (run: Attempt) => {
      if (run.signal === "SIGKILL" || ended.has(run.code)) return
      if (run.code === stopped) {
        add(sums, "runs that stopped and continued later")
        tell(`  stopped: ${run.stderr.trim().split("\n").slice(0, 3).join(" | ")}`)
      } else problem(`a push ended with ${run.code ?? run.signal}: ${run.stderr.slice(-1500)}`)
    }
    const sumKilled = () => Object.values(killed).reduce((sum, times) => sum + times, 0)

    /** The source forgets the keys that are in use, and they become old by the clock of the warehouse. */
    const expire = async () => {
      await chaos.flush()
      await reference.control("POST", "/clock", { advanceSeconds: keyLifeSeconds })
      const aged = await ask(
        `update tributary.push_requests set created_at = created_at - make_interval(secs => $1) where state = 'open' returning id`,
        [keyLifeSeconds]
      )
      add(sums, "requests whose key had expired", aged.length)
    }

    /** Runs a push once, or two at once. True when one of them finished before its kill. */
    const live = async (args: ReadonlyArray<string>): Promise<boolean> => {
      chaos.shuffle()
      const way = chance.weighted([
        [70, "one"],
        [20, "two at once"],
        [10, "superseded"]
      ] as const)
      const runs: Array<Attempt> = []
      if (way === "one") {
        const place = draw(chance)
        runs.push(await attempt(taps[0], args, place, kill(place)))
      } else if (way === "two at once") {
        add(sums, "times two pushes ran at once")
        const places = [drawAtWork(chance), drawAtWork(chance)] as const
        runs.push(...(await Promise.all(places.map((place, which) => attempt(taps[which]!, args, place, kill(place))))))
      } else {
        /**
         * The first push is suspended and loses its connections, and another one acquires its lane. Then the first is
         * resumed, until both are killed.
         */
        const other: { attempt: Promise<Attempt> | null } = { attempt: null }
        const first = await attempt(taps[0], args, drawAtWork(chance), async ({ child }, watched) => {
          add(sums, "times a push was superseded and resumed")
          await freeze(child.pid!)
          await ask(
            `select pg_terminate_backend(pid, 5000) from pg_stat_activity
              where client_port = any($1::int[]) and pid <> pg_backend_pid()`,
            [watched.databasePorts()]
          )
          const reached = Promise.withResolvers<void>()
          const after = chance.between(300, 3_000)
          other.attempt = attempt(taps[1], args, drawAtWork(chance), async (second) => {
            reached.resolve()
            setTimeout(() => {
              for (const one of [child, second.child])
                if (one.kill("SIGKILL")) add(killed, "superseded, and the process that superseded it")
            }, after)
          })
          await Promise.race([reached.promise, other.attempt])
          thaw(child.pid!)
        })
        runs.push(first)
        const second = await other.attempt
        if (second !== null) runs.push(second)
      }
      for (const run of runs) checkEnd(run)
      return runs.some(({ code }) => ended.has(code))
    }

    /** Whether no row is pending or in flight. */
    const isOver = async () => {
      const [left] = await ask<{ n: string }>(
        "select count(*) as n from tributary.outbox where state in ('pending', 'in_flight')"
      )
      return left!.n === "0"
    }
    const finish = async (args: ReadonlyArray<string>) => {
      for (let runs = 1; ; runs += 1) {
        chaos.shuffle()
        const run = await attempt(taps[0], args, null, async () => {})
        checkEnd(run)
        if (ended.has(run.code)) break
        if (run.code !== stopped || runs === runsMax) return problem(`a push does not finish: ${run.stderr}`)
      }
      if (!(await isOver())) problem("a push reports that it is finished, and records are pending")
    }

    /** Kills processes until so many kills have happened. Pushes new records when a push finishes before. */
    const storm = async (kills: number, next: () => Promise<ReadonlyArray<string>>): Promise<ReadonlyArray<string>> => {
      let args = await next()
      const until = sumKilled() + kills
      let hasExpired = false
      for (let idle = 0; sumKilled() < until; idle += 1) {
        const before = sumKilled()
        const isAtEnd = await live(args)
        if (sumKilled() > before) idle = 0
        if (idle > 10) {
          problem("pushes end before they can be killed")
          break
        }
        const open = await ask("select 1 from tributary.push_requests where state = 'open'")
        if (open.length > 0 && (!hasExpired || chance.is(0.1))) {
          hasExpired = true
          await expire()
        }
        if (isAtEnd && sumKilled() < until) {
          await finish(args)
          args = await next()
        }
      }
      await finish(args)
      return args
    }

    /** Repeats a finished push: it sends nothing and still reports rejected records. */
    const giveAgain = async (args: ReadonlyArray<string>) => {
      const run = await stand.start(args, direct).done
      const report = JSON.parse(run.stdout === "" ? "{}" : run.stdout) as { readonly calls?: { readonly sent: number } }
      if (run.code !== 4 || report.calls?.sent !== 0)
        problem(`the same records pushed again: ${run.code ?? run.signal}, ${run.stdout} ${run.stderr.slice(-1500)}`)
    }

    const countFirst = Math.max(30, share.records)
    const creates = Math.ceil(share.kills * 0.65)
    const updates = Math.ceil((share.kills - creates) * 0.6)
    let isFirst = true
    const last = await storm(creates, () => {
      const count = isFirst ? countFirst : 150
      isFirst = false
      return giveCreates(count)
    })
    await giveAgain(last)
    tell(`  records are created; ${sumKilled()} killed so far, ${seconds().toFixed(0)} s`)
    await storm(updates, () => giveUpdates(30))
    await storm(share.kills - creates - updates, () => giveCancels(12))
    tell(`  records are changed and cancelled; ${sumKilled()} killed so far, ${seconds().toFixed(0)} s`)

    // Rows that were inserted by SQL belong to no push: serve sends them, and serve does not end without a signal.
    const serve = ["serve", "--config", config, "--json"]
    const checkServe = ({ code, signal, stderr }: Attempt) => {
      if (code !== 0 && signal !== "SIGKILL") problem(`serve ended with ${code ?? signal}: ${stderr.slice(-1500)}`)
    }
    for (let kills = 0; kills < share.served;) {
      await insertCreates(20)
      const before = sumKilled()
      const place = drawAtWork(chance)
      checkServe(await attempt(taps[0], serve, place, kill(place), isOver))
      kills += sumKilled() > before ? 1 : 0
    }
    if (share.served > 0) checkServe(await attempt(taps[0], serve, null, async () => {}, isOver))

    for (let kills = 0; kills < share.postgresKills; kills += 1) {
      const args = await giveCreates(40)
      const place: Place = chance.is(0.5)
        ? { kind: "write", number: chance.between(1, 3), stage: "answered" }
        : { kind: "transaction", number: chance.between(2, 5), stage: chance.pick(["commit", "committed"] as const) }
      const postgres: { restarted: Promise<void> | null } = { restarted: null }
      const run = await attempt(taps[0], args, place, async () => {
        postgres.restarted = stand.killPostgres(chance.is(0.5))
      })
      await postgres.restarted
      add(sums, run.isStruck ? "times Postgres was killed and started again" : "times Postgres was killed too late")
      if (run.code === 0 || run.code === 4) add(sums, "pushes that continued when Postgres was back")
      checkEnd(run)
      await finish(args)
    }
    // The next push closes the requests that the last killed one left open.
    await finish(await giveCreates(10))
    await chaos.flush()

    // -------------------------------------------------------------------------------------------------- the comparison
    for (const text of chaos.misused) problem(text)
    for (const [what, times] of chaos.counts) add(chaosCounts, what, times)

    interface Row {
      readonly externalid: string
      readonly operation: string
      readonly state: string
      readonly outcome: string | null
      readonly code: string | null
      readonly field: string | null
      readonly reason: string | null
      readonly differences: unknown
      readonly record_id: string | null
    }
    const rows = await ask<Row>("select * from tributary.outbox order by id")
    const keys = new Set<string>()
    for (const row of rows) {
      const { externalid, operation, state, outcome, code, field, reason } = row
      const one = expected.get(externalid)
      const shown = `${operation} of ${externalid} is ${state}`
      if (operation === "create") keys.add(externalid)
      add(sums, state === "done" ? `records ${outcome}` : `records ${state}`)
      if (one === undefined) problem(`${shown}, and was in no push`)
      else if (one.poison === null) {
        if (state !== "done") problem(`${shown} (${code}, ${field}): ${reason}`)
        else if (row.differences !== null && JSON.stringify(row.differences) !== "[]")
          problem(`${shown}, with differences: ${JSON.stringify(row.differences)}`)
        else if (row.record_id === null) problem(`${shown} and has no id`)
      } else {
        const expectedError =
          one.poison === "unknown" ? ["unknown_value", "parentitemid"] : ["rule_violation", "description"]
        if (state !== "rejected" || code !== expectedError[0] || field !== expectedError[1])
          problem(`${shown} with ${code}, ${field} instead of ${expectedError.join(", ")}`)
      }
    }
    for (const key of expected.keys()) if (!keys.has(key)) problem(`${key} was pushed and is not in the outbox`)
    const exported = stand.configure(`refused-${number}.ndjson`, "")
    rmSync(exported)
    const [firstPush] = await ask<{ id: string; n: string }>(
      `select p.id, (select count(*) from tributary.outbox o where o.push_id = p.id and o.state = 'rejected') as n
         from tributary.pushes p order by p.id limit 1`
    )
    await settle("export-refused", ["push", "export-refused", firstPush!.id, "--to", exported])
    const lines = existsSync(exported) ? readFileSync(exported, "utf8").trimEnd().split("\n") : []
    if (
      lines.length !== Number(firstPush!.n) ||
      lines.some((line) => !/"_code":"[a-z_]+".*"_field":"[a-z]+"/.test(line))
    )
      problem(`${firstPush!.n} records of the first push were rejected, and the export has: ${lines.join("\n")}`)
    for (const { id, state, left } of await ask<{ id: string; state: string; left: boolean }>(
      "select id, state, body is not null as left from tributary.push_requests where state = 'open' or body is not null"
    ))
      problem(`call ${id} is ${state}${left ? " and keeps its body" : ""}`)
    for (const { id } of await ask<{ id: string }>("select id from tributary.pushes where finished_at is null"))
      problem(`push ${id} is not finished`)

    const of = `company=${company}&resource=${resource}`
    const state = await reference.lines(`/state?${of}`)
    const history = await reference.lines(`/history?${of}`)
    add(sums, "records compared with the source", state.length)
    for (const text of differences(expected.values(), state, history, (key) => key.startsWith(`push-${company}-`)))
      problem(`chapter ${number + 1}: ${text}`)

    // Before a sync: every written record is in the warehouse already, as it was answered.
    const shown = await ask<{ externalid: string; origin: string }>(
      `select externalid, _origin as origin from erp.${resource} where _company_id = $1 and _deleted_at is null and externalid like 'push-%'`,
      [company]
    )
    const inWarehouse = new Set(shown.map(({ externalid }) => externalid))
    for (const { record, poison } of expected.values()) {
      if (poison === null && !inWarehouse.has(record.externalid))
        problem(`${record.externalid} is not in the warehouse before a sync`)
    }
    for (const { origin } of shown) add(sums, `records in the warehouse by ${origin}`)
    if (shown.filter(({ origin }) => origin === "push").length < shown.length / 2)
      problem("most records reached the warehouse by another way than the push")
    await stand.withClient(databaseUrl, async (client) => {
      // The sync finds changes that another client made after the response.
      const apart = new Set([...meddled].map(Number))
      for (const { what, detail } of await compare(client, company, resource, state, apart))
        problem(`before the last sync: ${what}: ${detail}`)
    })
    await settle("the last sync", ["sync"])
    await stand.withClient(databaseUrl, async (client) => {
      for (const { what, detail } of await compare(client, company, resource, state, new Set()))
        problem(`after the last sync: ${what}: ${detail}`)
      for (const { what, detail } of [...(await auditRuns(client)), ...(await auditHistory(client, resource))])
        problem(`${what}: ${detail}`)
    })
  }

  try {
    for (const [number, variant] of variants.entries()) {
      const kills = shareOf(options.kills, variants.length, number)
      const served = Math.floor(kills / 6)
      await chapter(number, variant, {
        kills: kills - served,
        served,
        postgresKills: shareOf(options.postgresKills, variants.length, number),
        records: shareOf(options.records, variants.length, number)
      })
      tell(`  chapter ${number + 1} is over after ${seconds().toFixed(0)} s`)
      for (const close of closing.splice(0)) await close()
    }
  } finally {
    for (const close of closing.splice(0)) await close()
    await stand.close()
  }
  return { seed, seconds: seconds(), chaos: chaosCounts, killed, sums, problems }
}
