/** All checks of one company: token, scopes, budget, freshness, and its webhooks. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import { companyIdOf } from "../../tasks/TaskQueue.ts"
import type { CompanyConfiguration } from "../../configuration/Companies.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import type { ConnectorShape, Identity } from "../../connector/Connector.ts"
import { hookUrl } from "../../serve/Serve.ts"
import { eventsOf } from "../ServedCompanies.ts"
import { Source } from "../Source.ts"
import * as CompanyChecks from "./CompanyChecks.ts"
import { about, all, check, type Checked, checkTables, checkTimeout, type Findings, Tables, within } from "./Finding.ts"
import * as Webhooks from "./Webhooks.ts"

interface CompanyOptions {
  readonly settings: Configuration
  readonly catalogue: Catalogue
  readonly sendTest: boolean
}

/** A short timeout: a person waits for each request. */
const requestLimits = {
  attemptsMax: 2,
  requestTimeout: Duration.seconds(4),
  retryAfterMax: Duration.seconds(2)
} as const

type Check<R = Tables> = Effect.Effect<Findings, never, R>

const skipped = (check: string, company: CompanyConfiguration, reason: string): Check<never> =>
  Effect.succeed([about(check, company.name).skipped(reason)])

const notIdentified = "the token was not accepted, or the service not reached"

/** The checks of what the token reads, in the order of the report. */
const readChecks = (
  company: CompanyConfiguration,
  { settings, catalogue }: CompanyOptions,
  connector: ConnectorShape,
  identity: Identity | null
): ReadonlyArray<Check> => {
  const { name } = company
  const budget = check("budget", name, (its) => CompanyChecks.budget(its, company))
  if (identity === null) {
    return [skipped("scopes", company, notIdentified), budget, skipped("freshness", company, notIdentified)]
  }
  // The rows are found by the company's number in the warehouse, which the first sync stores.
  const numbered = <A, E, R>(run: (companyId: bigint) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(companyIdOf(name), (stored) => run(stored ?? identity.sourceNumber))
  const { findings, paths } = CompanyChecks.scopes(about("scopes", name), company, catalogue, identity)
  return [
    checkTables("source", name, (its) => CompanyChecks.source(its, company, settings, connector, identity)),
    Effect.succeed(findings),
    budget,
    checkTables("freshness", name, (its) =>
      numbered((id) => CompanyChecks.freshness(its, settings, company, id, paths))
    ),
    checkTables("fields", name, (its) => numbered((id) => CompanyChecks.fields(its, id)), "omitted")
  ]
}

/** The checks of the company's webhooks, in the order of the report. */
const webhookChecks = (
  company: CompanyConfiguration,
  { settings, sendTest }: CompanyOptions,
  connector: ConnectorShape,
  identity: Identity | null
): ReadonlyArray<Check<Tables | Source>> => {
  const { name } = company
  const target = hookUrl(settings.webhooks.publicUrl, name)
  if (target === null) {
    return [skipped("subscription", company, "webhooks.public_url is not set: events are not received")]
  }
  const subscription = Effect.flatMap(deliverableEvents(company, settings), (events) =>
    check(
      "subscription",
      name,
      (its) => Webhooks.subscription(its, company, connector, target, events, sendTest),
      sendTest ? Duration.times(checkTimeout, 3) : checkTimeout
    )
  )
  return [
    identity === null ? skipped("subscription", company, notIdentified) : subscription,
    checkTables("signing secrets", name, (its) => Webhooks.secrets(its, company)),
    checkTables("gaps", name, (its) => Webhooks.gaps(its, name), "omitted")
  ]
}

/** The configured events, without those that the source does not know. */
const deliverableEvents = Effect.fnUntraced(function* (company: CompanyConfiguration, settings: Configuration) {
  const { context } = yield* Tables
  const reader = yield* (yield* Source).deliveries
  const events = eventsOf(company, settings, reader)
  if (context === null) return events
  const unknown = yield* Webhooks.unknownEvents(company.name).pipe(
    Effect.timeout(checkTimeout),
    Effect.orElseSucceed((): ReadonlyArray<string> => []),
    Effect.provideContext(context)
  )
  return events.filter((event) => !unknown.includes(event))
})

/** The value is the identity of the company at the source. */
export const checkCompany = Effect.fnUntraced(function* (
  company: CompanyConfiguration,
  options: CompanyOptions
): Effect.fn.Return<Checked<Identity>, never, Source | Tables | Scope.Scope> {
  const token = about("token", company.name)
  const limited = { ...company, installation: { ...company.installation, ...requestLimits } }
  const connected = yield* Effect.result((yield* Source).connect(limited, options.settings))
  if (connected._tag === "Failure") {
    const findings = connected.failure.problems.map((problem) =>
      token.failed("configuration", problem, "correct it in the configuration")
    )
    return { findings, value: null }
  }
  const connector = connected.success
  const { findings, value: identity } = yield* within(token, CompanyChecks.token(token, company, connector))
  const others = yield* all([
    ...readChecks(company, options, connector, identity),
    ...webhookChecks(company, options, connector, identity)
  ])
  return { findings: [...findings, ...others], value: identity }
})
