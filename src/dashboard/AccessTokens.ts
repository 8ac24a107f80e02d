/**
 * Tokens by which programs read the dashboard.
 *
 * Promise: a token is 32 random bytes, so that it needs no limit of attempts, and wrong tokens of strangers refuse no one else.
 * The warehouse has only its SHA-256. A revoked token is refused from the next request on, by every process.
 */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/encoding/Base64Url"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"

const form = /^trb_[A-Za-z0-9_-]{43}$/

const digestOf = (token: string): Uint8Array => createHash("sha256").update(token).digest()

/** Adds a token, and answers its text, which nothing shows again; null where the name is in use. */
export const add = Effect.fnUntraced(function* (name: string, by: string) {
  const token = `trb_${Encoding.encode(yield* (yield* SecureRandom.SecureRandom).randomBytes(32))}`
  const added = yield* Query.run(
    control
      .insertInto("tributary.access_tokens")
      .values({ name, digest: digestOf(token), created_by: by })
      .onConflict((conflict) => conflict.doNothing())
      .returning("name")
  )
  return added.length === 0 ? null : token
})

export const list = Query.run(
  control
    .selectFrom("tributary.access_tokens")
    .select(["name", "created_at as createdAt", "created_by as createdBy", "used_at as usedAt"])
    .orderBy("name")
)

/** Whether there was one of this name. */
export const revoke = (name: string) =>
  Effect.map(
    Query.run(control.deleteFrom("tributary.access_tokens").where("name", "=", name).returning("name")),
    (rows) => rows.length > 0
  )

/** Whether it is a token that was not revoked. Its use is stored once a minute, so that a request rarely writes. */
export const isValid = Effect.fnUntraced(function* (text: string) {
  if (!form.test(text)) return false
  const digest = digestOf(text)
  const found = yield* Query.run(
    control
      .with("used", (db) =>
        db
          .updateTable("tributary.access_tokens")
          .set({ used_at: Query.now })
          .where("digest", "=", digest)
          .where((is) => is.or([is("used_at", "is", null), is("used_at", "<", Query.nowPlus(-60_000))]))
      )
      .selectFrom("tributary.access_tokens")
      .select("name")
      .where("digest", "=", digest)
  )
  return found.length > 0
})
