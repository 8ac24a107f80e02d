/**
 * A mark on the checkpoint of a table whose rows were changed behind its back: columns were added to it, or older rows
 * were put into it. The next run takes it for another table (`src/land/CheckpointIdentity.ts`) and reads every record.
 */
import { literal } from "./Identifier.ts"

/** Assignment that makes the stored identity differ from that of the table, whose oid and file stay the same. */
export const alteredSql = (why: string): string =>
  `table_identity = concat_ws(' ', table_identity, ${literal(`altered=${encodeURIComponent(why)}`)})`
