/**
 * `tributary serve` with real processes, HTTPS and signatures. It is killed, loses its warehouse and is stopped. Every
 * change arrives, and no secret is printed.
 */
import { request } from "node:https"
import { assert, describe } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { makeGate } from "../../support/gate.ts"
import { firstLine, untilSeen } from "../../support/reference.ts"
import { makeReceivingWorld } from "../../support/world.ts"
import { liveTest } from "../../support/live.ts"
import { assertEach } from "../../support/assertions.ts"

interface Attempt {
  readonly eventid: string
  readonly eventtype: string
  readonly responsecode: number | null
}

/** An installation with orders in the warehouse and an address of a receiver. */
const makeReceiving = Effect.gen(function* () {
  const { world, port, cert, token } = yield* makeReceivingWorld("orders, orderlines", "check_minutes: 1")
  const outputs: Array<string> = []
  const env = { NORTH: token }

  const run = (args: ReadonlyArray<string>) =>
    Effect.map(world.run(args, env), (result) => {
      outputs.push(result.stdout, result.stderr)
      assert.strictEqual(result.code, 0, result.stderr)
      return result
    })
  /** Starts the process. `ready` is its line. Its output is kept. */
  const serve = (more: Readonly<Record<string, string>> = {}) =>
    Effect.sync(() => {
      const command = world.command(["serve", "--json"], { ...env, ...more })
      let stderrText = ""
      command.child.stderr!.on("data", (chunk: Buffer) => (stderrText += chunk.toString()))
      void command.done.then(({ stdout, stderr }) => outputs.push(stdout, stderr))
      const line = firstLine(command)
      line.catch(() => {})
      const ready = Effect.promise(() => line)
      return { ...command, stderrText: () => stderrText, ready }
    })

  let number = 0
  /** Creates an order for the customer of another one through the API. Returns its id. */
  const order = Effect.promise(async () => {
    const call = async (method: string, path: string, body?: object) => {
      const response = await fetch(`${world.reference.baseUrl}${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${token}`,
          "Content-Type": "application/json",
          "Idempotency-Key": `order-${(number += 1)}`
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      assert.isTrue(response.ok, `${method} ${path}: ${response.status}`)
      return (await response.json()) as { readonly id: number }
    }
    const { id } = await call("POST", "/orders", { customerid: 14, ordertype: "fulfillment", status: "quote" })
    return id
  })
  const cycle = Effect.map(
    world.control("POST", "/cycle"),
    (answer) => (answer as { readonly attempts: ReadonlyArray<Attempt> }).attempts
  )
  const arrives = (id: number) =>
    untilSeen(
      `order ${id}`,
      world.query(`select 1 as one from erp.orders where id = ${id}`),
      (rows) => rows.length === 1
    )

  /** Sends a request to the receiver directly. */
  const ask = (method: string, path: string, body?: string) =>
    Effect.callback<{ readonly status: number | null; readonly text: string; readonly retryAfter: string | undefined }>(
      (resume) => {
        const clientRequest = request(
          { method, path, port, host: "127.0.0.1", servername: "localhost", ca: cert },
          (response) => {
            let text = ""
            response.on("data", (chunk: Buffer) => (text += chunk.toString()))
            response.on("end", () =>
              resume(
                Effect.succeed({
                  status: response.statusCode ?? null,
                  text,
                  retryAfter: response.headers["retry-after"]
                })
              )
            )
          }
        )
        clientRequest.on("error", (error) =>
          resume(Effect.succeed({ status: null, text: error.message, retryAfter: undefined }))
        )
        clientRequest.end(body)
      }
    )
  const silent = () => {
    const all = outputs.join("\n")
    assert.notInclude(all, token)
    assert.notInclude(all, "whsec_")
    assert.isAbove(all.length, 200)
  }
  yield* run(["sync"])
  return { world, port, run, serve, order, cycle, arrives, ask, silent }
})

const statusOf = (attempts: ReadonlyArray<Attempt>) => attempts.map(({ responsecode }) => responsecode)

describe("tributary serve", () => {
  liveTest("lands changes from webhooks, resumes after kills at the worst moments, and stops on SIGTERM", function* () {
    const { world, port, run, serve, order, cycle, arrives, ask, silent } = yield* makeReceiving
    yield* world.query(`insert into tributary.inbox (company, event_id, event_type, sent_at, body, state, resolved_at)
            select 'north', state || ' ' || days, 'orders.updated', tributary.now(), '', state, tributary.now() - make_interval(days => days)
              from unnest(array['done', 'skipped', 'dead_letter']) state, unnest(array[29, 31]) days`)
    const first = yield* serve()
    assert.strictEqual(
      yield* first.ready,
      JSON.stringify({ ready: true, listening: `https://127.0.0.1:${port}`, dashboard: null, link: null })
    )
    // Retention removes events that were resolved longer ago than the retention period, and no others.
    yield* untilSeen(
      "the removal of old events",
      world.query<{ readonly event_id: string }>("select event_id from tributary.inbox order by event_id"),
      (rows) => rows.map(({ event_id }) => event_id).join() === "dead_letter 29,dead_letter 31,done 29,skipped 29"
    )
    yield* run(["webhooks", "ensure"])

    const one = yield* order
    assertEach(yield* cycle, ({ eventtype, responsecode }) => [eventtype, responsecode], [["orders.created", 204]])
    yield* arrives(one)
    assert.strictEqual((yield* ask("GET", "/healthz")).status, 200)
    assert.strictEqual((yield* ask("GET", "/readyz")).status, 200)
    assert.strictEqual((yield* ask("POST", "/hooks/north", "{}")).status, 401)
    const metrics = (yield* ask("GET", "/metrics")).text
    assert.match(metrics, /tributary_webhook_deliveries_total\{outcome="accepted"\} 1\n/)
    assert.match(metrics, /tributary_webhook_events_waiting\{company="north"\} 0\n/)
    assert.match(metrics, /tributary_webhook_events_dead\{company="north"\} 2\n/)

    // Killed right after the acknowledgement: the sender does not repeat this event.
    const two = yield* order
    assert.deepStrictEqual(statusOf(yield* cycle), [204])
    first.child.kill("SIGKILL")
    yield* Effect.promise(() => first.done)
    // No process receives this event.
    const three = yield* order
    assert.deepStrictEqual(statusOf(yield* cycle), [null])

    // After the restart the source is unreachable. Deliveries are stored all the same, and processed when it is
    // reachable.
    yield* world.control("POST", "/faults", { rules: [{ kind: "reset" }] })
    const second = yield* serve()
    yield* second.ready
    assert.deepStrictEqual(statusOf(yield* cycle), [204])
    assert.lengthOf(yield* world.query(`select 1 as one from erp.orders where id in (${two}, ${three})`), 0)
    yield* world.control("DELETE", "/faults")
    yield* arrives(two)
    yield* arrives(three)
    assert.deepStrictEqual((yield* world.compare("orders")).differences, [])

    second.child.kill("SIGTERM")
    const { code, stdout } = yield* Effect.promise(() => second.done)
    assert.strictEqual(code, 0)
    assert.lengthOf(stdout.trim().split("\n"), 1, "standard output is the one line")
    const [receiver] = yield* world.query<{ count: number }>(
      "select count(*)::int as count from tributary.processes where stopped_at is not null"
    )
    assert.strictEqual(receiver!.count, 1, "the stopped process reported its end, the killed one could not")
    silent()
  })

  liveTest(
    "answers 503 while the warehouse is unreachable, at start and later, and recovers automatically",
    function* () {
      const { world, run, serve, order, cycle, arrives, ask, silent } = yield* makeReceiving
      const gate = yield* makeGate(Redacted.make(world.databaseUrl))
      yield* gate.shut
      const serving = yield* serve({ DATABASE_URL: Redacted.value(gate.url) })
      yield* untilSeen("the process listens", ask("GET", "/healthz"), ({ status }) => status === 200)
      yield* untilSeen("the process reports the outage", Effect.sync(serving.stderrText), (text) =>
        text.includes("answered 503 until")
      )
      assert.strictEqual((yield* ask("GET", "/readyz")).status, 503)
      const early = yield* ask("POST", "/hooks/north", "{}")
      assert.deepStrictEqual([early.status, early.retryAfter], [503, "10"])
      assert.match((yield* ask("GET", "/metrics")).text, /tributary_webhook_inbox_up 0\n/)

      yield* gate.open
      yield* serving.ready
      yield* run(["webhooks", "ensure"])
      const one = yield* order
      assert.deepStrictEqual(statusOf(yield* cycle), [204])
      yield* arrives(one)

      // The reader of the log has closed its pipe. Later log lines are lost, and nothing else is.
      serving.child.stderr!.destroy()
      serving.child.stdout!.destroy()
      yield* gate.shut
      const two = yield* order
      assert.deepStrictEqual(statusOf(yield* cycle), [503])
      assert.strictEqual((yield* ask("GET", "/healthz")).status, 200)
      yield* gate.open
      yield* untilSeen("the process is ready again", ask("GET", "/readyz"), ({ status }) => status === 200)
      assert.deepStrictEqual(statusOf(yield* cycle), [204])
      yield* arrives(two)
      const three = yield* order
      assert.deepStrictEqual(statusOf(yield* cycle), [204])
      yield* arrives(three)

      serving.child.kill("SIGTERM")
      assert.strictEqual((yield* Effect.promise(() => serving.done)).code, 0)
      silent()
    }
  )
})
