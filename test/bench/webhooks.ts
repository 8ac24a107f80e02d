/**
 * The promised figures of webhooks: acknowledged deliveries per second, and the time from a delivery to its row.
 *
 * Promise: every event of the steady rate is signed here, and is about a record that changed at the source just
 * before. Send times are fixed in advance and waits count from them, so a slow sender hides nothing (coordinated
 * omission). Every acknowledged event is looked up in the inbox and in the warehouse afterwards.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { quantile } from "./measuring.ts"
import { type Figure, figure } from "./Figures.ts"
import { deliveryTo, measureReceiver, secret } from "./receiver.ts"
import type { Source, Stand, Warehouse } from "./Stand.ts"
import { lines as linesTo, postOf } from "./wire.ts"

const company = "bench"
const connections = 64

// ------------------------------------------------------------------------------------------------- as many as possible

export const acknowledgements = async (stand: Stand): Promise<ReadonlyArray<Figure>> => {
  const warehouse = await stand.warehouse()
  const { stored, ceiling } = await measureReceiver(warehouse, connections)
  await warehouse.close()
  return [
    figure(`webhook: durable acknowledgements, ${connections} connections`, "events/s", stored.perSecond, {
      atLeast: 10_000,
      note: `${stored.acks} in ${stored.seconds.toFixed(1)} s, ${stored.others} with other answers`
    }),
    figure("webhook: the same beside no database", "events/s", stored.perSecond, {
      baseline: ceiling.perSecond,
      note: `without a database: p50 ${ceiling.p50Ms.toFixed(1)} ms, p99 ${ceiling.p99Ms.toFixed(1)} ms`
    }),
    figure("webhook: acknowledgement p99, closed loop", "ms", stored.p99Ms, {
      atMost: 30,
      note: `p50 ${stored.p50Ms.toFixed(1)} ms`
    }),
    figure("webhook: acknowledged and not in the inbox", "rows", stored.acks - stored.rows, { atMost: 0 })
  ]
}

// ------------------------------------------------------------------------------------------------------- a steady rate

const perSecond = 500
const seconds = 20
/** Changes are made and sent in rounds of this many events. */
const eventsPerRound = 50
const roundMs = (1000 * eventsPerRound) / perSecond
const rounds = (seconds * 1000) / roundMs
/** The time between the change of a round's records and its first event. */
const leadMs = 300
const drainMaxMs = 60_000
/** Maximum number of rounds that change records at the same time. */
const changersMax = 4

type Values = Readonly<Record<string, unknown>>

/** A number of records that change several times in a round, with an event each time. */
interface Share {
  readonly resource: string
  readonly records: number
  readonly times: number
}

/**
 * Each record of the first two resources changes once in the whole run, those of the others again and again.
 * `invoicelines` cannot be read by id, only listed.
 */
const mix: ReadonlyArray<Share> = [
  { resource: "invoicelines", records: 18, times: 1 },
  { resource: "invoices", records: 18, times: 1 },
  { resource: "items", records: 5, times: 2 },
  { resource: "customers", records: 1, times: 4 }
]
const resources = mix.map(({ resource }) => resource)
/** They come with as many invoices as change. */
const lines = 100_000

/** A text field of each resource without a meaning for other records. */
const textOf: Readonly<Record<string, string>> = {
  invoicelines: "description",
  invoices: "externalid",
  items: "description",
  customers: "name"
}

interface Delivery {
  readonly eventId: string
  readonly type: string
  readonly body: string
}

/** Changes the records of a round. Returns an event of each change, in order. */
const changeRound = async (
  change: (resource: string, records: ReadonlyArray<Values>) => Promise<ReadonlyArray<Values>>,
  round: number,
  ids: ReadonlyMap<string, ReadonlyArray<number>>
): Promise<ReadonlyArray<Delivery>> => {
  const deliveries: Array<Delivery> = []
  for (const { resource, records, times } of mix) {
    const available = ids.get(resource)!
    if (times === 1 && available.length < records * rounds) throw new Error(`there are too few ${resource}`)
    const chosen = Array.from(
      { length: records },
      (_, place) => available[(round * records + place) % available.length]!
    )
    for (let time = 0; time < times; time += 1) {
      const stored = await change(
        resource,
        chosen.map((id) => ({ id, [textOf[resource]!]: `r${round}.${time}` }))
      )
      for (const data of stored) {
        const eventId = `evt_bench_${round}_${deliveries.length}`
        const type = `${resource}.updated`
        const body = JSON.stringify({ id: eventId, type, createdate: data["lastchangedate"], companyid: 1, data })
        deliveries.push({ eventId, type, body })
      }
    }
  }
  return deliveries
}

interface SentDelivery {
  readonly eventId: string
  readonly status: number | null
  /** Time from the scheduled send to the whole answer. */
  readonly ms: number
}

