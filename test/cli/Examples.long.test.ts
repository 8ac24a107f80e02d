/** The examples in the help of every command, and cases beyond them, run once in one folder. */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { makeStage, type Stage } from "../support/stage.ts"
import { casesAfter, casesBefore, examples, type Prepared, pushCases } from "./examples.ts"

const settings = (stage: Stage) => `webhooks:
  listen: ${new URL(stage.receiverUrl).host.replace("localhost", "127.0.0.1")}
  public_url: ${stage.receiverUrl}
  certificate: cert.pem
  key: key.pem
dashboard: { listen: 127.0.0.1:0 }
schedule: { default: off }
budget: { requests_per_minute: 100000 }
`

/** The examples of the sync commands come before the cases that need a synced warehouse. */
const table = () => {
  const all = Object.entries(examples)
  const synced = all.findIndex(([example]) => example === "tributary verify")
  return [
    ...Object.entries(casesBefore),
    ...all.slice(0, synced),
    ...Object.entries(casesAfter),
    ...all.slice(synced),
    ...Object.entries(pushCases)
  ]
}

/** The problem of a line, or null. */
const check = Effect.fnUntraced(function* (stage: Stage, name: string, prepared: Prepared) {
  const { answers, as, code = 0, first, says, serves, warns } = prepared
  const attempt = Effect.gen(function* () {
    if (first !== undefined) yield* first(stage)
    const line = as === undefined ? name : typeof as === "string" ? as : yield* as(stage)
    if (answers !== undefined) return yield* stage.converse(line, answers)
    if (serves === undefined) return yield* stage.shell(line)
    const command = yield* stage.begin(line, says)
    return yield* command.stop
  })
  const ran = yield* Effect.catchCause(attempt, (cause) =>
    Effect.succeed({ code: null, stdout: "", stderr: Cause.pretty(cause) })
  )
  // Ctrl-C stopped a server.
  const codes = serves === true ? [0, 130] : [code]
  const isExpected =
    ran.code !== null && codes.includes(ran.code) && says.test(ran.stdout) && (warns?.test(ran.stderr) ?? true)
  return isExpected ? null : `${name} ended with ${ran.code}\n${ran.stdout.slice(-600)}\n${ran.stderr.slice(-600)}`
})

describe("the commands", () => {
  it.live(
    "end with the expected exit code and output",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const stage = yield* makeStage
          stage.file("config/tributary.yaml", settings(stage))
          const problems: Array<string> = []
          for (const [name, prepared] of table()) {
            const problem = yield* check(stage, name, prepared)
            if (problem !== null) problems.push(problem)
          }
          assert.strictEqual(problems.join("\n\n"), "")
        })
      ),
    { timeout: 900_000 }
  )
})
