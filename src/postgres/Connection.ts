/**
 * One dedicated connection through `pg`.
 *
 * Promise: a lost connection fails the query in flight, and is never an uncaught exception. A connection ends with its
 * scope: cleanly after a success, at once after a failure, so that the server rolls back. A session has the settings of
 * `SessionSettings.ts`, and ends on the server too when this process or its machine is lost.
 */
import { Socket } from "node:net"
import type { ConnectionOptions } from "node:tls"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { Client, type Connection, type CustomTypesConfig, type QueryResult, type QueryResultRow, types } from "pg"
import { DatabaseError } from "./DatabaseError.ts"
import { remedyOf } from "./Remedy.ts"
import * as SessionSettings from "./SessionSettings.ts"
import * as Statement from "./Statement.ts"

/** The address of a database, and the login. */
export interface Endpoint {
  /** Host name or address; a folder (starting with `/`) for a unix socket. */
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: Redacted.Redacted
  readonly database: string
  /** Absent: no TLS. */
  readonly ssl?: ConnectionOptions | undefined
  readonly connectTimeout?: Duration.Duration | undefined
  /** The name that the server shows for the sessions; default {@link applicationName}. */
  readonly applicationName?: string | undefined
  /** Settings of the session, as libpq's `options`. */
  readonly options?: string | undefined
  /** What the server must be, as libpq's `target_session_attrs`. */
  readonly sessionAttributes?: "read-write" | "primary" | undefined
}

export const applicationName = "tributary"

/** An endpoint with its description for messages. */
export interface Server {
  readonly endpoint: Endpoint
  readonly describe: string
  readonly embedded: boolean
}

const connectTimeoutDefault = Duration.seconds(10)
const closeTimeoutMs = 5_000
const keepAliveDelayMs = 30_000

/**
 * Values come out as the `SqlClient` gives them: int8 as bigint, date as text (`pg` would turn it into a local
 * midnight), numeric as text.
 */
const parsers: Record<number, (text: string) => unknown> = {
  [types.builtins.INT8]: (text) => BigInt(text),
  [types.builtins.DATE]: (text) => text
}
const rowTypes: CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text") =>
    parsers[oid] ?? types.getTypeParser(oid, format)) as typeof types.getTypeParser
}

/** The address in words: `127.0.0.1:5432`, `[::1]:5432`, `/var/run/postgresql:5432`. */
export const addressOf = (endpoint: Endpoint): string =>
  `${endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`

/** Closes the socket at once: the server rolls back. */
export const destroy = (client: Client): Effect.Effect<void> =>
  Effect.sync(() => (client as unknown as { readonly connection: Connection }).connection.stream.destroy())

/** Ends the connection cleanly, and closes the socket when the server does not answer. */
export const close = (client: Client): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    client.end(() => resume(Effect.void))
  }).pipe(Effect.timeoutOrElse({ duration: closeTimeoutMs, orElse: () => destroy(client) }))

/**
 * Sockets that never carry the password itself, for connections without TLS; undefined where it may be sent. A server
 * that requests it in clear text gets no answer; `pg` and the `SqlClient` would send it.
 */
export const clearTextGuard = (endpoint: Endpoint) => {
  const password = Redacted.value(endpoint.password)
  if (endpoint.ssl !== undefined || endpoint.host.startsWith("/") || password === "") return undefined
  const secret = Buffer.from(`${password}\0`)
  const guarded = (): Socket => {
    const socket = new Socket()
    // Node resets `write` when the socket connects; no password is sent before that.
    socket.once("connect", () => {
      const send = socket.write.bind(socket) as (...args: ReadonlyArray<unknown>) => boolean
      const write = (chunk: unknown, ...rest: ReadonlyArray<unknown>): boolean => {
        const bytes = chunk instanceof Uint8Array ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength) : null
        // A PasswordMessage: its type, its length, the password.
        if (bytes?.[0] === 0x70 && bytes.subarray(5).equals(secret)) {
          socket.destroy(new Error("the server requests the password in clear text"))
          return false
        }
        return send(chunk, ...rest)
      }
      Object.assign(socket, { write })
    })
    return socket
  }
  return {
    unconnected: guarded,
    connected: () =>
      guarded()
        .setNoDelay(true)
        .setKeepAlive(true, keepAliveDelayMs)
        .connect({ host: endpoint.host, port: endpoint.port })
  }
}

