/**
 * The baseline of pushes: ready-made bodies, posted by a bare loop with a number of concurrent requests.
 *
 * It keeps none of the product's promises: nothing is stored before it is sent, only the status of an answer is
 * checked, and nothing is sent again. A process of its own, started by `pushes.ts`; it prints one line of JSON.
 *
 *     node test/bench/poster.ts <file> <resource> <records per request> <concurrent requests>
 */
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { Pool } from "undici"
import { secondsSince } from "./measuring.ts"

const [file, resource, perCall, underway] = process.argv.slice(2)
const base = new URL(process.env["SERVICE_API_URL"]!)
const authorization = `Bearer ${process.env["SERVICE_API_TOKEN"]!}`
const concurrency = Number(underway)

const lines = readFileSync(file!, "utf8").trimEnd().split("\n")
const bodies: Array<string> = []
for (let at = 0; at < lines.length; at += Number(perCall)) {
  bodies.push(`[${lines.slice(at, at + Number(perCall)).join(",")}]`)
}
const pool = new Pool(base.origin, { connections: concurrency, pipelining: 1 })
let next = 0
const post = async () => {
  while (next < bodies.length) {
    const body = bodies[next++]!
    const answer = await pool.request({
      method: "POST",
      path: `${base.pathname}/${resource}/batch`,
      headers: { authorization, "content-type": "application/json", "idempotency-key": randomUUID() },
      body
    })
    await answer.body.arrayBuffer()
    if (answer.statusCode !== 207) throw new Error(`a request was answered ${answer.statusCode}`)
  }
}
const began = performance.now()
await Promise.all(Array.from({ length: concurrency }, post))
const seconds = secondsSince(began)
await pool.close()
process.stdout.write(`${JSON.stringify({ calls: bodies.length, seconds })}\n`)
