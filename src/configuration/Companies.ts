/**
 * The companies of a configuration: address, token, resources and signing secrets of each. Those of the warehouse are
 * read by src/companies.
 */
import * as Redacted from "effect/Redacted"
import { matches } from "../catalogue/Protection.ts"
import { controlCharacterProblem, hasControlCharacter } from "../delivery/Endpoint.ts"
import { findInstallation, foreignTo, type Installation, type InstallationResource } from "./Installations.ts"
import { type Inputs, variableStatus } from "./Inputs.ts"
import type { CompanySettings } from "./Settings.ts"
import type { everyEvent } from "./SettingValues.ts"

/** A pause: only deliveries are stored. */
export interface CompanyPause {
  readonly at: Date
  readonly by: string
}

/** An entry of a list of excluded resources. */
export interface Exclusion {
  /** A path, where `*` is any text. */
  readonly pattern: string
  /** Its place in the file, for messages. */
  readonly place: string
}

/** The entry that excludes a resource; undefined where none does. */
export const exclusionOf = (
  { excluded }: Pick<CompanyConfiguration, "excluded">,
  path: string
): Exclusion | undefined => excluded.find(({ pattern }) => matches(pattern, path))

export interface CompanyConfiguration {
  readonly name: string
  readonly installation: Installation
  readonly url: string
  readonly token: Redacted.Redacted
  /** The company's number at the source, where the service does not answer it. */
  readonly companyId: bigint | null
  /** The company's number in the warehouse, where it is not the number at the source. */
  readonly warehouseNumber: bigint | null
  /** Null is every resource of the catalogue. */
  readonly resources: ReadonlyArray<string> | null
  /** What is left out of them: the top level's list, the company's own, and resources of other installations. */
  readonly excluded: ReadonlyArray<Exclusion>
  /** Signing secrets of subscriptions made elsewhere, accepted beside those that the warehouse keeps. */
  readonly webhookSecrets: ReadonlyArray<Redacted.Redacted>
  /** Null is the events of the webhook configuration; `all` is every event of the synced resources. */
  readonly webhookEvents: ReadonlyArray<string> | typeof everyEvent | null
  /** Null while the company is active, as every company of the file is. */
  readonly paused: CompanyPause | null
}

/** A company of the warehouse that cannot be used. */
export interface UnusableCompany {
  readonly name: string
  /** What is wrong, and what to do. */
  readonly problem: string
  readonly paused: CompanyPause | null
}

/** The variable with the key that seals the tokens in the warehouse. */
export const companiesKeyVariable = "TRIBUTARY_COMPANIES_KEY"
export const keyLengthMin = 32

/** The key that seals the tokens in the warehouse; null where it is not set. */
export const companiesKeyOf = ({ problems, variable }: Inputs): Redacted.Redacted | null => {
  const key = variable(companiesKeyVariable)
  if (key === undefined) return null
  if (key.length < keyLengthMin) {
    problems.push(
      `${companiesKeyVariable} has fewer than ${keyLengthMin} characters; make a key with: openssl rand -base64 32`
    )
  }
  return Redacted.make(key, { label: companiesKeyVariable })
}

/** The top level's list of excluded resources. */
export const exclusionsOf = ({ place, settings }: Inputs): ReadonlyArray<Exclusion> =>
  settings.excludeResources.map((one, index) => ({ pattern: one, place: place("exclude_resources", index) }))

/** What the companies of the file share. */
interface Shared {
  /** What the top level describes. */
  readonly installation: Installation
  readonly installations: ReadonlyArray<Installation>
  readonly installationResources: ReadonlyArray<InstallationResource>
}

const companyOf = (
  inputs: Inputs,
  shared: Shared,
  {
    name,
    installation: installationName,
    token: written,
    tokenVariable,
    secretVariables,
    excludeResources,
    ...rest
  }: CompanySettings,
  index: number
): CompanyConfiguration | undefined => {
  const { flags, place, problems, variable } = inputs
  const installation =
    installationName === null ? shared.installation : findInstallation(shared.installations, installationName)
  if ("problem" in installation) {
    problems.push(`${place("companies", index, "installation")}: ${installation.problem}`)
    return undefined
  }
  const url = rest.url ?? installation.url ?? flags.url ?? variable("SERVICE_API_URL")
  const token = tokenVariable === null ? (written ?? variable("SERVICE_API_TOKEN")) : variable(tokenVariable)
  if (url === undefined) problems.push(`company ${name}: set its url, or SERVICE_API_URL`)
  else if (hasControlCharacter(url))
    problems.push(`company ${name}: ${controlCharacterProblem}; correct its url, --url or SERVICE_API_URL`)
  if (token === undefined) {
    problems.push(
      tokenVariable === null
        ? `company ${name}: set token_env, or SERVICE_API_TOKEN`
        : `company ${name}: ${tokenVariable} is not set in the environment or .env`
    )
  }
  const webhookSecrets = secretVariables.flatMap((secretVariable, position) => {
    const secret = variable(secretVariable)
    if (secret !== undefined) return [Redacted.make(secret, { label: `signing secret of ${name}` })]
    problems.push(
      `${place("companies", index, "webhook_secrets_env", position)}: ${variableStatus(secretVariable)} is not set in the environment or .env`
    )
    return []
  })
  if (url === undefined || token === undefined) return undefined
  return {
    ...rest,
    name,
    installation,
    url,
    token: Redacted.make(token, { label: `token of ${name}` }),
    excluded: [
      ...exclusionsOf(inputs),
      ...excludeResources.map((pattern, position) => ({
        pattern,
        place: place("companies", index, "exclude_resources", position)
      })),
      ...foreignTo(shared.installationResources, installation.name)
    ],
    webhookSecrets,
    paused: null
  }
}

/** The company of SERVICE_API_URL and SERVICE_API_TOKEN. */
const impliedCompany: CompanySettings = {
  name: "main",
  installation: null,
  url: null,
  token: null,
  tokenVariable: null,
  companyId: null,
  warehouseNumber: null,
  resources: null,
  excludeResources: [],
  secretVariables: [],
  webhookEvents: null
}

/**
 * The companies of the settings, else the one of SERVICE_API_URL and SERVICE_API_TOKEN, called main. With a key for
 * companies of the warehouse, an address alone is only the default of `tributary company add`.
 */
export const companiesOf = (inputs: Inputs, shared: Shared): ReadonlyArray<CompanyConfiguration> => {
  const { flags, problems, settings, variable } = inputs
  const named = settings.companies
  const isImplied =
    named.length === 0 &&
    (variable("SERVICE_API_TOKEN") !== undefined ||
      (variable(companiesKeyVariable) === undefined &&
        [flags.url, variable("SERVICE_API_URL")].some((value) => value !== undefined)))
  const companies = (isImplied ? [impliedCompany] : named).flatMap(
    (one, index) => companyOf(inputs, shared, one, index) ?? []
  )
  const names = companies.map((one) => one.name)
  for (const twice of new Set(names.filter((one, index) => names.indexOf(one) !== index))) {
    problems.push(`two companies are called ${twice}`)
  }
  return companies
}