/** Connects, without the settings of a session. */
const dial = (server: Server): Effect.Effect<Client, DatabaseError> =>
  Effect.callback<Client, DatabaseError>((resume) => {
    const { endpoint } = server
    const guard = clearTextGuard(endpoint)
    const client = new Client({
      host: endpoint.host,
      port: endpoint.port,
      user: endpoint.user,
      password: Redacted.value(endpoint.password),
      database: endpoint.database,
      ssl: endpoint.ssl ?? false,
      application_name: endpoint.applicationName ?? applicationName,
      options: endpoint.options,
      ...(guard === undefined ? {} : { stream: guard.unconnected }),
      connectionTimeoutMillis: Duration.toMillis(endpoint.connectTimeout ?? connectTimeoutDefault),
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveDelayMs,
      types: rowTypes
    })
    // Without a listener a connection lost between two queries would end the process. With one, the next query fails.
    client.on("error", () => {})
    client.connect((error: Error | null) => {
      if (error === null) return resume(Effect.succeed(client))
      resume(Effect.andThen(destroy(client), Effect.fail(connectError(server)(error))))
    })
    return destroy(client)
  })

/** Connects, and sets the session up; answers the id of its server process too. */
const openSession = (server: Server) =>
  Effect.flatMap(dial(server), (client) =>
    SessionSettings.setUp(client).pipe(
      Effect.map((pid) => ({ client, pid })),
      Effect.onError(() => destroy(client))
    )
  )

/** Connects; the caller ends it with {@link close} or {@link destroy}. */
export const open = (server: Server): Effect.Effect<Client, DatabaseError> =>
  Effect.map(openSession(server), ({ client }) => client)

/** The server process that the handshake named; a pooler names itself. */
const namedProcess = (client: Client): number | null =>
  (client as unknown as { readonly processID: number | null }).processID

export const backendStatement = Statement.make({
  name: "look at the process of the session",
  columns: { pid: "int4" },
  text: "select pg_backend_pid() as pid"
})

const backendOf = (client: Client): Effect.Effect<number, DatabaseError> =>
  Effect.map(queryNamed(client, backendStatement), ([row]) => row!.pid)

/** The number of checks: a pooler with idle sessions hands them out in turn. */
const poolerLooksMax = 12

/**
 * Fails where a pooler gives each transaction another session. Then temporary tables, settings and locks are lost, or
 * left behind, without an error. A server, and a pooler in session mode, give each connection a session of its own and
 * keep it.
 */
const refuseTransactionPooler = Effect.fnUntraced(function* (
  server: Server,
  client: Client,
  pid: number
): Effect.fn.Return<void, DatabaseError> {
  if (namedProcess(client) === pid) return
  yield* Effect.acquireUseRelease(
    dial(server),
    (other) =>
      Effect.gen(function* () {
        for (let looks = 0; looks < poolerLooksMax; looks += 1) {
          if ((yield* backendOf(other)) === pid || (yield* backendOf(client)) !== pid) {
            return yield* transactionPooler(server)
          }
        }
      }),
    destroy
  )
})

const transactionPooler = (server: Server) =>
  new DatabaseError({
    operation: "connect",
    code: undefined,
    message:
      `Postgres at ${addressOf(server.endpoint)} is behind a transaction pooler, which loses the locks, settings and ` +
      `temporary tables of a session: use the direct address of the server in DATABASE_URL, or a pooler in session mode`,
    isRetryable: false
  })

