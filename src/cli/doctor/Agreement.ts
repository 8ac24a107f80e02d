/** The check of the tables: whether they agree with the catalogue. */
import * as Effect from "effect/Effect"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as TableDamage from "../../warehouse/TableDamage.ts"
import * as Output from "../Output.ts"
import { damagedTables } from "../schema/SchemaChanges.ts"
import type { About } from "./Finding.ts"

/** Tables that are named. */
const namesMax = 5

/** Whether the tables agree with the catalogue; missing ones are created by the next sync. */
export const agreement = ({ ok, failed }: About, settings: Configuration) =>
  Effect.map(damagedTables(settings), (damaged) => {
    if (damaged.length === 0) return [ok("none is damaged")]
    const names = Output.firstOf(
      damaged.map(({ table }) => table),
      namesMax
    )
    const [{ message }] = damaged as [TableDamage.TableDamaged]
    return [
      failed(
        "configuration",
        `${Output.plural(damaged.length, "table")} damaged (${names}), and nothing is landed there: ${message}`,
        TableDamage.remedy
      )
    ]
  })
