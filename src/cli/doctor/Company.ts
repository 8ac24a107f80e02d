/** All checks of one company: token, scopes, budget, freshness, and its webhooks. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import type { CompanyConfiguration } from "../../configuration/Companies.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import type { ConnectorShape, Identity } from "../../connector/Connector.ts"
import { hookUrl } from "../../serve/Serve.ts"
import { eventsOf } from "../ServeLayers.ts"
import { Source } from "../Source.ts"
import * as CompanyChecks from "./CompanyChecks.ts"
import { about, bounded, boundedQuery, checkTimeout, type Findings, within } from "./Finding.ts"
import { provideTables, queryTables, type WarehouseTables } from "./Warehouse.ts"
import * as Webhooks from "./Webhooks.ts"

export interface CompanyOptions {
  readonly settings: Configuration
  readonly catalogue: Catalogue
  readonly tables: WarehouseTables
  readonly sendTest: boolean
}

/** A short timeout: a person waits for each request. */
const requestLimits = {
  attemptsMax: 2,
  requestTimeout: Duration.seconds(4),
  retryAfterMax: Duration.seconds(2)
} as const

type Check<R = never> = Effect.Effect<Findings, never, R>

const none: Check = Effect.succeed([])

/** The checks of what the token reads, in the order of the report. */
const readChecks = (
  company: CompanyConfiguration,
  { settings, catalogue, tables }: CompanyOptions,
  identity: Identity | null
): ReadonlyArray<Check> => {
  const budget = provideTables(
    tables,
    boundedQuery(about("budget", company.name), CompanyChecks.budget(company, settings))
  )
  if (identity === null) return [notIdentified(company, "scopes"), budget, notIdentified(company, "freshness")]
  const { companyId } = identity
  const { findings, paths } = CompanyChecks.scopes(company, catalogue, identity)
  return [
    Effect.succeed(findings),
    budget,
    queryTables(tables, about("freshness", company.name), CompanyChecks.freshness(company, settings, companyId, paths)),
    tables.context === null
      ? none
      : queryTables(tables, about("fields", company.name), CompanyChecks.fields(company, companyId))
  ]
}

const notIdentified = ({ name }: CompanyConfiguration, check: string): Check =>
  Effect.succeed([about(check, name).skipped("the token was not accepted, or the service not reached")])

/** The checks of the company's webhooks, in the order of the report. */
const webhookChecks = (
  company: CompanyConfiguration,
  { settings, tables, sendTest }: CompanyOptions,
  connector: ConnectorShape,
  identity: Identity | null
): ReadonlyArray<Check<Source>> => {
  const subscription = about("subscription", company.name)
  const target = hookUrl(settings.webhooks.publicUrl, company.name)
  if (target === null) {
    return [Effect.succeed([subscription.skipped("webhooks.public_url is not set: events are not received")])]
  }
  return [
    identity === null
      ? notIdentified(company, "subscription")
      : Effect.flatMap(deliverableEvents(company, settings, tables), (events) =>
          bounded(
            subscription,
            Webhooks.subscription(company, connector, target, events, sendTest),
            sendTest ? Duration.times(checkTimeout, 3) : checkTimeout
          )
        ),
    queryTables(tables, about("signing secrets", company.name), Webhooks.secrets(company)),
    tables.context === null ? none : queryTables(tables, about("gaps", company.name), Webhooks.gaps(company.name))
  ]
}

/** The configured events, without those that the source does not know. */
const deliverableEvents = Effect.fnUntraced(function* (
  company: CompanyConfiguration,
  settings: Configuration,
  { context }: WarehouseTables
) {
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

export const checkCompany = Effect.fnUntraced(function* (
  company: CompanyConfiguration,
  options: CompanyOptions
): Effect.fn.Return<CompanyChecks.IdentifiedCompany, never, Source | Scope.Scope> {
  const token = about("token", company.name)
  const connected = yield* Effect.result((yield* Source).connect(company, { ...options.settings, ...requestLimits }))
  if (connected._tag === "Failure") {
    const findings = connected.failure.problems.map((problem) =>
      token.failed("configuration", problem, "correct it in the configuration")
    )
    return { findings, identity: null }
  }
  const connector = connected.success
  const { findings, identity } = yield* within(
    token,
    CompanyChecks.token(company, connector),
    (finding): CompanyChecks.IdentifiedCompany => ({ findings: [finding], identity: null })
  )
  const others = yield* Effect.all(
    [...readChecks(company, options, identity), ...webhookChecks(company, options, connector, identity)],
    { concurrency: "unbounded" }
  )
  return { findings: [...findings, ...others.flat()], identity }
})
