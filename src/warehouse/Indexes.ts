/**
 * Indexes beside the primary keys.
 *
 * Promise: there are few indexes, and none slows down a first load. An index is made for fields by which people look
 * rows up, as a model states, once the statistics show {@link rowsMin} rows or more. A smaller table is read faster
 * without an index, and a table in its first load has no statistics yet. References hardly ever change, so that an
 * update of a row can still stay on its page. The time of change changes with every update, and an index on it would
 * prevent that; therefore it never gets one.
 */
import { identifier, literal } from "./Identifier.ts"
import type { Model, ModelDatasets, ModelIndex } from "./Model.ts"

/** Rows by the statistics from which an index is worth its upkeep. */
export const rowsMin = 10_000

export interface Index extends ModelIndex {
  readonly name: string
}

/** The indexes that the models state, each once. */
export const indexesOf = (models: ReadonlyArray<Model>): ReadonlyArray<Index> => {
  const byName = new Map<string, Index>()
  for (const { indexes } of models) {
    for (const { resource, fields } of indexes) {
      const name = `${resource}__by_${fields.join("_")}`
      byName.set(name, { name, resource, fields })
    }
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/**
 * The statements for one index. Not `concurrently`: that cannot run in a transaction, leaves a broken index behind when
 * it fails, and waits for every transaction of the database. Building an index takes about a second for some millions
 * of rows; meanwhile landings wait and readers do not.
 */
export const statementsOf = (index: Index, datasets: ModelDatasets): ReadonlyArray<string> => {
  const columns = ["_company_id", ...index.fields].map(identifier).join(", ")
  return [
    `create index if not exists ${identifier(index.name)} on ${identifier(datasets.current)}.${identifier(index.resource)} (${columns})`,
    `comment on index ${identifier(datasets.current)}.${identifier(index.name)} is ${literal("made for the models; drop it and it is made again")}`
  ]
}
