/**
 * A mark on the checkpoint of a table that was altered: columns were added, or older rows were inserted. The next run
 * treats it as another table (`src/land/CheckpointIdentity.ts`) and reads every record.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { literal } from "./Identifier.ts"
import * as LaneLock from "./LaneLock.ts"

export const lockCheckpointsStatement = Statement.make({
  name: "keep new checkpoints of a resource or company away",
  params: ["text"],
  columns: { pg_advisory_xact_lock: "void" },
  text: `select pg_advisory_xact_lock(${LaneLock.newCheckpointsKeySql("$1")})`
})

export const fenceOffStatement = Statement.make({
  name: "end the runs of a changed resource",
  params: ["text"],
  text: "update tributary.checkpoints set fence = fence + 1 where resource = $1"
})

/**
 * Ends the runs of a resource whose tables or values change, in the transaction that changes them: a run that began before
 * can no longer write, and a lane gets its first checkpoint after it.
 */
export const fenceOff = (resource: string) =>
  Effect.andThen(Statement.run(lockCheckpointsStatement, [resource]), Statement.run(fenceOffStatement, [resource]))

/** Assignment that makes the stored identity differ from that of the table, whose oid and file stay the same. */
export const alteredSql = (why: string): string =>
  `table_identity = concat_ws(' ', table_identity, ${literal(`altered=${encodeURIComponent(why)}`)})`
