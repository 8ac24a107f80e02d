/** Retention of earlier versions of rows. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { identifier, supersededSuffix } from "../warehouse/Identifier.ts"
import { batchRows, cutoff } from "./Batches.ts"

/** SQL: reads a batch of versions in the order of their key, and deletes those that were replaced before $1. */
const removeVersions = (table: string) => `
  with batch as materialized (
    select "_company_id" as company, "id", "_version" as version, "_valid_to" as ended from ${table}
     where ("_company_id", "id", "_version") > ($2::bigint, $3::bigint, $4::bigint)
     order by "_company_id", "id", "_version" limit ${batchRows}),
  gone as (
    delete from ${table} t using batch b
     where t."_company_id" = b.company and t."id" = b."id" and t."_version" = b.version and b.ended < $1::timestamptz
    returning 1)
  select count(*)::float8 as seen, (select count(*) from gone)::float8 as gone,
         (array_agg(concat_ws(' ', company, "id", version) order by company desc, "id" desc, version desc))[1] as last
    from batch`

export const historyTablesStatement = Statement.make({
  name: "find tables of earlier versions",
  params: ["name", "text"],
  columns: { name: "name" },
  text: `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relkind = 'r' and right(c.relname, length($2)) = $2 order by 1`
})

export const removeChangesStatement = Statement.make({
  name: "remove old changes from the feed",
  params: ["timestamptz"],
  text: `with old as (
           select max(last_position) as reached from tributary.change_batches where began < $1 and last_position is not null),
         gone as (delete from tributary.change_batches b using old where b.last_position <= old.reached)
         update tributary.change_feed f set removed_through = greatest(f.removed_through, old.reached),
                                            history_from = greatest(f.history_from, $1)
           from old`
})

/**
 * Deletes versions that were replaced longer ago than `retention`, of every resource of the history dataset. The current
 * version of a row is in another table and stays. Null keeps every version. A query of the history for a
 * time before that finds nothing, or a later version; an as-of query fails. The changes of that time leave the feed first, so that a reader never misses the version before.
 */
export const remove = Effect.fnUntraced(function* (
  dataset: string,
  retention: Duration.Duration | null
): Effect.fn.Return<number, DatabaseError, SqlClient.SqlClient> {
  if (retention === null) return 0
  const before = yield* cutoff(retention)
  yield* Statement.run(removeChangesStatement, [before])
  const tables = yield* Statement.run(historyTablesStatement, [dataset, supersededSuffix])
  let all = 0
  for (const { name } of tables) {
    const statement = removeVersions(`${identifier(dataset)}.${identifier(name)}`)
    const least = "-9223372036854775808"
    let after: ReadonlyArray<string> = [least, least, least]
    for (;;) {
      const [batch] = yield* Sql.rows<{ seen: number; gone: number; last: string | null }>(statement, [
        before,
        ...after
      ])
      all += batch!.gone
      if (batch!.seen < batchRows || batch!.last === null) break
      after = batch!.last.split(" ")
    }
  }
  return all
})
