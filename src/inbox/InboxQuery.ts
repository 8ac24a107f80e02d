/**
 * A statement on the inbox. Its errors name the operation.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { DatabaseError } from "../postgres/DatabaseError.ts"

export const inboxQuery = <Row extends object>(operation: string, text: string, values: ReadonlyArray<unknown>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, [...values])).pipe(
    Effect.mapError(DatabaseError.from(`${operation} the inbox`))
  )
