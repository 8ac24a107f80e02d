/** The token: the requests that carry it, and its absence from every other text. */
import { inspect } from "node:util"
import { assert, describe } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Redacted } from "effect"
import * as ScriptedHttp from "./ScriptedHttp.ts"
import { answers, fails, refuses, type Step, token } from "./ScriptedHttp.ts"
import { things } from "../support/tiny.ts"
import { test } from "../support/suite.ts"

const first = { resource: things, since: null, token: null }
const configured = (options: Parameters<typeof ScriptedHttp.make>[1]) => Effect.exit(ScriptedHttp.make([], options))

describe("the base address", () => {
  test("is accepted with https or on this machine, and rejected otherwise, with a remedy", function* () {
    for (const [baseUrl, problem] of [
      ["https://erp.test/!/api/v2", null],
      ["https://erp.test/!/api/v2/", null],
      ["http://127.0.0.1:8080/!/api/v2", null],
      ["http://127.9.9.9/!/api/v2", null],
      ["http://[::1]:8080/!/api/v2", null],
      ["http://localhost:8080/!/api/v2", null],
      ["http://erp.test/!/api/v2", /allow_http/],
      ["http://127.0.0.1.erp.test/", /allow_http/],
      ["http://localhost.erp.test/", /allow_http/],
      ["http://0.0.0.0/", /allow_http/],
      ["https://ann:secret@erp.test/", /credentials/],
      ["ftp://erp.test/", /https/],
      ["erp.test", /not an address/],
      ["https://erp.test/?token=x", /query/]
    ] as const) {
      const exit = yield* configured({ baseUrl })
      assert.strictEqual(Exit.isSuccess(exit), problem === null, baseUrl)
      const text = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
      if (problem !== null) assert.match(text, problem)
      assert.notInclude(text, "secret")
    }
    assert.isTrue(Exit.isSuccess(yield* configured({ baseUrl: "http://erp.test/!/api/v2", allowHttp: true })))
  })

  test("is rejected with a badly copied token, which the message does not show", function* () {
    for (const bad of ["", `${token}\n`, `"${token} "`, `${token}é`]) {
      const exit = yield* configured({ token: Redacted.make(bad) })
      assert(Exit.isFailure(exit))
      assert.match(Cause.pretty(exit.cause), /copy the token again/)
      assert.notInclude(inspect(exit, { depth: 20 }), token)
    }
  })
})

describe("the token", () => {
  const leaky: ReadonlyArray<readonly [name: string, step: Step]> = [
    ["a rejection that repeats it", refuses(401, "unauthorized", { message: `unknown token ${token}` })],
    [
      "a rejection with the token as code",
      refuses(422, token, { message: token, field: token, errors: [{ field: token, code: token, message: token }] })
    ],
    ["a redirect to it", answers(302, null, { location: `https://elsewhere.test/?t=${token}` })],
    ["a scope refusal", refuses(403, "insufficient_scope", { message: token })],
    ["a connection that fails", fails(`ECONN${token}`)]
  ]
  test("does not appear in an error, nor in the inspected connector", function* () {
    for (const [name, step] of leaky) {
      const { connector } = yield* ScriptedHttp.make([step, step, step], {
        retry: { backoffBase: Duration.zero, attemptsMax: 1 }
      })
      const exit = yield* Effect.exit(connector.page(first))
      assert(Exit.isFailure(exit), name)
      const inspected = [exit, connector].map((value) => inspect(value, { depth: 20, showHidden: true }))
      for (const text of [...inspected, Cause.pretty(exit.cause), JSON.stringify(exit)]) assert.notInclude(text, token)
    }
  })
})
