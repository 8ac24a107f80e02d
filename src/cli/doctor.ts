/** `tributary doctor`: every check with its remedy, in one list. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import { company, config, json, reported, withExamples } from "./Command.ts"
import { endWith, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"

export const command = Command.make(
  "doctor",
  { company, config, json },
  Effect.fn(function* (flags) {
    const { examine } = yield* Effect.promise(() => import("./doctor/Doctor.ts"))
    const { codeOf, lines } = yield* Effect.promise(() => import("./doctor/Finding.ts"))
    const findings = yield* examine({ config: Option.getOrNull(flags.config), companies: flags.company }).pipe(reported)
    const code = codeOf(findings)
    yield* Output.printResult(flags.json, { ok: code === exitCode.ok, code, findings }, () => lines(findings))
    yield* endWith(code)
  })
).pipe(
  withExamples({
    "tributary doctor": "Everything; nothing is changed",
    "tributary doctor --company north": "One company of many",
    "tributary doctor --json": "Findings and exit code as JSON"
  })
)
