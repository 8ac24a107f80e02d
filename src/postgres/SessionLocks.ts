/**
 * Advisory locks of this process, all of them on one connection.
 *
 * Promise: a name is locked at most once in the process and at most once on the server, until the scope of its lock
 * ends. Postgres grants a lock to a session as often as it is requested; the set of names prevents a second lock within
 * the process. When the connection is lost, the server releases every lock: the next use connects again and acquires
 * them again. A lock that another process acquired meanwhile stays lost. A lock therefore only avoids useless work; the
 * guarantee is the fence.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Batched from "./Batched.ts"
import { type Client, queryNamed } from "./driver/Connection.ts"
import { DatabaseError } from "./DatabaseError.ts"
import * as Statement from "./Statement.ts"

export interface SessionLocks {
  /** Acquires the lock until the scope ends, and returns true; returns false at once where another session has it. */
  readonly tryLock: (name: string) => Effect.Effect<boolean, DatabaseError, Scope.Scope>
  /** Whether this process has the lock, or waits for it. */
  readonly has: (name: string) => boolean
  /** Acquires the locks again where their connection is known to be lost. Costs nothing while it lives. Never fails. */
  readonly restore: Effect.Effect<void>
}

/** The connection to a server that does not answer is closed after this, with all locks. */
const answerMaxMs = 15_000

const answered = <A, R>(asked: Effect.Effect<A, DatabaseError, R>) =>
  Effect.timeoutOrElse(asked, {
    duration: answerMaxMs,
    orElse: () =>
      Effect.fail(
        new DatabaseError({
          operation: "use advisory locks",
          code: undefined,
          message: `the server did not answer within ${answerMaxMs / 1000} s`,
          isRetryable: true
        })
      )
  })

interface Session {
  readonly client: Client
  readonly scope: Scope.Closeable
}

export const unlockStatement = Statement.make({
  name: "release advisory locks",
  isPrepared: true,
  params: ["text[]"],
  columns: { pg_advisory_unlock: "bool" },
  text: "select pg_advisory_unlock(hashtextextended(name, 0)) from unnest($1::text[]) as n(name)"
})
export const lockStatement = Statement.make({
  name: "acquire advisory locks",
  isPrepared: true,
  params: ["text[]"],
  columns: { locked: "bool" },
  text: "select pg_try_advisory_lock(hashtextextended(name, 0)) as locked from unnest($1::text[]) with ordinality as n(name, at) order by at"
})

/** Ends with the scope, and all locks with it. */
export const make = Effect.fnUntraced(function* (
  connect: Effect.Effect<Client, DatabaseError, Scope.Scope>
): Effect.fn.Return<SessionLocks, never, Scope.Scope> {
  /** Every name that is locked here (true), or requested (false). */
  const names = new Map<string, boolean>()
  let session: Session | null = null
  /** One statement at a time, and one attempt to connect. */
  const line = yield* Semaphore.make(1)

  const leave = (left: Session) =>
    Effect.suspend(() => {
      if (session === left) session = null
      return Scope.close(left.scope, Exit.die("the connection of the locks failed"))
    })
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => (session === null ? Effect.void : Scope.close(session.scope, Exit.void)))
  )

  const open = Effect.fnUntraced(function* (restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) {
    const scope = yield* Scope.make()
    const client = yield* restore(answered(Scope.provide(connect, scope))).pipe(
      Effect.onError(() => Scope.close(scope, Exit.die("the connection of the locks failed")))
    )
    const opened: Session = { client, scope }
    client.on("end", () => {
      if (session === opened) session = null
    })
    session = opened
    const again = [...names].filter(([, isLocked]) => isLocked).map(([name]) => name)
    if (again.length === 0) return opened
    const rows = yield* restore(answered(queryNamed(client, lockStatement, [again]))).pipe(
      Effect.onError(() => leave(opened))
    )
    const lost = again.filter((_name, at) => rows[at]?.locked !== true)
    if (lost.length > 0) yield* Effect.logDebug(`locks that another process has acquired: ${lost.join(", ")}`)
    return opened
  })
  const connected = Effect.suspend(() =>
    session === null ? Effect.uninterruptibleMask(open) : Effect.succeed(session)
  )

  const release = Batched.make((released: ReadonlyArray<string>) =>
    line.withPermit(
      Effect.gen(function* () {
        const current = session
        if (current !== null) {
          const asked = answered(queryNamed(current.client, unlockStatement, [released]))
          // A lock that the server may still hold for this process is released with the session.
          if (Exit.isFailure(yield* Effect.exit(asked))) yield* leave(current)
        }
        for (const name of released) names.delete(name)
        return released
      })
    )
  )

  const acquire = Batched.make((wanted: ReadonlyArray<string>) =>
    line.withPermit(
      Effect.gen(function* () {
        const current = yield* connected
        const rows = yield* answered(queryNamed(current.client, lockStatement, [wanted])).pipe(
          Effect.onError(() => leave(current))
        )
        return rows.map(({ locked }) => locked)
      })
    )
  )

  const tryLock: SessionLocks["tryLock"] = (name) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        if (names.has(name)) return false
        names.set(name, false)
        const asked = yield* Effect.exit(restore(acquire(name)))
        if (Exit.isFailure(asked)) {
          // The server may have granted it all the same.
          yield* release(name)
          return yield* asked
        }
        if (!asked.value) {
          names.delete(name)
          return false
        }
        names.set(name, true)
        yield* Effect.addFinalizer(() => release(name))
        return true
      })
    )

  return {
    tryLock,
    has: (name) => names.has(name),
    restore: Effect.suspend(() =>
      session !== null || names.size === 0 ? Effect.void : Effect.ignore(line.withPermit(connected))
    )
  }
})
