/** All checks of one company: its token, what the token reads, its rows and its webhooks. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { describePause } from "../../budget/Pause.ts"
import { companyFingerprint } from "../../budget/TokenFingerprint.ts"
import * as BudgetState from "../../budget/BudgetState.ts"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import { type CompanyConfiguration, exclusionOf } from "../../configuration/Companies.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import type { Identity } from "../../connector/Connector.ts"
import { SourceError } from "../../connector/SourceError.ts"
import * as Statement from "../../postgres/Statement.ts"
import { companyIdOf } from "../../tasks/TaskQueue.ts"
import { confirmSource } from "../../sync/SourceGuard.ts"
import * as FieldFinding from "../../warehouse/FieldFinding.ts"
import { type BlockedResources, blockedResources } from "../AccessBlocks.ts"
import { chooseResources } from "../CompanyResources.ts"
import { failureKindOf } from "../Exit.ts"
import * as Output from "../Output.ts"
import { Source } from "../Source.ts"
import {
  about,
  type About,
  type Check,
  type Checked,
  type Finding,
  type Findings,
  runAll,
  Tables,
  within
} from "./Finding.ts"
import type { CompanyInput } from "./Webhooks.ts"
import * as Webhooks from "./Webhooks.ts"

/** A company whose token the source accepted. */
interface IdentifiedInput extends CompanyInput {
  readonly identity: Identity
}

/** The limit that the service documents for one token (LIM-02). */
const documentedPerMinute = 600

/** Whether the source accepts the token, and for which company. */
const token = Effect.fnUntraced(function* (
  { ok, warning, failed }: About,
  { company, connector }: CompanyInput
): Effect.fn.Return<Checked<Identity>> {
  const asked = yield* Effect.result(connector.identify)
  if (asked._tag === "Failure") {
    const error = asked.failure
    const finding =
      error.reason._tag === "SourcePaused"
        ? warning(error.message, error.remedy)
        : error.reason._tag === "RateLimited"
          ? warning(error.message, "wait for that time; if it happens again, another program uses the token too")
          : failed(failureKindOf(error), error.message, error.remedy)
    return { findings: [finding], value: null }
  }
  const identity = asked.success
  const { sourceNumber, user } = identity
  const text = `accepted, company ${sourceNumber}${user === null ? "" : `, user ${Output.shown(user)}`}`
  const finding =
    company.companyId !== null && company.companyId !== sourceNumber
      ? failed(
          "configuration",
          `it belongs to company ${sourceNumber}, and company_id is ${company.companyId}`,
          "correct company_id, or use the token of the other company"
        )
      : ok(text)
  return { findings: [finding], value: identity }
})

/** Whether the warehouse's rows of the company come from the configured source. */
const source = Effect.fnUntraced(function* (
  { ok, failed }: About,
  { company, settings, connector, identity }: IdentifiedInput
) {
  const configured = settings.companies.map(({ name }) => name)
  const confirmed = yield* Effect.result(
    confirmSource({ ...company, configured }, identity, connector.source?.address ?? null)
  )
  if (confirmed._tag === "Success") return [ok("the warehouse's rows come from this source, or there are none yet")]
  const error = confirmed.failure
  if (!(error instanceof SourceError)) return yield* error
  return [failed("configuration", error.message, error.remedy)]
})

/** Two names of one company: the second one that a sync reads is refused. */
export const duplicateCompanies = (
  companies: ReadonlyArray<{ readonly name: string; readonly url: string; readonly sourceNumber: bigint }>
): Findings =>
  [...Map.groupBy(companies, ({ url, sourceNumber }) => `${sourceNumber} of ${url}`)]
    .filter(([, same]) => same.length > 1)
    .map(([id, same]) =>
      about("token").warning(
        `${same.map(({ name }) => name).join(" and ")} are tokens of the same company, ${id}`,
        "leave one of them out, or check whether one is the wrong token"
      )
    )

const describeBlocked = ({ reason, resources }: BlockedResources): string => `${reason}: ${resources.join(", ")}`

/** The resources that the company reads, and those of them that the token may not. */
const readable = ({ catalogue, company, identity }: IdentifiedInput) => {
  const { resources: wanted } = chooseResources(catalogue, company)
  const blocked = blockedResources(wanted, identity)
  const blockedPaths = new Set(blocked.flatMap(({ resources }) => resources))
  return { wanted, blocked, paths: wanted.map(({ path }) => path).filter((path) => !blockedPaths.has(path)) }
}

