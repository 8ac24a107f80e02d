/**
 * The pause of all pushes after the database was restored.
 *
 * Promise: while the database is not the one in which the outbox was last confirmed, nothing is sent and nothing is
 * lost. A restored outbox may not know what was sent since the backup: a person ends the pause. A failover changes the
 * timeline as a restore does, so it pauses pushes too.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Failure } from "../sync/Outcome.ts"

export const reasonStatement = Statement.make({
  name: "look for a pause of pushes",
  columns: { reason: "text?" },
  text: "select tributary.push_pause_reason() as reason"
})

export const releaseCommand = "tributary push release"

/** One sentence for a person. */
export const sentence = (reason: string): string => `Pushes are paused: ${reason}`

export const failureOf = (reason: string): Failure => ({
  kind: "PushesPaused",
  message: sentence(reason),
  remedy: `list the pending rows (tributary push status) and compare them with the source; then release them: ${releaseCommand}`,
  disposition: "configuration",
  stops: "company"
})

/** Why pushes are paused; null when they are not. */
export const read: Sql.Query<string | null> = Effect.map(Statement.run(reasonStatement), ([row]) => row!.reason)

export const releaseStatement = Statement.make({
  name: "release pushes",
  text: `insert into tributary.warehouse (identity, confirmed_at)
         values (tributary.database_identity(), tributary.now())
         on conflict (is_this) do update set identity = excluded.identity, pause_reason = null,
           confirmed_at = excluded.confirmed_at`
})

/** Ends the pause: the outbox of this database is confirmed. */
export const release: Sql.Query<void> = Effect.asVoid(Statement.run(releaseStatement))
