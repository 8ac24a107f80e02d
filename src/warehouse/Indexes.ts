/**
 * Indexes beside the primary keys.
 *
 * Promise: there are few indexes, and none slows down a first load. An index is made for fields by which people look
 * rows up: as a model states, and the keys of a search ({@link searchIndexesOf}). It is made once the statistics show {@link rowsMin} rows or more. A smaller table is read faster
 * without an index, and a table in its first load has no statistics yet. References hardly ever change, so that an
 * update of a row can still stay on its page. The time of change changes with every update, and an index on it would
 * prevent that; therefore it never gets one.
 */
import { bytesMax, identifier, literal } from "./Identifier.ts"
import type { Model, ModelDatasets } from "./Model.ts"
import { roleColumn, type Column, type Table } from "./Table.ts"

/** Rows by the statistics from which an index is worth its upkeep. */
export const rowsMin = 10_000

export interface Index {
  readonly name: string
  /** The name of the table. */
  readonly resource: string
  /** What follows the company in the index: quoted columns or expressions. */
  readonly parts: ReadonlyArray<string>
  /** The rows of a partial index; null: all rows. */
  readonly where: string | null
}

/** The indexes that the models state, each once. */
export const indexesOf = (models: ReadonlyArray<Model>): ReadonlyArray<Index> => {
  const byName = new Map<string, Index>()
  for (const { indexes } of models) {
    for (const { resource, fields } of indexes) {
      const name = `${resource}__by_${fields.join("_")}`
      byName.set(name, { name, resource, parts: fields.map(identifier), where: null })
    }
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The columns by whose text a search finds a record: the key for people, and the caller's own key. */
export const searchColumnsOf = (table: Table): ReadonlyArray<Column> =>
  [table.columns.find(({ field }) => field === table.resource.key?.field), roleColumn(table, "externalKey")].flatMap(
    (column, index, all) => (column === undefined || all.indexOf(column) !== index ? [] : [column])
  )

/** The name of the index of a column for searches; null where the names are too long for one. */
export const searchIndexName = ({ name }: Pick<Table, "name">, column: Pick<Column, "name">): string | null => {
  const text = `${name}__search_${column.name}`
  return Buffer.byteLength(text) > bytesMax ? null : text
}

/** The indexes by which a search finds a record: in any case of its letters, also by the beginning. Rows without the key are left out. */
export const searchIndexesOf = (tables: Iterable<Table>): ReadonlyArray<Index> =>
  [...tables].flatMap((table) =>
    searchColumnsOf(table).flatMap((column): ReadonlyArray<Index> => {
      const name = searchIndexName(table, column)
      return name === null
        ? []
        : [
            {
              name,
              resource: table.name,
              parts: [`lower(${column.sql}) text_pattern_ops`],
              where: `${column.sql} is not null`
            }
          ]
    })
  )

/**
 * The statements for one index. Not `concurrently`: that cannot run in a transaction, leaves a broken index behind when
 * it fails, and waits for every transaction of the database. Building an index takes about a second for some millions
 * of rows; meanwhile landings wait and readers do not.
 */
export const statementsOf = (
  { name, parts, resource, where }: Index,
  datasets: ModelDatasets
): ReadonlyArray<string> => {
  const columns = [identifier("_company_id"), ...parts].join(", ")
  return [
    `create index if not exists ${identifier(name)} on ${identifier(datasets.current)}.${identifier(resource)} (${columns})${where === null ? "" : ` where ${where}`}`,
    `comment on index ${identifier(datasets.current)}.${identifier(name)} is ${literal(`made for ${where === null ? "the models" : "searches"}; drop it and it is made again`)}`
  ]
}
