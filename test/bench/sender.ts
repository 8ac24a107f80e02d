/**
 * A sender of deliveries that costs little: raw sockets, and requests that are signed before the clock starts.
 *
 * `sender.ts PORT SECRET SECONDS CONNECTIONS` prints one line: what was answered 204 and what otherwise, and how long an
 * answer took. Each connection has one delivery under way. Every delivery is of an event of its own.
 */
import { createHmac } from "node:crypto"
import { connect } from "node:net"

const [port, secret, seconds, connections] = process.argv.slice(2)
const requestsPerSecondMax = 40_000
const bodyBytes = 730

const t = Math.floor(Date.now() / 1000)
const run = `${process.pid.toString(36)}${t.toString(36)}`

const requestOf = (number: number): Buffer => {
  const head = `{"id":"evt_${run}_${number}","type":"orders.updated","createdate":"2026-01-02T03:04:05Z","companyid":1,"data":{"id":${number + 1},"lastchangedate":"2026-01-02T03:04:05Z","status":"open","memo":"`
  const body = `${head}${"x".repeat(bodyBytes - head.length - 3)}"}}`
  const v1 = createHmac("sha256", secret!).update(`${t}.${body}`).digest("hex")
  return Buffer.from(
    `POST /hooks/acme HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
      `Svc-Signature: t=${t},v1=${v1}\r\nSvc-Event-Id: evt_${run}_${number}\r\nSvc-Event-Type: orders.updated\r\n` +
      `Svc-Delivery-Attempt: 1\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
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

const drive = () =>
  new Promise<void>((resolve, reject) => {
    const socket = connect(Number(port), "127.0.0.1")
    socket.setNoDelay(true)
    let sentAt = 0
    let answer = ""
    const send = () => {
      const request = now() < endsAt ? requests[next++] : undefined
      if (request === undefined) {
        socket.end()
        return resolve()
      }
      sentAt = now()
      socket.write(request)
    }
    socket.setEncoding("latin1")
    socket.on("connect", send)
    socket.on("error", reject)
    socket.on("data", (chunk: string) => {
      answer += chunk
      const end = answer.indexOf("\r\n\r\n")
      if (end < 0) return
      const length = /content-length: (\d+)/i.exec(answer)
      if (answer.length < end + 4 + Number(length?.[1] ?? 0)) return
      if (answer.startsWith("HTTP/1.1 204")) acks += 1
      else others += 1
      times.push(now() - sentAt)
      answer = ""
      send()
    })
  })

await Promise.all(Array.from({ length: Number(connections) }, drive))
const took = (now() - began) / 1000
times.sort((a, b) => a - b)
const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
console.log(JSON.stringify({ acks, others, seconds: took, p50Ms: at(0.5), p99Ms: at(0.99) }))
