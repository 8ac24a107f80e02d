/** Columns that privacy rules took away or made text, and that a table has again, since it was restored from a backup. */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import type { Table } from "./Table.ts"

export const restoredStatement = Statement.make({
  name: "look for columns that privacy rules took away",
  params: ["text[]", "text[]", "text[]", "text[]", "bool[]"],
  columns: { resource: "text" },
  text: `select distinct k.resource from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bool[]) as k (resource, dataset, name, field, is_excluded)
           join pg_namespace n on n.nspname = k.dataset join pg_class c on c.relnamespace = n.oid and c.relname = k.name and c.relkind = 'r'
           join pg_attribute a on a.attrelid = c.oid and a.attname = k.field and not a.attisdropped
          where k.is_excluded or a.atttypid <> 'text'::regtype`
})

/** The resources that have columns again, from a backup, which their rules took away or made text. */
export const restored = (tables: ReadonlyArray<Table>): Sql.Query<ReadonlySet<string>> => {
  const columns = tables.flatMap(({ datasets, name, resource: { path, protection }, supersededName }) =>
    (protection?.sent.fields ?? []).flatMap((field) => {
      const kind = protection?.ruleOf(field.name)?.kind
      return kind === undefined
        ? []
        : (
            [
              [datasets.current, name],
              [datasets.history, supersededName]
            ] as const
          ).map(
            ([dataset, table]) =>
              [path, dataset, table, field.inferred?.column ?? field.name, kind === "exclude"] as const
          )
    })
  )
  if (columns.length === 0) return Effect.succeed(new Set())
  return Effect.map(
    Statement.run(restoredStatement, [
      columns.map((one) => one[0]),
      columns.map((one) => one[1]),
      columns.map((one) => one[2]),
      columns.map((one) => one[3]),
      columns.map((one) => one[4])
    ]),
    (rows) => new Set(rows.map(({ resource }) => resource))
  )
}
