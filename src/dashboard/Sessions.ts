/**
 * The sessions, the signing key and the password hash of the dashboard, in the warehouse.
 *
 * Promise: the key is 32 random bytes that all processes of a warehouse share. The password is kept as an scrypt
 * hash with a random salt. A session is open while its row exists: a log-out ends it in every process, and a changed
 * password ends all of them. A crash leaves sessions as they were; expired rows are removed at the next log-in.
 */
import { createHash, scrypt, timingSafeEqual } from "node:crypto"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/encoding/Base64Url"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"
import * as AccessTokens from "./AccessTokens.ts"

type Needs = SqlClient.SqlClient | SecureRandom.SecureRandom

/** The store of sessions. An operation fails while the warehouse does not answer. */
export interface Sessions {
  readonly key: Effect.Effect<Uint8Array, unknown>
  /** The generation of the password. A password that differs from the stored one replaces it, and ends its sessions. */
  readonly generation: (password: string) => Effect.Effect<string, unknown>
  readonly begin: (session: string, generation: string, lifetime: Duration.Duration) => Effect.Effect<void, unknown>
  readonly isOpen: (session: string, generation: string) => Effect.Effect<boolean, unknown>
  readonly end: (session: string) => Effect.Effect<void, unknown>
  readonly endAll: Effect.Effect<void, unknown>
  /** Whether the text is a token of a program. */
  readonly isToken: (text: string) => Effect.Effect<boolean, unknown>
}

/** A stored password; another password has another generation. */
interface Kept {
  readonly generation: string
  readonly salt: Uint8Array
  readonly hash: Uint8Array
}

const readPassword = Query.first<Kept>(
  control
    .selectFrom("tributary.warehouse")
    .where("password_hash", "is not", null)
    .select(["password_generation as generation", "password_salt as salt", "password_hash as hash"])
    .$narrowType<Kept>()
)

/**
 * 32 MB and about 250 ms: the parameters that OWASP names for scrypt. Not every OpenSSL that Node is built with has
 * argon2.
 */
const cost = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 2 ** 20 }

/** The hash of a password, computed outside the event loop. */
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

/** The key that all processes share. */
const key = Effect.gen(function* () {
  const made = yield* (yield* SecureRandom.SecureRandom).randomBytes(32)
  const settings = control.updateTable("tributary.warehouse")
  yield* Query.run(settings.set({ session_key: made }).where("session_key", "is", null))
  const row = yield* Query.first(control.selectFrom("tributary.warehouse").select("session_key"))
  return row!.session_key!
})

/** Replaces the password; answers no row where the stored one is not of the generation `before`. */
const savePassword = ({ generation, hash, salt }: Kept, before: string | null) =>
  Query.run(
    control
      .updateTable("tributary.warehouse")
      .set({
        password_generation: generation,
        password_salt: salt,
        password_hash: hash,
        password_set_at: Query.now
      })
      .where("password_generation", "is not distinct from", before)
      .returning("is_this")
  )

/** Processes that start at the same time agree on one generation: a process whose write was too late reads again. */
const generationOf = Effect.fnUntraced(function* (password: string): Effect.fn.Return<string, DatabaseError, Needs> {
  const before = yield* readPassword
  if (before !== null && (yield* isOf(before, password))) return before.generation
  const kept = yield* keptOf(password)
  if ((yield* savePassword(kept, before?.generation ?? null)).length === 0) return yield* generationOf(password)
  yield* Query.run(control.deleteFrom("tributary.dashboard_sessions").where("generation", "<>", kept.generation))
  return kept.generation
})

/** Deletes expired sessions too. */
const begin = (session: string, generation: string, lifetime: Duration.Duration) =>
  Query.run(
    control
      .with("expired", (db) => db.deleteFrom("tributary.dashboard_sessions").where("ends_at", "<", Query.now))
      .insertInto("tributary.dashboard_sessions")
      .values({ id: idOf(session), generation, ends_at: Query.nowPlus(Duration.toMillis(lifetime)) })
  )

const isOpen = (session: string, generation: string) =>
  Query.hasRows(
    control
      .selectFrom("tributary.dashboard_sessions")
      .select("id")
      .where("id", "=", idOf(session))
      .where("generation", "=", generation)
      .where("ends_at", ">", Query.now)
  )

/** {@link Sessions} in the control plane of the warehouse. `provide` fails while there is no warehouse. */
export const make = (
  provide: <A>(effect: Effect.Effect<A, DatabaseError, Needs>) => Effect.Effect<A, unknown>
): Sessions => ({
  key: provide(key),
  generation: (password) => provide(generationOf(password)),
  begin: (session, generation, lifetime) => Effect.asVoid(provide(begin(session, generation, lifetime))),
  isOpen: (session, generation) => provide(isOpen(session, generation)),
  end: (session) =>
    Effect.asVoid(
      provide(Query.run(control.deleteFrom("tributary.dashboard_sessions").where("id", "=", idOf(session))))
    ),
  endAll: Effect.asVoid(provide(Query.run(control.deleteFrom("tributary.dashboard_sessions")))),
  isToken: (text) => provide(AccessTokens.isValid(text))
})
