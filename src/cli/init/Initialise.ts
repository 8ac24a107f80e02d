/**
 * How a folder gets its configuration: each answer from a flag, a variable, or whoever sits at the terminal.
 *
 * Promise: nothing is written before everything was tried: each token at the source, the database, and the configuration
 * by the loader that reads it later. Whoever stops before that leaves the folder as it was. A token is `Redacted`, is not
 * shown while it is typed, and stands in `.env` alone, which nobody but its owner can read.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parse as parseDotEnv } from "dotenv"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Terminal from "effect/Terminal"
import * as Prompt from "effect/cli/Prompt"
import * as Configuration from "../../configuration/Configuration.ts"
import type { Identity } from "../../connector/Connector.ts"
import type { SourceError } from "../../connector/SourceError.ts"
import { accessBlockOf } from "../../sync/Sync.ts"
import { query } from "../../postgres/Connection.ts"
import { Database, type DatabaseError } from "../../postgres/Database.ts"
import { CommandFailed, type ExitCode, exitCode } from "../Exit.ts"
import * as Output from "../Output.ts"
import { Source } from "../Source.ts"
import * as Address from "./Address.ts"
import * as Files from "./Files.ts"
import { environmentFile, write } from "./Write.ts"

/** What the command line said; null where it said nothing. */
export interface InitOptions {
  readonly url: string | null
  readonly companies: ReadonlyArray<string>
  readonly tokenVariables: ReadonlyArray<string>
  readonly databaseUrlVariable: string | null
  readonly areas: ReadonlyArray<string>
  readonly freshnessMinutes: number | null
  readonly publicUrl: string | null
  readonly passwordVariable: string | null
  readonly replace: boolean
  readonly config: string | null
  /** Whether somebody can be asked. */
  readonly isInteractive: boolean
}

/** Resources that a token may not read, by what stands in the way. */
export interface MissingAnswers {
  readonly reason: string
  readonly resources: ReadonlyArray<string>
}

export interface CompanyDone {
  readonly name: string
  readonly companyId: bigint
  readonly user: string | null
  readonly scopes: ReadonlyArray<string> | null
  /** How many resources a sync reads. */
  readonly resources: number
  readonly missing: ReadonlyArray<MissingAnswers>
}

export interface InitReport {
  readonly config: string
  readonly schema: string
  readonly environment: string
  /** Names of the variables that stand in `environment`. */
  readonly variables: ReadonlyArray<string>
  /** Where the configuration before is kept; null when there was none. */
  readonly backup: string | null
  readonly companies: ReadonlyArray<CompanyDone>
  readonly warehouse: string
  /** What a person should know or do. */
  readonly notes: ReadonlyArray<string>
  readonly next: ReadonlyArray<{ readonly command: string; readonly does: string }>
}

const configDefault = "config/tributary.yaml"
const freshnessMinutesDefault = 15
const freshnessMinutesMax = 7 * 24 * 60
const databaseUrlName = "DATABASE_URL"
const passwordName = "TRIBUTARY_DASHBOARD_PASSWORD"
/** A question is not worth a long wait. */
const patience = { attemptsMax: 2, requestTimeoutMs: 10_000, retryAfterMaxMs: 5_000 } as const

type Environment = Readonly<Record<string, string | undefined>>

/** Ends before anything was written. */
const failWith = (code: ExitCode, message: string) =>
  Effect.fail(new CommandFailed({ code, message: `${message}; nothing was written` }))

const problemsOf = (error: Configuration.ConfigurationError): string => error.problems.join("; ")

/** What the configuration says in the end, with the secrets that it names. */
interface Draft extends Files.Chosen {
  readonly secrets: ReadonlyMap<string, Redacted.Redacted>
}

