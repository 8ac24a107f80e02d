/**
 * `tributary webhooks`: the subscriptions at the source, and the events that were accepted from them.
 *
 * Promise: nothing that it prints holds a signing secret, and what the source or a receiver has written is shown with
 * its control characters escaped.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { type Configuration, variableStatus, variables } from "../configuration/Configuration.ts"
import type { SourceError } from "../connector/SourceError.ts"
import { describeAnswer, type Attempt, type Subscription } from "../connector/Subscriptions.ts"
import * as InboxStore from "../inbox/InboxStore.ts"
import * as SigningSecrets from "../subscriptions/SigningSecrets.ts"
import { hookUrl } from "../serve/Serve.ts"
import * as Subscriptions from "../subscriptions/Subscriptions.ts"
import { Time } from "./backfill.ts"
import { company, config, configuration, json, reported } from "./Command.ts"
import { CommandFailed, type ExitCode, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as ServeLayers from "./ServeLayers.ts"
import { Source } from "./Source.ts"
import * as Sync from "./sync.ts"
import * as Warehouse from "./Warehouse.ts"

// ---------------------------------------------------------------------------------------------------- every company

/** A company of the command line, with what is wanted of it. */
interface Target {
  readonly company: Subscriptions.Subscriber
  readonly wanted: Subscriptions.DesiredSubscription
}

/** A command of `tributary webhooks` as it is to be typed for a company. */
type Typed = (command: string) => string

const typedFor =
  ({ companies }: Configuration, name: string): Typed =>
  (command) =>
    `npx tributary webhooks ${command}${companies.length > 1 ? ` --company ${name}` : ""}`

/** What was done for a company, or why it was not. */
type Done<A> =
  | { readonly company: string; readonly answer: A; readonly typed: Typed }
  | {
      readonly company: string
      readonly failure: { readonly message: string; readonly remedy: string; readonly code: ExitCode }
    }

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

const failureOf = (error: Subscriptions.SubscriptionError | SourceError) => ({
  message: shown(error.message),
  remedy: shown(error.remedy),
  code:
    error._tag === "SubscriptionError"
      ? problemCodes[error.kind]
      : error.isRetryable
        ? exitCode.fault
        : exitCode.refused
})

const usage = (message: string) => new CommandFailed({ code: exitCode.usage, message })

const wishOf = (names: ReadonlyArray<string>) => ({
  resources: [],
  companies: names,
  full: false,
  acceptDeletions: false
})

interface Flags {
  readonly company: ReadonlyArray<string>
  readonly config: Option.Option<string>
  readonly json: boolean
}

/** Does the same for every company that is named, one after the other, and answers how each went. */
const each = Effect.fnUntraced(function* <A>(
  flags: Flags,
  only: "any number" | "one",
  body: (target: Target) => Effect.Effect<A, Subscriptions.SubscribeError, Subscriptions.SubscribeNeeds>
) {
  const settings = yield* configuration(flags.config)
  // A mistake in the configuration is told before anything is started.
  const names = (yield* Effect.scoped(Sync.targets(settings, wishOf(flags.company)))).map(({ name }) => name)
  if (only === "one" && names.length > 1) {
    return yield* usage(`name the company that is meant with --company: ${names.join(", ")}`)
  }
  const configured = settings.companies.filter(({ name }) => names.includes(name))
  const reader = yield* (yield* Source).deliveries
  return yield* Effect.gen(function* () {
    // Connected within the warehouse, which keeps the budget that all processes share.
    const connected = yield* Sync.targets(settings, wishOf(names))
    return yield* Effect.forEach(connected, ({ name, connector }) => {
      const wanted = wantedOf(
        settings,
        name,
        ServeLayers.eventsOf(
          configured.find((one) => one.name === name)!,
          settings,
          reader
        )
      )
      return body({ company: { name, connector }, wanted }).pipe(
        Effect.map((answer): Done<A> => ({ company: name, answer, typed: typedFor(settings, name) })),
        Effect.catchTags({
          SubscriptionError: (error) => Effect.succeed<Done<A>>({ company: name, failure: failureOf(error) }),
          SourceError: (error) => Effect.succeed<Done<A>>({ company: name, failure: failureOf(error) })
        })
      )
    })
  }).pipe(
    Effect.scoped,
    Effect.provide(SigningSecrets.layer(configured.map((one) => ServeLayers.secretsOf(one)))),
    (effect) => Warehouse.provide(effect, settings)
  )
})

