/**
 * The views that people ask of this API's records, read from the SQL files beside this one.
 *
 * Promise: a file here is a view in the warehouse, under the file's name; nothing else has to be written down.
 */
import { readdirSync, readFileSync } from "node:fs"
import { type Model, modelOf } from "../../../src/warehouse/Model.ts"

const folder = new URL("./", import.meta.url)

/** Every view, by name. Throws on a mistake in a file. */
export const readModels = (): ReadonlyArray<Model> =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => modelOf(file.slice(0, -".sql".length), readFileSync(new URL(file, folder), "utf8")))