/** The configuration as it will be loaded, from a file that is gone afterwards. */
const loaded = (draft: Draft, environment: Environment, file: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tributary-init-"))),
    (folder) => {
      const draftFile = join(folder, "tributary.yaml")
      writeFileSync(draftFile, Files.configurationText(draft))
      const secrets = [...draft.secrets].map(([name, value]) => [name, Redacted.value(value)])
      return Configuration.load({ config: draftFile }, { ...environment, ...Object.fromEntries(secrets) }).pipe(
        Effect.mapError(
          ({ problems }) =>
            new Configuration.ConfigurationError({
              problems: problems.map((problem) => problem.replaceAll(draftFile, file))
            })
        )
      )
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

const codeOf = ({ reason }: SourceError): ExitCode => {
  switch (reason._tag) {
    case "Unauthorized":
    case "Forbidden":
      return exitCode.refused
    case "NotFound":
    case "NotImplemented":
    case "Malformed":
    case "Redirected":
    case "Refused":
      return exitCode.configuration
    default:
      return exitCode.fault
  }
}

const variableFor = (company: string, taken: ReadonlyArray<string>): string => {
  const plain = company.toUpperCase().replaceAll("-", "_")
  const name = `${/^\d/.test(plain) ? "COMPANY_" : ""}${plain}_TOKEN`
  for (let number = 1; ; number += 1) {
    const one = number === 1 ? name : `${name}_${number}`
    if (!taken.includes(one)) return one
  }
}

const isVariable = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name)

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`

/** Of these resources, those that the token may not read. */
const missingOf = Effect.fnUntraced(function* (identity: Identity) {
  const { catalogue } = yield* Source
  const byReason = new Map<string, Array<string>>()
  for (const resource of catalogue.resources.values()) {
    const barrier = accessBlockOf(resource, identity)
    if (barrier === null) continue
    const known = byReason.get(barrier.reason)
    if (known === undefined) byReason.set(barrier.reason, [resource.path])
    else known.push(resource.path)
  }
  return [...byReason].map(([reason, resources]): MissingAnswers => ({ reason, resources }))
})

/** Whether the database can be used. Nothing is made in it. */
const tried = (
  url: Redacted.Redacted
): Effect.Effect<{ readonly told: string; readonly mayCreate: boolean }, DatabaseError> =>
  Effect.gen(function* () {
    const database = yield* Database
    const client = yield* database.connect
    const [row] = yield* query<{ version: string; may: boolean }>(
      client,
      "look at the database",
      "select current_setting('server_version') as version, has_database_privilege(current_database(), 'create') as may"
    )
    return { told: `${database.describe}, version ${row?.version ?? "unknown"}`, mayCreate: row?.may === true }
  }).pipe(Effect.scoped, Effect.provide(Database.layerUrl(url)))

// ------------------------------------------------------------------------------------------------------------- the flow

interface Company extends Files.CompanyText {
  readonly token: Redacted.Redacted
  readonly identity: Identity
  readonly missing: ReadonlyArray<MissingAnswers>
}

/** Null when whoever was asked wants to leave everything as it is. */
export const initialise = Effect.fn("initialise")(function* (
  given: InitOptions,
  environment: Environment
): Effect.fn.Return<InitReport | null, CommandFailed | Terminal.QuitError, Source | Prompt.Environment> {
  const { isInteractive } = given
  const { catalogue } = yield* Source
  const file = given.config ?? configDefault
  const dotEnv = existsSync(environmentFile) ? parseDotEnv(readFileSync(environmentFile)) : {}
  const variable = (name: string): string | undefined => {
    // An empty one counts as unset, and hides nothing.
    return [environment[name], dotEnv[name]]
      .map((value) => value?.trim())
      .find((value) => value !== undefined && value !== "")
  }
  const notes: Array<string> = []
  const say = (line: string) => (isInteractive ? Output.note(line) : Effect.void)
  const noTerminal = (what: string) => failWith(exitCode.usage, `${what}, and there is no terminal to ask on`)

  if (existsSync(file) && !given.replace) {
    if (!isInteractive) {
      return yield* failWith(
        exitCode.configuration,
        `${file} exists already: --replace replaces it and keeps it beside the new one`
      )
    }
    const replaces = yield* Prompt.Confirm({
      message: `${file} exists already. Replace it (it is kept beside the new one)?`,
      initial: false
    })
    if (!replaces) {
      yield* Output.note("Nothing was written.")
      return null
    }
  }
  for (const name of [...given.tokenVariables, given.databaseUrlVariable, given.passwordVariable]) {
    if (name !== null && !isVariable(name)) return yield* failWith(exitCode.usage, `${name} is no name of a variable`)
  }
  const areas = catalogue.areas.map(({ name }) => name)
  for (const area of given.areas) {
    if (!areas.includes(area)) {
      return yield* failWith(exitCode.usage, `there is no area "${area}"; there are ${areas.join(", ")}`)
    }
  }

  // -- the service and its companies

  const readUrl = Effect.fnUntraced(function* (before: string | null) {
    const text = given.url ?? (isInteractive ? null : (variable("SERVICE_API_URL") ?? null))
    if (text !== null && before === null) {
      const address = Address.read(text)
      if (typeof address === "string") return yield* failWith(exitCode.usage, `the address of the service: ${address}`)
      for (const change of address.changes) notes.push(`the address of the service: ${change}`)
      return address.url
    }
    if (!isInteractive) return yield* noTerminal("give the address of the service: --url or SERVICE_API_URL")
    const typed = yield* Prompt.String({
      message: "Address of the service:",
      default: before ?? variable("SERVICE_API_URL") ?? "",
      validate: (value) => {
        const address = Address.read(value)
        return typeof address === "string" ? Effect.fail(address) : Effect.succeed(value)
      }
    })
    const address = Address.read(typed)
    if (typeof address === "string") return yield* failWith(exitCode.usage, address)
    if (address.changes.length > 0) yield* say(`  ${address.url} (${address.changes.join("; ")})`)
    return address.url
  })

  const readToken = Effect.fnUntraced(function* (company: string, name: string, mayReuse: boolean) {
    const known = variable(name)
    if (!isInteractive) {
      return known === undefined
        ? yield* noTerminal(
            `the token of ${company} is missing: put it in the variable ${name} (or name another: --token-env)`
          )
        : Redacted.make(known, { label: `token of ${company}` })
    }
    if (known !== undefined && mayReuse) {
      const reuse = yield* Prompt.Confirm({ message: `Use the token that ${name} holds?`, initial: true })
      if (reuse) return Redacted.make(known, { label: `token of ${company}` })
    }
    const typed = yield* Prompt.Hidden({
      message: `Token of ${company} (it is not shown):`,
      validate: (value) =>
        /^[\x21-\x7e]+$/.test(value.trim())
          ? Effect.succeed(value.trim())
          : Effect.fail("a token has no spaces and is not empty: copy it again")
    })
    return Redacted.make(Redacted.value(typed), { label: `token of ${company}` })
  })

  const draftOf = (
    companies: ReadonlyArray<Files.CompanyText & { readonly token: Redacted.Redacted }>,
    more: Partial<Draft> = {}
  ): Draft => ({
    companies,
    hasDatabaseUrl: false,
    freshnessMinutes: freshnessMinutesDefault,
    publicUrl: null,
    passwordVariable: null,
    ...more,
    secrets: new Map([
      ...companies.map(({ tokenVariable, token }) => [tokenVariable, token] as const),
      ...(more.secrets ?? [])
    ])
  })

  const identify = Effect.fnUntraced(function* (one: Files.CompanyText & { readonly token: Redacted.Redacted }) {
    const settings = yield* loaded(draftOf([one]), environment, file)
    const connector = yield* (yield* Source).connect(settings.companies[0]!, { ...settings, ...patience })
    return yield* connector.identify
  }, Effect.scoped)

  const companies: Array<Company> = []
  const readCompany = Effect.fnUntraced(function* (index: number, urlBefore: string | null) {
    const taken = companies.map(({ name }) => name)
    const wrongName = (name: string): string | null =>
      !/^[A-Za-z0-9_-]{1,64}$/.test(name)
        ? "letters, digits, _ and - (at most 64)"
        : taken.includes(name)
          ? `there is a company ${name} already`
          : null
    let url = urlBefore ?? (yield* readUrl(null))
    const nameGiven = given.companies[index]
    const name =
      nameGiven ??
      (isInteractive
        ? yield* Prompt.String({
            message: "What is the company called here?",
            default: index === 0 ? "main" : "",
            validate: (value) => {
              const wrong = wrongName(value.trim())
              return wrong === null ? Effect.succeed(value.trim()) : Effect.fail(wrong)
            }
          })
        : "main")
    const wrong = wrongName(name)
    if (wrong !== null) return yield* failWith(exitCode.usage, `--company ${name}: ${wrong}`)
    const usual = variableFor(
      name,
      companies.map(({ tokenVariable }) => tokenVariable)
    )
    const standard = "SERVICE_API_TOKEN"
    const isOnly = index === 0 && given.companies.length <= 1
    const tokenVariable =
      given.tokenVariables[index] ??
      (isOnly && variable(usual) === undefined && variable(standard) !== undefined ? standard : usual)
    for (let attempt = 0; ; attempt += 1) {
      const token = yield* readToken(name, tokenVariable, attempt === 0)
      const one = { name, url, tokenVariable, resources: null, token }
      yield* say(`  asking ${url} who this is ...`)
      const asked = yield* Effect.result(identify(one))
      if (asked._tag === "Success") {
        const identity = asked.success
        const missing = yield* missingOf(identity)
        const readable = catalogue.resources.size - missing.reduce((sum, { resources }) => sum + resources.length, 0)
        yield* say(
          `  ✔ company ${identity.companyId}${identity.user === null ? "" : `, user ${Output.shown(identity.user)}`}: ` +
            `${readable} of ${catalogue.resources.size} resources can be read`
        )
        for (const { reason, resources } of missing) yield* say(`    ${reason}: ${resources.join(", ")}`)
        if (environment[tokenVariable] !== undefined && variable(tokenVariable) !== Redacted.value(token)) {
          notes.push(
            `${tokenVariable} is set to something else in the environment, which goes before .env: unset it there`
          )
        }
        companies.push({ ...one, identity, missing })
        return
      }
      const error = asked.failure
      const isSource = error._tag === "SourceError"
      const told = isSource ? `${error.message}; ${error.remedy}` : problemsOf(error)
      if (!isInteractive) {
        return yield* failWith(isSource ? codeOf(error) : exitCode.configuration, `company ${name}: ${told}`)
      }
      yield* say(`  ✘ ${told}`)
      const isToken = isSource && codeOf(error) === exitCode.refused
      if (!isToken) url = yield* readUrl(url)
    }
  })

  if (given.tokenVariables.length > Math.max(1, given.companies.length)) {
    return yield* failWith(exitCode.usage, "there are more --token-env than --company")
  }
  yield* readCompany(0, null)
  for (;;) {
    const index = companies.length
    const more =
      index < given.companies.length ||
      (isInteractive &&
        given.companies.length === 0 &&
        (yield* Prompt.Confirm({ message: "Another company?", initial: false })))
    if (!more) break
    yield* readCompany(index, companies[0]!.url)
  }

  // -- the warehouse

  const tryDatabase = Effect.fnUntraced(function* (url: Redacted.Redacted) {
    const found = yield* tried(url)
    if (!found.mayCreate) {
      notes.push(
        `the database user may not create datasets: grant create on database, or see npx tributary schema grants`
      )
    }
    return found.told
  })
  const warehouse = yield* Effect.gen(function* () {
    const name = given.databaseUrlVariable ?? databaseUrlName
    const text = variable(name)
    if (given.databaseUrlVariable !== null && text === undefined) {
      return yield* failWith(exitCode.usage, `--database-url-env: the variable ${name} is not set`)
    }
    if (text !== undefined) {
      const known = Redacted.make(text, { label: databaseUrlName })
      const told = yield* tryDatabase(known).pipe(
        Effect.catchTag("DatabaseError", (error) =>
          failWith(
            error.isRetryable ? exitCode.fault : exitCode.configuration,
            `the database that ${name} names: ${error.message}`
          )
        )
      )
      yield* say(`  ✔ the warehouse is the database that ${name} names: ${told}`)
      return { told, url: known }
    }
    const embedded = { told: "the embedded Postgres in .tributary", url: null }
    if (!isInteractive) return embedded
    for (;;) {
      const own = yield* Prompt.Select({
        message: "Where is the warehouse?",
        choices: [
          { title: "an embedded Postgres in .tributary", value: false, description: "nothing to install" },
          { title: "a Postgres database of your own", value: true, description: "by its address" }
        ]
      })
      if (!own) return embedded
      const typed = yield* Prompt.Hidden({
        message: "Its address, postgres://user:password@host:5432/database?sslmode=verify-full (it is not shown):",
        validate: (value) =>
          value.trim() === ""
            ? Effect.fail("expected an address that begins with postgres://")
            : Effect.succeed(value.trim())
      })
      const url = Redacted.make(Redacted.value(typed), { label: databaseUrlName })
      const asked = yield* Effect.result(tryDatabase(url))
      if (asked._tag === "Success") {
        yield* say(`  ✔ ${asked.success}`)
        return { told: asked.success, url }
      }
      yield* say(`  ✘ ${asked.failure.message}`)
    }
  })
  if (
    warehouse.url !== null &&
    environment[databaseUrlName] !== undefined &&
    environment[databaseUrlName] !== Redacted.value(warehouse.url)
  ) {
    notes.push(`${databaseUrlName} is set to something else in the environment, which goes before .env: unset it there`)
  }

  // -- what is synced, how fresh it is, and who sees it

  const barredFor = ({ missing }: Company) => new Set(missing.flatMap(({ resources }) => resources))
  const readableAreas = catalogue.areas.filter(({ name }) =>
    companies.some((company) => {
      const out = barredFor(company)
      return [...catalogue.resources.values()].some(({ area, path }) => area === name && !out.has(path))
    })
  )
  const chosenAreas = yield* Effect.gen(function* () {
    if (given.areas.length > 0 || !isInteractive) return given.areas
    const choose = yield* Prompt.Select({
      message: "Which resources?",
      choices: [
        { title: "all that the token may read", value: false },
        { title: "those of some areas", value: true }
      ]
    })
    if (!choose) return []
    return yield* Prompt.MultiSelect({
      message: "Which areas? (space selects, return goes on)",
      choices: readableAreas.map(({ name, covers }) => ({ title: name, value: name, description: covers })),
      min: 1
    })
  })
  const isChosen = (path: string) =>
    chosenAreas.length === 0 || chosenAreas.includes(catalogue.resources.get(path)?.area ?? "")
  const withResources = companies.map((company) => {
    if (chosenAreas.length === 0) return company
    const out = barredFor(company)
    const resources = [...catalogue.resources.values()]
      .filter(({ area, path }) => chosenAreas.includes(area) && !out.has(path))
      .map(({ path }) => path)
    return { ...company, resources }
  })
  for (const { name, resources } of withResources) {
    if (resources?.length === 0) {
      return yield* failWith(
        exitCode.refused,
        `company ${name}: the token may read nothing of ${chosenAreas.join(", ")}`
      )
    }
  }

  const freshnessMinutes =
    given.freshnessMinutes ??
    (isInteractive
      ? yield* Prompt.Int({
          message: "How old may a resource be at most, in minutes?",
          default: freshnessMinutesDefault,
          min: 1,
          max: freshnessMinutesMax
        })
      : freshnessMinutesDefault)
  if (freshnessMinutes < 1 || freshnessMinutes > freshnessMinutesMax) {
    return yield* failWith(exitCode.usage, `--freshness: expected minutes, from 1 to ${freshnessMinutesMax}`)
  }

  const check = (more: Partial<Draft>) => loaded(draftOf(withResources, more), environment, file)
  const passing = (more: Partial<Draft>, value: string) =>
    check(more).pipe(Effect.mapError(problemsOf), Effect.as(value))

  const publicUrl = yield* Effect.gen(function* () {
    if (given.publicUrl !== null || !isInteractive) return given.publicUrl
    const typed = yield* Prompt.String({
      message: "Public https address for webhooks (empty: none)",
      validate: (value) =>
        value.trim() === "" ? Effect.succeed("") : passing({ publicUrl: value.trim() }, value.trim())
    })
    return typed === "" ? null : typed
  })

  const password = yield* Effect.gen(function* () {
    const name = given.passwordVariable ?? passwordName
    const known = variable(name)
    if (known !== undefined) return { name, value: Redacted.make(known, { label: "password of the page" }) }
    if (given.passwordVariable !== null) {
      return yield* failWith(exitCode.usage, `--page-password-env: the variable ${name} is not set`)
    }
    if (!isInteractive) return null
    const typed = yield* Prompt.Hidden({
      message: "Password for the page (empty: none, for this machine only)",
      validate: (value) =>
        value === "" || value.trim().length >= 8
          ? Effect.succeed(value.trim())
          : Effect.fail("at least 8 characters, or none at all")
    })
    return Redacted.value(typed) === "" ? null : { name, value: typed }
  })

  // -- what it comes to

  const secrets = new Map([
    ...companies.map(({ tokenVariable, token }) => [tokenVariable, token] as const),
    ...(warehouse.url === null ? [] : [[databaseUrlName, warehouse.url] as const]),
    ...(password === null ? [] : [[password.name, password.value] as const])
  ])
  const draft = draftOf(withResources, {
    hasDatabaseUrl: warehouse.url !== null,
    freshnessMinutes,
    publicUrl,
    passwordVariable: password?.name ?? null,
    secrets
  })
  yield* loaded(draft, environment, file).pipe(
    Effect.catch((error) => failWith(exitCode.configuration, problemsOf(error)))
  )
  const replaced = [...secrets.keys()].filter(
    (name) => dotEnv[name] !== undefined && dotEnv[name].trim() !== Redacted.value(secrets.get(name)!)
  )
  if (replaced.length > 0 && !isInteractive && !given.replace) {
    return yield* failWith(
      exitCode.configuration,
      `${environmentFile} has another value of ${replaced.join(", ")}: --replace replaces it`
    )
  }
  for (const name of replaced) notes.push(`${name} in ${environmentFile} was replaced`)
  const environmentBefore = existsSync(environmentFile) ? readFileSync(environmentFile, "utf8") : ""
  const merged = Files.mergedEnvironment(
    environmentBefore,
    new Map([...secrets].map(([name, value]) => [name, Redacted.value(value)]))
  )
  if ("unwritable" in merged) {
    return yield* failWith(
      exitCode.configuration,
      `${merged.unwritable} cannot be put into ${environmentFile} as the file stands: set it in the environment, or write it there by hand`
    )
  }
  const written = yield* write(file, Files.configurationText(draft), merged.text).pipe(
    Effect.mapError((error) => new CommandFailed({ code: exitCode.fault, message: `cannot write: ${error}` })),
    Effect.uninterruptible
  )
  if (written.wasOpen) notes.push(`${environmentFile} could be read by others; now by its owner alone`)
  if (existsSync(".gitignore") && !Files.ignoresEnvironment(readFileSync(".gitignore", "utf8"))) {
    notes.push(`.gitignore does not name ${environmentFile}: add it, so that no token gets into the repository`)
  }

  const suffix = given.config === null ? "" : ` --config ${file}`
  return {
    config: file,
    schema: written.schema,
    environment: environmentFile,
    variables: [...secrets.keys()],
    backup: written.backup,
    companies: withResources.map(({ name, identity, missing, resources }) => ({
      name,
      companyId: identity.companyId,
      user: identity.user,
      scopes: identity.scopes,
      resources:
        resources?.length ??
        catalogue.resources.size - missing.reduce((sum, { resources: out }) => sum + out.length, 0),
      missing: missing
        .map(({ reason, resources: out }) => ({ reason, resources: out.filter(isChosen) }))
        .filter(({ resources: out }) => out.length > 0)
    })),
    warehouse: warehouse.told,
    notes,
    next: [
      { command: `npx tributary doctor${suffix}`, does: "every check, with its remedy" },
      { command: `npx tributary sync${suffix}`, does: "fill the warehouse" },
      {
        command: `npx tributary serve${suffix}`,
        does: "keep it fresh, receive webhooks, show the page at http://127.0.0.1:8086"
      },
      ...(publicUrl === null
        ? []
        : [{ command: `npx tributary webhooks ensure${suffix}`, does: "subscribe to events, while serve runs" }])
    ]
  }
}, stopped)

/** Whoever leaves a question unanswered, or ends the program, has changed nothing. */
function stopped<A, R>(
  flow: Effect.Effect<A, CommandFailed | Terminal.QuitError, R>
): Effect.Effect<A, CommandFailed, R> {
  return flow.pipe(
    Effect.catchTag("QuitError", () => Effect.interrupt),
    Effect.onInterrupt(() => Output.note("\nStopped; nothing was written."))
  )
}

/** What was done, for people. */
export const lines = (done: InitReport): ReadonlyArray<string> => [
  ...done.companies.flatMap(({ name, companyId, user, resources, missing }) => [
    `company ${name} is company ${companyId}${user === null ? "" : `, user ${Output.shown(user)}`}: ${count(resources, "resource")} to sync`,
    ...missing.map(({ reason, resources: out }) => `  not ${out.join(", ")}: ${reason}`)
  ]),
  `the warehouse is ${done.warehouse}`,
  `wrote ${done.config} and ${done.environment} (${done.variables.join(", ")})` +
    (done.backup === null ? "" : `; the configuration before is ${done.backup}`),
  ...done.notes.map((text) => `note: ${text}`),
  "",
  "What now:",
  ...done.next.map(
    ({ command, does }) => `  ${command.padEnd(Math.max(...done.next.map((one) => one.command.length)))}  ${does}`
  )
]