const wantedOf = (
  { webhooks }: Configuration,
  name: string,
  events: ReadonlyArray<string>
): Subscriptions.DesiredSubscription => ({
  url: hookUrl(webhooks.publicUrl, name),
  events
})

/** Prints what was done, company by company, and ends with the code of the worst. */
const tell = Effect.fnUntraced(function* <A>(
  flags: Flags,
  done: ReadonlyArray<Done<A>>,
  lines: (answer: A, typed: Typed, company: string) => ReadonlyArray<string>,
  codeOf: (answer: A) => ExitCode = () => exitCode.ok
) {
  if (flags.json) {
    yield* Output.print(
      Output.toJson({
        companies: done.map((one) =>
          "answer" in one
            ? { company: one.company, ...one.answer }
            : { company: one.company, failure: { message: one.failure.message, remedy: one.failure.remedy } }
        )
      })
    )
  }
  let code: ExitCode = exitCode.ok
  for (const one of done) {
    const own = "answer" in one ? codeOf(one.answer) : one.failure.code
    if (own > code) code = own
    if ("failure" in one) {
      yield* Output.note(`tributary: ${one.failure.message}`)
      yield* Output.note(`  what to do: ${one.failure.remedy}`)
    } else if (!flags.json) {
      if (done.length > 1) yield* Output.print(`company ${one.company}`)
      for (const line of lines(one.answer, one.typed, one.company)) yield* Output.print(line)
    }
  }
  if (code !== exitCode.ok) return yield* new CommandFailed({ code, message: "" })
})

// ------------------------------------------------------------------------------------------------------ for people

const shown = Output.shown

const when = (instant: string | null): string =>
  instant === null ? "never" : shown(instant).replace("T", " ").replace(/\.\d+/, "")

const subscriptionLine = ({ id, url, events }: Subscription): string =>
  `subscription ${shown(id)} delivers ${events.map(shown).join(", ")} to ${shown(url)}`

const secretLines = ({ id }: Subscription, ours: boolean, typed: Typed): ReadonlyArray<string> => [
  ...(ours
    ? [
        "  Its signing secret is stored in the warehouse, sealed, and shown nowhere: tributary serve accepts its deliveries.",
        "  To use one of your own instead, 16 to 255 characters in an environment variable:"
      ]
    : [
        "  Its signing secret is shown nowhere and not kept, since it does not deliver to tributary serve.",
        "  Give it one that its receiver knows, 16 to 255 characters in an environment variable:"
      ]),
  `    ${typed(`rotate ${shown(id)} --secret-env NAME`)}`
]

const secretTold: Readonly<Record<Subscriptions.Listing["secret"], string>> = {
  held: "held",
  configured: "configured",
  unreadable: "of another token",
  none: "not held"
}

const listLines = (listings: ReadonlyArray<Subscriptions.Listing>, typed: Typed): ReadonlyArray<string> => {
  if (listings.length === 0) return [`There is no subscription. Make ours with: ${typed("ensure")}`]
  return [
    Output.table(
      ["id", "state", "ours", "secret", "failures", "last delivery", "sound until", "address"],
      listings.map(({ subscription, state, ours, secret, soundAt }) => [
        shown(subscription.id),
        state,
        ours ? "yes" : "no",
        secretTold[secret],
        subscription.failCount === null ? "" : Output.count(subscription.failCount),
        when(subscription.lastDeliveryAt),
        ours ? when(soundAt) : "",
        shown(subscription.url)
      ]),
      ["right", "left", "left", "left", "right"]
    ),
    "",
    ...listings.flatMap(({ subscription, state, ours, lacks, secret }) => {
      const { id, events, disabledAt } = subscription
      const mend = typed("ensure")
      const resume = typed(`resume ${shown(id)}`)
      return [
        `  ${shown(id)} delivers ${events.map(shown).join(", ")}`,
        ...(lacks.length === 0 ? [] : [`    it lacks ${lacks.map(shown).join(", ")}: ${mend}`]),
        ...(disabledAt === null ? [] : [`    the source gave it up at ${when(disabledAt)}: ${ours ? mend : resume}`]),
        ...(state === "paused" ? [`    events are dropped while it is paused: ${resume}`] : []),
        ...(ours && (secret === "none" || secret === "unreadable")
          ? [`    its deliveries are refused, since its secret is not known: ${mend}`]
          : [])
      ]
    })
  ]
}

