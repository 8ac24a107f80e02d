/**
 * `tributary webhooks`: creating, testing and listing the subscription, its exit codes, and no signing secret in output
 * or database.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { answerOf, hooked, signed } from "./commandSupport.ts"

describe("tributary webhooks", () => {
  it.live(
    "creates, tests and lists the subscription, and keeps its secret",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { configure, run, received, secrets, url, assertSilent } = yield* hooked
          configure("")
          const [withoutUrl, unnamed] = yield* Effect.all([run(2, ["ensure"]), run(1, ["delete"])], { concurrency: 2 })
          assert.include(withoutUrl.stderr, "webhooks.public_url")
          assert.strictEqual(unnamed.stdout, "")

          configure(`webhooks:\n  public_url: ${url}\n`)
          const ensured = yield* run(0, ["ensure", "--json"])
          const { subscription } = answerOf(ensured)
          assert.strictEqual(subscription.url, `${url}/hooks/main`)
          assert.include(ensured.stderr, "nothings.created")

          const [tested, listed] = yield* Effect.all([run(0, ["test"]), run(0, ["list"])], { concurrency: 2 })
          assert.isTrue(signed((yield* secrets)[0]!, received[0]!))
          assert.include(tested.stdout, "delivered, the receiver answered 200 after ")
          assert.include(tested.stdout, String.raw`seen \x1b[2J\u{202e}\nxxx`)
          assert.notMatch(tested.stdout, /x{500}/)
          assert.match(listed.stdout, new RegExp(`${subscription.id} +active +yes +stored`))
          yield* assertSilent
        })
      ),
    60_000
  )
})
