/** The webhooks page and its actions, against Postgres and the reference server in process. */
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { routes } from "../../src/dashboard/pages/Webhooks.ts"
import * as SigningSecrets from "../../src/subscriptions/SigningSecrets.ts"
import * as Subscriptions from "../../src/subscriptions/Subscriptions.ts"
import { address } from "../../src/web/Escape.ts"
import { ask, holdsHostile, hostile, makeSource, unconnected, warehouse } from "./asking.ts"
import { suite } from "../support/suite.ts"
import { sql } from "../support/postgres.ts"

const events = ["salesmen.created", "salesmen.updated"]
let companies = 0

/** A company with a subscription on its own server. The test sets the responses of its receiver. */
const stand = Effect.fnUntraced(function* () {
  const name = `company-${(companies += 1)}`
  const url = `https://hooks.example.com/hooks/${name}`
  const state = { status: 204, body: "" }
  const send = async () => ({ status: state.status, body: Buffer.from(state.body), durationms: 3, failure: null })
  const running = makeSource({ network: { send } })
  const token = running.token()
  const { requests } = running
  const company = yield* running.company(name, token, { receivesAt: url, events })
  const { subscription } = yield* Subscriptions.ensure(company, { url, events }).pipe(
    Effect.provide(SigningSecrets.layer([{ name, token: Redacted.make(token), configured: [] }]))
  )
  const call = running.caller(token)
  /** Fires an event and delivers it. */
  const deliver = Effect.gen(function* () {
    assert.strictEqual(call("POST", "/salesmen", { name: "Ann" }).status, 201)
    const cycle = running.served.control({ method: "POST", url: "/cycle", headers: {}, body: null })
    yield* Effect.promise(async () => void (await cycle.pending))
  })
  requests.length = 0
  return {
    name,
    url,
    id: subscription.id,
    company,
    requests,
    state,
    deliver,
    fields: { company: name, subscription: subscription.id }
  }
})

const put = Effect.fnUntraced(function* (
  company: string,
  id: string,
  more: { readonly state?: string; readonly reason?: string; readonly resource?: string; readonly record?: string }
) {
  const { state = "pending", reason = null, resource = "salesmen", record = "7" } = more
  yield* sql`
    insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, body, state, last_error, attempts,
      received_at, resolved_at)
    values (${company}, ${id}, ${`${resource}.updated`}, ${resource}, ${record}, tributary.now(), ''::bytea, ${state}, ${reason},
            ${state === "dead_letter" ? 6 : 0}, tributary.now() - interval '3 minutes',
            case when ${state}::text <> 'pending' then tributary.now() end)`
})

suite("the webhooks page", warehouse, (test) => {
  test("replays one dead letter, or all of a company", function* () {
    const { name, company } = yield* stand()
    for (const event of ["a", "b", "c"]) yield* put(name, event, { state: "dead_letter" })
    yield* put(name, "d", { state: "done" })
    yield* put("another", "e", { state: "dead_letter" })
    const waiting = sql<{ id: string }>`
        select event_id as id from tributary.inbox where company in (${name}, 'another') and state = 'pending' order by id`
    const confirm = yield* ask(routes, [company], `/confirm/replay?company=${name}&event=b`)
    assert.include(confirm.text, `<input type="hidden" name="event" value="b" />`)
    const one = yield* ask(routes, [company], "/do/replay", { company: name, event: "b" })
    assert.deepStrictEqual([one.to, one.said], ["/webhooks", `1 event of company ${name} waits to be processed again.`])
    assert.deepStrictEqual(yield* waiting, [{ id: "b" }])
    const settled = yield* ask(routes, [company], "/do/replay", { company: name, event: "d" })
    assert.strictEqual(settled.said, "That event is no longer a dead letter, so nothing was changed.")
    const all = yield* ask(routes, [company], "/do/replay", { company: name })
    assert.strictEqual(all.said, `2 events of company ${name} wait to be processed again.`)
    assert.deepStrictEqual(yield* waiting, [{ id: "a" }, { id: "b" }, { id: "c" }])
    const stranger = yield* Effect.flip(ask(routes, [company], "/do/replay", { company: "another" }))
    assert.deepInclude(stranger, { _tag: "PageError", status: 404 })
  })

  test("pauses, resumes and tests a subscription, and reports the result", function* () {
    const { company, fields, state } = yield* stand()
    const shown = Effect.map(ask(routes, [company], "/webhooks"), ({ read }) => read)
    const act = (what: string) => Effect.map(ask(routes, [company], `/do/${what}`, fields), ({ said }) => said)
    const confirm = yield* ask(routes, [company], address("/confirm/subscription-pause", fields))
    assert.include(confirm.read, "drops the events that fire meanwhile")
    assert.strictEqual(yield* act("subscription-pause"), `Subscription ${fields.subscription} is paused.`)
    assert.include(yield* shown, `Subscription ${fields.subscription} paused`)
    assert.strictEqual(yield* act("subscription-resume"), `Subscription ${fields.subscription} is active.`)
    assert.include(yield* shown, `Subscription ${fields.subscription} active`)
    assert.include(yield* shown, "Last test never")
    assert.match((yield* act("subscription-test"))!, /^The test event was delivered: the receiver answered 204 after/)
    assert.match(yield* shown, /Last test succeeded/)
    state.status = 500
    assert.match(
      (yield* act("subscription-test"))!,
      /^The test event was not delivered: the receiver answered 500 after/
    )
    const failed = yield* shown
    assert.match(failed, /Last test failed .*: the receiver answered 500/)
    assert.include(failed, `Subscription ${fields.subscription} active, the last test failed`)
    assert.include(failed, "the last test of 1 subscription failed")
    assert.include(failed, "events may be missing")
    const unknown = yield* ask(routes, [company], "/do/subscription-pause", { ...fields, subscription: "999" })
    assert.match(unknown.said!, /there is no subscription 999 of this token\. What to do: /)
  })

  test("shows the source's own delivery log on request, with escaped responses", function* () {
    const { name, company, id, state, deliver, requests } = yield* stand()
    state.status = 503
    state.body = hostile
    yield* deliver
    const page = yield* ask(routes, [company], `/webhooks/${name}/${id}/deliveries`)
    assert.isFalse(page.isLive)
    assert.isTrue(requests.some(({ path }) => path.includes("deliveries")))
    assert.match(page.read, /salesmen\.created .* failed 1 503/)
    assert.isFalse(holdsHostile(page.text))
    assert.include(page.text, "&lt;script&gt;")
    const unknown = yield* ask(routes, [company], `/webhooks/${name}/999/deliveries`)
    assert.include(unknown.read, "there is no subscription 999")
  })

  test("counts only the events of the chosen company by hour", function* () {
    yield* put("alone-1", "t1", { state: "done" })
    yield* put("alone-2", "t2", { state: "skipped" })
    const both = [unconnected("alone-1"), unconnected("alone-2")]
    const { read } = yield* ask(routes, both, "/webhooks?company=alone-1")
    assert.match(read, /Events received in the last 24 hours: 1 done\./)
    assert.match((yield* ask(routes, both, "/webhooks")).read, /in the last 24 hours: \d+ done, [^.]*skipped/)
  })
})
