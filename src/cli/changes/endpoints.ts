/** `tributary changes endpoints`: where changes are sent as signed webhooks. */
import * as Command from "effect/cli/Command"
import { addCommand, rotateCommand } from "./EndpointSecrets.ts"
import { listCommand, testCommand } from "./EndpointStatus.ts"
import { pauseCommand, removeCommand, replayCommand, resumeCommand } from "./EndpointStates.ts"

export const endpointsCommand = Command.make("endpoints").pipe(
  Command.withDescription("Add, list, test, pause, resume, rotate, replay and remove endpoints that get the changes"),
  Command.withSubcommands([
    addCommand,
    listCommand,
    testCommand,
    pauseCommand,
    resumeCommand,
    rotateCommand,
    replayCommand,
    removeCommand
  ])
)
