/** The result of `tributary init`, for machines and for people. */
import type { BlockedResources } from "../AccessBlocks.ts"
import * as Output from "../Output.ts"
import type { InitContext } from "./InitContext.ts"
import { blockedPaths, type Company, describeUser } from "./Companies.ts"

export interface CompanyReport {
  readonly name: string
  readonly companyId: bigint
  readonly user: string | null
  readonly scopes: ReadonlyArray<string> | null
  /** How many resources a sync reads. */
  readonly resources: number
  /** Resources that the token may not read, by the missing scope or module. */
  readonly missing: ReadonlyArray<BlockedResources>
}

export interface InitReport {
  readonly config: string
  readonly schema: string
  readonly environment: string
  /** Names of the variables in `environment`. */
  readonly variables: ReadonlyArray<string>
  /** The copy of the previous configuration; null when there was none. */
  readonly backup: string | null
  readonly companies: ReadonlyArray<CompanyReport>
  /** Resources with personal data that are left out. */
  readonly excluded: ReadonlyArray<string>
  readonly warehouse: string
  /** Warnings, each with what to do. */
  readonly notes: ReadonlyArray<string>
  readonly next: ReadonlyArray<{ readonly command: string; readonly does: string }>
}

export const companyReport = (
  { catalogue }: InitContext,
  excluded: ReadonlyArray<string>,
  company: Company
): CompanyReport => {
  const { companyId, scopes, user } = company.identity
  const unread = new Set([...blockedPaths(company), ...excluded])
  return {
    name: company.name,
    companyId,
    user,
    scopes,
    resources: catalogue.resources.size - unread.size,
    missing: company.blocked
  }
}

/** The commands that follow. */
export const nextCommands = ({ options, file }: InitContext): InitReport["next"] => {
  const suffix = options.config === null ? "" : ` --config ${file}`
  return [
    { command: `tributary doctor${suffix}`, does: "run every check, each with its remedy" },
    { command: `tributary sync${suffix}`, does: "fill the warehouse" },
    {
      command: `tributary serve${suffix}`,
      does: "keep it fresh, receive webhooks, serve the dashboard at http://127.0.0.1:8086"
    }
  ]
}

/** The report for people. */
export const reportLines = (report: InitReport): ReadonlyArray<string> => {
  const width = Math.max(...report.next.map(({ command }) => command.length))
  return [
    ...report.companies.flatMap(({ name, companyId, user, resources, missing }) => [
      `company ${name} is company ${companyId}${describeUser({ user })}: ${Output.plural(resources, "resource")} to sync`,
      ...missing.map((one) => `  not ${one.resources.join(", ")}: ${one.reason}`)
    ]),
    ...(report.excluded.length === 0
      ? []
      : [
          `left out, since they hold personal data: ${report.excluded.join(", ")} (exclude_resources in ${report.config}; ` +
            "--with-personal-data keeps them)"
        ]),
    `the warehouse is ${report.warehouse}`,
    `wrote ${report.config} and ${report.environment} (${report.variables.join(", ")})` +
      (report.backup === null ? "" : `; the previous configuration is ${report.backup}`),
    ...report.notes.map((text) => `note: ${text}`),
    "",
    "What to do next:",
    ...report.next.map(({ command, does }) => `  ${command.padEnd(width)}  ${does}`)
  ]
}
