/**
 * The campaign of webhooks: the reference server sends the events of all changes, in order, over HTTPS, through a chaos
 * proxy. The receiver and Postgres are killed.
 *
 * Promise: no scheduled sync runs. When every acknowledged event is processed, the warehouse may differ from the source
 * in two ways only: in records with an event that the sender gave up, and at the company whose subscription the sender
 * disabled because no delivery arrived there. After one reconcile there is no difference. Forged deliveries are
 * answered 401 and change nothing. No row ever had a version that the source did not have. The report contains every
 * problem and the seed, and every expected fault that did not happen.
 */
import * as Duration from "effect/Duration"
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { Effect, Layer } from "effect"
import * as TablePlan from "../../src/warehouse/TablePlan.ts"
import { syncResource } from "../../src/sync/SyncResource.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import { compare as compareByVerify } from "../../src/verify/Compare.ts"
import { childrenOf } from "../../src/warehouse/Table.ts"
import * as Reconcile from "../../src/reconcile/Reconcile.ts"
import { Chance } from "../fuzz/Chance.ts"
import { freePort } from "../support/freePort.ts"
import { type Chaos, doomedFate, type Moment, openChaos } from "./Chaos.ts"
import { auditHistory, auditRuns, compare, invented } from "./Difference.ts"
import { company, events, resources, type Settings, settingsVariable, source, tables, warehouse } from "./Receiving.ts"
import { freeze, openStand, thaw } from "./Stand.ts"

export interface WebhookCampaignOptions {
  /** Number of attempts of the sender. */
  readonly deliveries: number
  readonly kills: number
  readonly postgresKills: number
  readonly companies: number
  readonly seed: number
  readonly tell: (line: string) => void
}

export interface WebhookCampaignReport {
  readonly seed: number
  readonly seconds: number
  /** Number of faults of deliveries, by kind. */
  readonly counts: Readonly<Record<string, number>>
  /** Forged deliveries by kind, with the number of each answer. */
  readonly forged: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly sums: Readonly<Record<string, number>>
  readonly problems: ReadonlyArray<string>
}

const receiverProgram = fileURLToPath(new URL("./receive.ts", import.meta.url))
const pollMs = 50
/** How long Postgres is suspended before the receiver is killed. */
const standStillMs = 300
/** Number of writes at a company whose sender has sent everything. */
const writesPerRound = 30
/**
 * From this share of the attempts on, no delivery reaches one of the companies, until its sender disables the
 * subscription.
 */
const shutAfter = 0.6
/** Number of cycles without an attempt that end the storm. */
const idleCyclesMax = 20
/** The minimum share of forged deliveries in a valid campaign. */
const forgedLeast = 0.08

const receiverKills = "kills of the receiver"
const stillReceiverKills = "kills of the receiver while Postgres was suspended"
const postgresKills = "kills of the postgres"
const unavailable = "answers of 503 while Postgres was killed"
const givenUp = "events given up by the sender"
const differedBefore = "records that differed before the reconcile"
const disabledSum = "subscriptions that the sender disabled"

const settleMaxMs = 180_000
const reconcilesMax = 3

type Values = Readonly<Record<string, unknown>>

/** An attempt in the delivery log of the control plane. */
interface Attempt {
  readonly webhookid: number
  readonly delivered: boolean
  readonly abandoned: boolean
}

// ------------------------------------------------------------------------------------------------------------ the source