/** The attributes that {@link refuseSession} checks. */
export const sessionAttributesStatement = Statement.make({
  name: "read the attributes of the session",
  columns: { standby: "bool", readonly: "bool" },
  text: "select pg_is_in_recovery() as standby, current_setting('transaction_read_only') = 'on' as readonly"
})

/** Fails where the session is not what `target_session_attrs` requests. A failover may end that, so a retry can help. */
export const refuseSession = (
  { endpoint }: Server,
  session: Statement.RowOf<typeof sessionAttributesStatement> | undefined
): Effect.Effect<void, DatabaseError> => {
  const wanted = endpoint.sessionAttributes
  const isWrong = session?.standby === true || (wanted === "read-write" && session?.readonly === true)
  return wanted === undefined || !isWrong
    ? Effect.void
    : Effect.fail(
        new DatabaseError({
          operation: "connect",
          code: undefined,
          message:
            `Postgres at ${addressOf(endpoint)} is ${session.standby ? "a standby" : "read-only for this user"}, and ` +
            `target_session_attrs=${wanted} is set: name the primary server as the host, or wait for the end of a failover`,
          isRetryable: true
        })
      )
}

const lookAtSession = (server: Server, client: Client) =>
  server.endpoint.sessionAttributes === undefined
    ? Effect.void
    : Effect.flatMap(queryNamed(client, sessionAttributesStatement), ([row]) => refuseSession(server, row))

/** A dedicated connection, which ends with the scope. */
export const connect = (server: Server): Effect.Effect<Client, DatabaseError, Scope.Scope> =>
  Effect.acquireRelease(
    openSession(server),
    ({ client }, exit) => (Exit.isSuccess(exit) ? close(client) : destroy(client)),
    { interruptible: true }
  ).pipe(
    Effect.tap(({ client, pid }) => refuseTransactionPooler(server, client, pid)),
    Effect.map(({ client }) => client),
    Effect.tap((client) => lookAtSession(server, client))
  )

/**
 * Runs one statement on a dedicated connection, or several without parameters (the answer is the last one's).
 * `affected` counts the rows read or written. With a name, the session keeps the statement prepared.
 */
export const execute = <Row extends QueryResultRow>(
  client: Client,
  operation: string,
  text: string,
  values: ReadonlyArray<unknown> = [],
  name?: string
): Effect.Effect<{ readonly rows: ReadonlyArray<Row>; readonly affected: number }, DatabaseError> =>
  Effect.tryPromise({
    try: () => client.query<Row>({ text, values: [...values], ...(name === undefined ? {} : { name }) }),
    catch: DatabaseError.from(operation)
  }).pipe(
    Effect.map((result) => {
      // The types of `pg` do not know that several statements give several results.
      const results: ReadonlyArray<QueryResult<Row>> = Array.isArray(result) ? result : [result]
      const last = results.at(-1)
      return { rows: last?.rows ?? [], affected: last?.rowCount ?? 0 }
    })
  )

/** The names of prepared statements within a session, by their text. */
const preparedNames = new Map<string, string>()
const preparedName = (text: string): string => {
  const name = preparedNames.get(text) ?? `tributary_${preparedNames.size + 1}`
  preparedNames.set(text, name)
  return name
}

/** {@link execute} for a named statement. `operation` names it in errors. */
export const executeNamed = <P extends ReadonlyArray<Statement.Type>, C extends Statement.Columns>(
  client: Client,
  operation: string,
  { text, isPrepared = false }: Statement.Statement<P, C>,
  ...[values]: Statement.Arguments<P>
) =>
  execute<Statement.RowOf<Statement.Statement<P, C>>>(
    client,
    operation,
    text,
    values,
    isPrepared ? preparedName(text) : undefined
  )

/** {@link execute}, for the rows alone. */
export const query = <Row extends QueryResultRow>(
  client: Client,
  operation: string,
  text: string,
  values?: ReadonlyArray<unknown>
): Effect.Effect<ReadonlyArray<Row>, DatabaseError> =>
  Effect.map(execute<Row>(client, operation, text, values), ({ rows }) => rows)

