/** `tributary doctor`: every check with its remedy, in one list. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { company, config, json, reported } from "./Command.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"

export const command = Command.make(
  "doctor",
  {
    company,
    sendTest: Flag.Boolean("send-test").pipe(
      Flag.withDescription("Let the service deliver a test event to each company's subscription"),
      Flag.withDefault(false)
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const { examine } = yield* Effect.promise(() => import("./doctor/Doctor.ts"))
    const { codeOf, lines } = yield* Effect.promise(() => import("./doctor/Finding.ts"))
    const findings = yield* examine({
      config: Option.getOrNull(flags.config),
      companies: flags.company,
      sendTest: flags.sendTest
    }).pipe(reported)
    const code = codeOf(findings)
    if (flags.json) yield* Output.print(Output.toJson({ ok: code === exitCode.ok, code, findings }))
    else yield* Output.printLines(lines(findings))
    if (code !== exitCode.ok) return yield* new CommandFailed({ code, message: "" })
  })
).pipe(
  Command.withDescription(
    "Check everything that sync and serve need, each problem with its remedy; exit code 2: configuration or database, " +
      "3: refused by the source, 5: unreachable"
  ),
  Command.withExamples([
    { command: "tributary doctor", description: "Everything; nothing is changed" },
    {
      command: "tributary doctor --company main --send-test",
      description: "With a test delivery of a webhook"
    },
    { command: "tributary doctor --json", description: "Findings and exit code as JSON" }
  ])
)