/** The changes at the source, made through the API, so that events fire. */
const openWriter = async (baseUrl: string, token: string, chance: Chance) => {
  const ids = new Map<string, Array<number>>(resources.map((path) => [path, []]))
  let word = 0
  const call = async (method: string, path: string, body?: Values): Promise<Values> => {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return JSON.parse(text) as Values
  }
  const fresh = () =>
    `${(word += 1)} ${chance.pick(["plain", "tab\there", 'a "quoted" one', "żółw 🐢", "back\\slash"])}`
  const amount = () => `${chance.between(1, 90_000)}.${String(chance.below(10_000)).padStart(4, "0")}`
  const one = (path: string) => chance.pick(ids.get(path)!)

  const bodyOf: Readonly<Record<string, () => Values>> = {
    salesmen: () => ({ name: `S ${fresh()}` }),
    customers: () => ({ customercode: `C${(word += 1)}`, name: fresh() }),
    items: () => ({ sku: `I${(word += 1)}`, description: fresh(), price: amount() }),
    vendors: () => ({ vendorcode: `V${(word += 1)}`, name: fresh() }),
    areas: () => ({ name: `A ${fresh()}` }),
    orders: () => ({
      ordertype: "fulfillment",
      customerid: one("customers"),
      lines: Array.from({ length: chance.between(1, 3) }, () => ({
        itemid: one("items"),
        qtyorder: String(chance.between(1, 50)),
        priceach: amount()
      }))
    })
  }
  const changeOf: Readonly<Record<string, () => Values>> = {
    salesmen: () => ({ phone1: fresh().slice(0, 20) }),
    customers: () => ({ name: fresh() }),
    items: () => ({ description: fresh(), price: amount() }),
    vendors: () => ({ name: fresh() }),
    areas: () => ({ applicationfee: amount() }),
    orders: () => ({ externalid: `${(word += 1)}` }),
    orderlines: () => ({ description: fresh(), qtyorder: String(chance.between(1, 50)) })
  }

  const make = async (path: string) => {
    const made = await call("POST", `/${path}`, bodyOf[path]!())
    ids.get(path)!.push(Number(made["id"]))
    if (path !== "orders") return
    const { data } = (await call("GET", `/orderlines?orderid=${String(made["id"])}`)) as { data: ReadonlyArray<Values> }
    ids.get("orderlines")!.push(...data.map(({ id }) => Number(id)))
  }
  const change = (path: string, id: number) => call("PATCH", `/${path}/${id}`, changeOf[path]!())

  const write = async (made: string, changed: string) => {
    const what = chance.weighted([
      [10, "change"],
      [3, "make"],
      [1, "cancel"],
      [1, "change again and again"]
    ] as const)
    if (what === "make") return make(made)
    if (what === "cancel") {
      const path = chance.pick(["salesmen", "vendors", "areas"])
      const existing = ids.get(path)!
      if (existing.length > 5) await call("DELETE", `/${path}/${existing.splice(chance.below(existing.length), 1)[0]}`)
      return
    }
    const id = one(changed)
    for (let times = what === "change" ? 1 : chance.between(2, 5); times > 0; times -= 1) await change(changed, id)
  }
  for (const [path, count] of [
    ["salesmen", 20],
    ["customers", 30],
    ["items", 30],
    ["vendors", 15],
    ["areas", 15],
    ["orders", 20]
  ] as const) {
    for (let made = 0; made < count; made += 1) await make(path)
  }
  /** Changes several records of one resource and creates some of another. */
  const writeSome = async () => {
    const [made, changed] = [chance.pick(Object.keys(bodyOf)), chance.pick(Object.keys(changeOf))]
    for (let times = writesPerRound; times > 0; times -= 1) await write(made, changed)
  }
  return { call, writeSome }
}

// ---------------------------------------------------------------------------------------------------------- the campaign

type PlannedFaults = Pick<WebhookCampaignOptions, "deliveries" | "kills" | "postgresKills" | "companies">

/** The expected faults that did not happen in this campaign. */
export const weaknesses = (planned: PlannedFaults, did: Readonly<Record<string, number>>): ReadonlyArray<string> => {
  const of = (what: string) => did[what] ?? 0
  const attempts = of("attempts of the sender")
  const receivers = of(receiverKills) + of(stillReceiverKills)
  const missing: Array<string> = []
  const expect = (isSo: boolean, otherwise: string) => {
    if (!isSo) missing.push(otherwise)
  }
  expect(attempts >= planned.deliveries, `${attempts} attempts of ${planned.deliveries}`)
  expect(receivers === planned.kills, `${receivers} kills of receivers of ${planned.kills}`)
  expect(
    of(postgresKills) === planned.postgresKills,
    `${of(postgresKills)} kills of Postgres of ${planned.postgresKills}`
  )
  expect(of("forged") >= forgedLeast * attempts, `${of("forged")} forgeries on ${attempts} attempts`)
  expect(of(doomedFate) > 0, "no event was doomed")
  expect(of(givenUp) > 0, "no event was given up by the sender")
  expect(of(differedBefore) > 0, "the reconcile had nothing to repair")
  expect(planned.postgresKills === 0 || of(unavailable) > 0, "nothing was answered 503 while Postgres was killed")
  expect(planned.companies === 1 || of(disabledSum) > 0, "no subscription was disabled by the sender")
  return missing
}

