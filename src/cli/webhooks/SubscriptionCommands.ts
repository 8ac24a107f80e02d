/** The commands that list and change the subscriptions at the source. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import { variableStatus, variables } from "../../configuration/Inputs.ts"
import type { Subscription } from "../../connector/Subscriptions.ts"
import * as Subscriptions from "../../subscriptions/Subscriptions.ts"
import { repeatedFlag, textFlag, withExamples } from "../Command.ts"
import { exitCode, usageError } from "../Exit.ts"
import * as Output from "../Output.ts"
import {
  type CommandLine,
  commonFlags,
  companiesFor,
  forEachCompany,
  subscriptionArgument,
  type Target
} from "./CompanyResults.ts"
import { ensureLines, listLines, secretLines, subscriptionLine, testLines } from "./Format.ts"

const { shown } = Output

const ofServe = "The subscription that delivers to tributary serve"

const ensureCommand = Command.make(
  "ensure",
  commonFlags,
  Effect.fn(function* (flags) {
    yield* forEachCompany(
      flags,
      "any number",
      ({ company, wanted }) =>
        Effect.tap(Subscriptions.ensure(company, wanted), ({ warnings }) =>
          Effect.forEach(warnings, (text) => Output.note(`tributary: company ${company.name}: ${shown(text)}`))
        ),
      ensureLines
    )
  })
).pipe(
  Command.withDescription("Create or repair the configured subscription of each company: active, with a stored secret"),
  withExamples({
    "tributary webhooks ensure": "For every company; safe to repeat",
    "tributary webhooks ensure --company main --json": "For one, for a machine"
  })
)

const createCommand = Command.make(
  "create",
  {
    url: textFlag(
      "url",
      "URL",
      "The https address to deliver to (default: that of tributary serve, from webhooks.public_url)"
    ),
    event: repeatedFlag("event", "NAME", "Deliver this event (may be repeated; default: those of the configuration)"),
    description: textFlag("description", "TEXT", "A note that the source stores with it"),
    ...commonFlags
  },
  Effect.fn(function* (flags) {
    yield* forEachCompany(
      flags,
      "one",
      ({ company, wanted }) =>
        Subscriptions.create(company, wanted, {
          url: Option.getOrElse(flags.url, () => wanted.url),
          events: flags.event.length === 0 ? wanted.events : [...new Set(flags.event)],
          description: Option.getOrElse(flags.description, () => Subscriptions.descriptionOf(company.name))
        }),
      ({ subscription, refused, ours }, commandLine) => [
        subscriptionLine(subscription),
        ...(refused.length === 0 ? [] : [`  The source does not know ${refused.map(shown).join(", ")}: left out.`]),
        ...secretLines(subscription, ours, commandLine)
      ]
    )
  })
).pipe(
  Command.withDescription("Create a subscription of your own; ensure creates the one that delivers to tributary serve"),
  withExamples({
    "tributary webhooks create --url https://elsewhere.example.com/in --event resource.created": "For another receiver"
  })
)

const listCommand = Command.make(
  "list",
  commonFlags,
  Effect.fn(function* (flags) {
    yield* forEachCompany(
      flags,
      "any number",
      ({ company, wanted }) => Effect.map(Subscriptions.list(company, wanted), (subscriptions) => ({ subscriptions })),
      ({ subscriptions }, commandLine) => listLines(subscriptions, commandLine)
    )
  })
).pipe(
  Command.withDescription("Show the subscriptions at the source, and whether their deliveries can be accepted"),
  withExamples({
    "tributary webhooks list": "Of every company"
  })
)

const testCommand = Command.make(
  "test",
  { subscription: subscriptionArgument, ...commonFlags },
  Effect.fn(function* (flags) {
    yield* forEachCompany(
      flags,
      companiesFor(flags.subscription),
      ({ company, wanted }) => Subscriptions.test(company, wanted, Option.getOrNull(flags.subscription)),
      ({ subscription, result }) => testLines(subscription, result),
      ({ result }) => (result.delivered ? exitCode.ok : exitCode.incomplete)
    )
  })
).pipe(
  Command.withDescription("Let the source send a test event now, and show the receiver's answer"),
  withExamples({
    "tributary webhooks test": ofServe
  })
)

/** The allowed length of a secret. */
const [secretMin, secretMax] = [16, 255]

