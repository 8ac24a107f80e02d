/** `tributary company add`: a company for the warehouse, after its source has accepted its token. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Flag from "effect/cli/Flag"
import * as CompanyStore from "../../companies/CompanyStore.ts"
import { variables } from "../../configuration/Inputs.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import { transaction } from "../../postgres/Transaction.ts"
import * as SourceGuard from "../../sync/SourceGuard.ts"
import { repeatedFlag, textFlag, url, warehouseCommand } from "../Command.ts"
import { usageError } from "../Exit.ts"
import * as Output from "../Output.ts"
import { companyOf, identify, nameArgument, readRows, readToken, refuse, requireKey, tokenFlags } from "./Editing.ts"

/** The address: given, that of the installation or of the environment, or the only one of the other companies. */
const addressOf = Effect.fnUntraced(function* (
  { companies, installations }: Configuration,
  given: Option.Option<string>,
  installation: string | null
) {
  const own = installations.find(({ name }) => name === installation)?.url ?? undefined
  const chosen = Option.getOrUndefined(given) ?? own ?? (yield* variables(process.env))("SERVICE_API_URL")
  if (chosen !== undefined) return chosen
  const [only, ...others] = new Set(companies.map((one) => one.url))
  if (only !== undefined && others.length === 0) return only
  return yield* usageError("give the address of the service: --url ADDRESS, or set SERVICE_API_URL")
})

const numberFlag = (name: string, description: string) =>
  Flag.Int(name).pipe(Flag.withDescription(description), Flag.withMetavar("NUMBER"), Flag.map(BigInt), Flag.optional)

const orNull = <A>(list: ReadonlyArray<A>) => (list.length === 0 ? null : list)

export const addCommand = warehouseCommand({
  name: "add",
  description: "Add a company to the warehouse, after the source has accepted its token",
  examples: {
    "tributary company add north --token-env NORTH_TOKEN": "The token of a variable",
    "tributary company add south --installation hosted --token-env SOUTH_TOKEN": "A company of an installation",
    "tributary company add north --token-stdin --resource RESOURCE < token.txt": "One resource only"
  },
  flags: {
    name: nameArgument,
    ...tokenFlags,
    url,
    installation: textFlag(
      "installation",
      "NAME",
      "The installation that the company belongs to; its address is the default"
    ),
    companyNumber: numberFlag(
      "company-number",
      "The company's number at the source; needed only where the service does not answer /me"
    ),
    warehouseNumber: numberFlag(
      "warehouse-number",
      "The company's number in the warehouse; needed only where another company has its number"
    ),
    resource: repeatedFlag("resource", "RESOURCE", "Sync only this resource (may be repeated; default: all)"),
    excludeResource: repeatedFlag(
      "exclude-resource",
      "RESOURCE",
      "Do not read this resource, or those of a pattern with * (may be repeated; beside exclude_resources of the file)"
    ),
    event: repeatedFlag(
      "event",
      "EVENT",
      "Subscribe to this event, or to all (may be repeated; default: webhooks.events)"
    )
  },
  makesWarehouse: true,
  run: (settings, flags) =>
    Effect.gen(function* () {
      const { name } = flags
      const key = yield* requireKey(settings)
      const rows = yield* readRows(key)
      if (rows.some(({ company }) => company === name)) {
        return yield* refuse(
          `the warehouse has a company ${name}; to replace its token: tributary company rotate-token ${name}`
        )
      }
      if (settings.companies.some((one) => one.name === name)) {
        return yield* refuse(`company ${name} is in the configuration file; choose another name, or remove it there`)
      }
      const token = yield* readToken(name, flags)
      const companyId = Option.getOrNull(flags.companyNumber)
      const installation = Option.getOrNull(flags.installation)
      const row = {
        company: name,
        installation,
        url: yield* addressOf(settings, flags.url, installation),
        companyId,
        warehouseNumber: Option.getOrNull(flags.warehouseNumber),
        resources: orNull(flags.resource),
        excludeResources: orNull(flags.excludeResource),
        events: orNull(flags.event)
      }
      const { identity, address } = yield* identify(settings, yield* companyOf(settings, row, token))
      if (companyId !== null && companyId !== identity.sourceNumber) {
        return yield* refuse(
          `the token is of company number ${identity.sourceNumber}, not ${companyId}; nothing was stored`
        )
      }
      const isAdded = yield* transaction(
        Effect.tap(CompanyStore.add(key, row, token), SourceGuard.save(name, identity, address))
      ).pipe(Effect.catchTag("SourceError", ({ message }) => Effect.fail(refuse(message))))
      if (!isAdded) return yield* refuse(`another program has just added a company ${name}`)
      return { company: name, companyId: identity.companyId, url: row.url, user: identity.user }
    }),
  lines: ({ company, companyId, url, user }) => [
    `Added company ${company}: number ${companyId} at ${url}${user === null ? "" : `, user ${Output.shown(user)}`}`,
    `  running processes of serve sync it within seconds; without them: tributary sync --company ${company}`
  ]
})