const ensureLines = ({ subscription, deeds }: Subscriptions.EnsureReport): ReadonlyArray<string> => [
  ...deeds.map(({ did, id, detail }) => `subscription ${shown(id)} ${did}: ${shown(detail)}`),
  ...(deeds.length === 0 ? ["nothing to do"] : []),
  subscriptionLine(subscription)
]

/** Characters of a receiver's answer that are shown in a table. */
const answerMax = 60

const logLines = (attempts: ReadonlyArray<Attempt>): ReadonlyArray<string> =>
  attempts.length === 0
    ? ["There is no such delivery in the source's log."]
    : [
        Output.table(
          ["event", "type", "attempts", "outcome", "status", "ms", "at", "answer"],
          attempts.map((one) => [
            shown(one.eventId),
            shown(one.eventType),
            String(one.attempts),
            one.delivered ? "delivered" : one.abandoned ? "abandoned" : "failed",
            one.responseCode === null ? "none" : String(one.responseCode),
            one.durationMs === null ? "" : Output.count(one.durationMs),
            when(one.at),
            shown(one.responseBody).slice(0, answerMax)
          ]),
          ["left", "left", "right", "left", "right", "right"]
        )
      ]

// -------------------------------------------------------------------------------------------------------- the commands

const common = { company, config, json }

const subscription = Argument.String("subscription").pipe(
  Argument.withDescription("The subscription's number (default: the one that delivers to us)"),
  Argument.optional
)

/** A number belongs to one company. */
const onlyFor = (id: Option.Option<string>) => (Option.isSome(id) ? "one" : "any number")

/** What is done to one subscription, and said of it. */
const simple = (
  name: string,
  description: string,
  act: (
    target: Target,
    id: string | null
  ) => Effect.Effect<Subscription, Subscriptions.SubscribeError, Subscriptions.SubscribeNeeds>,
  told: (one: Subscription, typed: Typed) => string
) =>
  Command.make(
    name,
    { subscription, ...common },
    Effect.fn(function* (flags) {
      const done = yield* reported(
        each(flags, onlyFor(flags.subscription), (target) =>
          Effect.map(act(target, Option.getOrNull(flags.subscription)), (one) => ({ subscription: one }))
        )
      )
      yield* tell(flags, done, (answer, typed) => [told(answer.subscription, typed)])
    })
  ).pipe(
    Command.withDescription(description),
    Command.withExamples([
      { command: `tributary webhooks ${name}`, description: "The subscription that delivers to us" },
      { command: `tributary webhooks ${name} 7 --company main --json`, description: "Another one, for a machine" }
    ])
  )

const ensureCommand = Command.make(
  "ensure",
  common,
  Effect.fn(function* (flags) {
    const done = yield* reported(
      each(flags, "any number", ({ company, wanted }) => Subscriptions.ensure(company, wanted))
    )
    for (const one of done) {
      if ("answer" in one) {
        for (const text of one.answer.warnings) yield* Output.note(`tributary: company ${one.company}: ${shown(text)}`)
      }
    }
    yield* tell(flags, done, (answer) => ensureLines(answer))
  })
).pipe(
  Command.withDescription(
    "Make the subscriptions at the source what the configuration says: one per company, active, its secret held"
  ),
  Command.withExamples([
    { command: "tributary webhooks ensure", description: "For every company; safe to repeat" },
    { command: "tributary webhooks ensure --company main --json", description: "For one, for a machine" }
  ])
)

