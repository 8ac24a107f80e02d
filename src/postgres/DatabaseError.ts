/**
 * The error of every operation on Postgres.
 *
 * Promise: an error has the operation, the code (SQLSTATE or errno) and whether a retry can help. It never carries a
 * password, nor the parameters of a query.
 */
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"

export class DatabaseError extends Data.TaggedError("DatabaseError")<{
  /** The operation in a few words: "connect", "copy", "merge orders". */
  readonly operation: string
  /** SQLSTATE (`23505`), errno (`ECONNRESET`) or undefined when there is neither. */
  readonly code: string | undefined
  readonly message: string
  /** True when the same work may succeed on a new attempt, with a new connection. */
  readonly isRetryable: boolean
  /** The place in the statement, in characters from 1; absent where the server names none. */
  readonly position?: number | undefined
  /** The server's advice. */
  readonly hint?: string | undefined
}> {
  /** Classifies an error of `pg`, `pg-copy-streams` or a `SqlClient`. */
  static readonly from =
    (operation: string) =>
    (cause: unknown): DatabaseError => {
      if (cause instanceof DatabaseError) return cause
      const chain = causesOf(cause)
      const coded = chain.find((error) => codeOf(error) !== undefined)
      const code = codeOf(coded)
      const lost = chain.some(isConnectionLoss)
      return new DatabaseError({
        operation,
        code,
        position: positionOf(coded),
        hint: textOf(coded, "hint"),
        message: coded === undefined ? plainMessage(chain) : serverMessage(coded),
        isRetryable:
          code === undefined ? lost : isRetryableCode(code) || isStalePlan(coded) || (lost && !isSqlState(code))
      })
    }
}

/** Classes of SQLSTATE where a new attempt can succeed; all of 08 (connection exception) is added by prefix. */
const retryableStates = new Set([
  "25P03", // idle in transaction for too long: the session was ended
  "40001", // serialization failure
  "40P01", // deadlock
  "53300", // too many connections
  "55P03", // lock not available
  "57P01", // the server is shutting down
  "57P02", // a crash of another session ended ours
  "57P03", // the server is starting up or shutting down
  "57P05" // idle for too long: the session was ended
])

/** Errno values that mean the address itself is wrong: waiting does not help. */
const permanentErrnos = new Set(["ENOTFOUND", "EACCES", "EPERM", "EINVAL"])

const isErrno = (code: string) => /^E[A-Z]/.test(code)
const isSqlState = (code: string) => /^[0-9A-Z]{5}$/.test(code) && !isErrno(code)

const isRetryableCode = (code: string): boolean =>
  isSqlState(code)
    ? code.startsWith("08") || retryableStates.has(code)
    : isErrno(code) && !code.startsWith("ERR_") && !permanentErrnos.has(code)

/** A column of a prepared statement has another type since a migration. Another session prepares it anew. */
const isStalePlan = (error: unknown): boolean =>
  codeOf(error) === "0A000" && Predicate.hasProperty(error, "routine") && error.routine === "RevalidateCachedQuery"

const codeOf = (error: unknown): string | undefined =>
  Predicate.hasProperty(error, "code") && typeof error.code === "string" && error.code !== "" ? error.code : undefined

const messageOf = (error: unknown): string | undefined =>
  Predicate.hasProperty(error, "message") && typeof error.message === "string" && error.message !== ""
    ? error.message
    : undefined

/** The error and what caused it, outermost first; bounded, since a cause may be its own cause. */
export const causesOf = (cause: unknown): ReadonlyArray<unknown> => {
  const chain: Array<unknown> = []
  for (let at: unknown = cause; at !== undefined && chain.length < 8 && !chain.includes(at);) {
    chain.push(at)
    at = Predicate.hasProperty(at, "cause") ? at.cause : undefined
  }
  return chain
}

/** Recognises a lost connection by the messages of `pg`, `pg-copy-streams` and `@effect/sql-pg`, which have no code. */
const isConnectionLoss = (error: unknown): boolean =>
  Predicate.isTagged(error, "ConnectionError") ||
  /connection terminated|connection (is )?closed|connection timed out|timeout expired|is not queryable|socket disconnected/i.test(
    messageOf(error) ?? ""
  )

/**
 * Without a code the innermost message is the most specific one, with one exception: when a parameter cannot be
 * encoded, the inner message of sql-pg contains the parameter itself, whatever that is.
 */
const plainMessage = (chain: ReadonlyArray<unknown>): string => {
  const messages = chain.map(messageOf).filter((message) => message !== undefined)
  const encoding = messages.find((message) => message.includes("Failed to encode"))
  return encoding ?? messages.at(-1) ?? String(chain.at(-1))
}

const textOf = (error: unknown, name: "where" | "detail" | "hint" | "position"): string | undefined => {
  const value = Predicate.hasProperty(error, name) ? error[name] : undefined
  return typeof value === "string" && value !== "" ? value : undefined
}

const positionOf = (error: unknown): number | undefined => {
  const text = textOf(error, "position")
  return text === undefined ? undefined : Number(text)
}

/** The server's message, with the place in the data for COPY ("COPY stage, line 2, column id: ...") and its detail. */
const serverMessage = (error: unknown): string => {
  const where = textOf(error, "where")
  const extra = [textOf(error, "detail"), where?.startsWith("COPY ") ? where.split("\n", 1)[0] : undefined].filter(
    (part) => part !== undefined
  )
  const message = messageOf(error) ?? codeOf(error) ?? "unknown error"
  return extra.length === 0 ? message : `${message} (${extra.join("; ")})`
}
