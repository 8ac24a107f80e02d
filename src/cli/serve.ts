/**
 * `tributary serve`: the process that syncs by schedule, receives and processes webhook deliveries, pushes outbox rows,
 * and serves the dashboard until it is stopped.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Command from "effect/cli/Command"
import type { Resource } from "../catalogue/Resource.ts"
import * as CompanyLog from "../log/CompanyLog.ts"
import * as Configuration from "../configuration/Configuration.ts"
import * as ProcessMetrics from "../status/ProcessMetrics.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"
import * as Serve from "../serve/Serve.ts"
import * as StoredCompanies from "../companies/StoredCompanies.ts"
import { company, config, json, textFlag, withExamples } from "./Command.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import type { DeliveryReader } from "../connector/Delivery.ts"
import { linkCommand, tokensCommand } from "./serveAccess.ts"
import * as ServeLayers from "./ServeLayers.ts"
import * as ServedCompanies from "./ServedCompanies.ts"
import { Source } from "./Source.ts"
import * as Targets from "./Targets.ts"
import { Version } from "./Version.ts"
import * as Warehouse from "./Warehouse.ts"

/** Time limit for work in flight after a stop; then the program exits. */
const stopMaxMs = 9_000

/** The stored state of a company's subscriptions, for people. Sends no request to the source. */
const subscriptionLine = (name: string, seen: ReadonlyArray<SubscriptionStore.SubscriptionRow>): string => {
  const remedy = `tributary webhooks ensure --company ${name}`
  const [one] = seen.filter(({ state }) => state !== "deleted")
  if (one === undefined) return `company ${name}: no subscription is known; create one: ${remedy}`
  const { id, url, state, events, missingEvents } = one
  if (state !== "active")
    return `company ${name}: subscription ${id} to ${url} is ${state}; to resume deliveries: ${remedy}`
  const delivers = `company ${name}: subscription ${id} delivers ${events.join(", ")} to ${url}`
  return SubscriptionStore.isHealthy(one) ? delivers : `${delivers}; it lacks ${missingEvents.join(", ")}: ${remedy}`
}

/** Companies that are named; further ones are only counted. */
const namesMax = 20

/** The number of scheduled resources, for people. */
const scheduleLine = (
  { scheduleOf }: Configuration.Configuration,
  company: string,
  resources: ReadonlyArray<Resource>
): string => {
  const scheduled = resources.filter(({ path }) => scheduleOf(path).timing.kind !== "off").length
  const others = resources.length - scheduled
  const asked = others === 0 ? "" : `, ${Output.count(others)} only on request`
  return `Syncing ${Output.plural(scheduled, "resource")} of company ${company} by schedule${asked}`
}

/** The companies of the warehouse with these names (none: all), for people. */
const storedLines = Effect.fnUntraced(function* (settings: Configuration.Configuration, names: ReadonlyArray<string>) {
  const none: StoredCompanies.StoredCompanies = { installations: settings.installations, companies: [], unusable: [] }
  // Companies are served without these lines.
  const { companies, unusable } = yield* Effect.orElseSucceed(StoredCompanies.readOnly(settings), () => none)
  const isServed = ({ name }: { readonly name: string }) => names.length === 0 || names.includes(name)
  const served = companies.filter(isServed)
  const paused = served.filter((one) => one.paused !== null).length
  const all = `Syncing ${Output.plural(served.length - paused, "company", "companies")} of the warehouse`
  return [
    ...(served.length === 0 ? [] : [paused === 0 ? all : `${all}; ${Output.count(paused)} more paused`]),
    ...unusable.filter(isServed).map(({ problem }) => `not synced: ${problem}`)
  ]
})

/** Companies of the file, with their resources. */
type Chosen = Effect.Success<ReturnType<typeof Targets.check>>

/** The schedules of the companies of the file, for people. */
const companyLines = (settings: Configuration.Configuration, targets: Chosen) => [
  ...targets.slice(0, namesMax).map(({ name, resources }) => scheduleLine(settings, name, resources)),
  ...(targets.length > namesMax
    ? [`and ${Output.count(targets.length - namesMax)} more companies; see them with tributary status`]
    : [])
]

/** The subscriptions of companies of the file, for people. */
const subscriptionLines = (settings: Configuration.Configuration, shown: Chosen, reader: DeliveryReader) =>
  Effect.forEach(
    settings.companies.filter(({ name }) => shown.some((one) => one.name === name)),
    (one) =>
      SubscriptionStore.read(one.name, ServedCompanies.eventsOf(one, settings, reader)).pipe(
        Effect.map((seen) => subscriptionLine(one.name, seen)),
        // Deliveries are received without this line.
        Effect.catch(() => Effect.succeed(`company ${one.name}: its subscriptions cannot be read now`))
      )
  )

/** How deliveries reach the listener, for people. */
const frontLines = ({ webhooks }: Configuration.Configuration, url: string): ReadonlyArray<string> => {
  const { publicUrl, tls } = webhooks
  if (publicUrl === null) {
    return [
      "set webhooks.public_url, which webhooks ensure needs: the https address at which the service reaches this listener"
    ]
  }
  return tls === null ? [`a TLS proxy must forward ${publicUrl}/hooks/ to ${url}/hooks/ with unchanged bodies`] : []
}

