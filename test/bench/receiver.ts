/**
 * The acknowledged, durable deliveries per second, beside the same receiver without a database.
 *
 * Promise: the receiver and Postgres are processes of their own. Requests are signed before the measurement, and every
 * delivery has an event of its own. Each connection has one delivery in flight. Every acknowledgement is compared with
 * the rows of the inbox afterwards.
 */
import { Effect, Layer, Redacted } from "effect"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import { signatureOf } from "../support/deliveries.ts"
import { quantile, secondsSince } from "./measuring.ts"
import { firstLineOf, startProgram } from "../support/servers.ts"
import type { Warehouse } from "./Stand.ts"
import { Line, postOf } from "./wire.ts"

export const secret = "whsec_bench"
const seconds = 5
const writers = 2
const requestsPerSecondMax = 40_000
const bodyBytes = 730

/** The headers and body of a delivery. */
export const deliveryTo = (host: string, company: string, eventId: string, type: string, body: string): Buffer =>
  postOf(host, `/hooks/${company}`, body, [
    `Svc-Signature: ${signatureOf(secret, Math.floor(Date.now() / 1000), body)}`,
    `Svc-Event-Id: ${eventId}`,
    `Svc-Event-Type: ${type}`,
    "Svc-Delivery-Attempt: 1"
  ])

/** Deliveries on so many connections, as fast as they are answered. */
const sendTo = async (port: number, connections: number) => {
  const requests = Array.from({ length: seconds * requestsPerSecondMax }, (_, number) => {
    const eventId = `evt_${port}_${number}`
    const head = `{"id":"${eventId}","type":"orders.updated","createdate":"2026-01-02T03:04:05Z","companyid":1,"data":{"id":${number + 1},"lastchangedate":"2026-01-02T03:04:05Z","status":"open","memo":"`
    const body = `${head}${"x".repeat(bodyBytes - head.length - 3)}"}}`
    return deliveryTo(`127.0.0.1:${port}`, "acme", eventId, "orders.updated", body)
  })
  let [next, acks, others] = [0, 0, 0]
  const times: Array<number> = []
  const began = performance.now()
  const drive = async () => {
    const line = await Line.open(port)
    while (secondsSince(began) < seconds && next < requests.length) {
      const sentAt = performance.now()
      const { status } = await line.ask(requests[next++]!)
      times.push(performance.now() - sentAt)
      if (status === 204) acks += 1
      else others += 1
    }
    line.close()
  }
  await Promise.all(Array.from({ length: connections }, drive))
  const took = secondsSince(began)
  const [p50Ms, p99Ms] = [quantile(times, 0.5), quantile(times, 0.99)]
  return { acks, others, seconds: took, perSecond: acks / took, p50Ms, p99Ms }
}

/** One round against a receiver of its own. */
const round = async (args: ReadonlyArray<string>, connections: number) => {
  const receiver = startProgram(new URL("../support/receiver.ts", import.meta.url), ["--secret", secret, ...args])
  try {
    const { port } = JSON.parse(await firstLineOf(receiver)) as { readonly port: number }
    return await sendTo(port, connections)
  } finally {
    receiver.stdin!.end()
  }
}

/**
 * Measures both, one after the other: `ceiling` is the limit of HTTP, the signature and reading the body. The warehouse is
 * empty.
 */
export const measureReceiver = async ({ url, query }: Warehouse, connections: number) => {
  const layer = sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(url))))
  await Effect.runPromise(Migrations.migrate().pipe(Effect.provide(layer)))
  const ceiling = await round([], connections)
  const stored = await round(["--database", url, "--writers", String(writers)], connections)
  const [row] = await query<{ readonly count: string }>("select count(*) as count from tributary.inbox")
  return { stored: { ...stored, rows: Number(row!.count) }, ceiling }
}
