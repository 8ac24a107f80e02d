/**
 * A receiver in a process of its own, for tests that kill it and for the bench: listener, receiver and inbox on the
 * given database, with one secret for every company. It ends with its input.
 *
 * `--database URL` (absent: nothing is stored, and every event is reported as stored) · `--secret TEXT` · `--writers N`
 */
import { createInterface } from "node:readline"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Duration, Effect, Redacted } from "effect"
import { deliveryReader } from "../../connectors/service-v2/client/Deliveries.ts"
import { Database } from "../../src/postgres/Database.ts"
import * as Inbox from "../../src/inbox/InboxWriter.ts"
import * as HttpServer from "../../src/ingest/HttpServer.ts"
import * as Metrics from "../../src/status/Metrics.ts"
import * as ReceivingMetrics from "../../src/status/ReceivingMetrics.ts"
import * as Receiver from "../../src/ingest/Ingest.ts"

const { values } = parseArgs({
  options: {
    database: { type: "string" },
    secret: { type: "string", default: "whsec_test" },
    writers: { type: "string", default: "2" }
  }
})

const secrets = [Redacted.make(values.secret)]
createInterface({ input: process.stdin }).once("close", () => process.exit(0))

const nowhere: Pick<Inbox.InboxWriter, "put"> = { put: (_event, done) => done("stored") }

const program = Effect.gen(function* () {
  const inbox =
    values.database === undefined
      ? null
      : yield* Inbox.make({ writers: Number(values.writers) }).pipe(
          Effect.provide(Database.layerUrl(Redacted.make(values.database)))
        )
  const receiver = yield* Receiver.make({
    reader: deliveryReader,
    keyring: { of: () => secrets, most: () => 1, refresh: Effect.succeed(true) },
    inbox: inbox ?? nowhere,
    settings: { tolerance: Duration.seconds(300), aheadMax: Duration.seconds(60) }
  })
  const listener = yield* HttpServer.listen({
    host: "127.0.0.1",
    port: 0,
    tls: null,
    bodyBytesMax: 1024 * 1024,
    receiver,
    ready: inbox?.probe ?? Effect.void,
    metrics: Effect.sync(() =>
      inbox === null ? "" : Metrics.render(ReceivingMetrics.make(receiver.stats(), inbox.stats()))
    )
  })
  console.log(JSON.stringify({ port: listener.port }))
  return yield* Effect.never
}).pipe(Effect.scoped)

NodeRuntime.runMain(program)
