/**
 * The companies of the warehouse beside those of the configuration file.
 *
 * Promise: a company that cannot be used (its token cannot be opened, or its settings are invalid) hides no other one. The
 * key is needed only where the warehouse has a company.
 */
import { isDeepStrictEqual } from "node:util"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import {
  companiesKeyVariable,
  type CompanyConfiguration,
  type CompanyPause,
  type UnusableCompany
} from "../configuration/Companies.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { findInstallation, foreignTo, type Installation } from "../configuration/Installations.ts"
import { Company } from "../configuration/Settings.ts"
import { everyEvent } from "../configuration/SettingValues.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as CompanyStore from "./CompanyStore.ts"
import * as InstallationStore from "./InstallationStore.ts"

const decodeSettings = Schema.decodeUnknownResult(Company, { errors: "all", onExcessProperty: "error" })

const pauseOf = ({ pausedAt, pausedBy }: CompanyStore.CompanyRow): CompanyPause | null =>
  pausedAt === null ? null : { at: pausedAt, by: pausedBy ?? "unknown" }

const missingKey = (name: string) =>
  `company ${name}: its token is sealed in the warehouse, and ${companiesKeyVariable} is not set; set it to the key with ` +
  "which the company was added"

const wrongKey = (name: string) =>
  `company ${name}: ${companiesKeyVariable} does not open its token; set the key with which the company was added, or ` +
  `store the token again: tributary company rotate-token ${name} --token-stdin`

const moving = {
  leaving: (name: string) =>
    `company ${name} is moving to another warehouse; repeat tributary company move to complete it, or undo it: ` +
    `tributary company resume ${name}`,
  arriving: (name: string) =>
    `company ${name} is arriving from another warehouse; repeat tributary company move there to complete it`
}

const twice = (name: string) =>
  `company ${name} is in the configuration file and in the warehouse; remove it from the file, or from the warehouse: ` +
  `tributary company remove ${name}`

/** The settings of a row, as those of the file are decoded; or what is wrong with them. */
export const settingsOf = (
  row: Pick<
    CompanyStore.CompanyRow,
    "company" | "installation" | "url" | "companyId" | "warehouseNumber" | "resources" | "excludeResources" | "events"
  >,
  file: Pick<Configuration, "excluded" | "installation" | "installations" | "installationResources">
): Result.Result<Omit<CompanyConfiguration, "token" | "paused">, string> => {
  const installation =
    row.installation === null ? file.installation : findInstallation(file.installations, row.installation)
  if ("problem" in installation) return Result.fail(installation.problem)
  const { company, url, companyId, warehouseNumber, resources, excludeResources, events } = row
  const decoded = decodeSettings({
    name: company,
    url,
    ...(companyId === null ? {} : { company_id: Number(companyId) }),
    ...(warehouseNumber === null ? {} : { warehouse_number: Number(warehouseNumber) }),
    ...(resources === null ? {} : { resources }),
    ...(excludeResources === null ? {} : { exclude_resources: excludeResources }),
    ...(events === null ? {} : { webhook_events: events.join() === everyEvent ? everyEvent : events })
  })
  if (decoded._tag === "Success") {
    const { companyId: number, name, resources: paths, excludeResources: own, webhookEvents } = decoded.success
    const place = `exclude_resources of company ${name} in tributary.company_settings`
    const excluded = [
      ...file.excluded,
      ...own.map((pattern) => ({ pattern, place })),
      ...foreignTo(file.installationResources, installation.name)
    ]
    const settings = {
      name,
      installation,
      url,
      companyId: number,
      warehouseNumber: decoded.success.warehouseNumber,
      resources: paths,
      excluded,
      webhookEvents
    }
    return Result.succeed({ ...settings, webhookSecrets: [] })
  }
  const { issues } = SchemaIssue.makeFormatterStandardSchemaV1()(decoded.failure.issue)
  return Result.fail(issues.map(({ path, message }) => `${(path ?? []).map(String).join(".")}: ${message}`).join("; "))
}

const companyOf = (
  file: FileSettings,
  isInFile: (name: string) => boolean,
  row: CompanyStore.CompanyRow
): Result.Result<CompanyConfiguration, UnusableCompany> => {
  const name = row.company
  const key = file.companiesKey
  const { moveState, updatedAt } = row
  const paused = moveState === null ? pauseOf(row) : { at: updatedAt, by: "tributary company move" }
  const unusable = (problem: string) => Result.fail({ name, problem, paused })
  if (moveState !== null) return unusable(moving[moveState](name))
  if (isInFile(name)) return unusable(twice(name))
  const token = CompanyStore.tokenOf(key, row)
  if (token === null) return unusable(key === null ? missingKey(name) : wrongKey(name))
  const settings = settingsOf(row, file)
  if (settings._tag === "Failure") {
    return unusable(
      `company ${name}: its row in tributary.company_settings is invalid: ${settings.failure}; correct it`
    )
  }
  return Result.succeed({ ...settings.success, token, paused })
}

