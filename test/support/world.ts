/**
 * A whole installation for one test: a reference server in a process of its own, an empty database on the run's
 * Postgres, a folder for the configuration, and the `tributary` command.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { tableOf } from "../../src/warehouse/Table.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import { compare, type Comparison } from "../../src/verify/Compare.ts"
import { certificate } from "./certificate.ts"
import { freePort } from "./freePort.ts"
import { freshDatabase } from "./postgres.ts"
import { commandsIn, type CommandRun, type ReferenceProcess, startReference } from "./reference.ts"
import { temporaryFolder } from "./servers.ts"

export interface World {
  readonly reference: ReferenceProcess
  readonly folder: string
  readonly databaseUrl: string
  /** Starts a command. Its token is that of the company, unless `env` has another one. */
  readonly command: (args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) => CommandRun
  /** Runs a command to its end. */
  readonly run: (
    args: ReadonlyArray<string>,
    env?: Readonly<Record<string, string>>
  ) => Effect.Effect<Awaited<CommandRun["done"]>>
  /** Writes `config/tributary.yaml`. */
  readonly configure: (yaml: string) => void
  /** Queries the warehouse. */
  readonly query: <Row extends object>(text: string) => Effect.Effect<ReadonlyArray<Row>>
  /** Compares a resource of a company with the server's own state. */
  readonly compare: (resource: string, companyId?: number) => Effect.Effect<Comparison>
  /** Calls the control plane of the reference server. */
  readonly control: (method: string, path: string, body?: unknown) => Effect.Effect<unknown>
}

export interface WorldOptions {
  readonly data: ReadonlyArray<string>
  readonly company: number
}

/** An installation. All of it ends with the scope. */
export const makeWorld = Effect.fnUntraced(function* (options: WorldOptions) {
  const reference = yield* Effect.acquireRelease(
    Effect.promise(() => startReference(options.data)),
    (server) => Effect.promise(() => server.stop())
  )
  const databaseUrl = Redacted.value(yield* freshDatabase)
  const folder = yield* temporaryFolder
  const token = yield* Effect.promise(() => reference.token(options.company))
  const sql = sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(databaseUrl))))
  const control = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => reference.control(method, path, body))
  // No request limit, unless a test sets one.
  yield* control("PUT", "/limits", { requestsPerMinute: 1_000_000 })

  const commands = commandsIn(folder)
  yield* Effect.addFinalizer(() => Effect.promise(commands.close))
  const own = { DATABASE_URL: databaseUrl, SERVICE_API_URL: reference.baseUrl, SERVICE_API_TOKEN: token }
  const command: World["command"] = (args, env = {}) => commands.start(args, { ...own, ...env })
  const world: World = {
    reference,
    folder,
    databaseUrl,
    command,
    run: (args, env) => Effect.promise(() => command(args, env).done),
    configure: (yaml) => {
      mkdirSync(join(folder, "config"), { recursive: true })
      writeFileSync(join(folder, "config", "tributary.yaml"), yaml)
    },
    query: <Row extends object>(text: string) =>
      Effect.flatMap(SqlClient.SqlClient, (client) => client.unsafe<Row>(text)).pipe(Effect.provide(sql), Effect.orDie),
    compare: (resource, companyId = options.company) =>
      Effect.gen(function* () {
        const state = yield* Effect.promise(() => reference.lines(`/state?company=${companyId}&resource=${resource}`))
        return yield* compare(tableOf(serviceV2.resources.get(resource)!), BigInt(companyId), state)
      }).pipe(Effect.provide(sql), Effect.orDie),
    control
  }
  return world
})

/** An installation whose company `north` receives its events over TLS. */
export const makeReceivingWorld = Effect.fnUntraced(function* (resources: string, webhooks: string) {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  const port = yield* Effect.promise(freePort)
  const { cert, key } = certificate(["localhost"])
  writeFileSync(join(world.folder, "cert.pem"), cert)
  writeFileSync(join(world.folder, "key.pem"), key)
  yield* world.control("POST", "/trust", { caPem: cert })
  yield* world.control("PUT", "/limits", { allowPrivateReceivers: true })
  world.configure(`companies:
  - { name: north, token_env: NORTH, resources: [${resources}] }
webhooks:
  listen: 127.0.0.1:${port}
  public_url: https://localhost:${port}
  certificate: cert.pem
  key: key.pem
  ${webhooks}
schedule: { default: off }
dashboard: { listen: off }
`)
  return { world, port, cert, token: yield* Effect.promise(() => world.reference.token(1)) }
})
