/**
 * The table identity of a checkpoint that moves to another warehouse with its rows.
 *
 * Promise: a cursor that was good for its table is good for the copy of the table. Any other one causes a full scan, as it
 * would have done before.
 */
import * as Statement from "../postgres/Statement.ts"
import { literal } from "../warehouse/Identifier.ts"
import { tableIdentitySql } from "./CheckpointIdentity.ts"

/** Stands for the identity of the copied table until the checkpoint is bound to it. */
const sameTable = literal("moved")
const otherTable = literal(` altered=${encodeURIComponent("its rows did not match the cursor before they were moved")}`)

/** The identity of the table of a checkpoint's resource, in this dataset. */
const currentIdentity = (dataset: string) =>
  tableIdentitySql(
    `(select format('%I.%I', ${dataset}, coalesce(max(sql_name), resource))
        from tributary.sql_names where scope = '' and api_name = resource)`
  )

/** The identity of a checkpoint as it moves. */
export const movedIdentitySql = (dataset: string): string =>
  `case when table_identity = ${currentIdentity(literal(dataset))} then ${sameTable} else table_identity || ${otherTable} end`

/** Binds the copied checkpoints of a company to the copied tables. */
export const bindStatement = Statement.make({
  name: "bind copied checkpoints to their tables",
  params: ["int8?", "text"],
  text: `update tributary.checkpoints set table_identity = ${currentIdentity("$2::text")}
          where company_id = $1 and table_identity = ${sameTable}`
})
