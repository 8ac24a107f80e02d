/**
 * One dedicated connection through `pg`.
 *
 * Promise: a lost connection fails the query in flight, and is never an uncaught exception. A connection ends with its
 * scope: cleanly after a success, at once after a failure, so that the server rolls back. A session has the settings of
 * `SessionSettings.ts`, and ends on the server too when this process or its machine is lost.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { Client, type Connection, type CustomTypesConfig, type QueryResult, type QueryResultRow, types } from "pg"
import { DatabaseError } from "../DatabaseError.ts"
import {
  addressOf,
  applicationName,
  clearTextGuard,
  connectError,
  keepAliveDelayMs,
  refuseSession,
  type Server,
  sessionAttributesStatement
} from "../Server.ts"
import * as Query from "../Query.ts"
import * as SessionSettings from "../SessionSettings.ts"
import * as Statement from "../Statement.ts"

export type { Client, QueryArrayConfig, QueryResultRow } from "pg"
/** The types of Postgres by their numbers. */
export const typeIds = types.builtins

const connectTimeoutDefault = Duration.seconds(10)
const closeTimeoutMs = 5_000

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

/** Every value as Postgres' own text, so that no digit changes. */
export const asText: CustomTypesConfig = {
  getTypeParser: (() => (text: string) => text) as typeof types.getTypeParser
}

/** Closes the socket at once: the server rolls back. */
export const destroy = (client: Client): Effect.Effect<void> =>
  Effect.sync(() => (client as unknown as { readonly connection: Connection }).connection.stream.destroy())

/** Ends the connection cleanly, and closes the socket when the server does not answer. */
export const close = (client: Client): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    client.end(() => resume(Effect.void))
  }).pipe(Effect.timeoutOrElse({ duration: closeTimeoutMs, orElse: () => destroy(client) }))

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

/** The rows of a query that Kysely built. */
export const queryBuilt = <Row extends QueryResultRow>(
  client: Client,
  built: Query.Built<Row>
): Effect.Effect<ReadonlyArray<Row>, DatabaseError> => {
  const { operation, parameters, text } = Query.compiled(built)
  return query(client, operation, text, parameters)
}
