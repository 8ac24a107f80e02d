/**
 * The steps that the subcommands of `tributary push` share: the company, the push itself, and its report.
 *
 * Promise: exit code 0 means that every record is at the source with the values that were given. A push that stops
 * names the command that continues it.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Resource } from "../catalogue/Resource.ts"
import * as StoredCompanies from "../companies/StoredCompanies.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Identity } from "../connector/Connector.ts"
import { retryTransient } from "../postgres/Transaction.ts"
import { engineDefault } from "../sync/EngineSettings.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import * as TablePlan from "../warehouse/TablePlan.ts"
import { childrenOf, tableOf } from "../warehouse/Table.ts"
import { type Failure, failureOf } from "../sync/Outcome.ts"
import * as SourceGuard from "../sync/SourceGuard.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import type { OpenDuplicates } from "../outbox/Enqueue.ts"
import { type Operation, pushStateOf, type Rows } from "../outbox/Push.ts"
import * as OutboxWorker from "../outbox/OutboxWorker.ts"
import * as Outbox from "../status/Outbox.ts"
import * as Progress from "./Progress.ts"
import { textFlag } from "./Command.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { codeOfFailures, CommandFailed, endWith, type ExitCode, exitCode, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as PushProgress from "./PushProgress.ts"
import * as PushText from "./PushText.ts"
import * as Targets from "./Targets.ts"
import * as Warehouse from "./Warehouse.ts"

export const companyFlag = textFlag("company", "NAME", "The company; required where several are configured")

/** The name of the given company, or of the only one of the configuration and the warehouse. */
export const companyNameOf = Effect.fnUntraced(function* (settings: Configuration, given: Option.Option<string>) {
  const names = (yield* Targets.check(settings, { companies: Option.toArray(given) }, false)).map(({ name }) => name)
  if (names.length === 1) return names[0]!
  return yield* usageError(`name one company with --company: ${names.join(", ")}`)
})

/**
 * The configuration and the name of the company for a push. The warehouse is read where the file does not decide; without
 * it, the only company of the file is meant where none is given.
 */
export const targetOf = Effect.fnUntraced(function* (
  file: Configuration,
  given: Option.Option<string>,
  needsWarehouse: boolean
) {
  const names = file.companies.map(({ name }) => name)
  const isDecided = Option.isSome(given)
    ? names.includes(given.value)
    : names.length > 1 || (names.length === 1 && !needsWarehouse)
  const settings =
    isDecided || !(yield* Targets.mayHaveCompanies(file))
      ? file
      : yield* Warehouse.provide(StoredCompanies.extend(file), file)
  return { settings, name: yield* companyNameOf(settings, given) }
})

/** A company, connected. */
export const companyOf = Effect.fnUntraced(function* (settings: Configuration, name: string) {
  const [company] = yield* Targets.connect(settings, { companies: [name] })
  return company!
})

/** A push by its number. */
export const pushOf = Effect.fnUntraced(function* (push: bigint) {
  const [found] = yield* Outbox.pushes([push])
  return found ?? (yield* usageError(`there is no push ${push}; see them with tributary push status`))
})

/** The scope that the token lacks, as a failure; null when it lacks none. */
export const missingScope = (resource: Resource, operation: Operation, { scopes }: Identity): Failure | null => {
  const access = operation === "cancel" ? "cancel" : "write"
  const scope = scopes === null ? null : resource.traits.missingScope(scopes, resource.area, access)
  if (scope === null) return null
  return {
    kind: "NotInScope",
    message: `${resource.path}: the token lacks the scope ${scope}`,
    remedy: `give the token the scope ${scope}; nothing was stored`,
    disposition: "blocked",
    stops: "resource"
  }
}

const noteFailure = ({ message, remedy }: Failure) =>
  Effect.andThen(
    Output.note(`tributary: ${Output.shown(message)}`),
    Output.note(`  what to do: ${Output.shown(remedy)}`)
  )

/** Ends the command with a failure. */
export const failWith = (failure: Failure) =>
  Effect.andThen(
    noteFailure(failure),
    Effect.fail(new CommandFailed({ code: codeOfFailures([failure]) ?? exitCode.fault, message: "" }))
  )

/** The identity of the token. */
export const identityOf = (company: SyncCompany) =>
  company.connector.identify.pipe(Effect.catch((error) => failWith(failureOf(error))))

/** For pushes without an input: only an input can repeat records of an earlier push. */
export const noDuplicates: OpenDuplicates = { sending: 0, rejected: 0, different: 0, pushes: [] }

