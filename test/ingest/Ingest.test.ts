import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber, Logger, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { deliveryReader } from "../../connectors/service-v2/client/Deliveries.ts"
import type { SecretKeyring } from "../../src/subscriptions/SecretCache.ts"
import { type NewEvent, InboxUnavailable, type Outcome } from "../../src/inbox/InboxWriter.ts"
import * as Ingest from "../../src/ingest/Ingest.ts"
import { bodyOf, forgeries, mac, signatureOf } from "../support/deliveries.ts"
import { answer as answerOf } from "../support/storing.ts"
import { test } from "../support/suite.ts"
import { assertEach } from "../support/assertions.ts"

const secret = "whsec_of_acme"
const other = "whsec_of_bolt"
const t = 1_800_000_000
const utf8 = (text: string) => new TextEncoder().encode(text)

/** A receiver whose clock is stopped at `t`, with the events that it stored and the lines that it logged. */
const receiving = Effect.fnUntraced(function* (
  secrets: Map<string, ReadonlyArray<string>>,
  outcome: (event: NewEvent) => Outcome = () => "stored",
  canAsk: () => boolean = () => true
) {
  yield* TestClock.setTime(t * 1000)
  const events: Array<NewEvent> = []
  const counts = { refreshes: 0 }
  /** The number of secrets that each delivery was checked with. */
  const tried: Array<number> = []
  const lines: Array<string> = []
  const cached = new Map<string, ReadonlyArray<Redacted.Redacted>>()
  const read = () => {
    cached.clear()
    for (const [company, texts] of secrets)
      cached.set(
        company,
        texts.map((text) => Redacted.make(text))
      )
  }
  read()
  const keyring: SecretKeyring = {
    of: (company) => cached.get(company) ?? [],
    most: () => Math.max(...[...cached.values()].map(({ length }) => length)),
    refresh: Effect.sync(() => {
      counts.refreshes += 1
      if (!canAsk()) return false
      read()
      return true
    })
  }
  const receiver = yield* Ingest.make({
    reader: {
      ...deliveryReader,
      verify: (delivery, settings) => {
        tried.push(settings.secrets.length)
        return deliveryReader.verify(delivery, settings)
      }
    },
    keyring,
    inbox: {
      put: (event, done) => {
        events.push(event)
        done(outcome(event))
      }
    },
    settings: { tolerance: Duration.seconds(300), aheadMax: Duration.seconds(60) },
    isExcluded: (company, resource) => company === "bolt" && resource === "orders"
  }).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])))
  return { receiver, events, counts, lines, tried }
})

const companies = () =>
  new Map<string, ReadonlyArray<string>>([
    ["acme", [secret]],
    ["bolt", [other]]
  ])
const delivery = (signature: string, body: string, company = "acme"): Ingest.IncomingDelivery => ({
  company,
  signatures: [signature],
  body: utf8(body)
})

