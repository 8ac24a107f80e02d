/**
 * `tributary postgres`: the embedded Postgres for other programs. Without it, the server runs while a command does.
 */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as EmbeddedPostgres from "../postgres/EmbeddedPostgres.ts"
import { configuration, demoWarehouse, resultCommand } from "./Command.ts"
import { usageError } from "./Exit.ts"
import * as Warehouse from "./Warehouse.ts"

const stateLines = ({ root, running, exists, stays }: EmbeddedPostgres.ServerState): ReadonlyArray<string> => {
  if (!exists) return [`there is no embedded Postgres in ${root} yet; tributary postgres start makes one`]
  if (running === null) return [`the embedded Postgres in ${root} is stopped; to start it: tributary postgres start`]
  const address = `embedded Postgres 18 at ${running.host}:${running.port} (${root}, pid ${running.pid})`
  return [
    stays
      ? `${address}, until tributary postgres stop`
      : `${address}, until the last process that uses it ends; to keep it: tributary postgres start`,
    "for other programs: tributary psql, and the address by tributary status --connection"
  ]
}

/** A command that acts on the embedded server, and prints its state. */
const subcommand = <Name extends string>(
  name: Name,
  description: string,
  example: string,
  act: (
    root: string,
    port: number | undefined
  ) => Effect.Effect<EmbeddedPostgres.ServerState, EmbeddedPostgres.EmbeddedPostgresError>
) =>
  resultCommand({
    name,
    description,
    examples: { [`tributary postgres ${name}`]: example },
    flags: { demo: demoWarehouse },
    run: ({ demo }, file) =>
      Effect.gen(function* () {
        const location = Warehouse.locationOf(yield* configuration(file), demo)
        if (location.databaseUrl !== null)
          return yield* usageError("the warehouse is the server of DATABASE_URL, and not the embedded Postgres")
        return yield* act(Warehouse.embeddedRoot(location), location.embeddedPort)
      }),
    lines: stateLines
  })

const start = subcommand(
  "start",
  "Start it, and keep it running until it is stopped, also when no command runs",
  "Keep it running, for psql and BI tools",
  (root, port) =>
    EmbeddedPostgres.start({ root, port }).pipe(
      Effect.andThen(EmbeddedPostgres.stay(root)),
      Effect.andThen(EmbeddedPostgres.look(root)),
      Effect.scoped
    )
)

const stop = subcommand(
  "stop",
  "Stop it; while commands use it, the last of them stops it",
  "Stop it, now or with the last command that uses it",
  (root) =>
    Effect.flatMap(EmbeddedPostgres.look(root), (state) =>
      state.exists ? EmbeddedPostgres.release(root) : Effect.succeed(state)
    )
)

const status = subcommand(
  "status",
  "Show whether it runs, and where; creates and starts nothing",
  "Its port",
  EmbeddedPostgres.look
)

export const command = Command.make("postgres").pipe(Command.withSubcommands([start, stop, status]))
