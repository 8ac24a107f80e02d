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
import * as Statement from "../postgres/Statement.ts"

const form = /^trb_[A-Za-z0-9_-]{43}$/

const digestOf = (token: string): Uint8Array => createHash("sha256").update(token).digest()

export const addStatement = Statement.make({
  name: "add an access token",
  params: ["text", "bytea", "text"],
  columns: { name: "text" },
  text: `insert into tributary.access_tokens (name, digest, created_by) values ($1, $2, $3)
         on conflict (name) do nothing returning name`
})
export const listStatement = Statement.make({
  name: "list the access tokens",
  columns: { name: "text", createdAt: "timestamptz", createdBy: "text", usedAt: "timestamptz?" },
  text: `select name, created_at as "createdAt", created_by as "createdBy", used_at as "usedAt"
           from tributary.access_tokens order by name`
})
export const revokeStatement = Statement.make({
  name: "revoke an access token",
  params: ["text"],
  columns: { name: "text" },
  text: "delete from tributary.access_tokens where name = $1 returning name"
})
/** Stores the use once a minute, so that a request rarely writes. */
export const useStatement = Statement.make({
  name: "look for an access token",
  params: ["bytea"],
  columns: { name: "text" },
  text: `with used as (update tributary.access_tokens set used_at = tributary.now()
          where digest = $1 and (used_at is null or used_at < tributary.now() - interval '1 minute'))
         select name from tributary.access_tokens where digest = $1`
})

/** Adds a token, and answers its text, which nothing shows again; null where the name is in use. */
export const add = Effect.fnUntraced(function* (name: string, by: string) {
  const token = `trb_${Encoding.encode(yield* (yield* SecureRandom.SecureRandom).randomBytes(32))}`
  const added = yield* Statement.run(addStatement, [name, digestOf(token), by])
  return added.length === 0 ? null : token
})

/** Whether it is a token that was not revoked. */
export const isValid = (text: string) =>
  form.test(text)
    ? Effect.map(Statement.run(useStatement, [digestOf(text)]), (rows) => rows.length > 0)
    : Effect.succeed(false)
