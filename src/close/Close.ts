/**
 * A close: the state of one company's records for a period, at one position of the change feed.
 *
 * Promise: every figure and every rule is of the same state: the records after the change at the position. So the same state
 * can be read again, as of that position, while its history is kept. The state is `clean` only if the source has the same
 * records, every resource was read after the period's end, and no critical rule is violated.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { keptPart, type Resource } from "../catalogue/Resource.ts"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import { type Invariant, queryOf } from "../invariants/Invariant.ts"
import { type Client, query, queryNamed } from "../postgres/driver/Connection.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Model } from "../warehouse/Model.ts"
import { type Datasets, tableOf } from "../warehouse/Table.ts"
import type { Content } from "./Document.ts"
import type { Period } from "./Period.ts"
import * as ReadFigures from "./ReadFigures.ts"
import * as Snapshot from "./Snapshot.ts"
import { plural } from "../text/Count.ts"

/** The violations of a rule that a close lists. */
const violationsMax = 1000
/** The names that one finding lists. */
const namesMax = 8

export interface CloseOptions {
  readonly version: string
  readonly company: { readonly name: string; readonly id: bigint }
  readonly period: Period
  readonly datasets: Datasets
  readonly resources: ReadonlyArray<Resource>
  /** All resources, for business dates. */
  readonly catalogue: ReadonlyMap<string, Resource>
  readonly models: ReadonlyArray<Model>
  readonly invariants: ReadonlyArray<Invariant>
  readonly verification: Content["verification"]
  readonly draft: boolean
  readonly revision: number
  readonly replaces: string | null
  readonly onRead?: (name: string, count: number) => Effect.Effect<void>
}

export const freshnessStatement = Statement.make({
  name: "read the freshness of a company's resources",
  params: ["text"],
  columns: { resource: "text", freshAt: "timestamptz?" },
  text: `select resource, fresh_at as "freshAt" from tributary.freshness where company = $1`
})

export const quarantineStatement = Statement.make({
  name: "count the quarantine of a company",
  params: ["int8"],
  columns: { resource: "text", records: "float8" },
  text: `select resource, count(*)::float8 as records from tributary.quarantine
          where company_id = $1 and resolved_at is null group by 1`
})

export const gapsStatement = Statement.make({
  name: "read the open delivery gaps of a company",
  params: ["text"],
  columns: {
    resource: "text",
    cause: "text",
    detail: "text",
    ...Statement.columns("timestamptz?", "beganAt", "endedAt")
  },
  text: `select resource, cause, detail, began_at as "beganAt", ended_at as "endedAt" from tributary.delivery_gaps
          where company = $1 and closed_at is null order by id`
})

const iso = (date: Date | null): string | null => date?.toISOString() ?? null

/** Evaluates the rules whose tables exist. */
const evaluate = Effect.fnUntraced(function* (
  client: Client,
  { company, datasets, invariants, catalogue }: CloseOptions
) {
  const existing = yield* Snapshot.relationsOf(client, [datasets.current])
  const hasTable = (path: string) => {
    const resource = catalogue.get(path)
    return existing.has(`${datasets.current}.${resource === undefined ? path : tableOf(resource, datasets).name}`)
  }
  const found: Array<Content["invariants"][number]> = []
  for (const rule of invariants) {
    if (!rule.resources.every(hasTable)) continue
    // The SQL of a rule may fail, or change settings of the session.
    yield* query(client, "evaluate invariants", "savepoint rule")
    const evaluated = yield* Effect.result(
      query<{ resource: string; id: string; detail: string; total: string }>(
        client,
        `evaluate the invariant ${rule.name}`,
        `select v.resource, v.id::text as id, v.detail, (count(*) over ())::text as total from (${queryOf(rule, datasets)}) v
          where v.company_id = $1 order by v.resource collate "C", v.id, v.detail collate "C" limit ${violationsMax}`,
        [company.id]
      )
    )
    yield* query(client, "evaluate invariants", "rollback to savepoint rule")
    const rows = evaluated._tag === "Success" ? evaluated.success : []
    found.push({
      name: rule.name,
      rule: rule.statement,
      severity: rule.severity,
      violations: Number(rows[0]?.total ?? 0),
      error: evaluated._tag === "Success" ? null : evaluated.failure.message,
      rows: rows.map(({ resource, id, detail }) => ({ resource, id, detail }))
    })
  }
  return found
})

const named = (names: ReadonlyArray<string>): string =>
  names.length <= namesMax
    ? names.join(", ")
    : `${names.slice(0, namesMax).join(", ")} and ${names.length - namesMax} more`

/** Resources of which the warehouse keeps some records only: their figures are no figures of the company. */
export const partsOf = (resources: ReadonlyArray<Resource>): ReadonlyArray<string> =>
  resources.flatMap((resource) => {
    const part = keptPart(resource)
    return part === null ? [] : [`${resource.path} has only records that are kept by the configuration: ${part}`]
  })

