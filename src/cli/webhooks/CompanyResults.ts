/** The companies of a `tributary webhooks` command, and its result for each of them. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as StoredCompanies from "../../companies/StoredCompanies.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import type { SourceError } from "../../connector/SourceError.ts"
import { hookUrl } from "../../serve/Serve.ts"
import * as SigningSecrets from "../../subscriptions/SigningSecrets.ts"
import type * as Subscriptions from "../../subscriptions/Subscriptions.ts"
import { company, config, configuration, json } from "../Command.ts"
import { endWith, type ExitCode, exitCode, usageError } from "../Exit.ts"
import * as Output from "../Output.ts"
import * as ServedCompanies from "../ServedCompanies.ts"
import { Source } from "../Source.ts"
import * as Targets from "../Targets.ts"
import * as Warehouse from "../Warehouse.ts"

/** The flags of every command. */
export const commonFlags = { company, config, json }

export const subscriptionArgument = Argument.String("subscription").pipe(
  Argument.withDescription("Number of the subscription (default: the one that delivers to tributary serve)"),
  Argument.optional
)

interface CommonFlags {
  readonly company: ReadonlyArray<string>
  readonly config: Option.Option<string>
  readonly json: boolean
}

/** A company of the command line, with the subscription that the configuration describes. */
export interface Target {
  readonly company: Subscriptions.Subscriber
  readonly wanted: Subscriptions.DesiredSubscription
}

/** The command line of another `tributary webhooks` command for the same company. */
export type CommandLine = (command: string) => string

const commandLineFor =
  ({ companies }: Configuration, name: string): CommandLine =>
  (command) =>
    `tributary webhooks ${command}${companies.length > 1 ? ` --company ${name}` : ""}`

interface Failure {
  readonly message: string
  readonly remedy: string
  readonly code: ExitCode
}

type CompanyResult<A> =
  | { readonly company: string; readonly answer: A; readonly commandLine: CommandLine }
  | { readonly company: string; readonly failure: Failure }

const problemCodes: Readonly<Record<Subscriptions.ProblemKind, ExitCode>> = {
  unsupported: exitCode.configuration,
  address: exitCode.configuration,
  events: exitCode.configuration,
  field: exitCode.configuration,
  unknown: exitCode.usage,
  ambiguous: exitCode.usage,
  foreign: exitCode.usage,
  exists: exitCode.usage,
  busy: exitCode.fault
}

const failureOf = (error: Subscriptions.SubscriptionError | SourceError): Failure => ({
  message: Output.shown(error.message),
  remedy: Output.shown(error.remedy),
  code:
    error._tag === "SubscriptionError"
      ? problemCodes[error.kind]
      : error.isRetryable
        ? exitCode.fault
        : exitCode.refused
})

/** A subscription number belongs to one company. */
export const companiesFor = (subscription: Option.Option<string>) =>
  Option.isSome(subscription) ? "one" : "any number"

/** Runs an operation at the source for each chosen company, one after the other. */
const runForEach = Effect.fnUntraced(function* <A>(
  flags: CommonFlags,
  allowed: "any number" | "one",
  operation: (target: Target) => Effect.Effect<A, Subscriptions.SubscribeError, Subscriptions.SubscribeNeeds>
) {
  const file = yield* configuration(flags.config)
  yield* Targets.check(file, { companies: flags.company }, yield* Targets.mayHaveCompanies(file))
  const reader = yield* (yield* Source).deliveries
  return yield* Effect.gen(function* () {
    const settings = yield* StoredCompanies.extend(file)
    const targets = yield* Targets.connect(settings, { companies: flags.company })
    const names = targets.map(({ name }) => name)
    if (allowed === "one" && names.length > 1) {
      return yield* usageError(`choose one company with --company: ${names.join(", ")}`)
    }
    const companies = settings.companies.filter(({ name }) => names.includes(name))
    const operations = Effect.forEach(targets, ({ name, connector }) => {
      const company = companies.find((one) => one.name === name)!
      const wanted = {
        url: hookUrl(settings.webhooks.publicUrl, name),
        events: ServedCompanies.eventsOf(company, settings, reader)
      }
      const failed = (error: Parameters<typeof failureOf>[0]) =>
        Effect.succeed<CompanyResult<A>>({ company: name, failure: failureOf(error) })
      return operation({ company: { name, connector }, wanted }).pipe(
        Effect.map((answer): CompanyResult<A> => ({
          company: name,
          answer,
          commandLine: commandLineFor(settings, name)
        })),
        Effect.catchTags({ SubscriptionError: failed, SourceError: failed })
      )
    })
    const secrets = SigningSecrets.layer(companies.map((one) => ServedCompanies.secretsOf(one)))
    return yield* Effect.provide(operations, secrets)
  }).pipe(Effect.scoped, (effect) => Warehouse.provide(effect, file))
})

/**
 * Runs an operation for each chosen company, prints the results, and ends with the highest of their exit codes. One
 * company that fails does not stop the others.
 */
export const forEachCompany = Effect.fnUntraced(function* <A>(
  flags: CommonFlags,
  allowed: "any number" | "one",
  operation: (target: Target) => Effect.Effect<A, Subscriptions.SubscribeError, Subscriptions.SubscribeNeeds>,
  lines: (answer: A, commandLine: CommandLine, company: string) => ReadonlyArray<string>,
  codeOf: (answer: A) => ExitCode = () => exitCode.ok
) {
  const results = yield* runForEach(flags, allowed, operation)
  if (flags.json) {
    const companies = results.map((one) =>
      "answer" in one
        ? { company: one.company, ...one.answer }
        : { company: one.company, failure: { message: one.failure.message, remedy: one.failure.remedy } }
    )
    yield* Output.print(Output.toJson({ companies }))
  }
  for (const result of results) {
    if ("failure" in result) {
      yield* Output.note(`tributary: ${result.failure.message}`)
      yield* Output.note(`  what to do: ${result.failure.remedy}`)
    } else if (!flags.json) {
      if (results.length > 1) yield* Output.print(`company ${result.company}`)
      yield* Output.printLines(lines(result.answer, result.commandLine, result.company))
    }
  }
  const codes = results.map((one) => ("answer" in one ? codeOf(one.answer) : one.failure.code))
  yield* endWith(codes.reduce<ExitCode>((highest, one) => (one > highest ? one : highest), exitCode.ok))
})
