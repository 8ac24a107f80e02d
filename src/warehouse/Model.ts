/**
 * A model: a view for people as data, its SQL and its documentation.
 *
 * Promise: the documentation of a view is that of its file. The file is SQL that begins with a comment: the question
 * that the view answers, what counts and what does not, the indexes that help it, and every column with its type and
 * meaning. A file without one of these parts is refused when it is read.
 *
 * The SQL names a resource's table as `{{path}}`, the day as `{{as_of}}`, the last day whose documents count as `{{until}}`,
 * and as `{{is_present}}` whether what has no date is known for that day; nothing else is filled in. A model that cannot
 * be as of a past day says `Day: none`, and refuses one.
 */
import { identifier, literal } from "./Identifier.ts"
import { type DayName, fill, resourcesIn, split } from "./SqlFile.ts"
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

/** Which records the views of these datasets show, or one view of them. */
export const noteOf = ({ isAsOf }: ModelDatasets, model?: Pick<Model, "hasDay">): string => {
  const later = "documents dated after the day of tributary.as_of do not count"
  if (isAsOf === true)
    return model?.hasDay === false
      ? "Records and day are those of the setting tributary.as_of."
      : `Records and day are those of the setting tributary.as_of: ${later}.`
  return model?.hasDay === false
    ? "The records are the current ones. It has no day: what it shows depends on what has no date, such as a status, and a past tributary.as_of is refused. The view of this name in erp_models_asof has the records as of a moment."
    : `The records are the current ones. Where tributary.as_of is set, ${later}; what has no date, such as a flag, is as now.`
}

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
  /** Whether it can be as of a past day; otherwise its rows depend on what has no date, such as a status. */
  readonly hasDay: boolean
  /** Resources whose tables it reads. */
  readonly resources: ReadonlyArray<string>
  /** The query, with placeholders for the names of tables. */
  readonly sql: string
}

const noDay = "Day: none"
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
  let hasDay = true
  for (const line of comments.slice(0, columnsAt)) {
    if (line === noDay) {
      hasDay = false
      continue
    }
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
    hasDay,
    resources: resourcesIn(sql),
    sql
  }
}

/** Quoted and qualified name of the view. */
export const viewName = (model: Model, datasets: ModelDatasets): string =>
  `${identifier(datasets.models)}.${identifier(model.name)}`

/** The functions of the day. */
export type DayFunction = "as_of" | "until" | "confirm_present"

/** Quoted and qualified name of a function of the day. */
export const dayFunctionName = (datasets: ModelDatasets, name: DayFunction): string =>
  `${identifier(datasets.models)}.${identifier(name)}`

/** What has no date is that of now. The views as of a moment have it as it was then. */
const daySql =
  (datasets: ModelDatasets) =>
  (name: DayName): string => {
    if (name !== "is_present") return `${dayFunctionName(datasets, name)}()`
    return datasets.isAsOf === true ? "true" : `(${dayFunctionName(datasets, "until")}() >= current_date)`
  }

/** The query of the view in these datasets; every column has the name and the type that the file states. */
export const queryOf = (model: Model, datasets: ModelDatasets): string => {
  const filled = fill(model.sql, datasets.current, daySql(datasets))
  const columns = model.columns.map(({ name, type }) => `m.${identifier(name)}::${type} as ${identifier(name)}`)
  const refusal = `\nwhere ${dayFunctionName(datasets, "confirm_present")}(${literal(model.name)})`
  return `select ${columns.join(", ")} from (\n${filled}\n) m${model.hasDay || datasets.isAsOf === true ? "" : refusal}`
}
