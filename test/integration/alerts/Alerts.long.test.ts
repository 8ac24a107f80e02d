/** Alerts over longer times and after kills: no message is lost, doubled, early or without a reason. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, describe } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as ConditionStore from "../../../src/alerts/ConditionStore.ts"
import * as MessageStore from "../../../src/alerts/MessageStore.ts"
import { httpReceiver, httpRoute, slackRoute } from "../../support/alerting.ts"
import { databaseUrl } from "../../support/postgres.ts"
import { until } from "../../support/until.ts"
import {
  eventsOf,
  fail,
  minutes,
  pass,
  prepare,
  quarantine,
  round,
  run,
  statesOf,
  succeed,
  test,
  three
} from "./conditions.ts"

describe("a quiet day", () => {
  test("has no condition and no message", function* () {
    yield* prepare
    const webhook = yield* httpReceiver()
    const processes = yield* three([httpRoute(webhook.url)])
    for (let step = 0; step < 24 * 6; step += 1) {
      yield* pass(600)
      yield* succeed
      yield* round(processes)
      assert.deepStrictEqual(yield* ConditionStore.readConditions, [])
    }
    assert.deepStrictEqual(webhook.requests, [])
    assert.deepStrictEqual(yield* MessageStore.readHistory(10), [])
  })
})

const child = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const program = fileURLToPath(new URL("../../support/alerting-process.ts", import.meta.url))
  const database = Redacted.value(yield* databaseUrl)
  const started = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [program, "--database", database, ...args], { stdio: ["ignore", "pipe", "inherit"] })
    ),
    (one) => Effect.sync(() => one.kill("SIGKILL"))
  )
  yield* Effect.promise(() => once(createInterface({ input: started.stdout }), "line"))
  return started
})

const kill = (one: ChildProcess) =>
  Effect.promise(() => {
    const ended = once(one, "exit")
    process.kill(one.pid!, "SIGKILL")
    return ended
  })

describe("a killed process", () => {
  test("between evaluating and sending leaves messages that the others send once", function* () {
    yield* prepare
    const webhook = yield* httpReceiver()
    const slack = yield* httpReceiver()
    const routes = [httpRoute(webhook.url), slackRoute(slack.url)]
    const processes = yield* three(routes)
    yield* fail("Unauthorized")
    const evaluating = yield* child(["--http", webhook.url, "--slack", slack.url])
    yield* kill(evaluating)
    assert.deepStrictEqual(yield* statesOf("http"), ["start pending"])
    yield* round(processes)
    assert.deepStrictEqual(eventsOf(webhook.requests), ["start token"])
    // A process that claims messages and dies before its request leaves a lease.
    yield* succeed
    yield* pass(60)
    yield* round(processes)
    yield* pass(180)
    yield* processes[0]!.evaluate
    const claim = (route: string, isIdempotent: boolean) =>
      MessageStore.claim(route, "dead", { isDigest: false, isIdempotent })
    assert.isNotNull(yield* claim("http", true))
    assert.isNotNull(yield* claim("slack", false))
    yield* round(processes)
    assert.lengthOf(webhook.requests, 1, "the lease has not ended")
    yield* pass(31)
    yield* round(processes)
    yield* minutes(5, processes)
    assert.deepStrictEqual(eventsOf(webhook.requests), ["start token", "end token"])
    assert.lengthOf(slack.requests, 2)
  })

  test("during a request leaves one that is repeated only under the same idempotency key", function* () {
    yield* prepare
    // The first request of each receiver has no answer.
    const silent = (_: unknown, earlier: number) => (earlier === 0 ? null : { status: 200 })
    const webhook = yield* httpReceiver(silent)
    const slack = yield* httpReceiver(silent)
    const processes = yield* three([httpRoute(webhook.url), slackRoute(slack.url)])
    yield* run("update tributary.installation set pause_reason = 'the database was restored'")
    const sending = yield* child(["--http", webhook.url, "--slack", slack.url, "--send"])
    yield* until(
      "requests of the child",
      Effect.sync(() => webhook.requests.length + slack.requests.length),
      (count) => count === 2
    )
    yield* kill(sending)
    yield* round(processes)
    assert.lengthOf(webhook.requests, 1)
    yield* pass(31)
    yield* round(processes)
    const keys = webhook.requests.map(({ headers }) => headers["idempotency-key"])
    assert.deepStrictEqual(keys, [keys[0], keys[0]])
    assert.lengthOf(slack.requests, 1)
    assert.deepStrictEqual(yield* statesOf("http"), ["start sent"])
    assert.deepStrictEqual(yield* statesOf("slack"), ["start uncertain"])
    yield* run("update tributary.installation set pause_reason = null")
    yield* minutes(5, processes)
    assert.deepStrictEqual(eventsOf(webhook.requests), ["start restore", "start restore", "end restore"])
    assert.deepStrictEqual(yield* statesOf("slack"), ["end sent", "start uncertain"])
  })
})

describe("messages", () => {
  test("about a worse state are sent once for each class, and silenced ones when the silence ends", function* () {
    yield* prepare
    const webhook = yield* httpReceiver()
    const processes = yield* three([httpRoute(webhook.url)])
    yield* quarantine(1, 1)
    yield* minutes(2, processes)
    yield* quarantine(2, 9)
    yield* minutes(2, processes)
    yield* quarantine(10, 12)
    yield* minutes(3, processes)
    assert.deepStrictEqual(eventsOf(webhook.requests), ["start quarantine", "worse quarantine"])

    const none = { kind: null, company: null, subject: null, until: null, reason: null }
    yield* ConditionStore.addSilence({ ...none, company: "north", seconds: 3600, by: "a test" })
    yield* quarantine(13, 200)
    yield* fail("Unauthorized")
    yield* minutes(50, processes, false)
    assert.lengthOf(webhook.requests, 2, "the company is silent")
    yield* minutes(15, processes, false)
    assert.sameMembers(eventsOf(webhook.requests).slice(2), ["worse quarantine", "start token"])
    yield* ConditionStore.addSilence({ ...none, kind: "token", seconds: 3600, by: "a test" })
    yield* succeed
    yield* run("update tributary.quarantine set resolved_at = tributary.now()")
    yield* minutes(5, processes)
    assert.deepStrictEqual(eventsOf(webhook.requests).slice(4), ["end quarantine"])
    yield* ConditionStore.endSilences(null)
    yield* minutes(1, processes)
    assert.deepStrictEqual(eventsOf(webhook.requests).slice(5), ["end token"])
  })

  test("are tried again not before Retry-After, given up after a day, and do not delay another route", function* () {
    yield* prepare
    const broken = yield* httpReceiver(() => ({ status: 503, headers: { "retry-after": "600" } }))
    const sound = yield* httpReceiver()
    const processes = yield* three([slackRoute(broken.url), httpRoute(sound.url)])
    yield* run("update tributary.installation set pause_reason = 'the database was restored'")
    yield* minutes(9, processes)
    assert.lengthOf(broken.requests, 1)
    assert.deepStrictEqual(eventsOf(sound.requests), ["start restore"])
    yield* minutes(2, processes)
    assert.lengthOf(broken.requests, 2)
    for (let step = 0; step < 26; step += 1) {
      yield* pass(3600)
      yield* round(processes)
    }
    assert.deepStrictEqual(yield* statesOf("slack"), ["start failed"])
    assert.isBelow(broken.requests.length, 40)
    const [one] = yield* MessageStore.readHistory(1)
    assert.include(one, { route: "http", state: "sent" })
    const [failed] = yield* run<{ error: string }>(
      "select last_error as error from tributary.alert_messages where state = 'failed'"
    )
    assert.strictEqual(failed!.error, "the receiver answered 503")
  })
})
