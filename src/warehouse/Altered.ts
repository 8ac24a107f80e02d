/**
 * A mark on the checkpoint of a table that was altered: columns were added, or older rows were inserted. The next run
 * treats it as another table (`src/land/CheckpointIdentity.ts`) and reads every record.
 */
import { literal } from "./Identifier.ts"

/** Assignment that makes the stored identity differ from that of the table, whose oid and file stay the same. */
export const alteredSql = (why: string): string =>
  `table_identity = concat_ws(' ', table_identity, ${literal(`altered=${encodeURIComponent(why)}`)})`
