/** The command `changes`: the change feed. */
import * as Command from "effect/cli/Command"
import { endpointsCommand } from "./changes/endpoints.ts"

export const command = Command.make("changes").pipe(Command.withSubcommands([endpointsCommand]))
