/** The command `company`: the companies of the warehouse. Running processes apply each change within seconds. */
import * as Command from "effect/cli/Command"
import { addCommand } from "./company/add.ts"
import { listCommand, pauseCommand, resumeCommand, rotateCommand } from "./company/change.ts"
import { moveCommand } from "./company/move.ts"
import { removeCommand } from "./company/remove.ts"

export const command = Command.make("company").pipe(
  Command.withSubcommands([
    addCommand,
    listCommand,
    pauseCommand,
    resumeCommand,
    rotateCommand,
    moveCommand,
    removeCommand
  ])
)
