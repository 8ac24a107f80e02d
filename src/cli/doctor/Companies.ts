/**
 * Each company's token: is it accepted, what may it read of what is configured, what is left of its budget, and is what
 * was synced as fresh as promised.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { describePause } from "../../budget/Pause.ts"
import { fingerprintOf } from "../../budget/PostgresPermitStore.ts"
import * as PermitState from "../../budget/PermitState.ts"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import type { Resource } from "../../catalogue/Resource.ts"
import type { CompanyConfiguration, Configuration } from "../../configuration/Configuration.ts"
import type { ConnectorShape, Identity } from "../../connector/Connector.ts"
import type { SourceError } from "../../connector/SourceError.ts"
import * as FieldFinding from "../../warehouse/FieldFinding.ts"
import { accessBlockOf } from "../../sync/Sync.ts"
import * as Output from "../Output.ts"
import { about, counted, type Finding, type Kind } from "./Finding.ts"

/** What the service documents for one token (LIM-02). */
const documentedPerMinute = 600

export const kindOf = ({ reason }: SourceError): Kind => {
  switch (reason._tag) {
    case "Unauthorized":
    case "Forbidden":
      return "refused"
    case "NotFound":
    case "NotImplemented":
    case "Malformed":
    case "Redirected":
    case "Refused":
      return "configuration"
    default:
      return "unreachable"
  }
}

export interface IdentifiedCompany {
  readonly findings: ReadonlyArray<Finding>
  /** Null where the source did not say. */
  readonly identity: Identity | null
}

/** Whether the source accepts the token, and of whom it is. */
export const token = Effect.fnUntraced(function* (
  company: CompanyConfiguration,
  connector: ConnectorShape
): Effect.fn.Return<IdentifiedCompany> {
  const { ok, warning, failed } = about("token", company.name)
  const asked = yield* Effect.result(connector.identify)
  if (asked._tag === "Failure") {
    const error = asked.failure
    const finding =
      error.reason._tag === "SourcePaused"
        ? warning(error.message, error.remedy)
        : error.reason._tag === "RateLimited"
          ? warning(error.message, "wait for that time; if it comes back, another program uses the token too")
          : failed(kindOf(error), error.message, error.remedy)
    return { findings: [finding], identity: null }
  }
  const identity = asked.success
  const { companyId, user } = identity
  const told = `accepted, company ${companyId}${user === null ? "" : `, user ${Output.shown(user)}`}`
  const finding =
    company.companyId !== null && company.companyId !== companyId
      ? failed(
          "configuration",
          `it is of company ${companyId}, and company_id says ${company.companyId}`,
          "correct company_id, or use the token of the other company"
        )
      : ok(told)
  return { findings: [finding], identity }
})

/** Two names for one company would load the same rows twice, by two schedules. */
export const twins = (identities: ReadonlyMap<string, Identity>): ReadonlyArray<Finding> => {
  const byId = new Map<bigint, Array<string>>()
  for (const [name, { companyId }] of identities) {
    const known = byId.get(companyId)
    if (known === undefined) byId.set(companyId, [name])
    else known.push(name)
  }
  return [...byId]
    .filter(([, names]) => names.length > 1)
    .map(([id, names]) =>
      about("token").warning(
        `${names.join(" and ")} are tokens of the same company, ${id}`,
        "leave one of them out, or check whether one is the wrong token"
      )
    )
}

export interface Readable {
  readonly findings: ReadonlyArray<Finding>
  /** What a sync reads. */
  readonly paths: ReadonlyArray<string>
}

/** What the token may read of what is configured. */
export const scopes = (company: CompanyConfiguration, catalogue: Catalogue, identity: Identity): Readable => {
  const { ok, warning, failed, skipped } = about("scopes", company.name)
  const named = company.resources
  const wanted = (named ?? [...catalogue.resources.keys()])
    .map((path) => catalogue.resources.get(path))
    .filter((resource): resource is Resource => resource !== undefined)
  const readable = wanted.filter((resource) => accessBlockOf(resource, identity) === null)
  const paths = readable.map(({ path }) => path)
  const missing = new Map<string, { readonly remedy: string; readonly paths: Array<string> }>()
  for (const resource of wanted) {
    const barrier = accessBlockOf(resource, identity)
    if (barrier === null) continue
    const known = missing.get(barrier.reason)
    if (known === undefined) missing.set(barrier.reason, { remedy: barrier.remedy, paths: [resource.path] })
    else known.paths.push(resource.path)
  }
  if (missing.size === 0) {
    return {
      paths,
      findings: [
        identity.scopes === null
          ? skipped("the service does not say which scopes the token has; a sync finds out")
          : ok(`the token may read everything that is configured (${counted(wanted.length, "resource", "resources")})`)
      ]
    }
  }
  const told = (reason: string, of: ReadonlyArray<string>) => `${reason}: ${of.join(", ")}`
  if (readable.length === 0) {
    return {
      paths,
      findings: [
        failed(
          "refused",
          `the token may read nothing of what is configured (${counted(wanted.length, "resource", "resources")})`,
          "give the token the scopes of what it is to read"
        )
      ]
    }
  }
  // What somebody named is missed; what was merely not left out is skipped by a sync.
  if (named !== null) {
    return {
      paths,
      findings: [...missing].map(([reason, { paths: of }]) =>
        failed("refused", told(reason, of), "give the token that, or leave the resources out of the configuration")
      )
    }
  }
  return {
    paths,
    findings: [
      warning(
        `the token may read ${readable.length} of ${wanted.length} resources; ` +
          [...missing].map(([reason, { paths: of }]) => told(reason, of)).join("; "),
        "give the token those scopes, or name what it is to read under resources; a sync skips the others"
      )
    ]
  }
}

