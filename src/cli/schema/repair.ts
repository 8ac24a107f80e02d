/**
 * The command `schema repair`: repairs all damaged tables together.
 *
 * Promise: each resource is repaired in one transaction, and a failure of one leaves the others repaired. Nothing that
 * the source cannot send again is deleted: equal copies of rows are removed, and everything else is moved aside and
 * named. The next sync reads every record of a repaired table, unless only its versions were valid at one moment.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../../postgres/DatabaseError.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import { applyViews } from "../../sync/Sync.ts"
import { searchIndexesOf } from "../../warehouse/Indexes.ts"
import { type Table, tableOf } from "../../warehouse/Table.ts"
import type { TableDamaged } from "../../warehouse/TableDamage.ts"
import * as TablePlan from "../../warehouse/TablePlan.ts"
import * as TableRepair from "../../warehouse/TableRepair.ts"
import * as VersionOverlap from "../../warehouse/VersionOverlap.ts"
import { commandFailed, switchFlag, warehouseCommand } from "../Command.ts"
import { type ExitCode, exitCode } from "../Exit.ts"
import * as Output from "../Output.ts"
import * as Models from "../Models.ts"
import { warehouseResources } from "./SchemaChanges.ts"

interface RepairReport {
  readonly dryRun: boolean
  /** Statements that only added something, such as a primary key. */
  readonly completed: number
  readonly repaired: ReadonlyArray<TableRepair.Repaired>
  readonly failed: ReadonlyArray<{ readonly table: string; readonly error: string; readonly code: ExitCode }>
}

/** Ends the transaction of a dry run. */
class Undone {
  readonly repaired: ReadonlyArray<TableRepair.Repaired>
  constructor(repaired: ReadonlyArray<TableRepair.Repaired>) {
    this.repaired = repaired
  }
}

/** Versions that are valid at one moment are no damage of the table: nothing is read again. */
const repairOverlap = (table: Table) =>
  Effect.map(VersionOverlap.repair(table), (versions): ReadonlyArray<TableRepair.Repaired> => [
    {
      table: `${table.datasets.history}.${table.supersededName}`,
      done: [`${Output.plural(versions, "version")} ended where the next one begins`],
      isReadAgain: false
    }
  ])

const repairOne = (table: Table, dryRun: boolean, isOverlapOnly: boolean) => {
  const change = isOverlapOnly ? repairOverlap(table) : TableRepair.repair(table)
  const repair = TablePlan.changing<
    ReadonlyArray<TableRepair.Repaired>,
    TableDamaged | DatabaseError | Undone,
    SqlClient.SqlClient
  >(
    `the tables of ${table.resource.path}`,
    dryRun ? Effect.flatMap(change, (repaired) => Effect.fail(new Undone(repaired))) : change
  )
  return Effect.catchIf(
    repair,
    (error) => error instanceof Undone,
    ({ repaired }) => Effect.succeed(repaired)
  )
}

const repair = Effect.fn("schema.repair")(function* (settings: Configuration, dryRun: boolean) {
  const tables = (yield* warehouseResources(settings)).map((one) => tableOf(one, settings.datasets))
  const { damaged } = yield* TablePlan.plan(tables)
  const resources = new Set(damaged.map(({ resource }) => resource))
  const repaired: Array<TableRepair.Repaired> = []
  const failed: Array<RepairReport["failed"][number]> = []
  const overlapping = new Set(
    (yield* VersionOverlap.find(tables.filter(({ resource }) => !resources.has(resource.path)))).map(
      ({ table }) => table
    )
  )
  for (const table of tables.filter((one) => resources.has(one.resource.path) || overlapping.has(one))) {
    const result = yield* Effect.result(repairOne(table, dryRun, overlapping.has(table)))
    if (result._tag === "Success") repaired.push(...result.success)
    else {
      const { message, code } = commandFailed(result.failure)
      failed.push({ table: table.name, error: message, code })
    }
  }
  if (dryRun) return { dryRun, completed: 0, repaired, failed } satisfies RepairReport
  const { statements } = yield* TablePlan.applyUndamaged(tables)
  const { models } = yield* Models.of(settings)
  yield* applyViews({ models, datasets: settings.datasets, indexes: searchIndexesOf(tables) })
  return { dryRun, completed: statements.length, repaired, failed } satisfies RepairReport
})

const lines = ({ dryRun, completed, repaired, failed }: RepairReport): ReadonlyArray<string> => {
  const found = repaired.map(({ table, done }) => `${table}: ${done.join("; ")}`)
  if (repaired.length + failed.length === 0) {
    return [
      completed === 0
        ? "No table is damaged."
        : `No table is damaged; ${Output.plural(completed, "statement")} completed the tables.`
    ]
  }
  if (repaired.length === 0) return []
  const tables = Output.plural(repaired.length, "table")
  const again = repaired.filter(({ isReadAgain }) => isReadAgain).length
  return dryRun
    ? [...found, "", `${tables} to repair; nothing was changed. To repair: tributary schema repair`]
    : [
        ...found,
        "",
        again === 0
          ? `${tables} repaired; nothing is read again.`
          : `${tables} repaired. Next: tributary sync, which reads every record of ${Output.plural(again, "table")}`
      ]
}

export const repairCommand = warehouseCommand({
  name: "repair",
  description: "Repair all tables that contradict the catalogue, as after a restore that doubled rows or lost keys",
  examples: {
    "tributary schema repair --dry-run": "What is damaged, and what a repair keeps, removes and moves aside",
    "tributary schema repair": "Repair all damaged tables; then run tributary sync"
  },
  flags: { dryRun: switchFlag("dry-run", "Make the whole repair, show what it did, and undo it") },
  run: (settings, { dryRun }) => repair(settings, dryRun),
  lines,
  notes: ({ failed }) => failed.map(({ error }) => `tributary: ${error}`),
  code: ({ failed }) => failed[0]?.code ?? exitCode.ok
})
