/** Every command of `tributary webhooks`, one after the other in one installation. */
import { appendFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { liveTest } from "../../support/live.ts"
import { answerOf, hooked, ownSecret, signed } from "./commandSupport.ts"
import { assertEach } from "../../support/assertions.ts"

liveTest(
  "tributary webhooks rotates, pauses, resumes, lists, creates, deletes and replays, and prints no secret",
  function* () {
    const { world, configure, run, received, secrets, url, assertSilent } = yield* hooked
    configure("")
    assert.include((yield* run(2, ["ensure"])).stderr, "webhooks.public_url")
    configure(`webhooks:\n  public_url: ${url}\n`)
    const poor = yield* Effect.promise(() => world.reference.token(1, ["items:read"]))
    assert.include(answerOf(yield* run(3, ["list", "--json"], { MAIN_TOKEN: poor })).failure.remedy, "setup:read")

    const ensured = yield* run(0, ["ensure", "--json"])
    const { subscription } = answerOf(ensured)
    assert.include(ensured.stderr, "nothings.created")
    const tested = yield* run(0, ["test"])
    assert.include(tested.stdout, String.raw`seen \x1b[2J\u{202e}\nxxx`)
    assert.notMatch(tested.stdout, /x{500}/)
    received.length = 0
    const [first] = yield* secrets
    assert.include((yield* run(1, ["rotate", "--secret-env", "NOT_SET"])).stderr, "NOT_SET is not set")
    // A secret in place of its variable's name. The output is searched for it below.
    yield* run(1, ["rotate", "--secret-env", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
    yield* run(0, ["rotate", "--secret-env", "OWN_SECRET"])
    yield* run(0, ["test", subscription.id, "--json"])
    assert.deepStrictEqual([signed(first!, received[0]!), signed(ownSecret, received[0]!)], [true, true])
    assert.deepStrictEqual(yield* secrets, [first, ownSecret])

    const created = yield* run(0, [
      "create",
      "--url",
      "https://elsewhere.example.com/in",
      "--event",
      "items.updated",
      "--json"
    ])
    const other = answerOf(created).subscription.id
    assert.include((yield* run(0, ["ensure"])).stdout, "nothing to do")

    const { stdout: paused } = yield* run(0, ["pause"])
    assert.match(paused, new RegExp(`tributary webhooks resume ${subscription.id}\\n`))
    const listed = yield* run(0, ["list"])
    assert.match(listed.stdout, new RegExp(`${subscription.id} +paused +yes +stored`))
    assert.match(listed.stdout, new RegExp(`${other} +unproven +no +unknown +0 +never`))
    assert.include(listed.stdout, "webhooks resume")
    yield* run(0, ["resume"])

    const log = yield* run(0, ["deliveries", "--json"])
    assertEach(answerOf(log).attempts, ({ eventType, delivered }) => [eventType, delivered], [
      ["webhooks.test", true],
      ["webhooks.test", true]
    ])
    assert.include((yield* run(0, ["deliveries", "--abandoned"])).stdout, "no such delivery")
    assert.include((yield* run(1, ["rotate", "4711"])).stderr, "4711")
    yield* run(1, ["deliveries", "--delivered", "--failed"])

    // Dead letters are replayed. An event that is named is replayed in any state.
    yield* world.query(
      `insert into tributary.inbox (company, event_id, event_type, sent_at, body, state, last_error)
             values ('main', 'evt_1', 'items.created', now(), '', 'dead_letter', 'x'),
                    ('main', 'evt_2', 'items.created', now(), '', 'done', null)`
    )
    assert.include((yield* run(0, ["replay"])).stdout, "1 event is pending again")
    assert.include((yield* run(0, ["replay", "--event", "evt_2"])).stdout, "1 event is pending again")
    assert.include((yield* run(0, ["replay", "--event", "evt_2"])).stdout, "0 events")

    // A secret that another receiver also knows is not accepted here.
    assert.include((yield* run(1, ["rotate", other])).stderr, "--secret-env")
    yield* run(0, ["rotate", other, "--secret-env", "OWN_SECRET"])
    assert.lengthOf(yield* secrets, 2)
    yield* run(0, ["delete", other])

    // Variables in .env work like the environment. With several companies, --company is required.
    appendFileSync(join(world.folder, ".env"), "\nDOTTED_SECRET=another-secret-of-my-own\n")
    world.configure(
      "companies: [{ name: main, token_env: MAIN_TOKEN }, { name: other, token_env: MAIN_TOKEN }]\n" +
        `webhooks: { public_url: ${url} }\n`
    )
    assert.include((yield* run(1, ["rotate", "--secret-env", "DOTTED_SECRET"])).stderr, "--company: main, other")
    yield* run(0, ["rotate", "--secret-env", "DOTTED_SECRET", "--company", "main"])
    assert.include(yield* secrets, "another-secret-of-my-own")
    const again = yield* run(0, ["pause", "--company", "main"])
    assert.include(again.stdout, `webhooks resume ${subscription.id} --company main`)
    yield* assertSilent
  }
)
