/** The warehouse of `tributary init`: the database of DATABASE_URL or one that is typed, else the embedded Postgres. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Prompt from "effect/cli/Prompt"
import { Database, sqlLayer } from "../../postgres/Database.ts"
import { binaries, isInstalled } from "../../postgres/embedded/DataDirectory.ts"
import * as Statement from "../../postgres/Statement.ts"
import { exitCode } from "../Exit.ts"
import { describe } from "../Warehouse.ts"
import { askSecret, failWith, type InitContext, noteOverridden, say } from "./InitContext.ts"

export interface WarehouseChoice {
  readonly description: string
  /** Null is the embedded Postgres. */
  readonly url: Redacted.Redacted | null
}

export const databaseUrlVariable = "DATABASE_URL"

const embedded: WarehouseChoice = { description: "the embedded Postgres in .tributary", url: null }

const useEmbedded = binaries.pipe(
  Effect.catch((error) => failWith(exitCode.configuration, describe(error))),
  Effect.as(embedded)
)

export const databaseStatement = Statement.make({
  name: "look at the database",
  columns: { version: "text", may: "bool" },
  text: "select current_setting('server_version') as version, has_database_privilege(current_database(), 'create') as may"
})

/** Connects and reads the version and rights. Nothing is created. */
const checkDatabase = Effect.fnUntraced(function* (context: InitContext, url: Redacted.Redacted) {
  const { description, mayCreate } = yield* Effect.gen(function* () {
    const { describe: name } = yield* Database
    const [row] = yield* Statement.run(databaseStatement)
    return {
      description: `${name}, version ${row?.version ?? "unknown"}`,
      mayCreate: row?.may === true
    }
  }).pipe(Effect.provide(Layer.provideMerge(sqlLayer, Database.layerUrl(url))))
  if (!mayCreate) {
    context.notes.push(
      `the database user may not create datasets: grant create on database, or see tributary schema grants`
    )
  }
  return description
})

/** The database of the variable. */
const useVariable = Effect.fnUntraced(function* (context: InitContext, text: string) {
  const url = Redacted.make(text, { label: databaseUrlVariable })
  const description = yield* checkDatabase(context, url).pipe(
    Effect.catchTag("DatabaseError", (error) =>
      failWith(
        error.isRetryable ? exitCode.fault : exitCode.configuration,
        `the database in ${databaseUrlVariable}: ${error.message}`
      )
    )
  )
  yield* say(context, `  ✔ the warehouse is the database in ${databaseUrlVariable}: ${description}`)
  return { description, url }
})

/** Repeats until the database can be used, or the embedded Postgres is chosen. */
const askWarehouse = Effect.fnUntraced(function* (context: InitContext) {
  for (;;) {
    const isOwn =
      !(yield* isInstalled) ||
      (yield* Prompt.Select({
        message: "Where is the warehouse?",
        choices: [
          { title: "an embedded Postgres in .tributary", value: false, description: "nothing to install" },
          { title: "a Postgres database of your own", value: true, description: "by its address" }
        ]
      }))
    if (!isOwn) return embedded
    const url = yield* askSecret(
      "Its address, postgres://user:password@host:5432/database?sslmode=verify-full (it is not shown):",
      databaseUrlVariable,
      (text) => (text === "" ? "expected an address that begins with postgres://" : null)
    )
    const result = yield* Effect.result(checkDatabase(context, url))
    if (result._tag === "Success") {
      yield* say(context, `  ✔ ${result.success}`)
      return { description: result.success, url }
    }
    yield* say(context, `  ✘ ${result.failure.message}`)
  }
})

export const chooseWarehouse = Effect.fnUntraced(function* (context: InitContext) {
  const text = context.variable(databaseUrlVariable)
  const warehouse: WarehouseChoice =
    text !== undefined
      ? yield* useVariable(context, text)
      : context.options.isInteractive
        ? yield* askWarehouse(context)
        : yield* useEmbedded
  if (warehouse.url !== null) noteOverridden(context, databaseUrlVariable, warehouse.url)
  return warehouse
})