export const command = Command.make(
  "serve",
  {
    listen: textFlag("listen", "HOST:PORT", "Address for deliveries (default: webhooks.listen, else 127.0.0.1:8085)"),
    monitoring: textFlag(
      "monitoring",
      "HOST:PORT",
      "Address for health and metrics (default: monitoring.listen, else the one for deliveries)"
    ),
    dashboard: textFlag(
      "dashboard",
      "HOST:PORT",
      "Address of the dashboard, or off (default: dashboard.listen, else 127.0.0.1:8086)"
    ),
    company,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const say = (line: string) => (flags.json ? Effect.void : Output.printLines([line]))

    const served = Effect.gen(function* () {
      const settings = yield* Configuration.load(
        {
          config: Option.getOrUndefined(flags.config),
          listen: Option.getOrUndefined(flags.listen),
          monitoring: Option.getOrUndefined(flags.monitoring),
          dashboard: Option.getOrUndefined(flags.dashboard)
        },
        process.env
      )
      // With a key, the other companies are those of the warehouse.
      const targets = yield* Targets.check(settings, { companies: flags.company }, settings.companiesKey !== null)
      const names = targets.map(({ name }) => name)
      // A listener without a warehouse that could ever answer would refuse every event.
      yield* Warehouse.requireServer(settings)
      const reader = yield* (yield* Source).deliveries
      const warehouse = Warehouse.layer(settings)
      const { service, page } = yield* Effect.gen(function* () {
        // The dashboard starts before the service and stops after it, and reports meanwhile that the warehouse is
        // unreachable.
        const page =
          settings.dashboard === null ? null : yield* ServeLayers.startDashboard(settings.dashboard, settings)
        const more = yield* ServeLayers.backgroundWork(settings, page)
        // Loading the engine takes 0.2 s, which other commands need not wait for.
        const { make: ownership } = yield* Effect.promise(() => import("../processes/ClusterOwnership.ts"))
        const options = yield* ServeLayers.service(settings, flags.company, {
          warehouse,
          ownership,
          more,
          hasStored: true
        })
        const always = yield* ProcessMetrics.make(yield* Version)
        return { service: yield* Serve.start({ ...options, always }), page }
      }).pipe(
        Effect.catchTag("ListenError", (error) =>
          Effect.fail(new CommandFailed({ code: exitCode.configuration, message: error.message }))
        )
      )
      const served = names.length === 0 ? "the companies of the warehouse" : Output.firstOf(names, namesMax)
      yield* Effect.logInfo(`listening at ${service.url} for ${served}`)

      const announce = Effect.gen(function* () {
        const context = yield* service.ready
        // Output that is no terminal is collected, and the link gives the right to act.
        const link = process.stdout.isTTY && page !== null ? yield* page.link : null
        if (flags.json)
          return yield* Output.print(
            Output.toJson({
              ready: true,
              listening: service.url,
              dashboard: page?.url ?? null,
              link
            })
          )
        if (page !== null) {
          yield* say(`The dashboard is at ${link ?? `${page.url}; to act there: tributary serve link`}`)
        }
        for (const line of companyLines(settings, targets)) yield* say(line)
        const stored = yield* Effect.provideContext(storedLines(settings, flags.company), context)
        for (const line of stored) yield* say(line)
        if (settings.monitoring.listen !== null) yield* say(`Health and metrics are at ${service.monitoringUrl}`)
        yield* say(`Receiving events at ${service.url}/hooks/<company>`)
        const shown = targets.slice(0, namesMax)
        const lines = yield* Effect.provideContext(subscriptionLines(settings, shown, reader), context)
        for (const line of lines) yield* say(`  ${line}`)
        for (const line of frontLines(settings, service.url)) yield* say(`  ${line}`)
      })
      return yield* Effect.raceFirst(service.ended, Effect.andThen(announce, Effect.never))
    })

    // The scope is closed by hand, so that a service that does not stop cannot delay the exit.
    const scope = yield* Scope.make()
    const running = yield* Effect.forkDetach(
      Effect.provideService(served.pipe(Effect.provide(CompanyLog.layer)), Scope.Scope, scope)
    )
    const stop = Effect.gen(function* () {
      const stopped = yield* Deferred.make<void>()
      yield* Scope.close(scope, Exit.void).pipe(
        Effect.andThen(Fiber.interrupt(running)),
        Effect.andThen(Deferred.succeed(stopped, undefined)),
        Effect.forkDetach
      )
      yield* Effect.sleep(stopMaxMs).pipe(
        Effect.andThen(Effect.logWarning("stopped with work in flight; the next start repeats it")),
        Effect.andThen(Deferred.succeed(stopped, undefined)),
        Effect.forkDetach
      )
      yield* Deferred.await(stopped)
    })
    return yield* Fiber.join(running).pipe(
      Effect.onInterrupt(() =>
        Effect.logInfo("stopping: no new work begins; work in flight finishes or is rolled back")
      ),
      Effect.onExit(() => stop)
    )
  })
).pipe(
  Command.withSubcommands([linkCommand, tokensCommand]),
  withExamples({
    "tributary serve": "For every company of the configuration and of the warehouse",
    "tributary serve --dashboard 127.0.0.1:9001": "The dashboard at another address",
    "tributary serve --listen 127.0.0.1:9000 --json": "One JSON line when it is ready"
  })
)
