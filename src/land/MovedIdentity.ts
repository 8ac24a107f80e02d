/**
 * The table identity of a checkpoint that moves to another warehouse with its rows.
 *
 * Promise: a cursor that was good for its table is good for the copy of the table. Any other one causes a full scan, as it
 * would have done before.
 */
import * as Statement from "../postgres/Statement.ts"
import { literal, supersededSuffix } from "../warehouse/Identifier.ts"
import type { Datasets } from "../warehouse/Table.ts"
import { tableIdentitySql } from "./CheckpointIdentity.ts"

/** Stands for the identity of the copied table until the checkpoint is bound to it. */
const sameTable = literal("moved")
const otherTable = literal(` altered=${encodeURIComponent("its rows did not match the cursor before they were moved")}`)

/** The identity of the table of a checkpoint's resource, in these datasets. */
const currentIdentity = (current: string, history: string) => {
  const name = (dataset: string, suffix: string) =>
    `(select format('%I.%I', ${dataset}, coalesce(max(sql_name), resource)${suffix})
        from tributary.sql_names where scope = '' and api_name = resource)`
  return tableIdentitySql(name(current, ""), name(history, ` || ${literal(supersededSuffix)}`))
}

/** The identity of a checkpoint as it moves. */
export const movedIdentitySql = ({ current, history }: Pick<Datasets, "current" | "history">): string =>
  `case when table_identity = ${currentIdentity(literal(current), literal(history))} then ${sameTable} else table_identity || ${otherTable} end`

/** Binds the copied checkpoints of a company to the copied tables. */
export const bindStatement = Statement.make({
  name: "bind copied checkpoints to their tables",
  params: ["int8?", "text", "text"],
  text: `update tributary.checkpoints set table_identity = ${currentIdentity("$2::text", "$3::text")}
          where company_id = $1 and table_identity = ${sameTable}`
})
