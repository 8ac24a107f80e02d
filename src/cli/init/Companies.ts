/**
 * The companies of `tributary init`: address, name and token of each, checked at the source.
 *
 * Promise: a company is returned only after the source accepted its token.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Terminal from "effect/Terminal"
import * as Prompt from "effect/cli/Prompt"
import type { Identity } from "../../connector/Connector.ts"
import { type BlockedResources, blockedResources } from "../AccessBlocks.ts"
import { type CommandFailed, exitCode, exitCodeOfSource } from "../Exit.ts"
import * as Output from "../Output.ts"
import { Source } from "../Source.ts"
import * as Address from "./Address.ts"
import type { CompanyText } from "./Files.ts"
import { askSecret, askText, failUnanswered, failWith, type InitContext, noteOverridden, say } from "./InitContext.ts"
import { describeProblems, loadDraft } from "./Write.ts"

interface CompanyDraft extends CompanyText {
  readonly token: Redacted.Redacted
}

export interface Company extends CompanyDraft {
  readonly identity: Identity
  /** Resources that the token may not read. */
  readonly blocked: ReadonlyArray<BlockedResources>
}

/** A short timeout: a person waits for each request. */
const requestLimits = {
  attemptsMax: 2,
  requestTimeout: Duration.seconds(10),
  retryAfterMax: Duration.seconds(5)
} as const

const standardTokenVariable = "SERVICE_API_TOKEN"

export const blockedPaths = ({ blocked }: Pick<Company, "blocked">): ReadonlySet<string> =>
  new Set(blocked.flatMap(({ resources }) => resources))

/** The address of the service. `previous` is one that did not work. */
const readUrl = Effect.fnUntraced(function* (context: InitContext, previous: string | null) {
  const { isInteractive, url } = context.options
  const preset = url ?? (isInteractive ? null : (context.variable("SERVICE_API_URL") ?? null))
  if (preset !== null && previous === null) {
    const address = Address.read(preset)
    if (typeof address === "string") return yield* failWith(exitCode.usage, `the address of the service: ${address}`)
    for (const change of address.changes) context.notes.push(`the address of the service: ${change}`)
    return address.url
  }
  if (!isInteractive) return yield* failUnanswered("give the address of the service: --url or SERVICE_API_URL")
  const typed = yield* askText(
    "Address of the service",
    previous ?? context.variable("SERVICE_API_URL") ?? "",
    (value) => {
      const address = Address.read(value)
      return typeof address === "string" ? { problem: address } : { value }
    }
  )
  const address = Address.read(typed)
  if (typeof address === "string") return yield* failWith(exitCode.usage, address)
  if (address.changes.length > 0) yield* say(context, `  ${address.url} (${address.changes.join("; ")})`)
  return address.url
})

/** Whether a text is more likely a pasted token than a name that a person gives. */
const isLikeToken = (text: string): boolean => text.length >= 20 && /\d/.test(text) && /[A-Za-z]/.test(text)

/** The name of the company at this place of the command line. */
const readName = Effect.fnUntraced(function* (context: InitContext, index: number, others: ReadonlyArray<string>) {
  const problemOf = (name: string): string | null =>
    isLikeToken(name)
      ? "this looks like a token, which is prompted for next: give a short name, such as main"
      : !/^[A-Za-z0-9_-]{1,64}$/.test(name)
        ? "letters, digits, _ and - (at most 64)"
        : others.includes(name)
          ? `there is a company ${name} already`
          : null
  const { companies, isInteractive } = context.options
  const flag = companies[index]
  if (flag === undefined && isInteractive) {
    return yield* askText("Name of the company in output", index === 0 ? "main" : "", (name) => {
      const problem = problemOf(name)
      return problem === null ? { value: name } : { problem }
    })
  }
  const name = flag ?? "main"
  const problem = problemOf(name)
  // A token is not repeated in a message.
  return problem === null
    ? name
    : yield* failWith(exitCode.usage, `--company${isLikeToken(name) ? "" : ` ${name}`}: ${problem}`)
})

/** A variable for the company's token that no other company uses: `north-2` has `NORTH_2_TOKEN`. */
const newTokenVariable = (company: string, others: ReadonlyArray<string>): string => {
  const upper = company.toUpperCase().replaceAll("-", "_")
  const name = `${/^\d/.test(upper) ? "COMPANY_" : ""}${upper}_TOKEN`
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? name : `${name}_${number}`
    if (!others.includes(candidate)) return candidate
  }
}

const tokenVariableFor = (
  context: InitContext,
  index: number,
  company: string,
  others: ReadonlyArray<string>
): string => {
  const { companies, tokenVariables } = context.options
  const own = newTokenVariable(company, others)
  const isOnly = index === 0 && companies.length <= 1
  const isStandard =
    isOnly && context.variable(own) === undefined && context.variable(standardTokenVariable) !== undefined
  return tokenVariables[index] ?? (isStandard ? standardTokenVariable : own)
}

