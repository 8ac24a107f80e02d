/** `tributary explain`: every version of a record, and the origin of each. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import { didYouMean } from "../catalogue/Nearest.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { ConfigurationError } from "../configuration/ConfigurationError.ts"
import { explain, findHistory, listHistories } from "../verify/Explain.ts"
import type { Explanation, RunSummary, Version } from "../verify/Explanation.ts"
import { config, demoWarehouse, json, onWarehouse, textFlag, withExamples } from "./Command.ts"
import { CommandFailed, endWith, exitCode, usageError } from "./Exit.ts"
import { unreadReason } from "./CompanyResources.ts"
import * as Output from "./Output.ts"
import { Source } from "./Source.ts"
import * as TaskQueue from "../tasks/TaskQueue.ts"

/** Characters of a value that are shown. */
const shownMax = 80

const shown = (value: string | null): string =>
  value === null
    ? "(none)"
    : value.length <= shownMax
      ? value
      : `${value.slice(0, shownMax)}… (${value.length} characters)`

/** An instant without trailing zeros. */
const when = (instant: string | null): string =>
  instant === null ? "" : instant.replace("T", " ").replace(/(?:\.0+|(\.\d*?[1-9])0*)Z$/, "$1Z")

const describeRun = (run: RunSummary): string =>
  `run ${run.id} (${run.kind}${run.lane === "live" ? "" : `, ${run.lane}`}, ${run.status}, began ${when(run.beganAt)})`

const versionLines = (version: Version): ReadonlyArray<string> => {
  const run =
    version.run !== null
      ? describeRun(version.run)
      : version.runId === null
        ? "no run"
        : `run ${version.runId}, which is no longer in the ledger`
  const until = version.validTo === null ? "now" : when(version.validTo)
  const width = Math.max(0, ...version.changes.map(({ field }) => field.length))
  return [
    "",
    `  version ${version.version}: ${version.op}, from ${when(version.validFrom)} until ${until}`,
    `    by ${version.origin}, ${run}`,
    ...(version.source === null ? [] : [`    ${version.source}`]),
    ...version.changes.map(({ field, from, to }) => `      ${field.padEnd(width)}  ${shown(from)} → ${shown(to)}`)
  ]
}

/** The explanation for people; `names` are those of the companies, and `companies` their settings. */
export const lines = (
  explanation: Explanation,
  names: ReadonlyMap<string, bigint> = new Map(),
  companies: Configuration["companies"] = []
): ReadonlyArray<string> => {
  const { companyId, resource, id, state, versions, quarantine, rereads, fullScan, checkpoints } = explanation
  const count = Output.plural(versions.length, "version")
  const company = [...names].find(([, id]) => id === companyId)?.[0] ?? `company ${companyId}`
  const unread = unreadReason(
    companies.filter(({ name }) => name === company),
    resource
  )
  return [
    `${resource} ${id} of ${company}: ${state === "unknown" ? "never landed" : `${state}, ${count}`}`,
    ...(unread === null ? [] : [`  ${unread}; the warehouse keeps its rows`]),
    ...versions.flatMap(versionLines),
    "",
    ...(quarantine.length === 0 ? ["  quarantine: never"] : []),
    ...quarantine.flatMap((one) => [
      `  quarantine: ${one.field === null ? "" : `${one.field} `}${one.reason}; ` +
        `${one.resolvedAt === null ? "open" : `resolved ${when(one.resolvedAt)}`}, seen ${Output.plural(one.times, "time")} from ${when(one.firstSeenAt)} to ${when(one.lastSeenAt)}`,
      `    ${one.source}`,
      `    ${shown(one.bytes)}`
    ]),
    ...(rereads.length === 0 ? ["  to be read again: no"] : []),
    ...rereads.map(({ field, value, askedAt }) =>
      field === "id"
        ? `  to be read again: requested ${when(askedAt)}`
        : `  to be read again, with all whose ${field} is ${value}: requested ${when(askedAt)}`
    ),
    fullScan === null
      ? "  last full scan: none"
      : `  last full scan: ${describeRun(fullScan)}${fullScan.confirmed ? "; it confirmed this version" : "; this version came after it"}`,
    ...checkpoints.map(
      ({ lane, cursor, scan, updatedAt }) =>
        `  checkpoint${lane === "live" ? "" : ` of the ${lane}`}: ${cursor === null ? "no cursor" : `cursor ${cursor}`}, ` +
        `${scan === null ? "" : `${scan} scan in progress, `}updated ${when(updatedAt)}`
    )
  ]
}

/** A company by its number or its configured name; null is every company. */
const companyOf = Effect.fnUntraced(function* (settings: Configuration, given: string | undefined) {
  if (given === undefined) return null
  const configured = settings.companies.find(({ name }) => name === given)
  if (configured?.companyId !== undefined && configured.companyId !== null) return configured.companyId
  if (configured === undefined && /^\d{1,18}$/.test(given)) return BigInt(given)
  if (configured === undefined) {
    const names = settings.companies.map(({ name }) => name)
    return yield* new ConfigurationError({
      problems: [
        `there is no company "${given}"; give its number${names.length === 0 ? "" : `, or one of ${names.join(", ")}`}`
      ]
    })
  }
  const connector = yield* (yield* Source).connect(configured, settings)
  return yield* connector.identify.pipe(
    Effect.map(({ companyId }) => companyId),
    Effect.mapError(
      (error) =>
        new CommandFailed({ code: exitCode.fault, message: `${error.message}; give the company's number instead` })
    )
  )
})

export const command = Command.make(
  "explain",
  {
    resource: Argument.String("resource").pipe(Argument.withDescription("The resource, by the name of its table")),
    id: Argument.String("id").pipe(Argument.withDescription("The record's number")),
    company: textFlag(
      "company",
      "NAME",
      "Only in this company, by name or number (default: every company that has the record)"
    ),
    config,
    demo: demoWarehouse,
    json
  },
  Effect.fn(function* (flags) {
    const { companies, explanations, names, unread } = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        const given = Option.getOrUndefined(flags.company)
        const unread = unreadReason(
          settings.companies.filter(({ name }) => given === undefined || name === given),
          flags.resource
        )
        if (unread !== null && (yield* findHistory(settings.datasets, flags.resource)) === null)
          return yield* usageError(`the warehouse has no history of "${flags.resource}": ${unread}`)
        const company = yield* companyOf(settings, given)
        const resource = yield* findHistory(settings.datasets, flags.resource)
        if (resource === null) {
          const names = yield* listHistories(settings.datasets)
          return yield* usageError(
            `the warehouse has no history of "${flags.resource}"` +
              (names.length === 0
                ? "; nothing has been synced yet"
                : `; ${didYouMean(flags.resource, names) ?? `it has ${names.join(", ")}`}`)
          )
        }
        const explanations = yield* explain(settings.datasets, resource, flags.id, company)
        return { explanations, names: yield* TaskQueue.companyIds, companies: settings.companies, unread }
      }, Effect.scoped)
    )
    yield* Output.printResult(flags.json, { explanations }, () =>
      explanations.flatMap((explanation, at) => [...(at === 0 ? [] : [""]), ...lines(explanation, names, companies)])
    )
    if (explanations.length > 0) return
    yield* Output.note(
      `tributary: the warehouse has no version of ${flags.resource} ${flags.id}${unread === null ? "" : `: ${unread}`}`
    )
    yield* endWith(exitCode.usage)
  })
).pipe(
  withExamples({
    "tributary explain RESOURCE 17": "What happened to record 17",
    "tributary explain RESOURCE 17 --company 2 --json": "The same of one company, for a machine"
  })
)
