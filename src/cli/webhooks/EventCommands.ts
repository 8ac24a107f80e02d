/** The commands about events: the source's log of deliveries, and the replay of stored events. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { between } from "../../configuration/SettingValues.ts"
import * as InboxStore from "../../inbox/InboxStore.ts"
import * as Subscriptions from "../../subscriptions/Subscriptions.ts"
import { repeatedFlag, switchFlag, textFlag, withExamples } from "../Command.ts"
import { usageError } from "../Exit.ts"
import * as Output from "../Output.ts"
import { startOf, timeFlag } from "../TimeRange.ts"
import { commonFlags, companiesFor, forEachCompany, subscriptionArgument } from "./CompanyResults.ts"
import { logLines } from "./Format.ts"

const deliveriesCommand = Command.make(
  "deliveries",
  {
    subscription: subscriptionArgument,
    delivered: switchFlag("delivered", "Only events that were delivered"),
    failed: switchFlag("failed", "Only events that were not delivered, abandoned ones included"),
    abandoned: switchFlag("abandoned", "Only events that the source abandoned"),
    type: textFlag("type", "NAME", "Only events of this name"),
    limit: Flag.Int("limit").pipe(
      Flag.withDescription("Most events to show (default: 20)"),
      Flag.withMetavar("N"),
      Flag.withSchema(between(1, 10_000)),
      Flag.withDefault(20)
    ),
    ...commonFlags
  },
  Effect.fn(function* (flags) {
    if (flags.delivered && (flags.failed || flags.abandoned)) {
      return yield* usageError("--delivered excludes --failed and --abandoned")
    }
    const filter = {
      ...(flags.delivered ? { delivered: true } : flags.failed ? { delivered: false } : {}),
      ...(flags.abandoned ? { abandoned: true } : {}),
      ...(Option.isSome(flags.type) ? { eventType: flags.type.value } : {}),
      limit: flags.limit
    }
    const remark = "the log is longer than the part that was read; narrow it with --type NAME"
    yield* forEachCompany(
      flags,
      companiesFor(flags.subscription),
      ({ company, wanted }) =>
        Effect.tap(
          Subscriptions.deliveries(company, wanted, Option.getOrNull(flags.subscription), filter),
          ({ isWhole }) => (isWhole ? Effect.void : Output.note(`tributary: company ${company.name}: ${remark}`))
        ),
      ({ attempts }) => logLines(attempts)
    )
  })
).pipe(
  Command.withDescription("Show the source's log of deliveries, newest first: the last attempt of each event"),
  withExamples({
    "tributary webhooks deliveries": "The last 20 events",
    "tributary webhooks deliveries --abandoned --limit 100": "Events that the source abandoned"
  })
)

const replayCommand = Command.make(
  "replay",
  {
    dead: switchFlag("dead", "Dead letters (the default without --event)"),
    ignored: switchFlag("ignored", "Events about resources that are not synced"),
    event: repeatedFlag("event", "ID", "Only this event, in any state but pending (may be repeated)"),
    resource: textFlag("resource", "NAME", "Only events about this resource"),
    since: timeFlag("since", "Only events accepted at this time or later: a day, or RFC 3339 in UTC"),
    ...commonFlags
  },
  Effect.fn(function* (flags) {
    const states: ReadonlyArray<InboxStore.ReplayFilter["state"]> =
      flags.dead || flags.ignored
        ? [...(flags.dead ? (["dead_letter"] as const) : []), ...(flags.ignored ? (["skipped"] as const) : [])]
        : flags.event.length > 0
          ? ["dead_letter", "skipped", "done"]
          : ["dead_letter"]
    const filter = {
      ...(flags.event.length === 0 ? {} : { eventIds: flags.event }),
      ...(Option.isSome(flags.resource) ? { resource: flags.resource.value } : {}),
      ...(Option.isSome(flags.since) ? { since: startOf(flags.since.value) } : {})
    }
    yield* forEachCompany(
      flags,
      "any number",
      ({ company }) =>
        Effect.map(
          Effect.forEach(states, (state) => InboxStore.replay(company.name, { ...filter, state })),
          (counts) => ({ events: counts.reduce((sum, count) => sum + count, 0) })
        ),
      ({ events }, _, name) => [
        `company ${name}: ${Output.plural(events, "event is", "events are")} pending again` +
          (events === 0 ? "" : "; tributary serve processes them")
      ]
    )
  })
).pipe(
  Command.withDescription("Process dead letters or ignored events again"),
  withExamples({
    "tributary webhooks replay": "Every dead letter",
    "tributary webhooks replay --ignored --resource NAME": "After a resource was added",
    "tributary webhooks replay --event evt_1 --json": "One event in any state"
  })
)

export const eventCommands = [deliveriesCommand, replayCommand] as const
