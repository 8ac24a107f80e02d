/**
 * The rules that hold for this API's records, read from the SQL files in this folder.
 *
 * Promise: each file is a rule with the file's name; no other registration is needed.
 */
import { readdirSync, readFileSync } from "node:fs"
import { type Invariant, invariantOf } from "../../../src/invariants/Invariant.ts"

const folder = new URL("./", import.meta.url)

/** All rules, by name. Throws on an invalid file. */
export const readInvariants = (): ReadonlyArray<Invariant> =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => invariantOf(file.slice(0, -".sql".length), readFileSync(new URL(file, folder), "utf8")))
