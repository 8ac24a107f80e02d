/**
 * The check that a query as of a moment reads no present records.
 *
 * Promise: a table of the present records, or a view that reads one, is refused before the statement runs. The records as
 * of the moment, the history and the control plane are allowed. The server itself finds the relations that a statement
 * names: it locks them when it parses the statement, and locks the tables behind their views only when it plans it. So no
 * spelling is missed: quotes, subqueries, a view of a person, another search path. A function reads its tables only when it
 * runs: a table that is locked later and stands behind none of the named relations is refused then, before its rows are
 * passed on.
 */
import * as Effect from "effect/Effect"
import { type Client, queryNamed } from "../postgres/driver/Connection.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { parse } from "../postgres/driver/Parse.ts"
import * as Statement from "../postgres/Statement.ts"
import { controlDataset } from "./Grants.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "./Model.ts"
import type { Datasets } from "./Table.ts"

/** A relation that the transaction has locked; `l` is of pg_locks. */
export const isLocked = `l.pid = pg_backend_pid() and l.locktype = 'relation'
                  and l.database = (select d.oid from pg_database d where d.datname = current_database())`

export const lockedRelationsStatement = Statement.make({
  name: "list the relations that the statement names",
  columns: { oids: "int8[]" },
  text: `select coalesce(array_agg(distinct l.relation::int8), '{}') as oids from pg_locks l where ${isLocked}`
})

/** A view is followed to its tables. Behind the first dataset that is not of the present, tables are read as of the moment. */
export const presentRelationsStatement = Statement.make({
  name: "look for present records in a query as of a moment",
  params: ["int8[]", "text[]", "text[]"],
  columns: { dataset: "name", name: "name", by: "text?" },
  text: `with recursive reached as (
           select o::oid as root, o::oid as oid, false as is_past from unnest($1::int8[]) o
           union
           select r.root, d.refobjid, r.is_past or n.nspname = any($3::text[])
             from reached r join pg_class c on c.oid = r.oid and c.relkind in ('v', 'm')
             join pg_namespace n on n.oid = c.relnamespace
             join pg_rewrite w on w.ev_class = c.oid
             join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
                             and d.refclassid = 'pg_class'::regclass and d.refobjid <> c.oid
         ), found as (
           select r.oid, r.root from reached r where not r.is_past
           union all
           select l.relation, null from pg_locks l where ${isLocked} and l.relation not in (select oid from reached)
         )
         select n.nspname as dataset, c.relname as name, case when f.root <> f.oid then f.root::regclass::text end as by
           from found f join pg_class c on c.oid = f.oid join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = any($2::text[]) and c.relkind in ('r', 'p', 'v', 'm')
          order by f.root is null, f.root = f.oid desc, 1, 2 limit 1`
})

/** The SQLSTATE of a query as of a moment that would read present records. */
export const presentRecords = "TB010"

/** Parses a statement, and answers the check of the tables that its transaction has locked, which also runs now. */
export const refuseIn = Effect.fnUntraced(function* (client: Client, text: string, datasets: Datasets) {
  yield* parse(client, "query", text)
  const [named] = yield* queryNamed(client, lockedRelationsStatement)
  const present = [datasets.current, modelsDatasetDefault]
  const past = [datasets.asOf, asOfModelsDataset, datasets.history, controlDataset]
  const check = Effect.gen(function* () {
    const [found] = yield* queryNamed(client, presentRelationsStatement, [named!.oids, present, past])
    if (found === undefined) return
    const { dataset, name, by } = found
    const asOf = dataset === datasets.current ? datasets.asOf : asOfModelsDataset
    return yield* new DatabaseError({
      operation: "query",
      code: presentRecords,
      message:
        `${by === null ? "" : `${by} reads `}${dataset}.${name}${by === null ? " contains" : ", which contains"} the present ` +
        `records, not those as of the moment: name it without a dataset (${name}), or ${asOf}.${name}`,
      isRetryable: false
    })
  })
  yield* check
  return check
})
