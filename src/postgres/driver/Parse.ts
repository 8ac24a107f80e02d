/** A statement that the server parses and does not run. */
import * as Effect from "effect/Effect"
import type { Client, Connection, Submittable } from "pg"
import { DatabaseError } from "../DatabaseError.ts"

/** Has the server parse one statement, which locks the relations that it names. */
export const parse = (client: Client, operation: string, text: string): Effect.Effect<void, DatabaseError> =>
  Effect.callback<void, DatabaseError>((resume) => {
    const settle = (error?: Error | null) =>
      resume(error === null || error === undefined ? Effect.void : Effect.fail(DatabaseError.from(operation)(error)))
    client.query({
      submit: (connection: Connection) => {
        connection.parse({ name: "", text, types: [] }, true)
        connection.sync()
      },
      handleError: settle,
      handleReadyForQuery: () => settle()
    } as unknown as Submittable)
  })
