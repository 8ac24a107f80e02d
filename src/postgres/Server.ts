/**
 * The address of a Postgres server, and what is the same for both drivers: the socket without TLS, the check of the
 * session, and the error of a connection.
 */
import { Socket } from "node:net"
import type { ConnectionOptions } from "node:tls"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { DatabaseError } from "./DatabaseError.ts"
import { remedyOf } from "./Remedy.ts"
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

export const keepAliveDelayMs = 30_000

/** The address in words: `127.0.0.1:5432`, `[::1]:5432`, `/var/run/postgresql:5432`. */
export const addressOf = (endpoint: Endpoint): string =>
  `${endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`

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
