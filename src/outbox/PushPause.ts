/**
 * The pause of all pushes after the database was restored.
 *
 * Promise: while the database is not the one in which the outbox was last confirmed, nothing is sent and nothing is
 * lost. A restored outbox may not know what was sent since the backup: a person ends the pause. A failover changes the
 * timeline as a restore does, so it pauses pushes too.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { QueryResultRow } from "pg"
import type { Failure } from "../sync/Outcome.ts"

export interface InstallationRow extends QueryResultRow {
  readonly identity: string
  readonly current: string
  readonly because: string | null
}

export const installationSql = `select identity, tributary.database_identity() as current, pause_reason as because from tributary.installation`

const partsOf = (identity: string): ReadonlyMap<string, string> =>
  new Map(identity.split(" ").map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]))

/** Why pushes are paused, as one sentence without its full stop; null when they are not. */
export const reasonOf = (row: InstallationRow | undefined): string | null => {
  if (row === undefined) return "the row of tributary.installation is missing"
  if (row.because !== null) return row.because
  const [stored, current] = [partsOf(row.identity), partsOf(row.current)]
  const differs = (part: string) => stored.has(part) && current.has(part) && stored.get(part) !== current.get(part)
  if (differs("database") || differs("installation") || differs("system")) {
    return "the database was restored or copied, so the outbox may have forgotten what was sent"
  }
  return differs("timeline")
    ? "the database was restored to an earlier time or failed over to a standby, so the outbox may have forgotten what was sent"
    : null
}

export const releaseCommand = "npx tributary push release"

/** One sentence for a person. */
export const sentence = (reason: string): string => `Pushes are held: ${reason}`

export const failureOf = (reason: string): Failure => ({
  kind: "Held",
  message: sentence(reason),
  remedy: `look at what waits (npx tributary push status) and compare it with the source; then let it be sent: ${releaseCommand}`,
  stops: "company",
  refused: false,
  isConfiguration: true
})

/** Why pushes are paused; null when they are not. */
export const read: Effect.Effect<string | null, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql.unsafe<InstallationRow>(installationSql)
  return reasonOf(row)
})

/** Ends the pause: the outbox of this database is confirmed. */
export const release: Effect.Effect<void, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into tributary.installation (identity, confirmed_at)
             values (tributary.database_identity(), tributary.now())
             on conflict (is_this) do update set identity = excluded.identity, pause_reason = null,
               confirmed_at = excluded.confirmed_at`
})
