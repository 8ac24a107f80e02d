/** The command `init`: collects what a configuration needs, checks it, and writes `config/tributary.yaml` and `.env`. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Terminal from "effect/Terminal"
import * as Command from "effect/cli/Command"
import { config, json, repeatedFlag, switchFlag, textFlag, withExamples } from "./Command.ts"
import * as Output from "./Output.ts"

/** Questions go to standard error, so that standard output holds the result alone. */
const onStandardError = Effect.map(Terminal.Terminal, (terminal) =>
  Terminal.make({
    ...terminal,
    columns: Effect.sync(() => process.stderr.columns ?? 80),
    rows: Effect.sync(() => process.stderr.rows ?? 24),
    display: (text) =>
      Effect.callback((resume) => {
        process.stderr.write(text, () => resume(Effect.void))
      })
  })
)

export const command = Command.make(
  "init",
  {
    url: textFlag("url", "URL", "Base address of the service (default: SERVICE_API_URL, else a prompt)"),
    companies: repeatedFlag("company", "NAME", "Name of a company in output (may be repeated; default: main)"),
    tokenVariables: repeatedFlag(
      "token-env",
      "NAME",
      "The environment variable (or .env entry) that holds the token (repeated in the order of the companies)"
    ),
    withPersonalData: switchFlag(
      "with-personal-data",
      "Also read resources with personal data: employees, contacts, logins (default: a prompt; left out with --yes)"
    ),
    yes: switchFlag("yes", "No prompts: a value without a flag or variable has its default"),
    replace: switchFlag("replace", "Replace an existing configuration; a copy is kept beside the new one"),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const { initialise } = yield* Effect.promise(() => import("./init/Initialise.ts"))
    const { reportLines } = yield* Effect.promise(() => import("./init/Report.ts"))
    const report = yield* initialise(
      {
        ...flags,
        url: Option.getOrNull(flags.url),
        config: Option.getOrNull(flags.config),
        isInteractive: !flags.yes && process.stdin.isTTY && process.stderr.isTTY
      },
      process.env
    ).pipe(Effect.provideServiceEffect(Terminal.Terminal, onStandardError))
    if (report !== null) yield* Output.printResult(flags.json, report, reportLines)
  })
).pipe(
  withExamples({
    "tributary init": "Step by step; the token is never shown",
    "tributary init --yes --url https://erp.example.com/!/api/v2 --company north --token-env NORTH_TOKEN":
      "For scripts, without prompts; the token comes from NORTH_TOKEN and is written to .env"
  })
)
