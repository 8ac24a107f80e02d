/**
 * A cheap sender of deliveries over raw sockets, with requests that are signed before the measurement.
 *
 * `sender.ts PORT SECRET SECONDS CONNECTIONS` prints one line: the number of 204 and of other responses, and their
 * response times. Each connection has one delivery in flight. Every delivery has an event of its own.
 */
import { createHmac } from "node:crypto"
import { Line, postOf } from "./wire.ts"

const [port, secret, seconds, connections] = process.argv.slice(2)
const requestsPerSecondMax = 40_000
const bodyBytes = 730

const t = Math.floor(Date.now() / 1000)
const run = `${process.pid.toString(36)}${t.toString(36)}`

const requestOf = (number: number): Buffer => {
  const head = `{"id":"evt_${run}_${number}","type":"orders.updated","createdate":"2026-01-02T03:04:05Z","companyid":1,"data":{"id":${number + 1},"lastchangedate":"2026-01-02T03:04:05Z","status":"open","memo":"`
  const body = `${head}${"x".repeat(bodyBytes - head.length - 3)}"}}`
  const v1 = createHmac("sha256", secret!).update(`${t}.${body}`).digest("hex")
  return postOf(`127.0.0.1:${port}`, "/hooks/acme", body, [
    `Svc-Signature: t=${t},v1=${v1}`,
    `Svc-Event-Id: evt_${run}_${number}`,
    "Svc-Event-Type: orders.updated",
    "Svc-Delivery-Attempt: 1"
  ])
}

const requests = Array.from({ length: Math.ceil(Number(seconds) * requestsPerSecondMax) }, (_, number) =>
  requestOf(number)
)
let next = 0
let acks = 0
let others = 0
const times: Array<number> = []
const now = () => Number(process.hrtime.bigint()) / 1e6

const began = now()
const endsAt = began + Number(seconds) * 1000

const drive = async () => {
  const line = await Line.open(Number(port))
  for (;;) {
    const request = now() < endsAt ? requests[next++] : undefined
    if (request === undefined) return line.close()
    const sentAt = now()
    const { status } = await line.ask(request)
    times.push(now() - sentAt)
    if (status === 204) acks += 1
    else others += 1
  }
}

await Promise.all(Array.from({ length: Number(connections) }, drive))
const took = (now() - began) / 1000
times.sort((a, b) => a - b)
const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
console.log(JSON.stringify({ acks, others, seconds: took, p50Ms: at(0.5), p99Ms: at(0.99) }))
