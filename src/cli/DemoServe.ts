/**
 * `tributary demo --serve`: the services of `serve` and the dashboard, on a reference server whose records change.
 *
 * Promise: the services are those of `tributary serve`. Records change through the API of the reference server, and
 * arrive by schedule or by a signed delivery over HTTPS. It runs until it is stopped.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Configuration } from "../configuration/Configuration.ts"
import type { DashboardConfiguration } from "../configuration/Listeners.ts"
import type { ListenError } from "../http/Server.ts"
import type { ConfigurationError } from "../configuration/ConfigurationError.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import type { Database } from "../postgres/Database.ts"
import * as StaticOwnership from "../processes/StaticOwnership.ts"
import * as Serve from "../serve/Serve.ts"
import { failed, subscribe } from "./DemoWebhook.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as ServeLayers from "./ServeLayers.ts"
import type { Demo, Reference, ReferenceFailed } from "../connector/Demo.ts"
import type { Source } from "./Source.ts"

interface LivingDemo {
  readonly demo: Demo
  readonly reference: Reference
  /** With the demo's companies, and with a listener whose certificate the reference server trusts. */
  readonly settings: Configuration
  readonly page: DashboardConfiguration
  readonly companies: ReadonlyArray<SyncCompany>
}

/** The interval of each resource: short enough to watch, and well within the budget. */
const interval = Duration.minutes(1)
/** The interval of changes at the source. */
const changeEveryMs = 6_000

const notListening = ({ message }: ListenError | ConfigurationError) =>
  new CommandFailed({ code: exitCode.configuration, message })

/** Starts the services within the scope. Returns the link of the dashboard that allows actions, else its address. */
export const begin = Effect.fn("DemoServe.begin")(function* (
  living: LivingDemo
): Effect.fn.Return<string, CommandFailed | ReferenceFailed, Source | Scope.Scope | Database | SqlClient.SqlClient> {
  const { companies } = living
  const settings: Configuration = {
    ...living.settings,
    freshnessOf: () => Duration.times(interval, 2),
    scheduleOf: () => ({ timing: { kind: "every", interval }, missed: "once", jitterMax: null })
  }
  const page = yield* ServeLayers.startDashboard(living.page, settings).pipe(Effect.mapError(notListening))
  const here = Layer.succeedContext(yield* Effect.context<Database | SqlClient.SqlClient>())
  const options = yield* Effect.flatMap(ServeLayers.backgroundWork(settings, page), (more) =>
    ServeLayers.service(settings, [], {
      warehouse: here,
      hasStored: false,
      ownership: () => StaticOwnership.make({ ordinal: 0, processes: 1 }),
      more
    })
  ).pipe(Effect.mapError(notListening))
  // The subscriptions are created below, and no other process changes them.
  const service = yield* Serve.start({ ...options, checkInterval: null }).pipe(Effect.mapError(notListening))
  yield* Effect.raceFirst(service.ready, service.ended).pipe(Effect.mapError(({ message }) => failed(message)))

  for (const company of settings.companies) {
    const { connector } = companies.find(({ name }) => name === company.name)!
    yield* subscribe(settings, company, connector, service.port)
  }
  yield* Effect.forkScoped(life(living))
  return (process.stdout.isTTY ? yield* page.link : null) ?? page.url
})

/** Changes at the source. At least half of them fire an event, which is delivered at once. */
const life = Effect.fnUntraced(function* ({ demo, reference, companies }: LivingDemo) {
  for (let step = 0; ; step += 1) {
    yield* Effect.sleep(changeEveryMs)
    const { connector } = companies[step % companies.length]!
    // The demo data allows a limited number of changes.
    const changed: Effect.Effect<unknown, SourceError | ReferenceFailed> =
      step % 4 < 2 ? demo.fire(connector) : demo.change(connector)
    yield* Effect.andThen(changed, demo.deliver(reference)).pipe(
      Effect.catch(({ message }) => Effect.logDebug(`nothing changed at the source: ${message}`))
    )
  }
})