/** Why the state is not clean. */
export const findingsOf = (
  {
    verification,
    invariants,
    resources,
    deliveryGaps
  }: Pick<Content, "verification" | "invariants" | "resources" | "deliveryGaps">,
  period: Pick<Period, "endsAt">
): ReadonlyArray<string> => {
  const skipped = new Set(
    verification.resources.flatMap(({ status, resource }) => (status === "skipped" ? resource : []))
  )
  const read = resources.filter(({ resource }) => !skipped.has(resource))
  const late = read.filter(({ freshAt }) => freshAt === null || Date.parse(freshAt) < period.endsAt.getTime())
  const differing = verification.resources.filter(({ status }) => status === "unequal" || status === "waiting")
  const incomplete = verification.resources.filter(({ status }) => status === "failed")
  const quarantined = resources.filter((one) => one.quarantined > 0)
  const { sample } = verification
  // A gap hides no change of a resource whose records were all found equal to the source.
  const unproven = verification.resources.flatMap(({ resource, status }) => {
    const gaps = deliveryGaps.filter((gap) => gap.resource === resource).length
    return gaps > 0 && (status !== "equal" || sample !== null) ? [{ resource, gaps }] : []
  })
  return [
    ...(sample === null
      ? []
      : [
          `only ${plural(sample.records, "record")} of each resource ${sample.records === 1 ? "was" : "were"} compared with the source: close without --sample`
        ]),
    ...differing.map(({ resource, status, missing, surplus, different, unreadable }) => {
      const counts = [`${missing} missing`, `${surplus} surplus`, `${different} different`, `${unreadable} unreadable`]
      const remedy = status === "waiting" ? "tributary sync" : "tributary verify"
      return `${resource} is not equal to the source (${counts.filter((one) => !one.startsWith("0 ")).join(", ")}): ${remedy}`
    }),
    ...incomplete.map(({ resource, reason }) => `${resource} could not be compared with the source: ${reason ?? ""}`),
    ...(late.length === 0
      ? []
      : [
          `${plural(late.length, "resource was", "resources were")} not read after the period's end ` +
            `(${named(late.map(({ resource }) => resource))}): tributary sync`
        ]),
    ...quarantined.map(
      (one) => `${plural(one.quarantined, "record")} of ${one.resource} in quarantine: tributary status`
    ),
    ...unproven.map(
      ({ resource, gaps }) =>
        `${gaps === 1 ? "1 open delivery gap" : `${gaps} open delivery gaps`} of ${resource} may hide changes: tributary sync`
    ),
    ...invariants.flatMap(({ name, error }) =>
      error === null ? [] : [`the invariant ${name} cannot be evaluated: ${error}`]
    ),
    ...invariants
      .filter(({ severity, violations }) => severity === "critical" && violations > 0)
      .map(({ name, rule, violations }) => `${violations} violations of ${name}: ${rule}`)
  ]
}

/** Reads the state of the company. Writes nothing. */
export const run = Effect.fn("Close.run")(function* (
  options: CloseOptions
): Effect.fn.Return<Content, DatabaseError, Database | SqlClient | Scope.Scope> {
  const { company, period, verification } = options
  const { client, position, at, installation } = yield* Snapshot.open(company.id)
  const fresh = new Map(
    (yield* queryNamed(client, freshnessStatement, [company.name])).map((row) => [row.resource, row.freshAt])
  )
  const quarantine = new Map(
    (yield* queryNamed(client, quarantineStatement, [company.id])).map((row) => [row.resource, row.records])
  )
  const deliveryGaps = (yield* queryNamed(client, gapsStatement, [company.name])).map((gap) => ({
    ...gap,
    beganAt: iso(gap.beganAt),
    endedAt: iso(gap.endedAt)
  }))
  const figuresOptions = { ...options, client, companyId: company.id }
  const resources = (yield* ReadFigures.ofResources(figuresOptions)).map((figures) => ({
    ...figures,
    freshAt: iso(fresh.get(figures.resource) ?? null),
    quarantined: quarantine.get(figures.resource) ?? 0
  }))
  const invariants = yield* evaluate(client, options)
  const models = yield* ReadFigures.ofModels(figuresOptions)
  const findings = [
    ...partsOf(options.resources),
    ...findingsOf({ verification, invariants, resources, deliveryGaps }, period)
  ]
  return {
    schema: "tributary.close/1",
    program: { name: "tributary", version: options.version },
    installation,
    company: { name: company.name, id: String(company.id) },
    period: { ...period, endsAt: period.endsAt.toISOString() },
    draft: options.draft,
    revision: options.revision,
    replaces: options.replaces,
    state: findings.length === 0 ? "clean" : "differences",
    findings,
    closedAt: at.toISOString(),
    position: ChangeFeed.textOf(position),
    mode: "position",
    verification,
    deliveryGaps,
    invariants,
    resources,
    models
  } satisfies Content
}, Effect.scoped)
