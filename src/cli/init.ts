/** The command `init`: collects what a configuration needs, checks it, and writes `config/tributary.yaml` and `.env`. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Terminal from "effect/Terminal"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { config, json, reported } from "./Command.ts"
import * as Output from "./Output.ts"

const optional = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.optional,
    Flag.map(Option.getOrNull)
  )

const repeated = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.between(0, 1000))

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
    url: optional("url", "URL", "Base address of the service (default: SERVICE_API_URL, else a prompt)"),
    companies: repeated("company", "NAME", "Name of a company in output (may be repeated; default: main)"),
    tokenVariables: repeated(
      "token-env",
      "NAME",
      "The environment variable (or .env entry) that holds the token (repeated in the order of the companies)"
    ),
    databaseUrlVariable: optional(
      "database-url-env",
      "NAME",
      "The environment variable that holds the warehouse's address (default: DATABASE_URL, else the embedded Postgres)"
    ),
    areas: repeated(
      "area",
      "NAME",
      "Only resources of this area (may be repeated; default: all that the token may read)"
    ),
    withPersonalData: Flag.Boolean("with-personal-data").pipe(
      Flag.withDescription(
        "Also read resources with personal data: employees, contacts, logins (default: a prompt; left out with --yes)"
      ),
      Flag.withDefault(false)
    ),
    freshnessMinutes: Flag.Int("freshness").pipe(
      Flag.withMetavar("MINUTES"),
      Flag.withDescription("Maximum age of a resource (default: 15)"),
      Flag.optional,
      Flag.map(Option.getOrNull)
    ),
    publicUrl: optional("webhooks-url", "URL", "The https address at which the service reaches tributary serve"),
    passwordVariable: optional(
      "page-password-env",
      "NAME",
      "The environment variable that holds the password of the dashboard (default: no password, this machine only)"
    ),
    yes: Flag.Boolean("yes").pipe(
      Flag.withDescription("No prompts: a value without a flag or variable has its default"),
      Flag.withDefault(false)
    ),
    replace: Flag.Boolean("replace").pipe(
      Flag.withDescription("Replace an existing configuration; a copy is kept beside the new one"),
      Flag.withDefault(false)
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const { initialise } = yield* Effect.promise(() => import("./init/Initialise.ts"))
    const { reportLines } = yield* Effect.promise(() => import("./init/Report.ts"))
    const report = yield* initialise(
      {
        ...flags,
        config: Option.getOrNull(flags.config),
        isInteractive: !flags.yes && process.stdin.isTTY && process.stderr.isTTY
      },
      process.env
    ).pipe(Effect.provideServiceEffect(Terminal.Terminal, onStandardError), reported)
    if (report === null) return
    if (flags.json) yield* Output.print(Output.toJson(report))
    else yield* Output.printLines(reportLines(report))
  })
).pipe(
  Command.withDescription(
    "Prompt for the service, its token and the warehouse, check them, and write the configuration"
  ),
  Command.withExamples([
    { command: "tributary init", description: "Step by step; the token is never shown" },
    {
      command: "tributary init --yes --url https://erp.example.com/!/api/v2 --company north --token-env NORTH_TOKEN",
      description: "For scripts, without prompts; the token comes from NORTH_TOKEN and is written to .env"
    }
  ])
)
