/**
 * What the subcommands of `tributary push` do alike: whom is written to, pushing rows to the end, and saying how it went.
 *
 * Promise: exit code 0 means that every record is at the source with the values that were given; whoever is stopped is
 * told what goes on with it.
 */
import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import type { Resource } from "../catalogue/Resource.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { ConfigurationError } from "../configuration/ConfigurationError.ts"
import type { Identity } from "../connector/Connector.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import * as TablePlan from "../warehouse/TablePlan.ts"
import { childrenOf, tableOf } from "../warehouse/Table.ts"
import { type Failure, failureOf } from "../sync/Outcome.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import type * as Enqueue from "../outbox/Enqueue.ts"
import type { Operation, Rows } from "../outbox/Push.ts"
import * as OutboxWorker from "../outbox/OutboxWorker.ts"
import * as Outbox from "../status/Outbox.ts"
import * as SyncProgress from "./SyncProgress.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { codeOfFailures, CommandFailed, type ExitCode, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as PushProgress from "./PushProgress.ts"
import * as PushText from "./PushText.ts"
import * as Sync from "./sync.ts"

export const usage = (message: string) => new CommandFailed({ code: exitCode.usage, message })

// ------------------------------------------------------------------------------------------------------- one company

/** The one company that is meant, not asked anything yet. */
export const companyOf = Effect.fnUntraced(function* (settings: Configuration, named: string | null) {
  const companies = yield* Sync.targets(settings, {
    resources: [],
    companies: named === null ? [] : [named],
    full: false,
    acceptDeletions: false
  })
  const [company, ...others] = companies
  if (company === undefined || others.length > 0) {
    return yield* usage(
      `name the company that is meant with --company: ${companies.map(({ name }) => name).join(", ")}`
    )
  }
  return company
})

/** A resource of the catalogue by its path. */
export const resourceOf = Effect.fnUntraced(function* (settings: Configuration, path: string) {
  const { resources } = yield* catalogueOf(settings)
  const resource = resources.get(path)
  if (resource !== undefined) return resource
  return yield* new ConfigurationError({
    problems: [`there is no resource "${path}"; the catalogue has ${[...resources.keys()].sort().join(", ")}`]
  })
})

/** Why the token may not do it, as far as the source told beforehand. */
export const lacking = (resource: Resource, operation: Operation, { scopes }: Identity): Failure | null => {
  const access = operation === "cancel" ? "cancel" : "write"
  const scope = scopes === null ? null : resource.traits.missingScope(scopes, resource.area, access)
  if (scope === null) return null
  return {
    kind: "NotInScope",
    message: `${resource.path}: the token lacks the scope ${scope}`,
    remedy: `give the token the scope ${scope}; nothing was stored`,
    stops: "resource",
    refused: true
  }
}

/** Told and ended with the code that belongs to it. */
export const stopped = Effect.fnUntraced(function* (failure: Failure) {
  yield* Output.note(`tributary: ${Output.shown(failure.message)}`)
  yield* Output.note(`  what to do: ${Output.shown(failure.remedy)}`)
  return yield* new CommandFailed({ code: codeOfFailures([failure]) ?? exitCode.fault, message: "" })
})

// ----------------------------------------------------------------------------------------------------- pushing rows

export interface PushContext {
  readonly settings: Configuration
  readonly company: SyncCompany
  readonly identity: Identity
  readonly resource: Resource
  readonly rows: Rows
  readonly named: PushText.Named
  readonly known: number
  readonly knownOpen: Enqueue.ExistingRow
  readonly json: boolean
}

export interface PushRunReport extends PushText.PushSummary {
  readonly failure: Failure | null
}

const goesOn = (named: PushText.Named): string =>
  `the same command, or npx tributary push retry ${PushText.argument(named)}, goes on where it stopped`

/** A push by its number. */
export const pushOf = Effect.fnUntraced(function* (push: bigint) {
  const [found] = yield* Outbox.pushes([push])
  return found ?? (yield* usage(`there is no push ${push}; see them with npx tributary push status`))
})