/** Sends everything at its scheduled time. */
const sendAll = async (source: Source, listening: string): Promise<ReadonlyArray<SentDelivery>> => {
  const ids = new Map<string, ReadonlyArray<number>>()
  for (const resource of resources) {
    const records = await source.reference.lines(`/state?company=1&resource=${resource}`)
    ids.set(
      resource,
      records.map((record) => Number((JSON.parse(record) as Values)["id"]))
    )
  }
  const { host, port } = new URL(listening)
  const control = new URL(source.reference.controlUrl)
  const [toReceiver, toControl] = await Promise.all([
    linesTo(Number(port), connections),
    linesTo(Number(control.port), changersMax)
  ])
  const change = async (resource: string, records: ReadonlyArray<Values>): Promise<ReadonlyArray<Values>> => {
    const request = postOf(
      control.host,
      `${control.pathname.replace(/\/$/, "")}/records`,
      JSON.stringify({ company: 1, resource, records }),
      []
    )
    const { status, body } = await toControl.ask(request)
    if (status !== 200) throw new Error(`records were not changed: ${status} ${body}`)
    return (JSON.parse(Buffer.from(body, "latin1").toString()) as { records: ReadonlyArray<Values> }).records
  }
  const send = async ({ eventId, type, body }: Delivery, dueAt: number): Promise<SentDelivery> => {
    const answer = await toReceiver.ask(deliveryTo(host, company, eventId, type, body)).catch(() => null)
    return { eventId, status: answer?.status ?? null, ms: performance.now() - dueAt }
  }
  const sent: Array<Promise<SentDelivery>> = []
  const began = performance.now() + 2 * leadMs
  const until = async (at: number) => {
    for (let left = at - performance.now(); left > 0; left = at - performance.now()) await sleep(left)
  }
  const sendRound = async (round: number) => {
    const roundAt = began + round * roundMs
    await until(roundAt - leadMs)
    const deliveries = await changeRound(change, round, ids)
    for (const [place, delivery] of deliveries.entries()) {
      const dueAt = roundAt + (place * roundMs) / eventsPerRound
      if (dueAt > performance.now()) await until(dueAt)
      sent.push(send(delivery, dueAt))
    }
  }
  await Promise.all(Array.from({ length: rounds }, (_, round) => sendRound(round)))
  const all = await Promise.all(sent)
  toReceiver.close()
  toControl.close()
  return all
}

interface InboxResult {
  readonly event_id: string
  readonly state: string
  readonly ms: number | null
  readonly isCurrent: boolean
}

/** Waits until no event is pending. Returns the results of the acknowledged events. */
const awaitInboxResults = async (warehouse: Warehouse): Promise<ReadonlyArray<InboxResult>> => {
  for (let waitedMs = 0; waitedMs < drainMaxMs; waitedMs += 100) {
    const [left] = await warehouse.query<{ n: string }>(
      "select count(*) as n from tributary.inbox where state = 'pending'"
    )
    if (left?.n === "0") break
    await sleep(100)
  }
  const rows = resources.map(
    (resource) =>
      `select i.event_id, i.state, (extract(epoch from i.resolved_at - i.received_at) * 1000)::float8 as ms,
              coalesce(t.lastchangedate >= i.record_modified_at::timestamptz, false) as "isCurrent"
         from tributary.inbox i left join erp."${resource}" t on t._company_id = 1 and t.id = i.record_id::bigint
        where i.resource = '${resource}'`
  )
  return warehouse.query<InboxResult>(rows.join(" union all "))
}

export const steadyRate = async (stand: Stand): Promise<ReadonlyArray<Figure>> => {
  const source = await stand.source(["--data", "scale", "--rows", String(lines)], { pageSize: null })
  const warehouse = await stand.warehouse()
  await stand.sync(source, warehouse, { requestsPerMinute: null, pageSize: null }, resources)
  const serving = await stand.serving(
    source,
    warehouse,
    `companies: [{ name: ${company}, token_env: SERVICE_API_TOKEN, webhook_secrets_env: [SECRET], resources: [${resources.join(", ")}] }]
budget: { requests_per_minute: unlimited }
webhooks: { listen: "127.0.0.1:0" }
schedule: { default: off }
dashboard: { listen: off }
`,
    { SECRET: secret }
  )
  const countRequests = async () =>
    ((await source.reference.control("GET", "/requests")) as { readonly requests: ReadonlyArray<unknown> }).requests
      .length
  const requestsBefore = await countRequests()
  const sent = await sendAll(source, (JSON.parse(serving.line) as { readonly listening: string }).listening)
  const inbox = new Map((await awaitInboxResults(warehouse)).map((one) => [one.event_id, one]))
  const requests = (await countRequests()) - requestsBefore
  const cost = await serving.stop()
  await warehouse.close()
  await source.reference.stop()

  const acknowledged = sent.filter(({ status }) => status === 204)
  const lost = acknowledged.filter(({ eventId }) => {
    const one = inbox.get(eventId)
    return one?.state !== "done" || !one.isCurrent
  })
  const waits = sent.map(({ ms }) => ms)
  const delays = [...inbox.values()].flatMap(({ ms }) => (ms === null ? [] : [ms]))
  const each = (cpuSeconds: number | null) =>
    cpuSeconds === null ? "?" : ((cpuSeconds / sent.length) * 1e6).toFixed(0)
  const inMs = (values: ReadonlyArray<number>, share: number) => quantile(values, share).toFixed(0)
  const rate = `webhook, ${perSecond} events/s for ${seconds} s`
  return [
    figure(`${rate}: acknowledgement p99`, "ms", quantile(waits, 0.99), {
      atMost: 50,
      note: `from the scheduled send time; p50 ${inMs(waits, 0.5)} ms, most ${inMs(waits, 1)} ms`
    }),
    figure(`${rate}: not acknowledged`, "rows", sent.length - acknowledged.length, {
      atMost: 0,
      note: `of ${sent.length}`
    }),
    figure(`${rate}: acknowledged and not processed`, "rows", lost.length, {
      atMost: 0,
      note: "not in the inbox, not done, or the row older than the event"
    }),
    figure(`${rate}: event to row p99`, "s", delays.length === 0 ? null : quantile(delays, 0.99) / 1000, {
      atMost: 2,
      note:
        `from its insert to the landing that resolved it; p50 ${inMs(delays, 0.5)} ms, most ${inMs(delays, 1)} ms; ` +
        `${requests} requests, ${cost.peakMb?.toFixed(0) ?? "?"} MB at most; ` +
        `CPU us/event: serve ${each(cost.cpuSeconds)}, Postgres ${each(cost.postgresCpuSeconds)}, server ${each(cost.serverCpuSeconds)}`
    })
  ]
}
