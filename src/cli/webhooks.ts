/** The command `webhooks`: the subscriptions at the source, and the events that they deliver. */
import * as Command from "effect/cli/Command"
import { eventCommands } from "./webhooks/EventCommands.ts"
import { subscriptionCommands } from "./webhooks/SubscriptionCommands.ts"

export const command = Command.make("webhooks").pipe(
  Command.withSubcommands([...subscriptionCommands, ...eventCommands])
)