/** Pushes until nothing of the rows waits, or it cannot go on. The warehouse is provided. */
export const runPush = Effect.fnUntraced(function* (options: PushContext) {
  const { settings, company, resource, rows, named } = options
  const whole = yield* WarehouseCatalogue.resources(yield* catalogueOf(settings), [
    ...new Set([resource, ...company.resources])
  ])
  const tables = new Map(whole.map((one) => [one.path, tableOf(one, settings.datasets)]))
  const table = tables.get(resource.path)!
  yield* TablePlan.apply([table])
  // Of rows that belong to no push, what this run does is counted.
  const before = "push" in rows ? PushProgress.resolvedCount((yield* pushOf(rows.push)).counts) : 0
  const pushed = yield* Effect.scoped(
    Effect.gen(function* () {
      const told = yield* PushProgress.make(SyncProgress.styleOf(options), before)
      return yield* OutboxWorker.push({
        company: {
          name: company.name,
          connector: company.connector,
          engine: settings.engine,
          batchRecordsMax: settings.batchRecordsMax
        },
        companyId: options.identity.companyId,
        table,
        children: childrenOf(tables, resource.path),
        settings: settings.push,
        scope: "push" in rows ? rows : "outbox",
        onProgress: told
      })
    })
  ).pipe(Effect.onInterrupt(() => Output.note(`tributary: stopped; ${goesOn(named)}`)))
  const { counts } = pushed
  return {
    named,
    company: company.name,
    resource: resource.path,
    status: pushed.status,
    counts,
    known: options.known,
    knownOpen: options.knownOpen,
    calls: pushed.calls,
    durationMs: pushed.durationMs,
    settledNow: Math.max(0, PushProgress.resolvedCount(counts) - before),
    refused:
      "push" in rows
        ? yield* Outbox.rejectedRows(rows, 0n, PushText.namedMax)
        : yield* Outbox.latestRejectedRows(rows, Math.min(counts.refused, PushText.namedMax)),
    different: yield* Outbox.differingRows(rows, PushText.namedMax),
    failure: pushed.failure
  } satisfies PushRunReport
})

const codeOf = ({ status, failure, counts, knownOpen }: PushRunReport): ExitCode => {
  const failed = codeOfFailures(failure === null ? [] : [failure])
  if (failed !== null) return failed
  if (status === "stopped" || knownOpen.sending > 0) return exitCode.fault
  const incomplete = counts.refused + counts.different + knownOpen.refused + knownOpen.different
  return incomplete > 0 ? exitCode.incomplete : exitCode.ok
}

const jsonOf = (one: PushRunReport) => ({
  push: "push" in one.named ? one.named.push : null,
  company: one.company,
  resource: one.resource,
  status: one.status,
  counts: one.counts,
  known: one.known,
  knownOpen: one.knownOpen,
  calls: one.calls,
  durationMs: one.durationMs,
  recordsPerSecond: one.durationMs === 0 ? null : Math.round((one.settledNow * 10_000) / one.durationMs) / 10,
  refused: one.refused.map(({ id: _id, record: _record, ...rest }) => rest),
  different: one.different,
  failure:
    one.failure === null ? null : { kind: one.failure.kind, message: one.failure.message, remedy: one.failure.remedy }
})

/** Says how each ended, and ends with the code of the worst. */
export const printReport = Effect.fnUntraced(function* (
  worked: ReadonlyArray<PushRunReport>,
  json: boolean,
  shape: (told: ReadonlyArray<object>) => object
) {
  if (json) yield* Output.print(Output.toJson(shape(worked.map(jsonOf))))
  let code: ExitCode = exitCode.ok
  for (const one of worked) {
    if (!json) {
      for (const line of PushText.summaryLines(one)) yield* Output.print(line)
      for (const line of PushText.remarkLines(one)) yield* Output.note(line)
    }
    if (one.failure !== null) {
      yield* Output.note(`tributary: ${Output.shown(one.failure.message)}`)
      yield* Output.note(`  what to do: ${Output.shown(one.failure.remedy)}`)
    }
    if (one.status === "stopped") yield* Output.note(`  ${goesOn(one.named)}`)
    const own = codeOf(one)
    if (own > code) code = own
  }
  if (code !== exitCode.ok) return yield* new CommandFailed({ code, message: "" })
})

export const companyFlag = Flag.String("company").pipe(
  Flag.withDescription("The company that is meant; needed where several are configured"),
  Flag.withMetavar("NAME"),
  Flag.optional
)

/** Only who gives records can know what an earlier push has of them. */
export const noneKnown: Enqueue.ExistingRow = { sending: 0, refused: 0, different: 0, pushes: [] }

/** Who the token is; told and ended where the source does not say. */
export const identityOf = (company: SyncCompany) =>
  company.connector.identify.pipe(Effect.catch((error) => stopped(failureOf(error))))
