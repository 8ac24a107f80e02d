/** `tributary psql`: psql on the warehouse, with its login in the environment. */
import { spawn } from "node:child_process"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { config, demoWarehouse, onWarehouse, withExamples } from "./Command.ts"
import * as Connection from "./Connection.ts"
import { CommandFailed, endWith, exitCode } from "./Exit.ts"
import { locationOf } from "./Warehouse.ts"

const isMissing = (error: Error): boolean => "code" in error && error.code === "ENOENT"

/** Runs psql in this terminal, and returns its exit code. */
const runPsql = (args: ReadonlyArray<string>, environment: Readonly<Record<string, string>>) =>
  Effect.callback<number, CommandFailed>((resume) => {
    const child = spawn("psql", args, { stdio: "inherit", env: { ...process.env, ...environment } })
    // psql answers Ctrl-C itself: it cancels a statement, and does not end.
    process.removeAllListeners("SIGINT")
    process.on("SIGINT", () => {})
    child.once("error", (error) =>
      resume(
        Effect.fail(
          new CommandFailed({
            code: exitCode.configuration,
            message: isMissing(error)
              ? "psql is not installed here (Debian: apt install postgresql-client; macOS: brew install libpq); " +
                "tributary query runs SQL without it, and tributary status --connection prints the address for other programs"
              : `psql cannot run: ${error.message}`
          })
        )
      )
    )
    child.once("exit", (code) => resume(Effect.succeed(code ?? exitCode.fault)))
    return Effect.sync(() => child.kill())
  })

export const command = Command.make(
  "psql",
  {
    command: Flag.String("command").pipe(
      Flag.withAlias("c"),
      Flag.withDescription("Run this statement, and end"),
      Flag.withMetavar("SQL"),
      Flag.optional
    ),
    args: Argument.String("argument").pipe(
      Argument.withDescription("Arguments of psql, after --"),
      Argument.variadic()
    ),
    owner: Connection.owner,
    config,
    demo: demoWarehouse
  },
  Effect.fn(function* (flags) {
    const args = [...Option.match(flags.command, { onNone: () => [], onSome: (sql) => ["-c", sql] }), ...flags.args]
    const code = yield* onWarehouse(flags, (settings) =>
      Effect.flatMap(Connection.environmentFor(locationOf(settings, flags.demo), flags.owner), (environment) =>
        runPsql(args, environment)
      )
    )
    // psql has told what failed.
    yield* endWith(code === 0 ? exitCode.ok : exitCode.usage)
  })
).pipe(
  withExamples({
    "tributary psql": "A terminal session that may read everything but secrets",
    'tributary psql -c "select count(*) from tributary.runs"': "One statement",
    "tributary psql -- --csv -c 'table tributary.freshness'": "With arguments of psql"
  })
)
