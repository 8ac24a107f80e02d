/**
 * A mark that the owner commits, and that a snapshot of the reader must have before a decision rests on it.
 *
 * Promise: a transaction of {@link begin} sees every change that was committed before its mark was made, or it fails within
 * the wait, with the remedy. A physical replica repeats commits in their order, and so does one subscription of a logical
 * replica to all tables: a snapshot with the mark has all that was committed before it. A copy of the warehouse, and another
 * database, never get the mark. The proof is in the snapshot itself, so that it holds behind a pooler of several replicas.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Client, query, queryNamed } from "../postgres/driver/Connection.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"

/** How long {@link begin} waits for a replica. */
export const ReaderWait = Context.Reference<Duration.Duration>("tributary/warehouse/ReaderWait", {
  defaultValue: () => Duration.seconds(30)
})

const pause = Duration.millis(200)

export const markStatement = Statement.make({
  name: "make a mark for the reader",
  columns: { mark: "text", lsn: "text?" },
  text: `with removed as (delete from tributary.reader_marks where at < tributary.now() - interval '1 day')
         insert into tributary.reader_marks default values
         returning mark, case when not pg_is_in_recovery() then pg_current_wal_insert_lsn()::text end as lsn`
})

export type Mark = Statement.RowOf<typeof markStatement>

/** Commits a mark, as the owner. */
export const make: Effect.Effect<Mark, DatabaseError, Database> = Effect.flatMap(
  Database,
  ({ connect }) => connect
).pipe(
  Effect.flatMap((owner) => queryNamed(owner, markStatement)),
  Effect.map(([mark]) => mark!),
  Effect.scoped
)

export const seenStatement = Statement.make({
  name: "look for the mark of the owner",
  params: ["text"],
  columns: { isSeen: "bool" },
  text: `select exists (select from tributary.reader_marks where mark = $1) as "isSeen"`
})

export const lagStatement = Statement.make({
  name: "read how far a replica is behind",
  params: ["text?"],
  columns: { isReplica: "bool", bytes: "text?" },
  text: `select pg_is_in_recovery() as "isReplica",
                case when pg_is_in_recovery() then pg_wal_lsn_diff($1::text::pg_lsn, pg_last_wal_replay_lsn())::text end as bytes`
})

const refused = (operation: string, message: string) =>
  new DatabaseError({ operation, code: undefined, message, isRetryable: false })

const remedy = "set DATABASE_READER_URL to the server of DATABASE_URL"

const behind = Effect.fnUntraced(function* (client: Client, operation: string, mark: Mark, wait: Duration.Duration) {
  const [lag] = yield* queryNamed(client, lagStatement, [mark.lsn])
  const after = `after ${Duration.toSeconds(wait)} s`
  return refused(
    operation,
    lag?.isReplica === true
      ? `the reader's session is of a replica that is behind: ${after} it lacks ${lag.bytes ?? "an unknown number of"} bytes of ` +
          `the primary's WAL, and a decision must not rest on old rows; wait until it has caught up, or ${remedy}`
      : `the reader's session does not show what the warehouse committed: ${after} a mark is not there. It is of a copy, of ` +
          `another database, or of a logical replica that is behind or lacks tributary.reader_marks; ${remedy}`
  )
})

const explained = (operation: string) => (error: DatabaseError) =>
  error.code === "42501"
    ? refused(operation, `${error.message}: run tributary schema grants | psql as the owner of the tables`)
    : error.code === "42P01" || error.code === "3F000"
      ? refused(operation, `the reader's database has no tributary.reader_marks (${error.message}); ${remedy}`)
      : error

/** Begins a read-only snapshot of the reader that has the mark. The session is outside of a transaction. */
export const begin = Effect.fnUntraced(function* (
  client: Client,
  operation: string,
  mark: Mark
): Effect.fn.Return<void, DatabaseError> {
  const wait = yield* ReaderWait
  const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(wait)
  for (;;) {
    yield* query(client, operation, "begin transaction isolation level repeatable read read only")
    const [row] = yield* Effect.mapError(queryNamed(client, seenStatement, [mark.mark]), explained(operation))
    if (row?.isSeen === true) return
    if ((yield* Clock.currentTimeMillis) >= until) return yield* yield* behind(client, operation, mark, wait)
    yield* query(client, operation, "rollback")
    yield* Effect.sleep(pause)
  }
})
