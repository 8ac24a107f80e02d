/**
 * The files of the package that follow from the catalogue: names of resources, JSON Schemas, types of tables.
 *
 * Promise: the files are a function of the catalogue and of nothing else. `config/build.js` writes them into `dist`; no
 * one of them is in the repository, so that none can differ from the catalogue.
 */
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import { serviceV2 } from "../catalogue/index.ts"
import { schemaFiles } from "./Schemas.ts"
import { tableTypes } from "./TableTypes.ts"

/** A module that has types only. */
const empty = "export {}\n"

/** The text of each file, by its path below `dist`. */
export const generate = (catalogue: Catalogue = serviceV2): ReadonlyMap<string, string> =>
  new Map([
    [
      "src/records.js",
      `export const resourceNames = Object.freeze(${JSON.stringify([...catalogue.resources.keys()])})\n`
    ],
    ["types/warehouse.d.ts", tableTypes(catalogue)],
    ["src/warehouse.js", empty],
    ...schemaFiles(catalogue)
  ])
