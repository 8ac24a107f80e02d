/** The checks of the tables: whether they agree with the catalogue, and their versions with each other. */
import * as Effect from "effect/Effect"
import type { Configuration } from "../../configuration/Configuration.ts"
import type { Table } from "../../warehouse/Table.ts"
import * as TableDamage from "../../warehouse/TableDamage.ts"
import * as VersionOverlap from "../../warehouse/VersionOverlap.ts"
import * as Output from "../Output.ts"
import { damagedTables, warehouseTables } from "../schema/SchemaChanges.ts"
import type { About } from "./Finding.ts"

/** Tables that are named. */
const namesMax = 5

/** Whether a query as of a moment could count a record twice. */
export const history = Effect.fnUntraced(function* ({ ok, failed }: About, tables: ReadonlyArray<Table>) {
  const overlaps = yield* VersionOverlap.find(tables)
  const [first] = overlaps
  if (first === undefined) return [ok("no two of the versions that were searched are valid at one moment")]
  const names = Output.firstOf(
    overlaps.map(({ table }) => `${table.datasets.history}.${table.supersededName}`),
    namesMax
  )
  return [
    failed(
      "configuration",
      `two versions of a record are valid at one moment in ${names}, as of record ${first.id}: answers as of that moment count it twice`,
      `${TableDamage.repairCommand} ends each version where the next one begins`
    )
  ]
})

/** {@link history}, of the tables of the configuration. */
export const historyOf = (its: About, settings: Configuration) =>
  Effect.flatMap(warehouseTables(settings), (tables) => history(its, tables))

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
