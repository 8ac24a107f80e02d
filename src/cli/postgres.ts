/**
 * `tributary postgres`: the embedded Postgres for other programs. Without it, the server runs while a command does.
 */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import type { Configuration } from "../configuration/Configuration.ts"
import * as EmbeddedPostgres from "../postgres/EmbeddedPostgres.ts"
import { config, configuration, demoWarehouse, json, reported, withExamples } from "./Command.ts"
import { usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as Warehouse from "./Warehouse.ts"

const flags = { config, demo: demoWarehouse, json }

/** The location of the embedded server. */
const locationOf = Effect.fnUntraced(function* (settings: Configuration, demo: boolean) {
  const location = Warehouse.locationOf(settings, demo)
  if (location.databaseUrl === null) return location
  return yield* usageError("the warehouse is the server of DATABASE_URL, and not the embedded Postgres")
})

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

const print = (asJson: boolean, state: EmbeddedPostgres.ServerState) => Output.printResult(asJson, state, stateLines)

const start = Command.make(
  "start",
  flags,
  Effect.fn(function* (given) {
    const state = yield* reported(
      Effect.gen(function* () {
        const location = yield* locationOf(yield* configuration(given.config), given.demo)
        const root = Warehouse.embeddedRoot(location)
        yield* EmbeddedPostgres.start({ root, port: location.embeddedPort })
        yield* EmbeddedPostgres.stay(root)
        return yield* EmbeddedPostgres.look(root)
      }).pipe(Effect.scoped)
    )
    yield* print(given.json, state)
  })
).pipe(
  Command.withDescription("Start it, and keep it running until it is stopped, also when no command runs"),
  withExamples({ "tributary postgres start": "Keep it running, for psql and BI tools" })
)

const stop = Command.make(
  "stop",
  flags,
  Effect.fn(function* (given) {
    const state = yield* reported(
      Effect.gen(function* () {
        const root = Warehouse.embeddedRoot(yield* locationOf(yield* configuration(given.config), given.demo))
        const { exists } = yield* EmbeddedPostgres.look(root)
        return exists ? yield* EmbeddedPostgres.release(root) : yield* EmbeddedPostgres.look(root)
      })
    )
    yield* print(given.json, state)
  })
).pipe(
  Command.withDescription("Stop it; while commands use it, the last of them stops it"),
  withExamples({ "tributary postgres stop": "Stop it, now or with the last command that uses it" })
)

const status = Command.make(
  "status",
  flags,
  Effect.fn(function* (given) {
    const state = yield* reported(
      Effect.gen(function* () {
        return yield* EmbeddedPostgres.look(
          Warehouse.embeddedRoot(yield* locationOf(yield* configuration(given.config), given.demo))
        )
      })
    )
    yield* print(given.json, state)
  })
).pipe(
  Command.withDescription("Show whether it runs, and where; creates and starts nothing"),
  withExamples({ "tributary postgres status": "Its port" })
)

export const command = Command.make("postgres").pipe(Command.withSubcommands([start, stop, status]))
