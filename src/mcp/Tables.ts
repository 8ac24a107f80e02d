/** The tools `list_tables` and `describe_table`: resources and models with their columns and their meaning. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Statement from "../postgres/Statement.ts"
import * as Grants from "../warehouse/Grants.ts"
import { supersededSuffix } from "../warehouse/Identifier.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "../warehouse/Model.ts"
import type { Datasets } from "../warehouse/Table.ts"
import * as ReaderTables from "../warehouse/ReaderTables.ts"
import { tablesOfView } from "../warehouse/ViewTables.ts"
import { answer, toolFailure, ToolFailure } from "./Answer.ts"
import { Capabilities, readAnswer } from "./Capabilities.ts"
import { plural } from "../text/Count.ts"

const TableRow = Schema.Struct({
  name: Schema.String.annotate({ description: "dataset.table: the current records" }),
  query_name: Schema.String.annotate({ description: "As a query names it, with and without as_of" }),
  kind: Schema.Literals(ReaderTables.kinds),
  meaning: Schema.NullOr(Schema.String),
  rows_estimate: Schema.NullOr(Schema.Finite)
})

export const listTables = Tool.make("list_tables", {
  description:
    "Lists the tables that a query can read: resources (the current records of the source), models (views for people, " +
    "which answer common questions), and control (runs, freshness, quarantine and so on).",
  parameters: Schema.Struct({
    search: Schema.optionalKey(
      Schema.String.check(Schema.isMaxLength(100)).annotate({ description: "A part of the name or of the meaning" })
    ),
    kind: Schema.optionalKey(Schema.Literals(ReaderTables.kinds))
  }),
  success: answer(
    Schema.Struct({
      tables: Schema.Array(TableRow),
      datasets: Schema.Array(Schema.Struct({ name: Schema.String, content: Schema.String }))
    })
  ),
  failure: ToolFailure
})

export const describeTable = Tool.make("describe_table", {
  description:
    "Describes a table: its meaning, its columns with types and comments, its key, and for a model the tables that it reads.",
  parameters: Schema.Struct({
    table: Schema.String.check(Schema.isMaxLength(200)).annotate({
      description: "A name of list_tables, with or without its dataset"
    })
  }),
  success: answer(
    Schema.Struct({
      name: Schema.String,
      kind: Schema.Literals(ReaderTables.kinds),
      meaning: Schema.NullOr(Schema.String),
      rows_estimate: Schema.NullOr(Schema.Finite),
      primary_key: Schema.Array(Schema.String),
      columns: Schema.Array(
        Schema.Struct({
          name: Schema.String,
          type: Schema.String,
          nullable: Schema.Boolean,
          comment: Schema.NullOr(Schema.String)
        })
      ),
      reads: Schema.Array(Schema.String).annotate({ description: "Of a model: the tables that it reads" })
    })
  ),
  failure: ToolFailure
})

export const columnsStatement = Statement.make({
  name: "describe a table",
  params: ["name", "name"],
  columns: {
    name: "name",
    type: "text",
    nullable: "bool",
    comment: "text?",
    isKey: "bool",
    reads: "text[]"
  },
  text: `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, not a.attnotnull as nullable,
                col_description(c.oid, a.attnum) as comment,
                exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and a.attnum = any(i.indkey)) as "isKey",
                ${tablesOfView("c.oid")} as reads
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
           join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          where n.nspname = $1 and c.relname = $2 and has_column_privilege(c.oid, a.attnum, 'select')
          order by a.attnum`
})

/** What each dataset contains. */
const datasetNotes = (datasets: Datasets) => [
  {
    name: datasets.current,
    content: "The current records, one table for each resource; a row with _deleted_at is deleted at the source"
  },
  { name: modelsDatasetDefault, content: "The models: views that answer common questions" },
  {
    name: datasets.history,
    content:
      "Every version of every record, with the run and the request or event that brought it; names as in the first"
  },
  {
    name: datasets.asOf,
    content: `The records as of a moment: the argument as_of of query; the models are in ${asOfModelsDataset}`
  },
  { name: Grants.controlDataset, content: "The control plane: runs, freshness, quarantine, delivery_gaps, changes" }
]

const rowsMax = 300

export const handleList = (given: { readonly search?: string; readonly kind?: ReaderTables.Kind }) =>
  Effect.gen(function* () {
    const { datasets } = yield* Capabilities
    const all = ReaderTables.datasetOf(datasets)
    const names = given.kind === undefined ? Object.values(all) : [all[given.kind]]
    return yield* readAnswer(
      Effect.map(Statement.run(ReaderTables.tablesStatement, [names, given.search ?? null, null]), (rows) => ({
        data: {
          tables: rows.slice(0, rowsMax).map((row) => ({
            name: `${row.dataset}.${row.name}`,
            query_name: ReaderTables.queryNameOf(row),
            kind: ReaderTables.kindOf(row.dataset),
            meaning: row.meaning,
            rows_estimate: row.rowsEstimate
          })),
          datasets: datasetNotes(datasets)
        },
        scope: {
          resources: rows.flatMap((row) => (row.dataset === datasets.current ? [row.name] : []))
        },
        remarks:
          rows.length > rowsMax
            ? [`${plural(rows.length - rowsMax, "table is", "tables are")} left out; use search`]
            : []
      }))
    )
  })

/** The resources behind a table: itself, or the tables that a view reads. */
const resourcesOf = (datasets: Datasets, tables: ReadonlyArray<string>): ReadonlyArray<string> => {
  const record = new Set<string>([datasets.current, datasets.history, datasets.asOf])
  return tables.flatMap((table) => {
    const [dataset = "", name = ""] = table.split(".")
    if (!record.has(dataset)) return []
    return [name.endsWith(supersededSuffix) ? name.slice(0, -supersededSuffix.length) : name]
  })
}

export const handleDescribe = (given: { readonly table: string }) =>
  Effect.gen(function* () {
    const { datasets } = yield* Capabilities
    const every = [
      datasets.current,
      modelsDatasetDefault,
      Grants.controlDataset,
      datasets.history,
      datasets.asOf,
      asOfModelsDataset
    ]
    const parts = given.table.split(".")
    const [dataset, name] = parts.length === 2 ? parts : [null, given.table]
    return yield* readAnswer(
      Effect.gen(function* () {
        const [table] = yield* Statement.run(ReaderTables.tablesStatement, [
          every.filter((one) => dataset === null || one === dataset),
          null,
          name
        ])
        if (table === undefined) {
          return yield* Effect.fail(
            toolFailure("unknown_table", `There is no table ${given.table}.`, "list_tables shows the tables.")
          )
        }
        const columns = yield* Statement.run(columnsStatement, [table.dataset, table.name])
        const reads = columns[0]?.reads ?? []
        return {
          data: {
            name: `${table.dataset}.${table.name}`,
            kind: ReaderTables.kindOf(table.dataset),
            meaning: table.meaning,
            rows_estimate: table.rowsEstimate,
            primary_key: columns.flatMap((column) => (column.isKey ? [column.name] : [])),
            columns: columns.map((column) => ({
              name: column.name,
              type: column.type,
              nullable: column.nullable,
              comment: column.comment
            })),
            reads
          },
          scope: { resources: resourcesOf(datasets, [`${table.dataset}.${table.name}`, ...reads]) }
        }
      })
    )
  })

export { resourcesOf }