/** The rows of a named statement on a dedicated connection. */
export const queryNamed = <P extends ReadonlyArray<Statement.Type>, C extends Statement.Columns>(
  client: Client,
  statement: Statement.Statement<P, C>,
  ...values: Statement.Arguments<P>
): Effect.Effect<ReadonlyArray<Statement.RowOf<Statement.Statement<P, C>>>, DatabaseError> =>
  Effect.map(executeNamed(client, statement.name, statement, ...values), ({ rows }) => rows)

/** The error with the server, the reason and the remedy, from an error of `pg` or of the `SqlClient`. */
export const connectError =
  (server: Server) =>
  (cause: unknown): DatabaseError => {
    const error = DatabaseError.from("connect")(cause)
    return new DatabaseError({
      operation: "connect",
      code: error.code,
      message: sentence(server, error),
      isRetryable: error.isRetryable
    })
  }

const sentence = (server: Server, { code, message }: DatabaseError): string => {
  const { endpoint, embedded } = server
  const at = addressOf(endpoint)
  const setting = embedded ? "the embedded server's folder" : "DATABASE_URL"
  switch (code) {
    case "ECONNREFUSED":
    case "ENOENT":
    case "ECONNRESET":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ETIMEDOUT":
      return embedded
        ? `the embedded Postgres at ${at} is gone (${code}): run the command again, which starts it`
        : `cannot reach Postgres at ${at} (${code}): start it, or unset DATABASE_URL to use the embedded one`
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `cannot reach Postgres at ${at} (${code}): the host name is not known; check DATABASE_URL, or unset it to use the embedded one`
    case "28P01":
      if (Redacted.value(endpoint.password) === "") return wantsPassword(server)
      return `Postgres at ${at} refused the password of user "${endpoint.user}" (28P01): check ${setting}`
    case "28000":
      return `Postgres at ${at} refused user "${endpoint.user}" (28000: ${message}): check user and sslmode in ${setting}`
    case "3D000":
      return `Postgres at ${at} has no database "${endpoint.database}" (3D000): create it, or correct the name in ${setting}`
    case "53300":
      return `Postgres at ${at} has no connection left (53300: ${message}): close other programs, or raise the limit (max_connections, or the one of the role or database)`
    case "55000":
      return `Postgres at ${at} refuses connections (55000: ${message}): allow them (alter database … allow_connections true), or correct the name in ${setting}`
    case "57P03":
      return `Postgres at ${at} is not ready (57P03: ${message}): wait a moment and try again`
    default:
  }
  if (/does not support (SSL|TLS)/i.test(message)) {
    return `Postgres at ${at} does not speak TLS: set sslmode=disable in DATABASE_URL if the network is trusted`
  }
  if (/in clear text/.test(message)) {
    return `Postgres at ${at} requests the password in clear text, and the connection is not encrypted: set sslmode=verify-full in DATABASE_URL, or have the server use scram-sha-256`
  }
  if (Redacted.value(endpoint.password) === "" && /password/i.test(message)) return wantsPassword(server)
  if (/timeout expired|timed out/i.test(message)) {
    return `cannot reach Postgres at ${at} (no answer in time): start it, check the firewall, or unset DATABASE_URL to use the embedded one`
  }
  if (/certificate|CERT|self.signed/i.test(`${code ?? ""} ${message}`)) {
    return `the certificate of Postgres at ${at} is not trusted (${message}): name its authority with sslrootcert=<file> in DATABASE_URL`
  }
  return `cannot use Postgres at ${at} (${code === undefined ? message : `${code}: ${message}`}): ${remedyOf({ code }) ?? `check ${setting}`}`
}

const wantsPassword = ({ endpoint }: Server): string =>
  `Postgres at ${addressOf(endpoint)} wants a password for user "${endpoint.user}": put it in DATABASE_URL`
