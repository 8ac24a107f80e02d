/**
 * A model: a view for people as data, its SQL and its documentation.
 *
 * Promise: the documentation of a view is that of its file. The file is SQL that begins with a comment: the question
 * that the view answers, what counts and what does not, the indexes that help it, and every column with its type and
 * meaning. A file without one of these parts is refused when it is read.
 *
 * The SQL names a resource's table as `{{path}}` and today as `{{as_of}}`; nothing else is filled in.
 */
import { identifier } from "./Identifier.ts"
import { asOf, fill, namesIn, split } from "./SqlFile.ts"
import type { Datasets } from "./Table.ts"

/** Postgres namespaces that a view touches. */
export interface ModelDatasets {
  /** The dataset of the current records. */
  readonly current: string
  /** The dataset of the views. */
  readonly models: string
  /** Whether the records are those of the setting `tributary.as_of`. */
  readonly isAsOf?: boolean
}

/** The dataset of the views. */
export const modelsDatasetDefault = "erp_models"

/** The dataset of the views as of a moment. */
export const asOfModelsDataset = "erp_models_asof"

/** The datasets in which every model is a view. */
export const modelDatasetsOf = ({
  current,
  asOf
}: Pick<Datasets, "current" | "asOf">): ReadonlyArray<ModelDatasets> => [
  { current, models: modelsDatasetDefault },
  { current: asOf, models: asOfModelsDataset, isAsOf: true }
]

/** Which records the views of these datasets show. */
export const noteOf = ({ isAsOf }: ModelDatasets): string =>
  isAsOf === true
    ? "Records and day are those of the setting tributary.as_of."
    : "The records are the current ones; tributary.as_of moves the day only."

export interface ModelColumn {
  readonly name: string
  /** As Postgres prints it, without length or scale: bigint, numeric, text. */
  readonly type: string
  readonly comment: string
}

/** Fields of a resource by which people look rows up; the company comes first in every index. */
export interface ModelIndex {
  readonly resource: string
  readonly fields: ReadonlyArray<string>
}

export interface Model {
  /** Name of the view. */
  readonly name: string
  /** The question that it answers, one line. */
  readonly question: string
  /** The whole documentation, the question first. */
  readonly comment: string
  readonly columns: ReadonlyArray<ModelColumn>
  readonly indexes: ReadonlyArray<ModelIndex>
  /** Resources whose tables it reads. */
  readonly resources: ReadonlyArray<string>
  /** The query, with placeholders for the names of tables. */
  readonly sql: string
}

const columnLine = /^ {2}(\w+) ([a-z]+): (.+)$/
const indexPart = /^(\w+) \((\w+(?:, \w+)*)\)$/

/** The possible types of a column, as files write them and as Postgres prints them. */
const longTypeNames: Readonly<Record<string, string>> = {
  bigint: "bigint",
  boolean: "boolean",
  date: "date",
  integer: "integer",
  numeric: "numeric",
  text: "text",
  timestamptz: "timestamp with time zone"
}

/** Reads the file of a view. Throws on a mistake in it, which is a defect of the connector. */
export const modelOf = (name: string, file: string): Model => {
  const refuse = (problem: string) => new Error(`the model ${name}: ${problem}`)
  const { comment: comments, sql } = split(file)
  const columnsAt = comments.indexOf("Columns:")
  if (columnsAt < 0) throw refuse("its comment does not say which columns it has (Columns:)")
  const prose: Array<string> = []
  const indexes: Array<ModelIndex> = []
  for (const line of comments.slice(0, columnsAt)) {
    if (!line.startsWith("Indexes: ")) {
      prose.push(line)
      continue
    }
    for (const part of line.slice("Indexes: ".length).split("; ")) {
      const [, resource, fields] = indexPart.exec(part) ?? []
      if (resource === undefined || fields === undefined) throw refuse(`"${part}" is no index: resource (field, field)`)
      indexes.push({ resource, fields: fields.split(", ") })
    }
  }
  const columns = comments.slice(columnsAt + 1).map((line): ModelColumn => {
    const [, column, type, comment] = columnLine.exec(line) ?? []
    const longName = type === undefined ? undefined : longTypeNames[type]
    if (column === undefined || longName === undefined || comment === undefined) {
      throw refuse(`"${line.trim()}" is no column: name type: meaning`)
    }
    return { name: column, type: longName, comment }
  })
  const question = prose[0] ?? ""
  if (!question.endsWith("?") || prose[1] !== "") throw refuse("its comment does not begin with a question")
  if (columns.length === 0) throw refuse("it has no columns")
  return {
    name,
    question,
    comment: prose.join("\n").trim(),
    columns,
    indexes,
    resources: namesIn(sql).filter((one) => one !== asOf),
    sql
  }
}

/** Quoted and qualified name of the view. */
export const viewName = (model: Model, datasets: ModelDatasets): string =>
  `${identifier(datasets.models)}.${identifier(model.name)}`

/** Quoted and qualified name of the function that answers today's date. */
export const asOfName = (datasets: ModelDatasets): string => `${identifier(datasets.models)}.${identifier(asOf)}`

/** The query of the view in these datasets; every column has the name and the type that the file states. */
export const queryOf = (model: Model, datasets: ModelDatasets): string => {
  const filled = fill(model.sql, datasets.current, () => `${asOfName(datasets)}()`)
  const columns = model.columns.map(({ name, type }) => `m.${identifier(name)}::${type} as ${identifier(name)}`)
  return `select ${columns.join(", ")} from (\n${filled}\n) m`
}
