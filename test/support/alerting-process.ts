/**
 * A process that evaluates the alerts of a warehouse once, prints a line, and then sends until it is killed.
 *
 * `--database URL` · `--http URL` or `--slack URL` · `--company NAME` · `--send`: absent, it sends nothing
 */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import * as Send from "../../src/alerts/Send.ts"
import { alertingProcess, alertsTo, httpRoute, slackRoute } from "./alerting.ts"

const { values } = parseArgs({
  options: {
    database: { type: "string", default: "" },
    http: { type: "string" },
    slack: { type: "string" },
    company: { type: "string", default: "north" },
    send: { type: "boolean", default: false }
  }
})

const routes = [
  ...(values.http === undefined ? [] : [httpRoute(values.http)]),
  ...(values.slack === undefined ? [] : [slackRoute(values.slack)])
]

const program = Effect.gen(function* () {
  const owner = `child ${process.pid}`
  const { evaluate, context } = yield* alertingProcess(owner, Redacted.make(values.database), alertsTo(routes), [
    { name: values.company, fingerprint: "0" }
  ])
  console.log(JSON.stringify({ messages: yield* evaluate }))
  return yield* values.send ? Effect.provideContext(Send.sendForever(routes, owner), context) : Effect.never
}).pipe(Effect.scoped)

NodeRuntime.runMain(program)
