/**
 * Sessions of the page, its signing key and its password's hash, in the warehouse.
 *
 * Promise: the key is 32 random bytes that all processes of an installation share. The password is kept as an scrypt hash
 * with a random salt. A session is open while its row stands there: a log-out ends it in every process, and a changed
 * password ends all of them. A crash leaves sessions as they were; rows that are over are removed at the next log-in.
 */
import { createHash, scrypt, timingSafeEqual } from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/encoding/Base64Url"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** A password as it is kept; another password is another generation. */
interface Kept {
  readonly generation: string
  readonly salt: Uint8Array
  readonly hash: Uint8Array
}

/** Where sessions are kept. `E` is that it cannot be asked now. */
export interface Sessions<E> {
  readonly key: Effect.Effect<Uint8Array, E>
  /** Which password this is. One that is not the kept one takes its place, and ends the sessions of that one. */
  readonly generation: (password: string) => Effect.Effect<string, E>
  readonly begin: (session: string, generation: string, forMs: number) => Effect.Effect<void, E>
  readonly isOpen: (session: string, generation: string) => Effect.Effect<boolean, E>
  readonly end: (session: string) => Effect.Effect<void, E>
  readonly endAll: Effect.Effect<void, E>
}

/** 32 MB and some 250 ms: what OWASP names for scrypt. argon2 is not in every OpenSSL that Node is built with. */
const cost = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 2 ** 20 }

/** The hash of a password; it is made beside the event loop. */
const hashOf = (password: string, salt: Uint8Array): Effect.Effect<Uint8Array> =>
  Effect.callback<Uint8Array>((resume) => {
    scrypt(password.normalize("NFKC"), salt, 32, cost, (error, hash) =>
      resume(error === null ? Effect.succeed(hash) : Effect.die(error))
    )
  })

const isOf = ({ salt, hash }: Kept, password: string): Effect.Effect<boolean> =>
  Effect.map(hashOf(password, salt), (other) => timingSafeEqual(other, hash))

const keptOf = Effect.fnUntraced(function* (password: string) {
  const random = yield* SecureRandom.SecureRandom
  const salt = yield* random.randomBytes(16)
  const generation = Encoding.encode(yield* random.randomBytes(12))
  return { generation, salt, hash: yield* hashOf(password, salt) } satisfies Kept
})

const idOf = (session: string): Uint8Array => createHash("sha256").update(session).digest()

/** In the control plane of the warehouse. */
export const inWarehouse = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  const context = yield* Effect.context<SqlClient.SqlClient | SecureRandom.SecureRandom>()
  const sql = Context.get(context, SqlClient.SqlClient)

  const kept = Effect.map(sql<Kept>`select generation, salt, hash from tributary.dashboard_password`, ([row]) => row)
  const key = Effect.gen(function* () {
    const made = yield* random.randomBytes(32)
    yield* sql`insert into tributary.dashboard_key (key) values (${made}) on conflict do nothing`
    const [row] = yield* sql<{ readonly key: Uint8Array }>`select key from tributary.dashboard_key`
    return row!.key
  })
  /** Processes that start at the same time agree on one: the loser looks again. */
  const generationOf = (password: string): Effect.Effect<string, SqlError> =>
    Effect.gen(function* () {
      const before = yield* kept
      if (before !== undefined && (yield* isOf(before, password))) return before.generation
      const { generation, salt, hash } = yield* keptOf(password)
      const written = yield* before === undefined
        ? sql`insert into tributary.dashboard_password (generation, salt, hash) values (${generation}, ${salt}, ${hash})
              on conflict do nothing returning 1`
        : sql`update tributary.dashboard_password set generation = ${generation}, salt = ${salt}, hash = ${hash},
                     set_at = tributary.now() where generation = ${before.generation} returning 1`
      if (written.length === 0) return yield* generationOf(password)
      yield* sql`delete from tributary.dashboard_sessions where generation <> ${generation}`
      return generation
    }).pipe(Effect.provideContext(context))

  return {
    key,
    generation: generationOf,
    begin: (session, generation, forMs) =>
      Effect.andThen(
        sql`delete from tributary.dashboard_sessions where ends_at < tributary.now()`,
        sql`insert into tributary.dashboard_sessions (id, generation, ends_at)
            values (${idOf(session)}, ${generation}, tributary.now() + ${forMs} * interval '1 millisecond')`
      ).pipe(Effect.asVoid),
    isOpen: (session, generation) =>
      Effect.map(
        sql`select 1 from tributary.dashboard_sessions
             where id = ${idOf(session)} and generation = ${generation} and ends_at > tributary.now()`,
        (rows) => rows.length > 0
      ),
    end: (session) => Effect.asVoid(sql`delete from tributary.dashboard_sessions where id = ${idOf(session)}`),
    endAll: Effect.asVoid(sql`delete from tributary.dashboard_sessions`)
  } satisfies Sessions<SqlError>
})
