/** The companies of a configuration: address, token, resources and signing secrets of each. */
import * as Redacted from "effect/Redacted"
import { type Inputs, variableStatus } from "./Inputs.ts"
import type { CompanySettings } from "./Settings.ts"

export interface CompanyConfiguration {
  readonly name: string
  readonly url: string
  readonly token: Redacted.Redacted
  readonly companyId: bigint | null
  /** Null is every resource of the catalogue. */
  readonly resources: ReadonlyArray<string> | null
  /** Signing secrets of subscriptions made elsewhere, accepted beside those that the warehouse keeps. */
  readonly webhookSecrets: ReadonlyArray<Redacted.Redacted>
  /** Null is the events of the webhook configuration. */
  readonly webhookEvents: ReadonlyArray<string> | null
}

const companyOf = (
  { flags, place, problems, variable }: Inputs,
  one: CompanySettings,
  index: number
): CompanyConfiguration | undefined => {
  const url = one.url ?? flags.url ?? variable("SERVICE_API_URL")
  const token = one.token_env === undefined ? (one.token ?? variable("SERVICE_API_TOKEN")) : variable(one.token_env)
  if (url === undefined) problems.push(`company ${one.name}: set its url, or SERVICE_API_URL`)
  if (token === undefined) {
    problems.push(
      one.token_env === undefined
        ? `company ${one.name}: set token_env, or SERVICE_API_TOKEN`
        : `company ${one.name}: ${one.token_env} is not set in the environment or .env`
    )
  }
  const webhookSecrets = (one.webhook_secrets_env ?? []).flatMap((name, position) => {
    const secret = variable(name)
    if (secret !== undefined) return [Redacted.make(secret, { label: `signing secret of ${one.name}` })]
    problems.push(
      `${place("companies", index, "webhook_secrets_env", position)}: ${variableStatus(name)} is not set in the environment or .env`
    )
    return []
  })
  if (url === undefined || token === undefined) return undefined
  return {
    name: one.name,
    url,
    token: Redacted.make(token, { label: `token of ${one.name}` }),
    companyId: one.company_id === undefined ? null : BigInt(one.company_id),
    resources: one.resources ?? null,
    webhookSecrets,
    webhookEvents: one.webhook_events ?? null
  }
}

/** The companies of the settings, else the one of SERVICE_API_URL and SERVICE_API_TOKEN, called main. */
export const companiesOf = (inputs: Inputs): ReadonlyArray<CompanyConfiguration> => {
  const { flags, problems, settings, variable } = inputs
  const named = settings.companies ?? []
  const isImplied =
    named.length === 0 &&
    [flags.url, variable("SERVICE_API_URL"), variable("SERVICE_API_TOKEN")].some((value) => value !== undefined)
  const companies = (isImplied ? [{ name: "main" }] : named).flatMap(
    (one, index) => companyOf(inputs, one, index) ?? []
  )
  const names = companies.map((one) => one.name)
  for (const twice of new Set(names.filter((one, index) => names.indexOf(one) !== index))) {
    problems.push(`two companies are called ${twice}`)
  }
  return companies
}
