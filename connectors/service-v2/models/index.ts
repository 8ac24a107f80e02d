/**
 * The business views over this API's records, read from the SQL files in this folder.
 *
 * Promise: each file is a view in the warehouse, with the file's name; no other registration is needed.
 */
import { readdirSync, readFileSync } from "node:fs"
import { type Model, modelOf } from "../../../src/warehouse/Model.ts"

const folder = new URL("./", import.meta.url)

/** All views, by name. Throws on an invalid file. */
export const readModels = (): ReadonlyArray<Model> =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => modelOf(file.slice(0, -".sql".length), readFileSync(new URL(file, folder), "utf8")))