/** Whether the token may read the configured resources. */
const scopes = ({ ok, warning, failed, skipped }: About, input: IdentifiedInput): Findings => {
  const { company, identity } = input
  const { wanted, blocked, paths } = readable(input)
  const all = Output.plural(wanted.length, "resource")
  if (blocked.length === 0) {
    return [
      identity.scopes === null
        ? skipped("the service does not list the scopes of a token; a sync reports missing ones")
        : ok(`the token may read everything that is configured (${all})`)
    ]
  }
  if (paths.length === 0) {
    return [
      failed(
        "refused",
        `the token may read nothing of what is configured (${all})`,
        "give the token the scopes of the configured resources"
      )
    ]
  }
  // A resource that the configuration names must be readable. A sync skips any other.
  if (company.resources !== null) {
    return blocked.map((one) =>
      failed("refused", describeBlocked(one), "give the token that, or leave the resources out of the configuration")
    )
  }
  return [
    warning(
      `the token may read ${paths.length} of ${all}; ${blocked.map(describeBlocked).join("; ")}`,
      "give the token those scopes, or name the readable resources under resources; a sync skips the others"
    )
  ]
}

/** The configured rate limit, and whether the source enforces a lower one or a pause. */
const budget = Effect.fnUntraced(function* ({ ok, warning }: About, { company }: CompanyInput) {
  const allowed = company.installation.requestsPerMinute
  const limit = allowed === null ? "no limit is configured" : `${Output.plural(allowed, "request")} a minute`
  const findings: Array<Finding> = []
  if (allowed === null || allowed > documentedPerMinute) {
    findings.push(
      warning(
        `${limit}, and the service documents ${documentedPerMinute} for a token`,
        `set budget.requests_per_minute to ${documentedPerMinute} or less`
      )
    )
  }
  const { context } = yield* Tables
  if (context !== null) {
    const fingerprint = companyFingerprint(company)
    const [state] = yield* BudgetState.readBudgets([fingerprint]).pipe(Effect.provideContext(context))
    const pausedBy = state?.pausedBy ?? null
    if (state !== undefined && state.pausedMs > 0) {
      const why = pausedBy === null ? "an answer requested a pause (Retry-After)" : describePause(pausedBy)
      findings.push(
        warning(
          `no request is sent for another ${Output.elapsed(state.pausedMs)}: ${why}`,
          pausedBy === null || pausedBy.status === 429
            ? "wait; if it happens again, another program uses the token, or budget.requests_per_minute is too high; when the fault is gone: tributary budget release"
            : "wait; when the fault is gone: tributary budget release"
        )
      )
    } else if (state !== undefined && state.allowed !== null && allowed !== null && state.allowed < allowed - 1) {
      const { lastRefusalAt, readAt } = state
      const sinceMs = readAt.getTime() - (lastRefusalAt ?? readAt).getTime()
      findings.push(
        warning(
          `${limit} are configured, ${state.allowed} are possible: the service answered 429 ${Output.elapsed(sinceMs)} ago`,
          "another program uses the token: give it one of its own, or raise budget.reserve_percent"
        )
      )
    }
  }
  return findings.length > 0 ? findings : [ok(`${limit}, no pause`)]
})

/** The company's number in the warehouse, by which its rows are found; the first sync stores it. */
const storedNumber = ({ company, identity }: IdentifiedInput) =>
  Effect.map(companyIdOf(company.name), (stored) => stored ?? identity.sourceNumber)

/** Fields that change at every read, and fields that the source no longer sends. */
const fields = Effect.fnUntraced(function* ({ warning }: About, input: IdentifiedInput) {
  const companyId = yield* storedNumber(input)
  const findings = (yield* FieldFinding.read).filter((one) => one.companyId === companyId)
  return findings.map((finding) => {
    const { found, remedy } = FieldFinding.partsOf(finding.resource, finding)
    return warning(found, remedy)
  })
})

const shownMax = 5

export const agesStatement = Statement.make({
  name: "read the ages of the resources",
  params: ["int8"],
  columns: { resource: "text", agems: "float8" },
  text: `select resource, (extract(epoch from age) * 1000)::float8 as agems
           from tributary.freshness where company_id = $1 and fresh_at is not null`
})