const createCommand = Command.make(
  "create",
  {
    url: Flag.String("url").pipe(
      Flag.withDescription("The https address to deliver to (default: ours, from webhooks.public_url)"),
      Flag.withMetavar("URL"),
      Flag.optional
    ),
    event: Flag.String("event").pipe(
      Flag.withDescription("Deliver this event (may be repeated; default: those of the configuration)"),
      Flag.withMetavar("NAME"),
      Flag.between(0, 1000)
    ),
    description: Flag.String("description").pipe(
      Flag.withDescription("A note that the source keeps with it"),
      Flag.withMetavar("TEXT"),
      Flag.optional
    ),
    ...common
  },
  Effect.fn(function* (flags) {
    const done = yield* reported(
      each(flags, "one", ({ company, wanted }) =>
        Subscriptions.create(company, wanted, {
          url: Option.getOrElse(flags.url, () => wanted.url),
          events: flags.event.length === 0 ? wanted.events : [...new Set(flags.event)],
          description: Option.getOrElse(flags.description, () => Subscriptions.descriptionOf(company.name))
        })
      )
    )
    yield* tell(flags, done, ({ subscription: made, refused, ours }, typed) => [
      subscriptionLine(made),
      ...(refused.length === 0 ? [] : [`  The source does not know ${refused.map(shown).join(", ")}: left out.`]),
      ...secretLines(made, ours, typed)
    ])
  })
).pipe(
  Command.withDescription("Make a subscription of your own choice; ensure makes the one that delivers to us"),
  Command.withExamples([
    {
      command: "tributary webhooks create --url https://elsewhere.example.com/in --event resource.created",
      description: "For another receiver"
    }
  ])
)

const listCommand = Command.make(
  "list",
  common,
  Effect.fn(function* (flags) {
    const done = yield* reported(
      each(flags, "any number", ({ company, wanted }) =>
        Effect.map(Subscriptions.list(company, wanted), (subscriptions) => ({ subscriptions }))
      )
    )
    yield* tell(flags, done, ({ subscriptions }, typed) => listLines(subscriptions, typed))
  })
).pipe(
  Command.withDescription("Show the subscriptions at the source, and whether their deliveries can be accepted"),
  Command.withExamples([{ command: "tributary webhooks list", description: "Of every company" }])
)

/** Of a receiver's answer. */
const answerBytesMax = 500

const testCommand = Command.make(
  "test",
  { subscription, ...common },
  Effect.fn(function* (flags) {
    const done = yield* reported(
      each(flags, onlyFor(flags.subscription), ({ company, wanted }) =>
        Subscriptions.test(company, wanted, Option.getOrNull(flags.subscription))
      )
    )
    yield* tell(
      flags,
      done,
      ({ subscription: one, result }) => {
        const { delivered, durationMs, responseBody, eventId } = result
        return [
          `subscription ${shown(one.id)}, ${shown(one.url)}: ${delivered ? "delivered" : "not delivered"}, ` +
            shown(describeAnswer(result)) +
            (durationMs === null ? "" : ` after ${Output.duration(durationMs)}`) +
            (eventId === null ? "" : `, event ${shown(eventId)}`),
          ...(responseBody === null || responseBody === ""
            ? []
            : [`  ${shown(Buffer.from(responseBody).subarray(0, answerBytesMax).toString("utf8"))}`])
        ]
      },
      ({ result }) => (result.delivered ? exitCode.ok : exitCode.incomplete)
    )
  })
).pipe(
  Command.withDescription("Have the source send a test event now, and show what the receiver answered"),
  Command.withExamples([{ command: "tributary webhooks test", description: "The subscription that delivers to us" }])
)

/** What the documents allow a secret of one's own to be (H-09). */
const [secretMin, secretMax] = [16, 255]

