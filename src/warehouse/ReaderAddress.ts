/** The login of the reader for programs beside this one. */
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { Endpoint } from "../postgres/Server.ts"
import { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { identifier } from "./Identifier.ts"
import * as Reader from "./Reader.ts"

/** How another program logs in, and the settings of its sessions, as libpq's `options`. */
export interface Address {
  readonly endpoint: Endpoint
  /** The URL that was given for this login; null where it is that of the owner, or there is none. */
  readonly url: Redacted.Redacted | null
  readonly options: ReadonlyArray<string>
}

/**
 * The login of the reader for another program, such as psql. Where this program makes the role, it exists afterwards with
 * all its rights. Where there is no reader, it is the owner, whose transactions are read-only unless it says otherwise.
 */
export const addressOfReader: Effect.Effect<Address, DatabaseError, Database> = Effect.gen(function* () {
  const login = yield* Reader.loginOf
  // It also creates the role, and refuses a login with other powers.
  yield* Reader.logIn(login)
  const database = yield* Database
  switch (login._tag) {
    case "Url":
      return { endpoint: (yield* Reader.serverOf(login.url)).endpoint, url: login.url, options: [] }
    case "Own":
      return { endpoint: Reader.ownReader(database).endpoint, url: null, options: [] }
    default:
      return {
        endpoint: database.endpoint,
        url: null,
        options: [
          "-c default_transaction_read_only=on",
          ...(login._tag === "Role" ? [`-c role=${identifier(Reader.role)}`] : [])
        ]
      }
  }
}).pipe(Effect.scoped)