/** The age of each resource against its target. */
const freshness = Effect.fnUntraced(function* ({ ok, warning }: About, input: IdentifiedInput) {
  const { company, settings } = input
  const { paths } = readable(input)
  const rows = yield* Statement.run(agesStatement, [yield* storedNumber(input)])
  const ages = new Map(rows.map(({ resource, agems }) => [resource, agems]))
  const wanted = paths.filter((path) => settings.scheduleOf(path).timing.kind !== "off")
  const never = wanted.filter((path) => !ages.has(path))
  const late = wanted
    .map((path) => ({ path, age: ages.get(path) ?? 0, targetMs: Duration.toMillis(settings.freshnessOf(path)) }))
    .filter(({ age, targetMs }) => age > targetMs)
    .sort((a, b) => b.age / b.targetMs - a.age / a.targetMs)
  if (ages.size === 0) return [warning("nothing was synced yet", "tributary sync")]
  const unread = [...ages.keys()].filter((path) => exclusionOf(company, path) !== undefined).sort()
  const kept =
    unread.length === 0
      ? []
      : [
          ok(
            `no longer read, since exclude_resources excludes them; their rows stay: ${Output.firstOf(unread, shownMax)}`
          )
        ]
  if (never.length === 0 && late.length === 0)
    return [ok(`${Output.plural(wanted.length, "resource")} within their freshness targets`), ...kept]
  const ofAll = `${late.length} of ${Output.plural(wanted.length, "resource")}`
  const lateNames = late.map(
    ({ path, age, targetMs }) => `${path} (${Output.elapsed(age)}, target ${Output.elapsed(targetMs)})`
  )
  return [
    warning(
      [
        ...(late.length === 0 ? [] : [`${ofAll} late: ${Output.firstOf(lateNames, shownMax)}`]),
        ...(never.length === 0 ? [] : [`never read: ${Output.firstOf(never, shownMax)}`])
      ].join("; "),
      "tributary sync brings them up to date, tributary serve keeps them up to date"
    ),
    ...kept
  ]
})

/** Checks that the source answers with an accepted token. */
const identifiedChecks: ReadonlyArray<Check<IdentifiedInput, Source>> = [
  { name: "source", tables: "skipped", run: source },
  { name: "scopes", run: (its, input) => Effect.succeed(scopes(its, input)) },
  { name: "freshness", tables: "skipped", run: freshness },
  { name: "fields", tables: "omitted", run: fields },
  { name: "subscription", run: Webhooks.subscription }
]

const otherChecks: ReadonlyArray<Check<CompanyInput>> = [{ name: "budget", run: budget }]

/** Of a company that receives webhooks. */
const webhookChecks: ReadonlyArray<Check<CompanyInput>> = [
  { name: "signing secrets", tables: "skipped", run: Webhooks.secrets },
  { name: "gaps", tables: "omitted", run: (its, { company }) => Webhooks.gaps(its, company.name) }
]

/** A short timeout: a person waits for each request. */
const requestLimits = {
  attemptsMax: 2,
  requestTimeout: Duration.seconds(4),
  retryAfterMax: Duration.seconds(2)
} as const

/** The value is the identity of the company at the source. */
export const checkCompany = Effect.fnUntraced(function* (
  company: CompanyConfiguration,
  settings: Configuration,
  catalogue: Catalogue
): Effect.fn.Return<Checked<Identity>, never, Source | Tables | Scope.Scope> {
  const { name } = company
  const its = about("token", name)
  const limited = { ...company, installation: { ...company.installation, ...requestLimits } }
  const connected = yield* Effect.result((yield* Source).connect(limited, settings))
  if (connected._tag === "Failure") {
    const findings = connected.failure.problems.map((problem) =>
      its.failed("configuration", problem, "correct it in the configuration")
    )
    return { findings, value: null }
  }
  const input: CompanyInput = { company, settings, catalogue, connector: connected.success }
  const { findings, value: identity } = yield* within(its, token(its, input))
  const others = settings.webhooks.publicUrl === null ? otherChecks : [...otherChecks, ...webhookChecks]
  const found = yield* Effect.all(
    [
      identity === null ? Effect.succeed(unidentified(name)) : runAll(identifiedChecks, name, { ...input, identity }),
      runAll(others, name, input)
    ],
    { concurrency: "unbounded" }
  )
  return { findings: [...findings, ...found.flat()], value: identity }
})

/** The findings of a company whose token was not accepted. */
const unidentified = (name: string): Findings =>
  identifiedChecks
    .filter((one) => !("tables" in one && one.tables === "omitted"))
    .map((one) => about(one.name, name).skipped("the token was not accepted, or the service not reached"))