const rotateCommand = Command.make(
  "rotate",
  {
    subscription,
    secretEnv: Flag.String("secret-env").pipe(
      Flag.withDescription("Use the secret in this environment variable or .env entry (default: a new random one)"),
      Flag.withMetavar("NAME"),
      Flag.optional
    ),
    ...common
  },
  Effect.fn(function* (flags) {
    const done = yield* reported(
      Effect.gen(function* () {
        let given: Redacted.Redacted | null = null
        if (Option.isSome(flags.secretEnv)) {
          const variable = variableStatus(flags.secretEnv.value)
          const value = variables(process.env)(flags.secretEnv.value)
          if (value === undefined) return yield* usage(`${variable} is not set in the environment or .env`)
          if (value.length < secretMin || value.length > secretMax) {
            return yield* usage(`${variable} must hold ${secretMin} to ${secretMax} characters`)
          }
          given = Redacted.make(value, { label: variable })
        }
        // A secret that is given is for one.
        const only = given === null ? onlyFor(flags.subscription) : "one"
        return yield* each(flags, only, ({ company, wanted }) =>
          Effect.map(
            Subscriptions.rotate(company, wanted, Option.getOrNull(flags.subscription), given),
            ({ subscription: one, ours }) => ({
              subscription: one,
              acceptedHours: ours ? SigningSecrets.acceptedHours : null
            })
          )
        )
      })
    )
    yield* tell(flags, done, ({ subscription: one, acceptedHours }) => [
      `subscription ${shown(one.id)} has a new signing secret` +
        (acceptedHours === null ? "" : `; the one before is accepted for ${acceptedHours} more hours`)
    ])
  })
).pipe(
  Command.withDescription("Give a subscription a new signing secret; no delivery is refused meanwhile"),
  Command.withExamples([
    { command: "tributary webhooks rotate", description: "The subscription that delivers to us" },
    { command: "tributary webhooks rotate 7 --secret-env HOOK_SECRET", description: "With a secret of your own" }
  ])
)

const pauseCommand = simple(
  "pause",
  "Stop deliveries; events that fire meanwhile are dropped by the source, and syncing brings over what they told of",
  ({ company, wanted }, id) => Subscriptions.pause(company, wanted, id),
  (one, typed) => `subscription ${shown(one.id)} is paused; go on with: ${typed(`resume ${shown(one.id)}`)}`
)

const resumeCommand = simple(
  "resume",
  "Deliver again, whether it was paused or the source had given it up; send a test first where it may not arrive",
  ({ company, wanted }, id) => Subscriptions.resume(company, wanted, id),
  subscriptionLine
)

const deleteCommand = Command.make(
  "delete",
  {
    subscription: Argument.String("subscription").pipe(Argument.withDescription("The subscription's number")),
    ...common
  },
  Effect.fn(function* (flags) {
    const done = yield* reported(
      each(flags, "one", ({ company, wanted }) =>
        Effect.map(Subscriptions.remove(company, wanted, flags.subscription), (one) => ({ subscription: one }))
      )
    )
    yield* tell(flags, done, ({ subscription: one }) => [
      one.cancelled
        ? `subscription ${shown(one.id)} is gone, and so is its secret`
        : `subscription ${shown(one.id)} is paused: this source offers no way to delete it`
    ])
  })
).pipe(
  Command.withDescription("Cancel a subscription for good and forget its secret"),
  Command.withExamples([{ command: "tributary webhooks delete 7", description: "The subscription number 7" }])
)

const on = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

