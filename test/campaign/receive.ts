/**
 * The receiving process of a campaign, to be killed: the webhook side of `tributary serve` without reconcile, so that
 * gaps that only reconcile closes stay visible. It prints `{"port": n}` when events can be stored, and ends with its
 * input.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { deliveryReader } from "../../connectors/service-v2/client/Deliveries.ts"
import * as ClusterOwnership from "../../src/processes/ClusterOwnership.ts"
import * as Registry from "../../src/serve/Registry.ts"
import * as Serve from "../../src/serve/Serve.ts"
import { company, type Settings, settingsVariable, source, warehouse } from "./Receiving.ts"

process.stdin.once("close", () => process.exit(0)).resume()
const settings = JSON.parse(process.env[settingsVariable]!) as Settings

const program = Effect.gen(function* () {
  const context = yield* Layer.build(source)
  const service = yield* Serve.start({
    reader: deliveryReader,
    listen: { host: "127.0.0.1", port: settings.port, tls: null, bodyBytesMax: 1024 * 1024 },
    window: { tolerance: Duration.seconds(300), aheadMax: Duration.seconds(60) },
    publicUrl: null,
    checkInterval: null,
    companies: Effect.forEach(settings.companies, (one) =>
      Effect.map(company(settings, one), (connected) => ({
        company: connected,
        secrets: { name: one.name, token: Redacted.make(one.token), configured: [Redacted.make(one.secret)] },
        fingerprint: one.name
      }))
    ).pipe(Effect.map(Registry.fixed), Effect.provideContext(context), Effect.orDie),
    ownership: ClusterOwnership.make,
    warehouse: warehouse(settings.databaseUrl),
    isTransient: () => true
  })
  yield* Effect.raceFirst(service.ready, service.ended)
  process.stdout.write(`${JSON.stringify({ port: service.port })}\n`)
  return yield* service.ended
}).pipe(Effect.scoped, Effect.provideService(Logger.LogToStderr, true))

NodeRuntime.runMain(program)
