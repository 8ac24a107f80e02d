/**
 * `tributary demo --serve`: the services of `serve` and the dashboard, on a reference server whose records change.
 *
 * Promise: the services are those of `tributary serve`. Records change through the API of the reference server, and
 * arrive by schedule or by a signed delivery over HTTPS. It runs until it is stopped.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Configuration } from "../configuration/Configuration.ts"
import type { DashboardConfiguration } from "../configuration/Listeners.ts"
import type { ReferenceFailed } from "../connector/Demo.ts"
import type { SourceError } from "../connector/SourceError.ts"
import { type DemoWorld, startService, subscribe } from "./DemoWebhook.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as ServeLayers from "./ServeLayers.ts"

/** The interval of each resource: short enough to watch, and well within the budget. */
const interval = Duration.minutes(1)
/** The interval of changes at the source. */
const changeEveryMs = 6_000

/**
 * Starts the services within the scope; the settings have a listener whose certificate the reference server trusts. Returns
 * the link of the dashboard that allows actions, else its address.
 */
export const begin = Effect.fn("DemoServe.begin")(function* (world: DemoWorld, at: DashboardConfiguration) {
  const settings: Configuration = {
    ...world.settings,
    freshnessOf: () => Duration.times(interval, 2),
    scheduleOf: () => ({ timing: { kind: "every", interval }, missed: "once", jitterMax: null })
  }
  const { page, port } = yield* Effect.gen(function* () {
    const page = yield* ServeLayers.startDashboard(at, settings)
    const { port } = yield* startService(settings, [], { more: yield* ServeLayers.backgroundWork(settings, page) })
    return { page, port }
  }).pipe(
    Effect.mapError((error) =>
      error._tag === "CommandFailed"
        ? error
        : new CommandFailed({ code: exitCode.configuration, message: error.message })
    )
  )
  for (const company of world.sources) yield* subscribe(settings, company, port)
  yield* Effect.forkScoped(life(world))
  return (process.stdout.isTTY ? yield* page.link : null) ?? page.url
})

/** Changes at the source. At least half of them fire an event, which is delivered at once. */
const life = Effect.fnUntraced(function* ({ demo, reference, sources }: DemoWorld) {
  for (let step = 0; ; step += 1) {
    yield* Effect.sleep(changeEveryMs)
    const { connector } = sources[step % sources.length]!
    // The demo data allows a limited number of changes.
    const changed: Effect.Effect<unknown, SourceError | ReferenceFailed> =
      step % 4 < 2 ? demo.fire(connector) : demo.change(connector)
    yield* Effect.andThen(changed, demo.deliver(reference)).pipe(
      Effect.catch(({ message }) => Effect.logDebug(`nothing changed at the source: ${message}`))
    )
  }
})
