/** `tributary doctor`: every check with its remedy, in one list. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { company, resultCommand } from "./Command.ts"
import { exitCode } from "./Exit.ts"

export const command = resultCommand({
  name: "doctor",
  examples: {
    "tributary doctor": "Everything; nothing is changed",
    "tributary doctor --company north": "One company of many",
    "tributary doctor --json": "Findings and exit code as JSON"
  },
  flags: { company },
  run: (flags, file) =>
    Effect.gen(function* () {
      const { examine } = yield* Effect.promise(() => import("./doctor/Doctor.ts"))
      const { codeOf, lines } = yield* Effect.promise(() => import("./doctor/Finding.ts"))
      const findings = yield* examine({ config: Option.getOrNull(file), companies: flags.company })
      const code = codeOf(findings)
      return { report: { ok: code === exitCode.ok, code, findings }, lines: lines(findings) }
    }),
  json: ({ report }) => report,
  lines: (result) => result.lines,
  code: ({ report }) => report.code
})