/** The secret in a variable. */
const secretOf = Effect.fnUntraced(function* (name: string) {
  const variable = variableStatus(name)
  const value = (yield* variables(process.env))(name)
  if (value === undefined) return yield* usageError(`${variable} is not set in the environment or .env`)
  if (value.length < secretMin || value.length > secretMax) {
    return yield* usageError(`${variable} must hold ${secretMin} to ${secretMax} characters`)
  }
  return Redacted.make(value, { label: variable })
})

const rotateCommand = Command.make(
  "rotate",
  {
    subscription: subscriptionArgument,
    secretEnv: textFlag(
      "secret-env",
      "NAME",
      "Use the secret in this environment variable or .env entry (default: a new random one)"
    ),
    ...commonFlags
  },
  Effect.fn(function* (flags) {
    const secret = Option.isSome(flags.secretEnv) ? yield* secretOf(flags.secretEnv.value) : null
    yield* forEachCompany(
      flags,
      secret === null ? companiesFor(flags.subscription) : "one",
      ({ company, wanted }) => Subscriptions.rotate(company, wanted, Option.getOrNull(flags.subscription), secret),
      ({ subscription, acceptedHours }) => [
        `subscription ${shown(subscription.id)} has a new signing secret` +
          (acceptedHours === null ? "" : `; the previous one stays valid for ${Output.plural(acceptedHours, "hour")}`)
      ]
    )
  })
).pipe(
  Command.withDescription("Replace the signing secret of a subscription; no delivery is refused meanwhile"),
  withExamples({
    "tributary webhooks rotate": ofServe,
    "tributary webhooks rotate 7 --secret-env HOOK_SECRET": "With a secret of your own"
  })
)

/** A command that changes one subscription and prints one line about it. */
const changeCommand = (
  name: string,
  description: string,
  change: (
    target: Target,
    id: string | null
  ) => Effect.Effect<Subscription, Subscriptions.SubscribeError, Subscriptions.SubscribeNeeds>,
  describe: (subscription: Subscription, commandLine: CommandLine) => string
) =>
  Command.make(
    name,
    { subscription: subscriptionArgument, ...commonFlags },
    Effect.fn(function* (flags) {
      yield* forEachCompany(
        flags,
        companiesFor(flags.subscription),
        (target) =>
          Effect.map(change(target, Option.getOrNull(flags.subscription)), (subscription) => ({ subscription })),
        ({ subscription }, commandLine) => [describe(subscription, commandLine)]
      )
    })
  ).pipe(
    Command.withDescription(description),
    withExamples({
      [`tributary webhooks ${name}`]: ofServe,
      [`tributary webhooks ${name} 7 --company main --json`]: "Another one, for a machine"
    })
  )

const pauseCommand = changeCommand(
  "pause",
  "Stop deliveries; the source drops the events meanwhile, and a later sync reads the changes",
  ({ company, wanted }, id) => Subscriptions.pause(company, wanted, id),
  ({ id }, commandLine) => `subscription ${shown(id)} is paused; resume it with: ${commandLine(`resume ${shown(id)}`)}`
)

const resumeCommand = changeCommand(
  "resume",
  "Deliver again after a pause, or after the source disabled the subscription",
  ({ company, wanted }, id) => Subscriptions.resume(company, wanted, id),
  subscriptionLine
)

const deleteCommand = Command.make(
  "delete",
  {
    subscription: Argument.String("subscription").pipe(Argument.withDescription("Number of the subscription")),
    ...commonFlags
  },
  Effect.fn(function* (flags) {
    yield* forEachCompany(
      flags,
      "one",
      ({ company, wanted }) =>
        Effect.map(Subscriptions.remove(company, wanted, flags.subscription), (subscription) => ({ subscription })),
      ({ subscription: { id, cancelled } }) => [
        cancelled
          ? `subscription ${shown(id)} and its secret are deleted`
          : `subscription ${shown(id)} is paused: this source cannot delete subscriptions`
      ]
    )
  })
).pipe(
  Command.withDescription("Delete a subscription and its secret"),
  withExamples({
    "tributary webhooks delete 7": "Subscription 7"
  })
)

export const subscriptionCommands = [
  ensureCommand,
  listCommand,
  createCommand,
  testCommand,
  rotateCommand,
  pauseCommand,
  resumeCommand,
  deleteCommand
] as const
