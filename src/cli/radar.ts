/**
 * `tributary radar`: compares an installation with the documentation.
 *
 * Promise: it only reads from the source, within the bounds of the flags and the rate budget. Nothing that it prints or
 * records contains the token or a value of a record.
 */
import { writeFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Comparisons from "../companies/Comparisons.ts"
import * as InstallationStore from "../companies/InstallationStore.ts"
import { findInstallation } from "../configuration/Installations.ts"
import { requireRow, withSetting } from "./installation.ts"
import * as StoredCompanies from "../companies/StoredCompanies.ts"
import type { CompanyConfiguration } from "../configuration/Companies.ts"
import * as Configuration from "../configuration/Configuration.ts"
import { variables } from "../configuration/Inputs.ts"
import type { RadarReport } from "../connector/Radar.ts"
import * as Mode from "../files/Mode.ts"
import { config, json, switchFlag, textFlag, withExamples } from "./Command.ts"
import { CommandFailed, endWith, type ExitCode, exitCode, exitCodeOfSource, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { linesOf } from "./radar/Report.ts"
import { companyOf, Source } from "./Source.ts"
import * as Warehouse from "./Warehouse.ts"

const requestsMax = 300

const flags = {
  url: textFlag("url", "URL", "Base address of the installation (default: that of the configured company)"),
  tokenEnv: textFlag("token-env", "VAR", "The environment variable (or .env entry) that has the token"),
  company: textFlag("company", "NAME", "The configured company whose token is used (default: the only one)"),
  installation: textFlag(
    "installation",
    "NAME",
    "The installation to compare, with the token of its first active company"
  ),
  apply: switchFlag("apply", "Store the recommended settings for the installation, after showing them"),
  requests: Flag.Int("requests").pipe(
    Flag.withDescription(`Maximum number of requests (default: ${requestsMax}, which is also the most)`),
    Flag.withMetavar("N"),
    Flag.withDefault(requestsMax)
  ),
  rate: Flag.Int("rate").pipe(
    Flag.withDescription("Requests in any minute (default: budget.requests_per_minute)"),
    Flag.withMetavar("N"),
    Flag.optional
  ),
  record: textFlag("record", "FILE", "Write the answers with every value replaced by one of the same shape"),
  config,
  json
}

type Flags = Command.Command.Config.Infer<typeof flags>

const tokenOf = Effect.fnUntraced(function* ({ tokenEnv }: Flags) {
  const name = Option.getOrElse(tokenEnv, () => "SERVICE_API_TOKEN")
  const value = (yield* variables(process.env))(name)
  return value === undefined
    ? yield* new CommandFailed({
        code: exitCode.configuration,
        message: `the token is missing: set ${name}, or name another variable with --token-env`
      })
    : Redacted.make(value, { label: "token" })
})

const chooseCompany = Effect.fnUntraced(function* (settings: Configuration.Configuration, given: Flags) {
  const names = Option.toArray(given.company)
  const chosen = yield* Configuration.chooseCompanies(settings, names)
  if (Option.isSome(given.installation)) {
    const found = findInstallation(settings.installations, given.installation.value)
    if ("problem" in found) return yield* usageError(found.problem)
    const own = chosen.find(({ installation, paused }) => installation.name === found.name && paused === null)
    return (
      own ??
      (yield* usageError(
        `the installation ${found.name} has no active company${names.length === 0 ? "" : ` ${names[0]}`}`
      ))
    )
  }
  const [one, ...others] = chosen
  if (one === undefined) {
    return yield* usageError("name the installation: --url and --token-env; no company is configured")
  }
  if (others.length > 0)
    return yield* usageError("several companies are configured: choose one with --company, or --installation")
  return one
})

const codeOf = ({ access, differences, ended }: RadarReport): ExitCode => {
  if (ended !== null) return exitCodeOfSource(ended)
  if (access.read === 0 && access.refused.length > 0) return exitCode.refused
  return differences.length > 0 ? exitCode.incomplete : exitCode.ok
}

const write = (file: string, text: string) =>
  Effect.try({
    try: () => {
      writeFileSync(file, text, { mode: Mode.secretFile })
      Mode.narrow(file, Mode.secretFile)
    },
    catch: (cause) =>
      new CommandFailed({ code: exitCode.fault, message: `${file} cannot be written: ${(cause as Error).message}` })
  })

const compare = Effect.fnUntraced(function* <E, R>(
  given: Flags,
  settings: Configuration.Configuration,
  company: CompanyConfiguration,
  after: (report: RadarReport) => Effect.Effect<void, E, R>
) {
  const source = yield* Source
  const perMinute = Option.getOrElse(given.rate, () => company.installation.requestsPerMinute ?? requestsMax)
  const { report, recording } = yield* source
    .radar(company, settings, { requestsMax: given.requests, requestsPerMinute: perMinute })
    .pipe(Effect.scoped)
  if (Option.isSome(given.record)) yield* write(given.record.value, recording)
  const code = codeOf(report)
  const { ended } = report
  const shown = {
    company: company.name,
    code,
    ...report,
    ended: ended === null ? null : { message: ended.message, remedy: ended.remedy }
  }
  yield* Output.printResult(given.json, shown, () => linesOf(report, Option.getOrNull(given.record)))
  yield* after(report)
  if (ended !== null) yield* Output.note(`tributary: ${ended.message}\n  what to do: ${ended.remedy}`, "Error")
  yield* endWith(code)
})

/** Stores the recommended settings for the installation. */
const apply = Effect.fnUntraced(function* (
  settings: Configuration.Configuration,
  name: string,
  recommended: RadarReport["settings"]
) {
  const before = yield* requireRow(settings, name)
  const own = recommended.reduce((all, { path, value }) => withSetting(all, path, value), before.settings)
  yield* InstallationStore.set({ name, settings: own })
  yield* Output.note(
    `Stored for installation ${name}: ${recommended.map(({ path, value }) => `${path}=${value}`).join(", ")}`
  )
})

const run = Effect.fnUntraced(function* (given: Flags) {
  if (given.requests < 1 || given.requests > requestsMax) {
    return yield* usageError(`--requests is a number from 1 to ${requestsMax}`)
  }
  if (Option.isSome(given.rate) && given.rate.value < 1) return yield* usageError("--rate is a number from 1")
  const load = (environment: Readonly<Record<string, string | undefined>>) =>
    Configuration.load({ config: Option.getOrUndefined(given.config) }, environment)
  if (Option.isSome(given.url)) {
    if (Option.isSome(given.company)) return yield* usageError("give --url or --company, not both")
    if (given.apply || Option.isSome(given.installation))
      return yield* usageError("--installation and --apply need a configured company, not --url")
    const token = yield* tokenOf(given)
    // The settings of the file count; its companies need not be usable.
    const settings = yield* load({
      ...process.env,
      SERVICE_API_URL: given.url.value,
      SERVICE_API_TOKEN: Redacted.value(token)
    })
    // An installation that no configuration names.
    const { excluded, installation } = settings
    const company = companyOf({ name: "radar", installation, url: given.url.value, token, excluded })
    return yield* compare(given, settings, company, () => Effect.void)
  }
  if (Option.isSome(given.tokenEnv)) return yield* usageError("give --url with --token-env")
  const settings = yield* load(process.env)
  if (!(yield* Warehouse.exists(settings))) {
    if (given.apply) return yield* usageError("--apply needs a warehouse, which tributary init prepares")
    return yield* compare(given, settings, yield* chooseCompany(settings, given), () => Effect.void)
  }
  // Then the requests share the budget of the token with the other processes.
  return yield* Warehouse.provide(
    Effect.gen(function* () {
      const extended = yield* StoredCompanies.extend(settings)
      const company = yield* chooseCompany(extended, given)
      const { name } = company.installation
      if (given.apply && name === null)
        return yield* usageError(
          "--apply stores settings of an installation; write those of the top level into the configuration file"
        )
      if (given.apply && name !== null) yield* requireRow(extended, name)
      return yield* compare(
        given,
        extended,
        company,
        Effect.fnUntraced(function* (report) {
          if (report.ended !== null) return
          yield* Comparisons.save(name, company.name, report)
          if (given.apply && name !== null && report.settings.length > 0) yield* apply(extended, name, report.settings)
        })
      )
    }),
    Warehouse.locationOf(settings, false)
  )
})

export const command = Command.make("radar", flags, run).pipe(
  withExamples({
    "tributary radar --url https://erp.example.com/!/api/v2 --token-env ERP_TOKEN":
      "An installation that is not configured yet; at most 300 requests",
    "tributary radar --company north --rate 60": "A configured company, beside programs that use its limit",
    "tributary radar --installation hosted --apply": "Store what it recommends for the installation",
    "tributary radar --record erp.radar.json": "Also record the answers by their shape, for reference-server --like",
    "tributary radar --json": "The whole report as JSON"
  })
)
