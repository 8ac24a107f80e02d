/**
 * The wiring: the only file of `src` that knows the connector. Its modules are loaded when a command needs them.
 */
import { readFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import { serviceV2 } from "../connectors/service-v2/catalogue/index.ts"
import { exitCode } from "./cli/Exit.ts"
import { Source } from "./cli/Source.ts"
import { ReferenceFailed } from "./connector/Demo.ts"
import * as Output from "./cli/Output.ts"
import * as Program from "./cli/Program.ts"
import * as Telemetry from "./cli/Telemetry.ts"
import type { CompanyConfiguration } from "./configuration/Companies.ts"
import type { Configuration } from "./configuration/Configuration.ts"
import { ConfigurationError } from "./configuration/ConfigurationError.ts"

const packageJson = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string }

/** What every client of a company needs: its budget, its catalogue and its sockets. */
const partsOf = Effect.fnUntraced(function* (company: CompanyConfiguration, configuration: Configuration) {
  const { budgetScope, requestsPerMinute, retryAfterMax } = company.installation
  const [{ Transport }, { Budget }, { Budgets }, HttpClient, WarehouseCatalogue] = yield* Effect.promise(() =>
    Promise.all([
      import("../connectors/service-v2/client/index.ts"),
      import("./budget/Budget.ts"),
      import("./budget/Budgets.ts"),
      import("effect/http/HttpClient"),
      import("./warehouse/WarehouseCatalogue.ts")
    ])
  )
  const budgets = yield* Budgets
  const budget = yield* budgets.of({
    baseUrl: company.url,
    token: company.token,
    scope: budgetScope,
    requestsPerMinute,
    pauseWaitMax: retryAfterMax
  })
  const { mistakes, proxies, secureContext } = configuration.networkOf(company.installation)
  if (mistakes.length > 0) {
    return yield* new ConfigurationError({
      problems: mistakes.map(([key, mistake]) => `company ${company.name}: requests.${key}: ${mistake}`)
    })
  }
  const http = yield* Transport.makeUndici({ proxies, ...(secureContext === null ? {} : { secureContext }) })
  const catalogue = yield* WarehouseCatalogue.addConfigured(serviceV2, configuration.resources).pipe(
    Effect.mapError(({ problems }) => new ConfigurationError({ problems }))
  )
  const context = Context.make(Budget, budget).pipe(Context.add(HttpClient.HttpClient, http))
  return { catalogue, context }
})

const configurationError =
  ({ name }: CompanyConfiguration) =>
  (error: { readonly message: string }) =>
    new ConfigurationError({ problems: [`company ${name}: ${error.message}`] })

const source = Layer.succeed(Source, {
  catalogue: serviceV2,
  connect: Effect.fnUntraced(function* (company, configuration) {
    const { ServiceClient } = yield* Effect.promise(() => import("../connectors/service-v2/client/index.ts"))
    const { catalogue, context } = yield* partsOf(company, configuration)
    const its = company.installation
    const { protect } = yield* Effect.promise(() => import("./connector/ProtectedConnector.ts"))
    const { select } = yield* Effect.promise(() => import("./connector/SelectedConnector.ts"))
    const client = yield* ServiceClient.make({
      baseUrl: company.url,
      token: company.token,
      catalogue,
      companyId: company.companyId,
      pageSize: its.pageSize ?? "discover",
      paging: { mode: its.pagingMode },
      itemsKey: its.itemsKey,
      includeCustomFields: its.customFields,
      requestTimeout: its.requestTimeout,
      retry: { attemptsMax: its.attemptsMax },
      retryAfterMax: its.retryAfterMax,
      rateLimitedWaitMax: its.retryAfterMax,
      allowHttp: its.allowHttp,
      requestIdHeader: its.requestIdHeader,
      rotateField: configuration.webhooks.rotateField
    }).pipe(Effect.provideContext(context), Effect.mapError(configurationError(company)))
    return protect(select(client))
  }),
  radar: Effect.fnUntraced(function* (company, configuration, bounds) {
    const [{ run }, { exclusionOf }] = yield* Effect.promise(() =>
      Promise.all([import("../connectors/service-v2/radar/index.ts"), import("./configuration/Companies.ts")])
    )
    const { catalogue, context } = yield* partsOf(company, configuration)
    // An answer is compared with what is documented; the rules only say what of it is recorded.
    const read = [...catalogue.resources].flatMap(([path, one]) =>
      exclusionOf(company, path) === undefined
        ? [[path, { ...(one.protection?.sent ?? one), protection: one.protection }] as const]
        : []
    )
    return yield* run({
      ...bounds,
      baseUrl: company.url,
      token: company.token,
      catalogue: { ...catalogue, resources: new Map(read) },
      allowHttp: company.installation.allowHttp,
      requestTimeout: company.installation.requestTimeout,
      retryAfterMax: company.installation.retryAfterMax
    }).pipe(Effect.provideContext(context), Effect.mapError(configurationError(company)))
  }),
  deliveries: Effect.map(
    Effect.promise(() => import("../connectors/service-v2/client/Deliveries.ts")),
    ({ deliveryReader }) => deliveryReader
  ),
  reference: Effect.fnUntraced(function* (options) {
    const server = yield* Effect.promise(() => import("../connectors/service-v2/reference-server/ReferenceServer.ts"))
    const reference = yield* server
      .start(options)
      .pipe(Effect.mapError((error) => new ReferenceFailed({ message: error.message })))
    if (options.like === undefined) return reference
    const { apply } = yield* Effect.promise(() => import("../connectors/service-v2/radar/index.ts"))
    return { ...reference, differences: yield* apply(reference, options.like) }
  }),
  demo: Effect.map(
    Effect.promise(() => import("../connectors/service-v2/demo/Demo.ts")),
    ({ demo }) => demo
  ),
  sandbox: Effect.map(
    Effect.promise(() => import("../connectors/service-v2/demo/Sandbox.ts")),
    ({ sandbox }) => sandbox
  ),
  models: Effect.map(
    Effect.promise(() => import("../connectors/service-v2/models/index.ts")),
    ({ readModels }) => readModels()
  ),
  invariants: Effect.map(
    Effect.promise(() => import("../connectors/service-v2/invariants/index.ts")),
    ({ readInvariants }) => readInvariants()
  )
})

/** Commands that run until a signal ends them. */
const servers: ReadonlySet<string | undefined> = new Set(["serve", "reference-server"])

// A closed pipe (`| head`, a closed log) does not end the program: `serve` continues, and a command finishes its work.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})

Program.run(packageJson.version, process.argv.slice(2)).pipe(
  Effect.provide(Layer.mergeAll(source, NodeServices.layer)),
  // A failure is on standard error already. A defect is printed here.
  Effect.tapCause((cause) =>
    Cause.hasDies(cause)
      ? Output.note(`tributary: this is a bug of the program; please report it\n${Cause.pretty(cause)}`, "Fatal")
      : Effect.void
  ),
  Effect.provide(Telemetry.layer(process.env)),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    teardown: (exit, onExit) => {
      const end = (code: number) => {
        // `process.exit` waits for threads, and so for a pipe that no program writes to: a second signal ends that.
        for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal)
        onExit(code)
      }
      if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) return end(exitCode.fault)
      Runtime.defaultTeardown(exit, (code) => {
        const isStopped = code === exitCode.interrupted && servers.has(process.argv[2])
        // A signal is the usual end of a server, unless its end failed. It may get the signal twice.
        return isStopped ? onExit(Number(process.exitCode ?? 0)) : end(code)
      })
    }
  })
)
