/**
 * A mark on the checkpoint of a table that was altered: columns were added, or older rows were inserted. The next run
 * treats it as another table (`src/land/CheckpointIdentity.ts`) and reads every record.
 */
import * as Statement from "../postgres/Statement.ts"
import { literal } from "./Identifier.ts"

/** Ends the runs of a resource whose tables were changed: a run that began before can no longer write. */
export const fenceOffStatement = Statement.make({
  name: "end the runs of a changed resource",
  params: ["text"],
  text: "update tributary.checkpoints set fence = fence + 1 where resource = $1"
})

/** Assignment that makes the stored identity differ from that of the table, whose oid and file stay the same. */
export const alteredSql = (why: string): string =>
  `table_identity = concat_ws(' ', table_identity, ${literal(`altered=${encodeURIComponent(why)}`)})`
