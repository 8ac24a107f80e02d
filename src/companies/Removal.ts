/**
 * The removal of a company: its tasks end and its rows stay, or all its rows are deleted.
 *
 * Promise: one transaction deletes the rows of every table and writes the receipt, or changes nothing. The checkpoints are
 * locked first: a landing in flight finishes before, and a run that began earlier finds no checkpoint and writes nothing.
 */
import * as Effect from "effect/Effect"
import { transaction } from "../postgres/Transaction.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import * as LaneLock from "../warehouse/LaneLock.ts"
import * as CompanyStore from "./CompanyStore.ts"
import { arraySql, companyColumns, tablesThat } from "./CompanyTables.ts"
import { companyIdOf } from "../tasks/TaskQueue.ts"

export const relationsStatement = Statement.make({
  name: "list the tables with rows of companies",
  params: ["text[]"],
  columns: { name: "text" },
  // A table to which another one refers goes after it. Rows that serve writes for each company go last: then it has none.
  text: `select format('%I.%I', n.nspname, c.relname) as name
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = any($1::text[]) and c.relkind in ('r', 'p') and not c.relispartition
            and format('%I.%I', n.nspname, c.relname) <> all(${arraySql(tablesThat("stays"))})
            and exists (select from pg_attribute a where a.attrelid = c.oid and not a.attisdropped
                           and a.attname = any(case n.nspname when 'tributary' then ${arraySql(companyColumns)} else array['_company_id'] end))
          order by format('%I.%I', n.nspname, c.relname) = any(${arraySql(tablesThat("deleted"))}), c.relname = 'checkpoints', (select count(*) from pg_constraint f where f.confrelid = c.oid), 1`
})

export const deleteRowsStatement = Statement.make({
  name: "delete the rows of a company",
  params: ["text", "int8?", "text[]"],
  columns: { relation: "text?", deleted: "int8?" },
  text: "select relation, deleted from tributary.delete_company_rows($1, $2, $3)"
})

export const receiptStatement = Statement.make({
  name: "write the receipt of a removal",
  params: ["text", "int8?", "text", "text", "json", "text?"],
  columns: { id: "int8", at: "timestamptz" },
  text: `insert into tributary.receipts (company, company_id, action, performed_by, row_counts, move_id)
         values ($1, $2, $3, $4, $5, $6) returning id, performed_at as at`
})

export const lateProcessesStatement = Statement.make({
  name: "count processes that have not applied a revision",
  params: ["int8"],
  columns: { processes: "int4" },
  text: `select count(*)::int as processes from tributary.processes_alive where company_revision < $1`
})

/** Live processes that may still work on companies of an earlier revision. */
export const countLateProcesses = (revision: bigint): Sql.Query<number> =>
  Effect.map(Statement.run(lateProcessesStatement, [revision]), ([row]) => row!.processes)

export const unfinishedStatement = Statement.make({
  name: "find the unfinished work of a company",
  params: ["text", "int8?"],
  columns: { records: "int4", subscriptions: "int4", runs: "int4" },
  text: `select (select coalesce(sum(records), 0)::int from tributary.outbox_status
                  where company = $1 and state in ('pending', 'in_flight')) as records,
                (select count(*)::int from tributary.subscriptions where company = $1 and state <> 'deleted') as subscriptions,
                (select count(*)::int from tributary.runs r
                  where r.company_id = $2 and r.status = 'running' and ${LaneLock.isHeldSql("r")}) as runs`
})

/** Records that are not written yet, known subscriptions at the source, and runs in progress. */
export const readUnfinished = (company: string, companyId: bigint | null) =>
  Effect.map(Statement.run(unfinishedStatement, [company, companyId]), ([row]) => row!)

/** Deleted rows by table. */
export type RowCounts = Readonly<Record<string, number>>

export interface Receipt {
  readonly receipt: bigint
  readonly company: string
  readonly companyId: bigint | null
  readonly action: "detach" | "erase" | "move"
  readonly by: string
  readonly at: Date
  readonly rows: RowCounts
}

/** Deletes the rows of a company from these tables and writes the receipt; the caller's transaction contains both. */
export const removeFrom = Effect.fnUntraced(function* <E, R>(
  run: Statement.Run<E, R>,
  { company, companyId, by, action }: Pick<Receipt, "company" | "companyId" | "by" | "action">,
  relations: ReadonlyArray<string>,
  moveId: string | null = null
): Effect.fn.Return<Receipt, E, R> {
  const deleted = yield* run(deleteRowsStatement, [company, companyId, relations])
  const rows = Object.fromEntries(deleted.map((one) => [one.relation ?? "", Number(one.deleted ?? 0n)]))
  const [written] = yield* run(receiptStatement, [company, companyId, action, by, JSON.stringify(rows), moveId])
  return { receipt: written!.id, company, companyId, action, by, at: written!.at, rows }
})

/**
 * Deletes the rows of a company that has moved away and that were not copied: those that a process of serve writes. Nothing
 * is deleted where the company has come back.
 */
export const removeDerived = Effect.fnUntraced(function* (company: string, companyId: bigint | null) {
  if ((yield* companyIdOf(company)) !== null) return
  yield* Statement.run(deleteRowsStatement, [company, companyId, tablesThat("deleted")])
})

/** Removes the settings and the tasks of a company. Its rows stay. */
export const detach = (company: string, companyId: bigint | null, by: string) =>
  transaction(
    Effect.gen(function* () {
      yield* CompanyStore.remove(company)
      return yield* removeFrom(Statement.run, { company, companyId, by, action: "detach" }, ["tributary.tasks"])
    })
  )

/** Deletes every row of a company, in these datasets and in the control plane. No process may work on it. */
export const erase = (company: string, companyId: bigint | null, by: string, datasets: ReadonlyArray<string>) =>
  transaction(
    Effect.gen(function* () {
      yield* CompanyStore.remove(company)
      const relations = yield* Statement.run(relationsStatement, [[...datasets, "tributary"]])
      const names = relations.map(({ name }) => name)
      return yield* removeFrom(Statement.run, { company, companyId, by, action: "erase" }, names)
    })
  )