/** The companies of the warehouse. */
export interface StoredCompanies {
  /** The installations of the file and of the warehouse. */
  readonly installations: ReadonlyArray<Installation>
  readonly companies: ReadonlyArray<CompanyConfiguration>
  readonly unusable: ReadonlyArray<UnusableCompany>
}

/** The settings of the file. */
type FileSettings = Pick<
  Configuration,
  "companies" | "companiesKey" | "excluded" | "installation" | "installations" | "installationResources" | "written"
>

/** A row and what it means. */
interface DecodedRow {
  readonly row: CompanyStore.CompanyRow
  readonly result: Result.Result<CompanyConfiguration, UnusableCompany>
}

/** The installations of the rows, and what is wrong with the other ones. */
const decodeInstallations = (rows: ReadonlyArray<InstallationStore.InstallationRow>, { written }: FileSettings) => {
  const decoded = rows.map((row) => [row.name, InstallationStore.installationOfRow(row, written)] as const)
  return {
    installations: decoded.flatMap(([, result]) => (result._tag === "Success" ? [result.success] : [])),
    problems: new Map(decoded.flatMap(([name, result]) => (result._tag === "Failure" ? [[name, result.failure]] : [])))
  }
}

interface Rows {
  readonly installations: ReadonlyArray<InstallationStore.InstallationRow>
  readonly companies: ReadonlyArray<CompanyStore.CompanyRow>
}

/** Decodes rows; a row that did not change since the last call is not decoded again, and its company is the same object. */
const makeDecoder = (file: FileSettings) => {
  const names = new Set(file.companies.map(({ name }) => name))
  const isInFile = (name: string) => names.has(name)
  let decoded: ReadonlyMap<string, DecodedRow> = new Map()
  let before: Rows["installations"] = []
  return ({ companies, installations: rows }: Rows): StoredCompanies => {
    if (!isDeepStrictEqual(before, rows)) decoded = new Map()
    before = rows
    const { problems, installations: own } = decodeInstallations(rows, file)
    const all = { ...file, installations: [...file.installations, ...own] }
    const decode = (row: CompanyStore.CompanyRow) => {
      const problem = problems.get(row.installation ?? "")
      if (problem === undefined) return companyOf(all, isInFile, row)
      const text = `company ${row.company}: the installation ${row.installation} in tributary.installation_settings is invalid: ${problem}; correct it: tributary installation set`
      return Result.fail({ name: row.company, problem: text, paused: pauseOf(row) })
    }
    const results = companies.map((row): DecodedRow => {
      const last = decoded.get(row.company)
      return last !== undefined && isDeepStrictEqual(last.row, row) ? last : { row, result: decode(row) }
    })
    decoded = new Map(results.map((one) => [one.row.company, one]))
    return {
      installations: all.installations,
      companies: results.flatMap(({ result }) => (result._tag === "Success" ? [result.success] : [])),
      unusable: results.flatMap(({ result }) => (result._tag === "Failure" ? [result.failure] : []))
    }
  }
}

const readRows: Sql.Query<Rows> = Effect.all({ installations: InstallationStore.read, companies: CompanyStore.read })

/** Reads the companies of the warehouse, and changes nothing. */
export const readOnly = (settings: FileSettings): Sql.Query<StoredCompanies> =>
  Effect.map(readRows, makeDecoder(settings))

/**
 * Reads the companies of the warehouse, and seals the tokens that other programs inserted. A company that did not change
 * since the last read is the same object.
 */
export const read = (settings: FileSettings): Sql.Query<StoredCompanies> =>
  readRows.pipe(
    Effect.tap(({ companies }) =>
      settings.companiesKey === null ? Effect.void : CompanyStore.sealTokens(settings.companiesKey, companies)
    ),
    Effect.map(makeDecoder(settings))
  )

/** The configuration with the installations and the companies of the warehouse after those of the file. */
export const extend = (
  settings: Configuration,
  stored: Sql.Query<StoredCompanies> = read(settings)
): Sql.Query<Configuration> =>
  Effect.map(stored, ({ companies, installations, unusable }) => ({
    ...settings,
    installations,
    companies: [...settings.companies, ...companies],
    unusable
  }))
