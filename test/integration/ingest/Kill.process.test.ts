/** Kills of the webhook receiver: it loses no acknowledged event and stores none twice. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { Agent, request } from "node:http"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import { bodyOf, signatureOf } from "../../support/deliveries.ts"
import { freshDatabase } from "../../support/postgres.ts"
import { liveTest } from "../../support/live.ts"
import { assertNone } from "../../support/assertions.ts"

const program = fileURLToPath(new URL("../../support/receiver.ts", import.meta.url))
const secret = "whsec_kill"

const startReceiver = async (databaseUrl: string) => {
  const child = spawn(process.execPath, [program, "--database", databaseUrl, "--secret", secret], {
    stdio: ["pipe", "pipe", "inherit"]
  })
  const lines = createInterface({ input: child.stdout })
  const exited = once(child, "exit")
  const [line] = (await Promise.race([once(lines, "line"), exited.then(() => ["{}"])])) as [string]
  const { port } = JSON.parse(line) as { readonly port?: number }
  if (port === undefined) throw new Error("the receiver exited before it was ready")
  return {
    port,
    kill: async () => {
      child.kill("SIGKILL")
      await exited
    }
  }
}

/** The status, or null if no response arrived. */
const send = (port: number, id: string, agent: Agent): Promise<number | null> =>
  new Promise((resolve) => {
    const body = bodyOf(id)
    const headers = {
      "svc-signature": signatureOf(secret, Math.floor(Date.now() / 1000), body),
      "content-length": Buffer.byteLength(body)
    }
    const clientRequest = request(
      { port, host: "127.0.0.1", path: "/hooks/acme", method: "POST", headers, agent },
      (answer) => {
        answer.resume()
        answer.once("error", () => resolve(null))
        resolve(answer.statusCode ?? null)
      }
    )
    clientRequest.once("error", () => resolve(null))
    clientRequest.end(body)
  })

const warehouse = Effect.gen(function* () {
  const url = yield* freshDatabase
  const sql = yield* Layer.build(Layer.provideMerge(sqlLayer, Database.layerUrl(url)))
  yield* Effect.provide(Migrations.migrate(), sql)
  const ids = Effect.gen(function* () {
    const client = yield* SqlClient.SqlClient
    const rows = yield* client<{ readonly event_id: string }>`select event_id from tributary.inbox order by id`
    return rows.map((row) => row.event_id)
  }).pipe(Effect.provide(sql), Effect.orDie)
  return { url: Redacted.value(url), ids }
})

/** The number of responses before each kill. A number and not a time, so that every machine makes progress. */
const responsesBeforeKill = [1, 7, 40, 150, 16, 300]

liveTest(
  "a killed webhook receiver keeps every acknowledged event exactly once after kills between any two responses",
  function* () {
    const { url, ids } = yield* warehouse
    const acknowledged = new Set<string>()
    const offered = new Set<string>()
    let unanswered = 0
    let fresh = 0
    /** Events that were not acknowledged. They are sent again, as the sender does. */
    const resend: Array<string> = []
    for (const responses of responsesBeforeKill) {
      const receiver = yield* Effect.promise(() => startReceiver(url))
      const agent = new Agent({ keepAlive: true, maxSockets: 16 })
      let isKilled = false
      let answersLeft = responses
      const drive = async () => {
        while (!isKilled) {
          const id = resend.shift() ?? `evt_${(fresh += 1)}`
          offered.add(id)
          const status = await send(receiver.port, id, agent)
          if (status === 204) acknowledged.add(id)
          else {
            unanswered += 1
            resend.push(id)
          }
          answersLeft -= 1
          if (answersLeft === 0) {
            isKilled = true
            await receiver.kill()
          }
        }
      }
      yield* Effect.promise(() => Promise.all(Array.from({ length: 16 }, drive)))
      agent.destroy()
    }
    const rows = yield* ids
    assert.strictEqual(new Set(rows).size, rows.length)
    const storedIds = new Set(rows)
    assertNone([...acknowledged], (id) => !storedIds.has(id))
    assert.isTrue(rows.every((id) => offered.has(id)))
    // The kills did interrupt deliveries.
    assert.isAbove(unanswered, responsesBeforeKill.length)
    assert.isAbove(acknowledged.size, 400)
  }
)