const deliveriesCommand = Command.make(
  "deliveries",
  {
    subscription,
    delivered: on("delivered", "Only events that were delivered"),
    failed: on("failed", "Only events that were not delivered: given up by the source, or being tried still"),
    abandoned: on("abandoned", "Only events that the source has given up"),
    type: Flag.String("type").pipe(
      Flag.withDescription("Only events of this name"),
      Flag.withMetavar("NAME"),
      Flag.optional
    ),
    limit: Flag.Int("limit").pipe(
      Flag.withDescription("At most so many events (default: 20)"),
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 }))),
      Flag.withDefault(20)
    ),
    ...common
  },
  Effect.fn(function* (flags) {
    const done = yield* reported(
      Effect.gen(function* () {
        if (flags.delivered && (flags.failed || flags.abandoned)) {
          return yield* usage("no event is both delivered and not: leave --delivered out, or the other one")
        }
        return yield* each(flags, onlyFor(flags.subscription), ({ company, wanted }) =>
          Subscriptions.deliveries(company, wanted, Option.getOrNull(flags.subscription), {
            ...(flags.delivered ? { delivered: true } : flags.failed ? { delivered: false } : {}),
            ...(flags.abandoned ? { abandoned: true } : {}),
            ...(Option.isSome(flags.type) ? { eventType: flags.type.value } : {}),
            limit: flags.limit
          })
        )
      })
    )
    for (const one of done) {
      if ("answer" in one && !one.answer.isWhole) {
        yield* Output.note(
          `tributary: company ${one.company}: the log goes on further than was read; --type NAME narrows it`
        )
      }
    }
    yield* tell(flags, done, ({ attempts }) => logLines(attempts))
  })
).pipe(
  Command.withDescription("Show the source's log of deliveries, newest first: the last attempt of each event"),
  Command.withExamples([
    { command: "tributary webhooks deliveries", description: "The last 20 events" },
    { command: "tributary webhooks deliveries --abandoned --limit 100", description: "What the source has given up" }
  ])
)

const replayCommand = Command.make(
  "replay",
  {
    dead: on("dead", "Events that were given up (the default without --event)"),
    ignored: on("ignored", "Events that asked for nothing that was synced"),
    event: Flag.String("event").pipe(
      Flag.withDescription("Only this event, however it ended (may be repeated)"),
      Flag.withMetavar("ID"),
      Flag.between(0, 1000)
    ),
    resource: Flag.String("resource").pipe(
      Flag.withDescription("Only events about this resource"),
      Flag.withMetavar("NAME"),
      Flag.optional
    ),
    since: Flag.String("since").pipe(
      Flag.withDescription("Only events accepted at this time or later: a day, or RFC 3339 in UTC"),
      Flag.withMetavar("T"),
      Flag.withSchema(Time),
      Flag.optional
    ),
    ...common
  },
  Effect.fn(function* (flags) {
    const states: ReadonlyArray<InboxStore.ReplayFilter["state"]> =
      flags.dead || flags.ignored
        ? [...(flags.dead ? (["dead"] as const) : []), ...(flags.ignored ? (["ignored"] as const) : [])]
        : flags.event.length > 0
          ? ["dead", "ignored", "done"]
          : ["dead"]
    const done = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        const names = (yield* Effect.scoped(Sync.targets(settings, wishOf(flags.company)))).map(({ name }) => name)
        const replayed = Effect.fnUntraced(function* (name: string) {
          let events = 0
          for (const state of states) {
            events += yield* InboxStore.replay(name, {
              state,
              ...(flags.event.length === 0 ? {} : { eventIds: flags.event }),
              ...(Option.isSome(flags.resource) ? { resource: flags.resource.value } : {}),
              ...(Option.isSome(flags.since)
                ? { since: flags.since.value.length === 10 ? `${flags.since.value}T00:00:00Z` : flags.since.value }
                : {})
            })
          }
          return { company: name, answer: { events }, typed: typedFor(settings, name) }
        })
        return yield* Warehouse.provide(Effect.forEach(names, replayed), settings)
      })
    )
    yield* tell(flags, done, ({ events }, _, name) => [
      `company ${name}: ${Output.count(events)} ${events === 1 ? "event waits" : "events wait"} to be acted on again` +
        (events === 0 ? "" : ", which tributary serve does")
    ])
  })
).pipe(
  Command.withDescription("Act once more on events that were given up or ignored"),
  Command.withExamples([
    { command: "tributary webhooks replay", description: "Everything that was given up" },
    { command: "tributary webhooks replay --ignored --resource NAME", description: "After a resource was added" },
    { command: "tributary webhooks replay --event evt_1 --json", description: "One event, whatever became of it" }
  ])
)

export const command = Command.make("webhooks").pipe(
  Command.withDescription("See and change the webhook subscriptions at the source, and replay events"),
  Command.withSubcommands([
    ensureCommand,
    listCommand,
    createCommand,
    testCommand,
    rotateCommand,
    pauseCommand,
    resumeCommand,
    deleteCommand,
    deliveriesCommand,
    replayCommand
  ])
)