interface PushContext extends Pick<PushText.PushResult, "rows" | "known" | "knownOpen"> {
  readonly settings: Configuration
  readonly company: SyncCompany
  readonly identity: Identity
  readonly resource: Resource
  readonly json: boolean
}

const continuation = (rows: Rows): string =>
  `the same command, or tributary push retry ${PushText.argument(rows)}, continues it`

/** Pushes until none of the rows is open, or the push stops. */
export const runPush = Effect.fnUntraced(function* (context: PushContext) {
  const { settings, company, identity, resource, rows, known, knownOpen } = context
  yield* Targets.refuseExcluded(settings, company.name, resource.path)
  const resources = yield* WarehouseCatalogue.resources(yield* catalogueOf(settings), [
    ...new Set([resource, ...company.resources])
  ])
  const tables = new Map(resources.map((one) => [one.path, tableOf(one, settings.datasets)]))
  const table = tables.get(resource.path)!
  yield* TablePlan.apply([table])
  // Every state of a company is found by its number; it may be pushed to before its first sync.
  yield* Effect.catchTag(
    retryTransient(SourceGuard.save(company.name, identity, company.connector.source?.address ?? null)),
    "SourceError",
    (error) => failWith(failureOf(error))
  )
  // Of rows without a push, only those that this run resolves are counted.
  const before = "push" in rows ? PushProgress.resolvedCount((yield* pushOf(rows.push)).counts) : 0
  const { calls, counts, durationMs, failure, status } = yield* Effect.gen(function* () {
    const onProgress = yield* PushProgress.make(Progress.styleOf(context), before)
    const { connector, engine = engineDefault, name } = company
    return yield* OutboxWorker.push({
      company: { name, connector, engine, batchRecordsMax: settings.batchRecordsMax },
      companyId: identity.companyId,
      table,
      children: childrenOf(tables, resource.path),
      settings: settings.push,
      scope: "push" in rows ? rows : "outbox",
      onProgress
    })
  }).pipe(
    Effect.scoped,
    Effect.onInterrupt(() => Output.note(`tributary: stopped; ${continuation(rows)}`))
  )
  return {
    rows,
    company: company.name,
    resource: resource.path,
    status,
    counts,
    known,
    knownOpen,
    calls,
    durationMs,
    resolvedNow: Math.max(0, PushProgress.resolvedCount(counts) - before),
    rejected:
      "push" in rows
        ? yield* Outbox.rejectedRows(rows, 0n, PushText.namedMax)
        : yield* Outbox.latestRejectedRows(rows.company, rows.resource, Math.min(counts.rejected, PushText.namedMax)),
    different: yield* Outbox.differingRows(rows, PushText.namedMax),
    failure
  } satisfies PushText.PushResult
})

const codeOf = ({ status, failure, counts, knownOpen }: PushText.PushResult): ExitCode => {
  const failed = codeOfFailures(failure === null ? [] : [failure])
  if (failed !== null) return failed
  if (status === "stopped" || knownOpen.sending > 0) return exitCode.fault
  const incomplete = counts.rejected + counts.different + knownOpen.rejected + knownOpen.different
  return incomplete > 0 ? exitCode.incomplete : exitCode.ok
}

const jsonOf = ({ rows, resolvedNow, rejected, different, failure, status, ...rest }: PushText.PushResult) => ({
  push: "push" in rows ? rows.push : null,
  state: pushStateOf(status === "done", rest.counts.rejected),
  ...rest,
  recordsPerSecond: rest.durationMs === 0 ? null : Math.round((resolvedNow * 10_000) / rest.durationMs) / 10,
  rejected: rejected.map(({ id: _id, record: _record, ...one }) => one),
  different,
  failure: failure === null ? null : { kind: failure.kind, message: failure.message, remedy: failure.remedy }
})

/** Reports each push, and ends with the exit code of the worst. */
export const printReport = Effect.fnUntraced(function* (
  results: ReadonlyArray<PushText.PushResult>,
  json: boolean,
  shape: (reports: ReadonlyArray<object>) => object
) {
  if (json) yield* Output.print(Output.toJson(shape(results.map(jsonOf))))
  for (const result of results) {
    if (!json) {
      yield* Output.print(PushText.summaryLine(result))
      for (const line of PushText.remarkLines(result)) yield* Output.note(line)
    }
    if (result.failure !== null) yield* noteFailure(result.failure)
    if (result.status === "stopped") yield* Output.note(`  ${continuation(result.rows)}`)
  }
  yield* endWith(results.map(codeOf).reduce<ExitCode>((worst, one) => (one > worst ? one : worst), exitCode.ok))
})
