/** The tables and views that the reader sees, for `tributary query --tables` and the tool `list_tables`. */
import * as Statement from "../postgres/Statement.ts"
import * as Grants from "./Grants.ts"
import { supersededSuffix } from "./Identifier.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "./Model.ts"
import type { Datasets } from "./Table.ts"

export const kinds = ["resource", "model", "control"] as const
export type Kind = (typeof kinds)[number]

/** The comment without the digest by which a sync recognises its views. */
const meaningSql = `regexp_replace(obj_description(c.oid, 'pg_class'), '\\s*\\[tributary [0-9a-f]{16}\\]$', '')`

export const tablesStatement = Statement.make({
  name: "list the tables that the reader sees",
  params: ["text[]", "text?", "text?"],
  columns: { dataset: "name", name: "name", relkind: "text", meaning: "text?", rowsEstimate: "float8?" },
  text: `select n.nspname as dataset, c.relname as name, c.relkind::text as relkind, ${meaningSql} as meaning,
                case when c.relkind in ('r', 'p') and c.reltuples >= 0 then c.reltuples::float8 end as "rowsEstimate"
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = any($1::text[]) and c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition
            and right(c.relname, ${supersededSuffix.length}) <> '${supersededSuffix}'
            and has_any_column_privilege(c.oid, 'select')
            and ($2::text is null or strpos(lower(c.relname), lower($2)) > 0 or strpos(lower(${meaningSql}), lower($2)) > 0)
            and ($3::text is null or c.relname = $3)
          order by array_position($1::text[], n.nspname::text), c.relname`
})

export const kindOf = (dataset: string): Kind =>
  dataset === Grants.controlDataset
    ? "control"
    : dataset === modelsDatasetDefault || dataset === asOfModelsDataset
      ? "model"
      : "resource"

export const datasetOf: (datasets: Datasets) => Readonly<Record<Kind, string>> = ({ current }) => ({
  resource: current,
  model: modelsDatasetDefault,
  control: Grants.controlDataset
})

/** The name of a table as a query states it, with and without a moment. */
export const queryNameOf = ({ dataset, name }: { readonly dataset: string; readonly name: string }): string =>
  kindOf(dataset) === "control" ? `${dataset}.${name}` : name