export const webhookCampaign = async (options: WebhookCampaignOptions): Promise<WebhookCampaignReport> => {
  const { seed, tell } = options
  const began = process.hrtime.bigint()
  const chance = new Chance(seed)
  const problems: Array<string> = []
  const problem = (text: string) => {
    problems.push(text)
    tell(`PROBLEM ${text}`)
  }
  const ids = Array.from({ length: options.companies }, (_, place) => place + 1)
  const nameOf = (id: number) => `c${id}`
  const sums: Record<string, number> = {}
  const stand = await openStand(ids)
  let chaos: Chaos | null = null
  let receiver: ChildProcess | null = null
  let isOver = false
  try {
    const { reference, tokens } = stand
    await reference.control("PUT", "/limits", { allowPrivateReceivers: true })
    const databaseUrl = await stand.database()
    const ask = <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
      stand.withClient(databaseUrl, async (client) => (await client.query<Row>(text, [...values])).rows)
    const port = await freePort()
    /** The kills in their order, each with the delivery at which it happens. */
    const strikes: Array<{
      readonly from: number
      readonly victim: "receiver" | "postgres"
      readonly at: Moment
      readonly isStill: boolean
    }> = []
    const strikeAt = (victim: "receiver" | "postgres", times: number) => {
      const share = options.deliveries / Math.max(1, times)
      for (let time = 0; time < times; time += 1) {
        const from = Math.floor(share * (time + 0.1 + 0.8 * chance.next()))
        const isStill = victim === "receiver" ? time % 3 === 1 : chance.is(0.5)
        strikes.push({ from, victim, at: time % 3 === 0 ? "answered" : "written", isStill })
      }
    }
    strikeAt("receiver", options.kills)
    strikeAt("postgres", options.postgresKills)
    strikes.sort((one, other) => one.from - other.from)
    /** The recovery that must finish before the sender continues, as it would by its next cycle. */
    let recovering: Promise<unknown> = Promise.resolve()
    chaos = await openChaos({
      companies: ids.map(nameOf),
      receiverPort: port,
      seed: chance.below(2 ** 31),
      onMoment: (count, moment) => {
        const [strike] = strikes
        if (strike === undefined || count < strike.from || strike.at !== moment || isOver) return
        strikes.shift()
        const { victim, isStill } = strike
        const what = victim === "postgres" ? postgresKills : isStill ? stillReceiverKills : receiverKills
        sums[what] = (sums[what] ?? 0) + 1
        const struck = victim === "postgres" ? killPostgres(isStill) : isStill ? killWhileStill() : killReceiver()
        recovering = Promise.all([recovering, struck])
        // A failure is handled where the promise is awaited.
        recovering.catch(() => undefined)
      }
    })
    const proxy = chaos
    await reference.control("POST", "/trust", { caPem: proxy.caPem })

    const writers = await Promise.all(
      ids.map(async (id) => {
        const name = nameOf(id)
        const writer = await openWriter(reference.baseUrl, tokens.get(id)!, new Chance(chance.below(2 ** 31)))
        const made = await writer.call("POST", "/webhooks", { url: `${proxy.url}/hooks/${name}`, events })
        proxy.secrets.set(name, String(made["secret"]))
        return { ...writer, webhookId: Number(made["id"]) }
      })
    )
    const settings: Settings = {
      databaseUrl,
      baseUrl: reference.baseUrl,
      port,
      companies: ids.map((id) => ({
        name: nameOf(id),
        token: tokens.get(id)!,
        secret: proxy.secrets.get(nameOf(id))!
      }))
    }

    /** Runs an effect within the installation, each time with connections of its own. */
    const within = <A, E>(effect: Effect.Effect<A, E, Layer.Success<ReturnType<typeof warehouse> | typeof source>>) =>
      Effect.runPromise(effect.pipe(Effect.provide(Layer.merge(warehouse(databaseUrl), source))))

    const reconcileAll = async () => {
      let open = 0
      for (const one of settings.companies) {
        const result = await within(
          Effect.flatMap(company(settings, one), (made) =>
            // This source shows what it has committed at once: one read proves a gap closed.
            Reconcile.reconcile(
              { ...made, engine: { ...made.engine, overlap: Duration.zero } },
              { url: `${proxy.url}/hooks/${one.name}` }
            )
          )
        )
        if (result._tag !== "Checked") throw new Error(`the check was not made: ${result._tag}`)
        sums["gaps closed"] = (sums["gaps closed"] ?? 0) + result.closed.length
        for (const note of result.notes) tell(`  ${one.name}: ${note}`)
        open += result.open
      }
      return open
    }

    await within(Effect.andThen(Migrations.migrate(), TablePlan.apply([...tables.values()])))
    for (const [place, one] of settings.companies.entries()) {
      for (const table of tables.values()) {
        const outcome = await within(
          Effect.flatMap(company(settings, one), ({ connector }) =>
            syncResource(
              { companyId: BigInt(ids[place]!), connector, table, children: childrenOf(tables, table.resource.path) },
              { batchRecordsMax: 2_500 }
            )
          )
        )
        if (outcome.failure !== null) throw new Error(outcome.failure.message)
      }
    }
    // The first check stores that nothing was delivered before the subscription.
    for (let left = reconcilesMax; (await reconcileAll()) > 0; left -= 1) {
      if (left === 0) throw new Error("the gaps before the subscriptions are not closed")
    }
    sums["gaps closed"] = 0

    async function killPostgres(andChildren: boolean): Promise<void> {
      const answered = () => proxy.counts.get("answered 503") ?? 0
      const before = answered()
      const killed = stand.killPostgres(andChildren)
      await Promise.all([killed, proxy.replayDuring(killed)])
      sums[unavailable] = (sums[unavailable] ?? 0) + answered() - before
    }
    async function killReceiver(): Promise<void> {
      receiver?.kill("SIGKILL")
      await startReceiver()
    }
    /** A receiver that acknowledges before it stores loses the events then. */
    async function killWhileStill(): Promise<void> {
      const backends = await ask<{ pid: number }>(
        "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
      )
      for (const { pid } of backends) await freeze(pid)
      await sleep(standStillMs)
      receiver?.kill("SIGKILL")
      await sleep(pollMs)
      for (const { pid } of backends) thaw(pid)
      await startReceiver()
    }
    async function startReceiver(): Promise<void> {
      if (receiver !== null && receiver.exitCode === null && receiver.signalCode === null) {
        await new Promise((resolve) => receiver!.once("exit", resolve))
      }
      const child = spawn(process.execPath, [receiverProgram], {
        env: { PATH: process.env["PATH"], [settingsVariable]: JSON.stringify(settings) },
        stdio: ["pipe", "pipe", "ignore"]
      })
      receiver = child
      await new Promise<void>((resolve, reject) => {
        createInterface({ input: child.stdout }).once("line", () => resolve())
        child.once("exit", (code, signal) =>
          signal === "SIGKILL" ? resolve() : reject(new Error(`the receiver ended with ${code}`))
        )
      })
    }
    const isReady = () =>
      fetch(`http://127.0.0.1:${port}/readyz`).then(
        ({ ok }) => ok,
        () => false
      )
    const awaitRecovery = async () => {
      for (let waited: unknown = null; waited !== recovering;) {
        waited = recovering
        await recovering
      }
      while (!(await isReady())) await sleep(pollMs)
    }
    await startReceiver()
    tell(`${ids.length} companies are ready after ${(Number(process.hrtime.bigint() - began) / 1e9).toFixed(0)} s`)

    // ---------------------------------------------------------------------------------------------------------- the storm
    /** Runs one cycle of the sender. Returns the number of its attempts, and the subscriptions with events left. */
    const cycle = async () => {
      await awaitRecovery()
      const { attempts } = (await reference.control("POST", "/cycle")) as { readonly attempts: ReadonlyArray<Attempt> }
      sums[givenUp] = (sums[givenUp] ?? 0) + attempts.filter(({ abandoned }) => abandoned).length
      const last = new Map(attempts.map(({ webhookid, delivered }) => [webhookid, delivered]))
      return { count: attempts.length, behind: [...last].flatMap(([id, delivered]) => (delivered ? [] : [id])) }
    }
    let reportedAttempts = 0
    let idle = 0
    let behind: ReadonlyArray<number> = []
    const closing = ids.length > 1 ? nameOf(ids.at(-1)!) : null
    while (proxy.attempts() < options.deliveries && idle < idleCyclesMax) {
      if (closing !== null && proxy.attempts() >= options.deliveries * shutAfter) proxy.shut(closing)
      // Records change while events are on their way.
      const writing = writers.map(({ writeSome, webhookId }) => (behind.includes(webhookId) ? null : writeSome()))
      const [done] = await Promise.all([cycle(), ...writing])
      behind = done.behind
      idle = done.count === 0 ? idle + 1 : 0
      if (proxy.attempts() - reportedAttempts < options.deliveries / 10) continue
      reportedAttempts = proxy.attempts()
      tell(`  ${reportedAttempts} attempts after ${(Number(process.hrtime.bigint() - began) / 1e9).toFixed(0)} s`)
    }
    while ((await cycle()).count > 0);
    isOver = true
    await awaitRecovery()
    await proxy.flush()
    const disabled = new Set<number>()
    for (const [place, { call }] of writers.entries()) {
      const { data } = (await call("GET", "/webhooks")) as { readonly data: ReadonlyArray<Values> }
      if (data.some((one) => one["disableddate"] !== null)) disabled.add(ids[place]!)
    }
    sums[disabledSum] = disabled.size

    // --------------------------------------------------------------------------------------------------------- the checks
    /** Waits until a query finds no more rows. */
    const none = async (what: string, query: string) => {
      const endsAt = process.hrtime.bigint() + BigInt(settleMaxMs) * 1_000_000n
      for (;;) {
        const left = await ask(`${query} limit 5`)
        if (left.length === 0) return
        if (process.hrtime.bigint() > endsAt) return problem(`${what}: ${JSON.stringify(left)}`)
        await sleep(pollMs)
      }
    }
    const awaitInbox = () =>
      none("events are still pending", "select event_type, last_error from tributary.inbox where state = 'pending'")
    await awaitInbox()
    sums["seconds until everything was processed"] = Number(process.hrtime.bigint() - began) / 1e9

    interface InboxRow {
      readonly company: string
      readonly event_id: string
      readonly state: string
      readonly record: string
      readonly body: Buffer
      readonly reason: string | null
    }
    const inbox = await ask<InboxRow>(
      "select company, event_id, state, resource || ' ' || record_id as record, body, coalesce(resolution, last_error) as reason from tributary.inbox"
    )
    for (const { company: name, sent, passed, acknowledged } of proxy.lanes.values()) {
      const rowsById = new Map<string, InboxRow>()
      for (const one of inbox.filter((row) => row.company === name)) {
        if (rowsById.has(one.event_id)) problem(`${name}: ${one.event_id} is in the inbox twice`)
        rowsById.set(one.event_id, one)
        const real = sent.get(one.event_id)
        if (real === undefined) problem(`${name}: ${one.event_id} is in the inbox, and was never sent`)
        else if (!real.equals(one.body)) problem(`${name}: ${one.event_id} is in the inbox with another body`)
        else if (!passed.has(one.event_id)) problem(`${name}: ${one.event_id} was never passed on`)
      }
      for (const id of acknowledged) {
        const one = rowsById.get(id)
        if (one === undefined) problem(`${name}: ${id} was acknowledged and is lost`)
        else if (one.state !== "done") problem(`${name}: ${id} was acknowledged and is ${one.state}: ${one.reason}`)
      }
      sums["events sent"] = (sums["events sent"] ?? 0) + sent.size
      sums["events acknowledged"] = (sums["events acknowledged"] ?? 0) + acknowledged.size
    }
    for (const [kind, answers] of proxy.forged) {
      for (const [status, times] of answers) {
        if (status !== "401" && status !== "503" && status !== "not at all")
          problem(`forged (${kind}) was answered ${status}, ${times} times`)
      }
    }

    /** Records that differ, as `resource id` of a company (null if only an id is known), and the differences. */
    const differences = () =>
      stand.withClient(databaseUrl, async (client) => {
        const differing: Array<{ readonly company: number; readonly record: string | null; readonly text: string }> = []
        let compared = 0
        for (const id of ids) {
          for (const [path, table] of tables) {
            const state = await reference.lines(`/state?company=${id}&resource=${path}`)
            compared += state.length
            for (const { what, detail } of await compare(client, id, path, state, new Set()))
              differing.push({
                company: id,
                record: detail === "" ? null : `${nameOf(id)} ${what.split(" ", 2).join(" ")}`,
                text: `company ${id}: ${what}: ${detail}`
              })
            const { differences: more } = await within(compareByVerify(table, BigInt(id), state))
            for (const one of more)
              differing.push({
                company: id,
                record: `${nameOf(id)} ${path} ${one.id}`,
                text: `verify: company ${id}: ${path} ${JSON.stringify(one)}`
              })
          }
        }
        return { differing, compared }
      })

    /** Records with an event that the receiver did not acknowledge. */
    const unacknowledged = new Set<string>()
    for (const { company: name, sent, acknowledged } of proxy.lanes.values()) {
      for (const [id, body] of sent) {
        if (acknowledged.has(id)) continue
        const { type, data } = JSON.parse(body.toString("utf8")) as { type: string; data: Values }
        unacknowledged.add(`${name} ${type.slice(0, type.lastIndexOf("."))} ${String(data["id"])}`)
      }
    }
    const before = await differences()
    sums[differedBefore] = new Set(before.differing.flatMap(({ record }) => record ?? [])).size
    for (const { company: id, record, text } of before.differing) {
      // Events that fired while a subscription was disabled were never sent.
      if (record !== null && !unacknowledged.has(record) && !disabled.has(id))
        problem(`before the reconcile, although every event of it was acknowledged: ${text}`)
    }
    proxy.calm()
    const open = await reconcileAll()
    if (open > 0) problem(`${open} gaps are open after the reconcile`)
    await awaitInbox()
    const after = await differences()
    for (const { text } of after.differing) problem(`after the reconcile: ${text}`)
    sums["records compared"] = after.compared

    // The receivers find the runs that killed ones have left in the ledger.
    await none(
      "runs are left running",
      "select company_id, resource, lane, kind from tributary.runs where status = 'running'"
    )
    await stand.withClient(databaseUrl, async (client) => {
      for (const path of resources) {
        for (const id of ids) {
          const history = await reference.lines(`/history?company=${id}&resource=${path}`)
          for (const { what, detail } of await invented(client, id, path, history))
            problem(`company ${id}: ${what}: ${detail}`)
        }
        for (const { company: id, what, detail } of await auditHistory(client, path))
          problem(`company ${id}: ${what}: ${detail}`)
        const { rows } = await client.query<{ n: string }>(`select count(*) as n from erp_history."${path}"`)
        sums["versions audited"] = (sums["versions audited"] ?? 0) + Number(rows[0]!.n)
      }
      for (const { company: id, what, detail } of await auditRuns(client)) problem(`company ${id}: ${what}: ${detail}`)
    })
    const counts = { "attempts of the sender": proxy.attempts(), ...Object.fromEntries(proxy.counts) }
    for (const one of weaknesses(options, { ...sums, ...counts })) problem(`not a valid campaign: ${one}`)
    return {
      seed,
      seconds: Number(process.hrtime.bigint() - began) / 1e9,
      counts,
      forged: Object.fromEntries([...proxy.forged].map(([kind, answers]) => [kind, Object.fromEntries(answers)])),
      sums,
      problems
    }
  } finally {
    isOver = true
    const child = receiver as ChildProcess | null
    child?.stdin?.end()
    await chaos?.close()
    await stand.close()
  }
}