describe("Ingest", () => {
  test("stores genuine events with their raw bytes and answers 204, also to a repeated delivery", function* () {
    const seen = new Set<string>()
    const { receiver, events, counts } = yield* receiving(companies(), ({ eventId }) =>
      seen.has(eventId) ? "known" : (seen.add(eventId), "stored")
    )
    const body = bodyOf("evt_1")
    for (const _ of [1, 2]) {
      const answer = yield* answerOf(receiver, delivery(signatureOf(secret, t, body), body))
      assert.deepStrictEqual([answer.status, answer.text], [204, ""])
    }
    assert.strictEqual(Buffer.from(events[0]!.body).toString(), body)
    assert.deepInclude(events[0], {
      company: "acme",
      eventId: "evt_1",
      eventType: "orders.updated",
      resource: "orders",
      recordId: "17",
      sentAt: t
    })
    const { outcomes, acceptedAt } = receiver.stats()
    assert.deepInclude(outcomes, { accepted: 1, known: 1, forged: 0 })
    assert.deepStrictEqual([...acceptedAt], [["acme", t * 1000]])
    assert.strictEqual(counts.refreshes, 0)
  })

  test("keeps no body about a resource that the company does not read", function* () {
    const { receiver, events } = yield* receiving(companies())
    const body = bodyOf("evt_1")
    yield* answerOf(receiver, delivery(signatureOf(secret, t, body), body))
    yield* answerOf(receiver, delivery(signatureOf(other, t, body), body, "bolt"))
    assert.deepStrictEqual(
      events.map((event) => Buffer.from(event.body).toString()),
      [body, "{}"]
    )
  })

  test("rejects every forgery with the same answer and stores nothing", function* () {
    const { receiver, events } = yield* receiving(companies())
    const body = bodyOf("evt_2")
    const answers = new Set<string>()
    for (const forgery of forgeries(secret, other, t, body)) {
      const { signatures, body: forged } = forgery
      const answer = yield* answerOf(receiver, { company: "acme", signatures, body: utf8(forged) })
      assert.strictEqual(answer.status, 401, forgery.name)
      answers.add(JSON.stringify(answer))
    }
    for (const company of ["unknown", "bolt"]) {
      answers.add(JSON.stringify(yield* answerOf(receiver, delivery(signatureOf(secret, t, body), body, company))))
    }
    assert.strictEqual(answers.size, 1)
    assert.lengthOf(events, 0)
  })

  test("applies the limits of the time window to the second, and answers 400 to a signed body that is no event", function* () {
    const { receiver, events } = yield* receiving(companies())
    for (const [ageSeconds, status] of [
      [300, 204],
      [301, 401],
      [-60, 204],
      [-61, 401]
    ] as const) {
      const body = bodyOf(`evt_${ageSeconds}`)
      const answer = yield* answerOf(receiver, delivery(signatureOf(secret, t - ageSeconds, body), body))
      assert.strictEqual(answer.status, status, `${ageSeconds} s`)
    }
    assert.strictEqual(receiver.stats().staleAgeSeconds, -61)
    assert.strictEqual(receiver.stats().outcomes.stale, 2)
    events.length = 0
    const unnamed = [`{"type":"orders.updated"}`, `{"id":"evt_6"}`, `{"id":"a\\u0000b","type":"x"}`]
    for (const body of ["", "{", "[]", "null", ...unnamed]) {
      assert.strictEqual((yield* answerOf(receiver, delivery(signatureOf(secret, t, body), body))).status, 400, body)
    }
    assert.lengthOf(events, 0)
    assert.strictEqual(receiver.stats().outcomes.noEvent, 7)
  })

  test("reads the secrets again before it rejects a delivery, and accepts both secrets during a rotation", function* () {
    const secrets = companies()
    const { receiver, counts } = yield* receiving(secrets)
    const body = bodyOf("evt_3")
    const rotated = delivery(`t=${t},v1=${mac("whsec_next", t, body)},v1=${mac(secret, t, body)}`, body)
    assert.strictEqual((yield* answerOf(receiver, rotated)).status, 204)
    assert.strictEqual(counts.refreshes, 0)
    const onlyNext = delivery(signatureOf("whsec_next", t, body), body)
    assert.strictEqual((yield* answerOf(receiver, onlyNext)).status, 401)
    secrets.set("acme", ["whsec_next", secret])
    assert.strictEqual((yield* answerOf(receiver, onlyNext)).status, 204)
    assert.strictEqual((yield* answerOf(receiver, delivery(signatureOf(secret, t, body), body))).status, 204)
    assert.strictEqual(counts.refreshes, 2)
    // A company that becomes known after the start.
    secrets.set("crane", ["whsec_of_crane"])
    const first = delivery(signatureOf("whsec_of_crane", t, body), body, "crane")
    assert.strictEqual((yield* answerOf(receiver, first)).status, 204)
  })

  test("reads the secrets once for all concurrent suspect deliveries, and limits how many wait", function* () {
    const { receiver, counts, events } = yield* receiving(companies())
    const body = bodyOf("evt_4")
    const statuses: Array<number> = []
    for (let number = 0; number < 1_000; number++) {
      receiver.receive(delivery(`t=${t},v1=${"0".repeat(64)}`, body), ({ status }) => statuses.push(status))
    }
    // Deliveries above the limit are answered already.
    assert.strictEqual(statuses.length, 1_000 - 256)
    yield* answerOf(receiver, delivery(signatureOf(secret, t, body), body))
    yield* TestClock.adjust(1)
    assert.lengthOf(statuses, 1_000)
    assert.deepStrictEqual([...new Set(statuses)], [401])
    assert.strictEqual(counts.refreshes, 1)
    assert.lengthOf(events, 1)
  })

  test("answers 503 when reading the secrets takes longer than 3 s", function* () {
    yield* TestClock.setTime(t * 1000)
    const receiver = yield* Ingest.make({
      reader: deliveryReader,
      keyring: { of: () => [Redacted.make(secret)], most: () => 1, refresh: Effect.never },
      inbox: { put: (_event, done) => done("stored") },
      settings: { tolerance: Duration.seconds(300), aheadMax: Duration.seconds(60) }
    })
    const body = bodyOf("evt_5")
    const forged = yield* Effect.forkChild(answerOf(receiver, delivery(signatureOf(other, t, body), body)))
    yield* TestClock.adjust(3_000)
    assert.strictEqual((yield* Fiber.join(forged)).status, 503)
    assert.deepInclude(receiver.stats().outcomes, { forged: 0, unavailable: 1 })
  })

  test("answers 503 to an unmatched signature while the secrets are unreadable, and 401 afterwards", function* () {
    const secrets = new Map<string, ReadonlyArray<string>>()
    let isThere = false
    const { receiver, events, lines } = yield* receiving(secrets, undefined, () => isThere)
    secrets.set("acme", [secret])
    const body = bodyOf("evt_5")
    const good = delivery(signatureOf(secret, t, body), body)
    const bad = delivery(signatureOf(other, t, body), body)
    const early = yield* answerOf(receiver, good)
    const unknown = yield* answerOf(receiver, { ...bad, company: "unknown" })
    assert.deepStrictEqual([early.status, early.retryAfterSeconds, early], [503, 10, unknown])
    yield* TestClock.adjust(1)
    assertEach(lines, (line) => line.replace(/"\w+"/, "one"), [
      "A delivery to one was answered 503: its signature fits no known secret, and newer secrets cannot be read now"
    ])
    // Deliveries above the limit are not rejected as forged either.
    const statuses: Array<number> = []
    for (let number = 0; number < 300; number++) receiver.receive(bad, ({ status }) => statuses.push(status))
    assert.deepStrictEqual(new Set(statuses), new Set([503]))
    yield* TestClock.adjust(1)
    isThere = true
    assert.strictEqual((yield* answerOf(receiver, bad)).status, 401)
    assert.strictEqual((yield* answerOf(receiver, good)).status, 204)
    assert.lengthOf(events, 1)
    assert.deepInclude(receiver.stats().outcomes, { accepted: 1, forged: 1, unavailable: 302 })
  })

  test("computes the same number of signatures for known and unknown companies", function* () {
    const secrets = companies()
    const { receiver, tried } = yield* receiving(secrets)
    secrets.set("bolt", [other, "whsec_next", "whsec_before"])
    const body = bodyOf("evt_5")
    const header = `t=${t},v1=${"0".repeat(64)}`
    yield* answerOf(receiver, delivery(header, body, "bolt"))
    tried.length = 0
    for (const company of ["acme", "bolt", "unknown"]) yield* answerOf(receiver, delivery(header, body, company))
    yield* answerOf(receiver, delivery(signatureOf(secret, t, body), body))
    assert.deepStrictEqual([tried.length >= 4, [...new Set(tried)]], [true, [3]])
  })

  test("counts and logs deliveries that are too large or refused under load", function* () {
    const { receiver, lines } = yield* receiving(companies())
    assert.strictEqual(receiver.refuseTooLarge("acme").status, 413)
    const answer = receiver.refuseBusy("acme")
    assert.deepStrictEqual([answer.status, answer.retryAfterSeconds], [503, 10])
    yield* TestClock.adjust(1)
    receiver.refuseBusy(null)
    assert.deepInclude(receiver.stats().outcomes, { tooLarge: 1, busy: 2 })
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(lines.filter((line) => line.includes("too much is being received")).length, 1)
    assert.strictEqual(lines.filter((line) => line.includes("A connection was cut")).length, 1)
  })

  test("answers 503 with Retry-After when the event cannot be stored, and 400 when it never can", function* () {
    let reason: InboxUnavailable["reason"] = "away"
    const { receiver } = yield* receiving(companies(), () => new InboxUnavailable({ reason, detail: "a test" }))
    const body = bodyOf("evt_7")
    for (const [why, status] of [
      ["away", 503],
      ["full", 503],
      ["ended", 503],
      ["refused", 400]
    ] as const) {
      reason = why
      const answer = yield* answerOf(receiver, delivery(signatureOf(secret, t, body), body))
      assert.strictEqual(answer.status, status, why)
      assert.strictEqual(answer.retryAfterSeconds !== null, status === 503)
    }
    assert.strictEqual(receiver.stats().outcomes.unavailable, 3)
  })

  test("logs each kind of rejection once a minute, without secrets", function* () {
    const { receiver, lines } = yield* receiving(companies())
    const body = bodyOf("evt_8")
    const flood = Effect.gen(function* () {
      for (let number = 0; number < 500; number++) {
        yield* answerOf(receiver, delivery(signatureOf(other, t, body), body))
        yield* answerOf(receiver, delivery(signatureOf(secret, t - 4_000, body), body))
      }
      yield* TestClock.adjust(1)
    })
    yield* flood
    assert.lengthOf(lines, 2)
    assert.isTrue(lines.some((line) => line.includes("fits none of the secrets")))
    assert.isTrue(lines.some((line) => line.includes("4000 s old") && line.includes("clocks")))
    yield* flood
    assert.lengthOf(lines, 2)
    yield* TestClock.adjust("1 minute")
    assert.lengthOf(lines, 4)
    assert.isFalse(lines.some((line) => line.includes(secret) || line.includes(other)))
  })

  test("answers 503 to waiting and later deliveries once it is closed", function* () {
    const body = bodyOf("evt_9")
    const statuses: Array<number> = []
    const forged = delivery(signatureOf(other, t, body), body)
    const receiver = yield* Effect.scoped(
      Effect.gen(function* () {
        const one = yield* receiving(companies())
        one.receiver.receive(forged, ({ status }) => statuses.push(status))
        return one.receiver
      })
    )
    receiver.receive(forged, ({ status }) => statuses.push(status))
    // The secrets are not read again, so neither delivery is rejected as forged.
    assert.deepStrictEqual(statuses, [503, 503])
  })
})