interface BudgetRow {
  readonly lowered: number | null
  readonly effective: number | null
  readonly heldms: number
  readonly refusals: number
  readonly refusedms: number | null
}

/** What the configuration allows, and what the source made of it. */
export const budget = Effect.fnUntraced(function* (company: CompanyConfiguration, settings: Configuration) {
  const { ok, warning } = about("budget", company.name)
  const { requestsPerMinute: allowed, budgetScope } = settings
  const told = allowed === null ? "no limit is configured" : `${allowed} requests a minute`
  const findings: Array<Finding> = []
  if (allowed === null || allowed > documentedPerMinute) {
    findings.push(
      warning(
        `${told}, and the service documents ${documentedPerMinute} for a token`,
        `set budget.requests_per_minute to ${documentedPerMinute} or less`
      )
    )
  }
  const sql = yield* Effect.serviceOption(SqlClient.SqlClient)
  if (sql._tag === "Some") {
    const fingerprint = fingerprintOf(company.url, company.token, budgetScope)
    const [row] = yield* sql.value.unsafe<BudgetRow>(
      `select b.lowered_to as lowered,
              case when b.requests_per_minute is null then null else tributary.budget_effective(
                b.requests_per_minute, b.lowered_to, tributary.budget_ms(b.lowered_at),
                tributary.budget_ms(tributary.now()), 60000) end as effective,
              greatest(0, coalesce(tributary.budget_ms(b.held_until) - tributary.budget_ms(tributary.now()), 0))::float8
                as heldms,
              b.refusals::float8 as refusals,
              (extract(epoch from tributary.now() - b.last_429_at) * 1000)::float8 as refusedms
         from tributary.budgets b where b.fingerprint = $1`,
      [fingerprint]
    )
    const [standing] = yield* Effect.provideService(PermitState.read([fingerprint]), SqlClient.SqlClient, sql.value)
    const heldBy = standing?.heldBy ?? null
    if (row !== undefined && row.heldms > 0) {
      const why = heldBy === null ? "an answer asked to wait (Retry-After)" : describePause(heldBy)
      findings.push(
        warning(
          `nothing is sent for another ${Output.elapsed(row.heldms)}: ${why}`,
          heldBy === null || heldBy.status === 429
            ? "wait; if it comes back, another program uses the token, or budget.requests_per_minute is too high; when the fault is gone: npx tributary budget release"
            : "wait; when the fault is gone: npx tributary budget release"
        )
      )
    } else if (row !== undefined && row.effective !== null && allowed !== null && row.effective < allowed - 1) {
      findings.push(
        warning(
          `${told} are configured, ${Math.floor(row.effective)} are used: the service answered 429 ${Output.elapsed(row.refusedms ?? 0)} ago`,
          "another program uses the token: give it one of its own, or raise budget.reserve_percent"
        )
      )
    }
  }
  return findings.length > 0 ? findings : [ok(`${told}, nothing is held back`)]
})

/** Fields that change with every read, and fields that the source no longer sends. */
export const fields = Effect.fnUntraced(function* (company: CompanyConfiguration, companyId: bigint) {
  const { warning } = about("fields", company.name)
  const findings = (yield* FieldFinding.read).filter((one) => one.companyId === companyId)
  return findings.map((finding) => {
    const { found, remedy } = FieldFinding.partsOf(finding.resource, finding)
    return warning(found, remedy)
  })
})

const shownMax = 5

/** Whether everything is as young as it is promised to be. */
export const freshness = Effect.fnUntraced(function* (
  company: CompanyConfiguration,
  settings: Configuration,
  companyId: bigint,
  paths: ReadonlyArray<string>
) {
  const sql = yield* SqlClient.SqlClient
  const { ok, warning } = about("freshness", company.name)
  const rows = yield* sql.unsafe<{ resource: string; agems: number }>(
    `select resource, (extract(epoch from tributary.now() - max(began_at)) * 1000)::float8 as agems
       from tributary.runs
      where company_id = $1::bigint and lane = 'live' and status = 'done' and kind in ('full', 'incremental')
      group by resource`,
    [companyId.toString()]
  )
  const ages = new Map(rows.map(({ resource, agems }) => [resource, agems]))
  const wanted = paths.filter((path) => settings.scheduleOf(path).timing.kind !== "off")
  const never = wanted.filter((path) => !ages.has(path))
  const late = wanted
    .map((path) => ({ path, age: ages.get(path) ?? 0, promise: settings.freshnessOf(path) }))
    .filter(({ age, promise }) => age > promise)
    .sort((a, b) => b.age / b.promise - a.age / a.promise)
  if (ages.size === 0) return [warning("nothing was synced yet", "npx tributary sync")]
  if (never.length === 0 && late.length === 0)
    return [ok(`${counted(wanted.length, "resource", "resources")} as fresh as promised`)]
  const listed = late
    .slice(0, shownMax)
    .map(({ path, age, promise }) => `${path} (${Output.elapsed(age)}, promised ${Output.elapsed(promise)})`)
  const more = late.length > shownMax ? ` and ${late.length - shownMax} more` : ""
  return [
    warning(
      [
        ...(late.length === 0
          ? []
          : [`${late.length} of ${counted(wanted.length, "resource", "resources")} late: ${listed.join(", ")}${more}`]),
        ...(never.length === 0
          ? []
          : [
              `never read: ${never.slice(0, shownMax).join(", ")}${never.length > shownMax ? ` and ${never.length - shownMax} more` : ""}`
            ])
      ].join("; "),
      "npx tributary sync brings them up to date, npx tributary serve keeps them so"
    )
  ]
})
