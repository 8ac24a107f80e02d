/** `tributary mcp`: the tools of assistants, on the standard input and output of this process. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Command from "effect/cli/Command"
import * as Assistants from "./Assistants.ts"
import { config, configuration, demoWarehouse, withExamples } from "./Command.ts"

export const command = Command.make(
  "mcp",
  { config, demo: demoWarehouse },
  Effect.fn(function* (flags) {
    const settings = yield* configuration(flags.config)
    // The transport interrupts its own fiber when the client has closed the input.
    const serving = yield* Effect.forkChild(Assistants.serveStdio(settings, flags.demo))
    yield* Fiber.await(serving)
  })
).pipe(
  withExamples({
    "tributary mcp": "Serve one assistant; its configuration names this command",
    "tributary mcp --demo": "On the warehouse of the demo"
  })
)
