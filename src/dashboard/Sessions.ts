/**
 * The sessions, the signing key and the password hash of the dashboard, in the warehouse.
 *
 * Promise: the key is 32 random bytes that all processes of an installation share. The password is kept as an scrypt
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
import * as Statement from "../postgres/Statement.ts"
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

export const passwordStatement = Statement.make({
  name: "read the password's hash",
  columns: { generation: "text", ...Statement.columns("bytea", "salt", "hash") },
  text: "select generation, salt, hash from tributary.dashboard_password"
})
/** A stored password; another password has another generation. */
type Kept = Statement.RowOf<typeof passwordStatement>

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

export const insertKeyStatement = Statement.make({
  name: "insert the signing key",
  params: ["bytea"],
  text: "insert into tributary.dashboard_key (key) values ($1) on conflict do nothing"
})
export const keyStatement = Statement.make({
  name: "read the signing key",
  columns: { key: "bytea" },
  text: "select key from tributary.dashboard_key"
})

/** The key that all processes share. */
const key = Effect.gen(function* () {
  yield* Statement.run(insertKeyStatement, [yield* (yield* SecureRandom.SecureRandom).randomBytes(32)])
  const [row] = yield* Statement.run(keyStatement)
  return row!.key
})

/** Writes nothing while the stored password is not of the generation `$4`. */
export const savePasswordStatement = Statement.make({
  name: "save the password's hash",
  params: ["text", "bytea", "bytea", "text?"],
  columns: { generation: "text" },
  text: `insert into tributary.dashboard_password as p (generation, salt, hash) values ($1, $2, $3)
         on conflict (single) do update set generation = $1, salt = $2, hash = $3, set_at = tributary.now()
           where p.generation = $4 returning generation`
})
export const endOtherStatement = Statement.make({
  name: "end the sessions of other passwords",
  params: ["text"],
  text: "delete from tributary.dashboard_sessions where generation <> $1"
})

/** Processes that start at the same time agree on one generation: a process whose write was too late reads again. */
const generationOf = Effect.fnUntraced(function* (password: string): Effect.fn.Return<string, DatabaseError, Needs> {
  const [before] = yield* Statement.run(passwordStatement)
  if (before !== undefined && (yield* isOf(before, password))) return before.generation
  const { generation, salt, hash } = yield* keptOf(password)
  const written = yield* Statement.run(savePasswordStatement, [generation, salt, hash, before?.generation ?? null])
  if (written.length === 0) return yield* generationOf(password)
  yield* Statement.run(endOtherStatement, [generation])
  return generation
})

/** Deletes expired sessions too. */
export const beginStatement = Statement.make({
  name: "begin a session",
  params: ["bytea", "text", "float8"],
  text: `with expired as (delete from tributary.dashboard_sessions where ends_at < tributary.now())
         insert into tributary.dashboard_sessions (id, generation, ends_at)
         values ($1, $2, tributary.now() + $3 * interval '1 millisecond')`
})
export const isOpenStatement = Statement.make({
  name: "look for a session",
  params: ["bytea", "text"],
  columns: { id: "bytea" },
  text: "select id from tributary.dashboard_sessions where id = $1 and generation = $2 and ends_at > tributary.now()"
})
export const endStatement = Statement.make({
  name: "end a session",
  params: ["bytea"],
  text: "delete from tributary.dashboard_sessions where id = $1"
})
export const endAllStatement = Statement.make({
  name: "end all sessions",
  text: "delete from tributary.dashboard_sessions"
})

/** {@link Sessions} in the control plane of the warehouse. `provide` fails while there is no warehouse. */
export const make = (
  provide: <A>(effect: Effect.Effect<A, DatabaseError, Needs>) => Effect.Effect<A, unknown>
): Sessions => ({
  key: provide(key),
  generation: (password) => provide(generationOf(password)),
  begin: (session, generation, lifetime) =>
    Effect.asVoid(provide(Statement.run(beginStatement, [idOf(session), generation, Duration.toMillis(lifetime)]))),
  isOpen: (session, generation) =>
    Effect.map(provide(Statement.run(isOpenStatement, [idOf(session), generation])), (rows) => rows.length > 0),
  end: (session) => Effect.asVoid(provide(Statement.run(endStatement, [idOf(session)]))),
  endAll: Effect.asVoid(provide(Statement.run(endAllStatement))),
  isToken: (text) => provide(AccessTokens.isValid(text))
})
