/**
 * The repair of a resource's tables (TableDamage.ts), in one transaction.
 *
 * Promise: rows that agree with the catalogue stay. The next run recognises a repaired table as another one, and reads
 * every record. Runs that go on meanwhile lose their fence. A crash leaves everything as it was.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { literal } from "./Identifier.ts"
import { fenceOff } from "./Altered.ts"
import { introspect } from "./RelationPlan.ts"
import type { Table } from "./Table.ts"
import type { TableDamaged } from "./TableDamage.ts"
import * as TablePlan from "./TablePlan.ts"

/** The repair of one resource. */
export interface Repaired {
  readonly table: string
  /** A sentence for each thing that was done. */
  readonly done: ReadonlyArray<string>
  /** Whether the next sync reads every record of the resource. */
  readonly isReadAgain: boolean
}

/** A repair may uncover the next fault: a table that got its columns back lacks values in them. */
const roundsMax = 4

/** Gives a table a new file, by which the next run recognises it as another one and reads every record. */
const rewrite = (table: string): string =>
  `do ${literal(`begin
  execute (select format('cluster %s using %I', i.indrelid::regclass, c.relname) from pg_index i join pg_class c on c.oid = i.indexrelid
            where i.indrelid = ${literal(table)}::regclass and i.indisprimary);
  alter table ${table} set without cluster;
end`)}`

/** Repairs the tables of one resource, within a transaction of the caller. */
export const repair = Effect.fn("TableRepair.repair")(function* (
  table: Table
): Effect.fn.Return<ReadonlyArray<Repaired>, TableDamaged | DatabaseError, SqlClient.SqlClient> {
  const { current, history } = table.datasets
  const tables = [
    [`${current}.${table.name}`, table.current],
    [`${history}.${table.supersededName}`, table.superseded]
  ] as const
  const repaired = new Map<string, Array<string>>()
  // Copies of rows are no loss: the next run compares the versions with the change feed.
  yield* TablePlan.run([`set local "tributary.removes_company" = 'on'`])
  for (let rounds = 0; ; rounds += 1) {
    const existing = yield* introspect(table.datasets, [table])
    const { statements: planned, damaged } = yield* TablePlan.planTable(table, existing, new Set())
    yield* TablePlan.run(planned)
    if (damaged.length === 0) break
    if (rounds === roundsMax) return yield* damaged[0]!
    for (const { table: name, faults } of damaged) {
      for (const fault of faults) repaired.set(name, [...(repaired.get(name) ?? []), ...(yield* fault.repair)])
    }
  }
  for (const [name, quoted] of tables) {
    if (repaired.has(name)) yield* TablePlan.run([rewrite(quoted)])
  }
  yield* fenceOff(table.resource.path)
  return [...repaired].map(([name, done]) => ({ table: name, done, isReadAgain: true }))
})
