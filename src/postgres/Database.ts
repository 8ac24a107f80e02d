/**
 * The warehouse's Postgres: the embedded one, or the one that DATABASE_URL names.
 *
 * Promise: a failed connection reports the server, the reason and the remedy, and no message shows the password. Ordinary
 * queries go through {@link sqlLayer}, landings through `landings`, locks through `locks`; all of them stay within
 * `budget`. A command's own work takes a dedicated connection with `connect`, which ends with its scope.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import {
  type Server,
  addressOf,
  applicationName,
  clearTextGuard,
  connectError,
  refuseSession,
  sessionAttributesStatement
} from "./Server.ts"
import { type Client, connect } from "./driver/Connection.ts"
import * as ConnectionBudget from "./ConnectionBudget.ts"
import * as ConnectionPool from "./driver/ConnectionPool.ts"
import { DatabaseError } from "./DatabaseError.ts"
import { parseUrl } from "./DatabaseUrl.ts"
import { type EmbeddedPostgresError, type EmbeddedPostgresOptions, start } from "./EmbeddedPostgres.ts"
import * as SessionLocks from "./SessionLocks.ts"
import * as SessionSettings from "./SessionSettings.ts"
import * as Statement from "./Statement.ts"

export type { Endpoint } from "./Server.ts"
export { DatabaseError } from "./DatabaseError.ts"

export interface DatabaseShape extends Server {
  /** A dedicated connection for bulk loading; its rows have the types that the `SqlClient` gives. */
  readonly connect: Effect.Effect<Client, DatabaseError, Scope.Scope>
  /** How many connections this process opens; read once. */
  readonly budget: Effect.Effect<ConnectionBudget.ConnectionBudget, DatabaseError>
  /** Connections for short transactions, within the budget. */
  readonly landings: ConnectionPool.ConnectionPool
  /** Advisory locks of this process. */
  readonly locks: SessionLocks.SessionLocks
}

export interface DatabaseOptions {
  /** How many connections this process opens at most; default: a third of what the server has. */
  readonly connectionsMax?: number | null
}

export class Database extends Context.Service<Database, DatabaseShape>()("tributary/postgres/Database") {
  /**
   * The embedded server: started or adopted with the layer. At the end of the layer the process leaves it; the last
   * process stops it.
   */
  static readonly layerEmbedded = (
    options?: EmbeddedPostgresOptions & DatabaseOptions
  ): Layer.Layer<Database, EmbeddedPostgresError> =>
    Layer.effect(
      Database,
      Effect.flatMap(start(options), (server) => fromServer(server, options))
    )

  /** A server named by a URL. Only the URL is checked; the first use connects. */
  static readonly layerUrl = (
    url: Redacted.Redacted,
    options?: DatabaseOptions
  ): Layer.Layer<Database, DatabaseError> =>
    Layer.effect(
      Database,
      Effect.flatMap(parseUrl(url), (endpoint) =>
        fromServer(
          { endpoint, describe: `Postgres at ${addressOf(endpoint)}/${endpoint.database}`, embedded: false },
          options
        )
      )
    )
}

const fromServer = Effect.fnUntraced(function* (
  { endpoint, describe, embedded }: Server,
  options?: DatabaseOptions
): Effect.fn.Return<DatabaseShape, never, Scope.Scope> {
  const server = { endpoint, describe, embedded }
  const connected = connect(server)
  let budget: ConnectionBudget.ConnectionBudget | null = null
  // The first connection reads the limits, and stays open for the first landing.
  const pool = yield* ConnectionPool.make({ connect: connected, capacity: () => budget?.landings ?? 1 })
  const asked = Effect.suspend(() =>
    budget !== null
      ? Effect.succeed(budget)
      : pool.use({ class: 0, party: "", dueAt: 0 }, (client) =>
          Effect.tap(ConnectionBudget.read(client, options?.connectionsMax ?? null), (read) =>
            Effect.sync(() => {
              budget = read
            })
          )
        )
  )
  return {
    ...server,
    connect: connected,
    budget: asked,
    landings: {
      use: (urgency, work) => Effect.andThen(asked, pool.use(urgency, work)),
      stats: pool.stats
    },
    locks: yield* SessionLocks.make(connected)
  }
})

type Settings = Readonly<Record<string, string>>

/** A pool whose connections have these settings, with what its first connection shows. */
const makePool = ({ endpoint }: Server, maxConnections: number, startupParameters: Settings) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.make({
      host: endpoint.host,
      port: endpoint.port,
      username: endpoint.user,
      password: endpoint.password,
      database: endpoint.database,
      ssl: endpoint.ssl ?? false,
      maxConnections,
      applicationName: endpoint.applicationName ?? applicationName,
      startupOptions: endpoint.options,
      stream: clearTextGuard(endpoint)?.connected,
      startupParameters,
      connectTimeout: endpoint.connectTimeout ?? "10 seconds",
      keepAlive: "30 seconds"
    })
    const look = Effect.all([
      Statement.run(SessionSettings.differentStatement, [SessionSettings.wanted]),
      Statement.run(sessionAttributesStatement)
    ])
    const [different, [session]] = yield* Effect.provideService(look, SqlClient.SqlClient, sql)
    return { sql, session, different }
  })

/** A pooler, such as PgBouncer, names parameters that it does not pass on. */
const isPooledParameter = (error: unknown) =>
  /unsupported startup parameter/i.test(DatabaseError.from("connect")(error).message)

/** A pool whose sessions have the settings of the one list. */
const makeSetPool = Effect.fnUntraced(function* (server: Server, maxConnections: number, own: Settings) {
  const attempt = (parameters: Settings) => {
    const scoped = Effect.gen(function* () {
      const scope = yield* Scope.make()
      const made = yield* Effect.onExit(Scope.provide(makePool(server, maxConnections, parameters), scope), (exit) =>
        Exit.isSuccess(exit) ? Effect.void : Scope.close(scope, exit)
      )
      return { ...made, parameters, close: Scope.close(scope, Exit.void) }
    })
    return Effect.acquireRelease(scoped, ({ close }) => close, { interruptible: true })
  }
  const first = yield* Effect.catchIf(
    attempt({ ...SessionSettings.startupParameters, ...own }),
    isPooledParameter,
    () => attempt(SessionSettings.pooledParameters)
  )
  if (first.different.every(({ name }) => name in own)) return first
  const rest = Object.fromEntries(first.different.map(({ name, value }) => [name, value]))
  const isPooled = first.parameters === SessionSettings.pooledParameters
  if (!isPooled) yield* first.close
  const last = isPooled ? first : yield* attempt({ ...first.parameters, ...rest, ...own })
  const names = last.different.map(({ name }) => name).filter(SessionSettings.changesMeaning)
  return names.length === 0 ? last : yield* SessionSettings.differentError(addressOf(server.endpoint), names)
})

/**
 * A pool of connections to a server, with the settings of every session and those of its `own`. Fails at once, with the
 * error of the connection, when the server does not answer.
 */
export const poolLayer = (
  server: Server,
  maxConnections: number,
  own: Settings = {}
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, DatabaseError> =>
  PgClient.layerFrom(
    makeSetPool(server, maxConnections, own).pipe(
      Effect.mapError((error) => (error instanceof DatabaseError ? error : connectError(server)(error))),
      Effect.flatMap(({ sql, session }) => Effect.as(refuseSession(server, session), sql))
    )
  )

/** The pool for ordinary queries. */
export const sqlLayer: Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, DatabaseError, Database> = Layer.unwrap(
  Effect.flatMap(Database, (server) => Effect.map(server.budget, ({ ordinary }) => poolLayer(server, ordinary)))
)
