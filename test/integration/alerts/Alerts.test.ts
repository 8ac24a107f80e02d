/** Alerts on a real Postgres: three processes send exactly one start and one end of each kind of condition. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber, Record } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as AlertsCommand from "../../../src/cli/alerts.ts"
import * as ConditionStore from "../../../src/alerts/ConditionStore.ts"
import * as MessageStore from "../../../src/alerts/MessageStore.ts"
import * as EndpointStore from "../../../src/delivery/EndpointStore.ts"
import { alertKinds } from "../../../src/status/ProblemKinds.ts"
import { alertsTo, emailRoute, httpReceiver, httpRoute, slackRoute, smtpReceiver } from "../../support/alerting.ts"
import { untilTrue } from "../../support/until.ts"
import {
  eventsOf,
  fail,
  minutes,
  pass,
  postsOf,
  prepare,
  quarantine,
  round,
  run,
  statesOf,
  succeed,
  test,
  three,
  triggers,
  two
} from "./conditions.ts"

test("each kind of condition has one start and one end on each route, with three processes", function* () {
  yield* prepare
  const webhook = yield* httpReceiver()
  const slack = yield* httpReceiver()
  const mail = yield* smtpReceiver
  const routes = [httpRoute(webhook.url, "s3cret"), slackRoute(slack.url), emailRoute(mail.url)]
  const processes = yield* three(routes)
  yield* minutes(3, processes)
  assert.deepStrictEqual(webhook.requests, [], "nothing holds")
  const expected: Array<string> = []
  assert.sameMembers(Record.keys(triggers), [...alertKinds])
  for (const [kind, trigger] of Record.toEntries(triggers)) {
    yield* trigger.begin
    yield* minutes(trigger.minutes, processes, trigger.isFresh)
    expected.push(`start ${kind}`)
    assert.deepStrictEqual(eventsOf(webhook.requests), expected)
    yield* trigger.end
    yield* minutes(4, processes)
    expected.push(`end ${kind}`)
    assert.deepStrictEqual(eventsOf(webhook.requests), expected)
  }
  assert.lengthOf(slack.requests, expected.length)
  assert.lengthOf(mail.mails, expected.length)
  // Each message says what, since when, for whom, and what to do.
  for (const one of postsOf(webhook.requests)) {
    assert.isAbove(one.what.length, 10)
    assert.match(one.since, /^2026-11-20T/)
    assert.match(one.remedy, /tributary/)
    assert.include(["north", null], one.company)
  }
  const keys = webhook.requests.map(({ headers }) => headers["idempotency-key"])
  assert.strictEqual(new Set(keys).size, expected.length)
  assert.match(String(webhook.requests[0]!.headers["webhook-signature"]), /^v1,[\w+/]{43}=$/)
  const { text } = JSON.parse(slack.requests[0]!.body) as { readonly text: string }
  assert.match(text, /^\[WARNING\] Data is late: north, things\nWhat: [^]*Since: [^]*Consequence: [^]*What to do: /)
  assert.match(mail.mails[0]!, /Subject: \[WARNING\] Data is late: north, things/)
  assert.match(mail.mails[0]!, /Message-ID: <tributary-\d+-\d+@example\.com>/i)
  const states = (yield* MessageStore.readHistory(100)).map(({ state }) => state)
  assert.deepStrictEqual(new Set(states), new Set(["sent"]))
  assert.deepStrictEqual(yield* run("select from tributary.change_retries"), [])
  assert.deepStrictEqual(yield* ConditionStore.readConditions, [])
})

test("the list of conditions says that nothing was evaluated, and shows what holds also without a route", function* () {
  yield* prepare
  const settings = { alerts: alertsTo([]) }
  const lines = Effect.map(AlertsCommand.readList(settings), (list) => AlertsCommand.listLines(list).join("\n"))
  const before = yield* lines
  assert.include(before, "not evaluated: no serve has evaluated the conditions yet")
  assert.notInclude(before, "no condition holds")
  const processes = yield* two([])
  yield* minutes(1, processes)
  assert.match(yield* lines, /no condition holds$/)
  yield* triggers.failing.begin
  yield* minutes(triggers.failing.minutes, processes, triggers.failing.isFresh)
  assert.match(yield* lines, /failing +north +things/)
  yield* pass(600)
  assert.match(yield* lines, /not evaluated: the last evaluation was at .*, and no serve evaluates now/)
})

test("a resource that is refused is one failing resource while another one is read", function* () {
  yield* prepare
  const webhook = yield* httpReceiver()
  const processes = yield* two([httpRoute(webhook.url)])
  yield* run(
    `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms, status, started_at, finished_at, failure_kind, failures)
       values ('north', 'widgets', 'sync', 'every 10 min', 900000, 'failed', tributary.now(), tributary.now(), 'Unauthorized', 1)`
  )
  const refused =
    "update tributary.tasks set status = 'failed', failure_kind = 'Unauthorized', finished_at = tributary.now() + interval '1 second' where resource = 'widgets'"
  for (let minute = 0; minute < 8; minute += 2) {
    yield* pass(120)
    yield* succeed
    yield* run(refused)
    yield* round(processes)
  }
  assert.deepStrictEqual(eventsOf(webhook.requests), ["start failing"])
})

test("a first sync is not late while it reads one resource after another, and late when no process reads", function* () {
  yield* prepare
  const webhook = yield* httpReceiver()
  const processes = yield* two([httpRoute(webhook.url)])
  yield* run(
    `insert into tributary.tasks (company, resource, kind, schedule, freshness_target_ms)
       values ('north', 'widgets', 'sync', 'every 10 min', 900000),
              ('north', 'gadgets', 'sync', 'every 10 min', 900000)`
  )
  yield* run(
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at)
       values (7, 'gadgets', 'full', 'live', 'running', 1, tributary.now())`
  )
  const beforeRun =
    "update tributary.tasks set status = null, started_at = null, finished_at = null where resource <> 'things'"
  const waiting = Effect.fnUntraced(function* (rounds: number) {
    for (let count = 0; count < rounds; count += 1) {
      yield* pass(120)
      yield* succeed
      yield* run(beforeRun)
      yield* round(processes)
    }
  })
  yield* waiting(10)
  assert.deepStrictEqual(webhook.requests, [])
  yield* run("update tributary.runs set status = 'abandoned', finished_at = tributary.now() where resource = 'gadgets'")
  yield* waiting(4)
  assert.deepStrictEqual(eventsOf(webhook.requests), ["start late", "start late"])
})

describe("a process that ends", () => {
  test("between evaluating and sending leaves messages that the others send once", function* () {
    yield* prepare
    const webhook = yield* httpReceiver()
    const slack = yield* httpReceiver()
    const processes = yield* two([httpRoute(webhook.url), slackRoute(slack.url)])
    yield* fail("Unauthorized")
    yield* processes[0]!.evaluate
    assert.deepStrictEqual(yield* statesOf("http"), ["start waiting"])
    yield* round(processes.slice(1))
    assert.deepStrictEqual(eventsOf(webhook.requests), ["start token"])
    // A process that has the routes dies before its request.
    yield* succeed
    yield* pass(60)
    yield* round(processes)
    yield* pass(180)
    yield* processes[0]!.lease
    yield* processes[0]!.evaluate
    yield* round(processes.slice(1))
    assert.lengthOf(webhook.requests, 1, "the lease has not ended")
    yield* pass(31)
    yield* minutes(5, processes.slice(1))
    assert.deepStrictEqual(eventsOf(webhook.requests), ["start token", "end token"])
    assert.lengthOf(slack.requests, 2)
  })

  test("during a request leaves one that is repeated only under the same idempotency key", function* () {
    yield* prepare
    // The first request of each receiver has no answer.
    const silent = (_: unknown, earlier: number) => (earlier === 0 ? null : { status: 200 })
    const webhook = yield* httpReceiver(silent)
    const slack = yield* httpReceiver(silent)
    const [lost, ...processes] = yield* three([httpRoute(webhook.url), slackRoute(slack.url)])
    yield* run("update tributary.warehouse set pause_reason = 'the database was restored'")
    yield* lost!.evaluate
    yield* Effect.forkScoped(lost!.send)
    yield* untilTrue("requests of the lost process", () => webhook.requests.length + slack.requests.length === 2)
    yield* round(processes)
    assert.lengthOf(webhook.requests, 1)
    yield* pass(31)
    yield* round(processes)
    const keys = webhook.requests.map(({ headers }) => headers["idempotency-key"])
    assert.deepStrictEqual(keys, [keys[0], keys[0]])
    assert.lengthOf(slack.requests, 1)
    assert.deepStrictEqual(yield* statesOf("http"), ["start sent"])
    assert.deepStrictEqual(yield* statesOf("slack"), ["start dead"])
    yield* run("update tributary.warehouse set pause_reason = null")
    yield* minutes(5, processes)
    assert.deepStrictEqual(eventsOf(webhook.requests), ["start restore", "start restore", "end restore"])
    assert.deepStrictEqual(yield* statesOf("slack"), ["end sent", "start dead"])
    const [letter] = yield* run<{ error: string }>("select error from tributary.change_retries")
    assert.strictEqual(letter!.error, "the process ended during the request; the receiver may have the message")
    // The requests without an answer end.
    yield* TestClock.adjust(Duration.minutes(1))
  })
})

test("a process that stops finishes its request, and then gives the route back", function* () {
  yield* prepare
  let answer = () => {}
  const slack = yield* httpReceiver(() => new Promise((resolve) => (answer = () => resolve({ status: 200 }))))
  const [first, second] = yield* two([slackRoute(slack.url)])
  yield* run("update tributary.warehouse set pause_reason = 'the database was restored'")
  yield* first!.evaluate
  const running = yield* first!.run
  yield* untilTrue("the request", () => slack.requests.length === 1)
  const stopping = yield* Effect.forkChild(Fiber.interrupt(running))
  yield* round([second!])
  assert.deepStrictEqual(yield* statesOf("slack"), ["start sending"])
  answer()
  yield* Fiber.join(stopping)
  assert.deepStrictEqual(yield* statesOf("slack"), ["start sent"])
  assert.deepStrictEqual(yield* run("select process_id from tributary.change_endpoints"), [{ process_id: null }])
  yield* round([second!])
  assert.lengthOf(slack.requests, 1)
})

describe("messages", () => {
  test("about a worse state are sent once for each class, and silenced ones when the silence ends", function* () {
    yield* prepare
    const webhook = yield* httpReceiver()
    const digest = yield* httpReceiver()
    const gathered = {
      ...httpRoute(digest.url, null, { digest: Duration.hours(1), isCriticalAtOnce: false }),
      name: "digest"
    }
    const processes = yield* two([httpRoute(webhook.url), gathered])
    yield* quarantine(1, 1)
    yield* minutes(2, processes)
    yield* quarantine(2, 9)
    yield* minutes(2, processes)
    yield* quarantine(10, 12)
    yield* minutes(3, processes)
    assert.deepStrictEqual(eventsOf(webhook.requests), ["start quarantine", "worse quarantine"])
    assert.deepStrictEqual(yield* statesOf("digest"), ["worse waiting", "start waiting"])

    const none = { kind: null, company: null, subject: null, until: null, reason: null }
    yield* ConditionStore.addSilence({ ...none, company: "north", seconds: 600, by: "a test" })
    assert.deepStrictEqual(yield* statesOf("digest"), [], "what waits for a digest is withdrawn")
    yield* quarantine(13, 200)
    yield* fail("Unauthorized")
    yield* minutes(8, processes, false)
    assert.lengthOf(webhook.requests, 2, "the company is silent")
    yield* minutes(4, processes, false)
    assert.sameMembers(eventsOf(webhook.requests).slice(2), ["worse quarantine", "start token"])
    yield* ConditionStore.addSilence({ ...none, kind: "token", seconds: 3600, by: "a test" })
    yield* succeed
    yield* run("update tributary.quarantine set resolved_at = tributary.now()")
    yield* minutes(5, processes)
    assert.deepStrictEqual(eventsOf(webhook.requests).slice(4), ["end quarantine"])
    yield* ConditionStore.endSilences(null)
    yield* minutes(1, processes)
    assert.deepStrictEqual(eventsOf(webhook.requests).slice(5), ["end token"])
    yield* minutes(50, processes)
    assert.lengthOf(digest.requests, 1, "one request for the digest")
    assert.includeMembers(eventsOf(digest.requests), ["start quarantine", "end quarantine"])
  })

  test("are tried again not before Retry-After, given up after a day, and do not delay another route", function* () {
    yield* prepare
    let isBroken = true
    const broken = yield* httpReceiver(() =>
      isBroken ? { status: 503, headers: { "retry-after": "600" } } : { status: 200 }
    )
    const sound = yield* httpReceiver()
    const processes = yield* two([slackRoute(broken.url), httpRoute(sound.url)])
    yield* run("update tributary.warehouse set pause_reason = 'the database was restored'")
    yield* minutes(9, processes)
    assert.lengthOf(broken.requests, 1)
    assert.deepStrictEqual(eventsOf(sound.requests), ["start restore"])
    yield* minutes(4, processes)
    assert.lengthOf(broken.requests, 2)
    for (let step = 0; step < 26; step += 1) {
      yield* pass(3600)
      yield* round(processes)
    }
    assert.deepStrictEqual(yield* statesOf("slack"), ["start dead"])
    assert.isBelow(broken.requests.length, 40)
    assert.include((yield* MessageStore.readHistory(1))[0], { route: "http", state: "sent" })
    assert.include((yield* MessageStore.readHistory(2))[1], { route: "slack", error: "HTTP 503" })
    // The dead letter is one of an endpoint, and the route lives.
    assert.deepInclude(yield* EndpointStore.find("alerts:slack"), { state: "active", dead: 1n })
    assert.strictEqual(yield* EndpointStore.replay("alerts:slack", 0n), 1)
    isBroken = false
    yield* minutes(60, processes)
    assert.deepStrictEqual(yield* statesOf("slack"), ["start sent"])
  })

  test("that are due together are sent as one where they are many", function* () {
    yield* prepare
    const webhook = yield* httpReceiver()
    const processes = yield* two([httpRoute(webhook.url)])
    yield* run(
      `insert into tributary.quarantine (company_id, resource, record_id, reason, bytes, run_id, source, first_seen_at, last_seen_at)
         select 7, 'r' || n, '1', 'x', '{}', 1, 'GET /x', tributary.now(), tributary.now() from generate_series(1, 30) n`
    )
    yield* run(
      `insert into tributary.checkpoints (company_id, resource, updated_at) select 7, 'r' || n, tributary.now() from generate_series(1, 30) n`
    )
    yield* minutes(2, processes)
    assert.lengthOf(postsOf(webhook.requests), 30)
    assert.lengthOf(webhook.requests, 1)
  })
})