/** The token, from its variable or from the terminal. */
const readToken = Effect.fnUntraced(function* (
  context: InitContext,
  company: string,
  variable: string,
  mayReuse: boolean
) {
  const label = `token of ${company}`
  const value = context.variable(variable)
  if (!context.options.isInteractive) {
    return value === undefined
      ? yield* failUnanswered(
          `the token of ${company} is missing: put it in the variable ${variable} (or name another: --token-env)`
        )
      : Redacted.make(value, { label })
  }
  if (value !== undefined && mayReuse) {
    const reuse = yield* Prompt.Confirm({ message: `Use the token in ${variable}?`, initial: true })
    if (reuse) return Redacted.make(value, { label })
  }
  return yield* askSecret(`Token of ${company} (it is not shown):`, label, (text) =>
    /^[\x21-\x7e]+$/.test(text) ? null : "a token has no spaces and is not empty: copy it again"
  )
})

/** The company behind the token, as the source states it. */
const identify = Effect.fnUntraced(function* (context: InitContext, company: CompanyDraft) {
  const secrets = new Map([[company.tokenVariable, company.token]])
  const settings = yield* loadDraft(context, {
    companies: [company],
    excludedResources: [],
    hasDatabaseUrl: false,
    secrets
  })
  const first = settings.companies[0]!
  const connector = yield* (yield* Source).connect(
    { ...first, installation: { ...first.installation, ...requestLimits } },
    settings
  )
  return yield* connector.identify
}, Effect.scoped)

/** Reads address, name and token, and repeats at a terminal until the source accepts them. */
const readCompany = Effect.fnUntraced(function* (
  context: InitContext,
  others: ReadonlyArray<Company>
): Effect.fn.Return<Company, CommandFailed | Terminal.QuitError, Source | Prompt.Environment> {
  const index = others.length
  const { resources } = context.catalogue
  let url = others[0]?.url ?? (yield* readUrl(context, null))
  const name = yield* readName(
    context,
    index,
    others.map((company) => company.name)
  )
  const tokenVariable = tokenVariableFor(
    context,
    index,
    name,
    others.map((company) => company.tokenVariable)
  )
  for (let attempt = 0; ; attempt += 1) {
    const token = yield* readToken(context, name, tokenVariable, attempt === 0)
    const draft = { name, url, tokenVariable, token }
    yield* say(context, `  checking the token at ${url} ...`)
    const result = yield* Effect.result(identify(context, draft))
    if (result._tag === "Success") {
      const identity = result.success
      const company = { ...draft, identity, blocked: blockedResources(resources.values(), identity) }
      yield* say(
        context,
        `  ✔ company ${identity.companyId}${describeUser(identity)}: ` +
          `${resources.size - blockedPaths(company).size} of ${Output.plural(resources.size, "resource")} can be read`
      )
      for (const block of company.blocked) yield* say(context, `    ${block.reason}: ${block.resources.join(", ")}`)
      noteOverridden(context, tokenVariable, token)
      return company
    }
    const error = result.failure
    const isSource = error._tag === "SourceError"
    const code = isSource ? exitCodeOfSource(error) : exitCode.configuration
    const message = isSource ? `${error.message}; ${error.remedy}` : describeProblems(error)
    if (!context.options.isInteractive) return yield* failWith(code, `company ${name}: ${message}`)
    yield* say(context, `  ✘ ${message}`)
    if (code !== exitCode.refused) url = yield* readUrl(context, url)
  }
})

export const describeUser = ({ user }: Pick<Identity, "user">): string =>
  user === null ? "" : `, user ${Output.shown(user)}`

/** Every company of the command line, or as many as the person at the terminal adds. */
export const readCompanies = Effect.fnUntraced(function* (context: InitContext) {
  const { companies: names, isInteractive, tokenVariables } = context.options
  if (tokenVariables.length > Math.max(1, names.length)) {
    return yield* failWith(exitCode.usage, "there are more --token-env than --company")
  }
  const companies = [yield* readCompany(context, [])]
  const hasMore = Effect.suspend(() =>
    names.length > 0 || !isInteractive
      ? Effect.succeed(companies.length < names.length)
      : Prompt.Confirm({ message: "Another company?", initial: false })
  )
  while (yield* hasMore) companies.push(yield* readCompany(context, companies))
  return companies
})

/** The readable resources with personal data that are left out. */
export const chooseExcluded = Effect.fnUntraced(function* (
  { catalogue, options }: InitContext,
  companies: ReadonlyArray<Company>
) {
  const blocked = companies.map(blockedPaths)
  const personal = [...catalogue.resources.values()]
    .filter(({ path, personal }) => personal && blocked.some((paths) => !paths.has(path)))
    .map(({ path }) => path)
  if (personal.length === 0 || options.withPersonalData) return []
  const message = `Leave out personal data (${personal.join(", ")})?`
  return !options.isInteractive || (yield* Prompt.Confirm({ message, initial: true })) ? personal : []
})
