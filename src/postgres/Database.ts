/**
 * The warehouse's Postgres: the embedded one, or the one that DATABASE_URL names.
 *
 * Promise: whoever cannot connect learns which server, why, and what to do, and no message holds the password. Ordinary
 * queries go through {@link sqlLayer}; bulk loading takes a dedicated connection with `connect`, which ends with its
 * scope and is never handed on.
 */
import { readFileSync } from "node:fs"
import type { ConnectionOptions } from "node:tls"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type pg from "pg"
import { type Endpoint, type Server, addressOf, connect, connectError } from "./Connection.ts"
import { DatabaseError } from "./DatabaseError.ts"
import { EmbeddedPostgres, type EmbeddedPostgresError, type EmbeddedPostgresOptions } from "./EmbeddedPostgres.ts"

export type { Endpoint } from "./Connection.ts"
export { DatabaseError } from "./DatabaseError.ts"

export interface DatabaseShape extends Server {
  /** A dedicated connection for bulk loading; its rows have the types that the `SqlClient` gives. */
  readonly connect: Effect.Effect<pg.Client, DatabaseError, Scope.Scope>
}

export class Database extends Context.Service<Database, DatabaseShape>()("tributary/postgres/Database") {
  /** The embedded server: started or adopted with the layer, left (and stopped by its last user) with it. */
  static readonly layerEmbedded = (options?: EmbeddedPostgresOptions): Layer.Layer<Database, EmbeddedPostgresError> =>
    Layer.effect(Database, Effect.map(EmbeddedPostgres, fromServer)).pipe(
      Layer.provide(EmbeddedPostgres.layer(options))
    )

  /** A server named by a URL. Looks at the URL only: the first use says whether the server answers. */
  static readonly layerUrl = (url: Redacted.Redacted): Layer.Layer<Database, DatabaseError> =>
    Layer.effect(
      Database,
      Effect.map(parseUrl(url), (endpoint) =>
        fromServer({
          endpoint,
          describe: `Postgres at ${addressOf(endpoint)}/${endpoint.database}`,
          embedded: false
        })
      )
    )
}

const fromServer = ({ endpoint, describe, embedded }: Server): DatabaseShape => {
  const server = { endpoint, describe, embedded }
  return { ...server, connect: connect(server) }
}

const maxConnections = 8

/** The pool for ordinary queries. Fails at once, with a sentence, when the server does not answer. */
export const sqlLayer: Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, DatabaseError, Database> = Layer.unwrap(
  Effect.map(Database, (server) => {
    const { endpoint } = server
    return PgClient.layerFrom(
      PgClient.make({
        host: endpoint.host,
        port: endpoint.port,
        username: endpoint.user,
        password: endpoint.password,
        database: endpoint.database,
        ssl: endpoint.ssl ?? false,
        maxConnections,
        applicationName: "tributary",
        startupParameters: { timezone: "UTC" },
        connectTimeout: endpoint.connectTimeoutMs ?? "10 seconds",
        keepAlive: "30 seconds"
      }).pipe(
        Effect.tap((sql) => sql`select 1`),
        Effect.mapError(connectError(server))
      )
    )
  })
)

// ------------------------------------------------------------------------------------------------------- DATABASE_URL

const badUrl = (problem: string) =>
  new DatabaseError({
    operation: "read DATABASE_URL",
    code: undefined,
    message: `DATABASE_URL ${problem}; it has the form postgres://user:password@host:5432/database?sslmode=require`,
    isRetryable: false
  })

/** The parts of a libpq URL that have a meaning here; a part that would weaken the connection if ignored is refused. */
export const parseUrl = (url: Redacted.Redacted): Effect.Effect<Endpoint, DatabaseError> =>
  Effect.try({
    try: () => readUrl(Redacted.value(url)),
    // The exceptions of URL and of decodeURIComponent quote their input: their text never leaves here.
    catch: (error) => (error instanceof DatabaseError ? error : badUrl("cannot be read"))
  })

const readUrl = (text: string): Endpoint => {
  // `postgres://user@/database?host=/folder` has no host, which a URL with a user may not lack: a name stands in.
  const absent = "host.absent"
  const url = new URL(text.trim().replace(/^(postgres(?:ql)?:\/\/[^/?#]*@)(?=[/?]|$)/, `$1${absent}`))
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") throw badUrl("must begin with postgres://")
  const parameter = (name: string) => url.searchParams.get(name) ?? undefined
  const named = url.hostname === absent ? "" : decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, "$1")
  const host = parameter("host") ?? (named === "" ? "localhost" : named)
  if (host.includes(",")) throw badUrl("names more than one host, which is not supported")
  const user = parameter("user") ?? decodeURIComponent(url.username)
  if (user === "") throw badUrl("names no user")
  const database = parameter("dbname") ?? decodeURIComponent(url.pathname.slice(1))
  const seconds = wholeNumber("connect_timeout", parameter("connect_timeout"))
  return {
    host,
    port: wholeNumber("port", parameter("port") ?? (url.port === "" ? undefined : url.port)) ?? 5432,
    user,
    password: Redacted.make(parameter("password") ?? decodeURIComponent(url.password)),
    database: database === "" ? user : database,
    ssl: host.startsWith("/") ? undefined : tls(parameter("sslmode"), parameter("sslrootcert")),
    connectTimeoutMs: seconds === undefined || seconds === 0 ? undefined : seconds * 1000
  }
}

const wholeNumber = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  if (!/^\d{1,5}$/.test(text)) throw badUrl(`has a ${name} that is no number`)
  return Number(text)
}

/** As libpq reads sslmode, except that what it leaves to chance (allow, prefer) has to be decided. */
const tls = (mode: string | undefined, rootCertificate: string | undefined): ConnectionOptions | undefined => {
  const ca = rootCertificate === undefined || rootCertificate === "system" ? {} : { ca: certificate(rootCertificate) }
  switch (mode) {
    case undefined:
      return rootCertificate === undefined ? undefined : ca
    case "disable":
      return undefined
    case "require":
      return rootCertificate === undefined ? { rejectUnauthorized: false } : withoutHostName(ca)
    case "verify-ca":
      return withoutHostName(ca)
    case "verify-full":
      return ca
    default:
      throw badUrl(`has an sslmode that is not supported; allowed are disable, require, verify-ca, verify-full`)
  }
}

const withoutHostName = (options: ConnectionOptions): ConnectionOptions => ({
  ...options,
  checkServerIdentity: () => undefined
})

const certificate = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    throw badUrl(`names an sslrootcert that cannot be read (${path})`)
  }
}
