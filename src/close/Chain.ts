/**
 * The chain of a period's closes: each one names the SHA-256 of the file that it replaces.
 *
 * Promise: a file of the chain that was changed or replaced is found, as long as a later one exists. Every file is one of
 * the folder of the close.
 */
import { dirname } from "node:path"
import * as ReadFile from "../files/ReadFile.ts"
import * as Document from "./Document.ts"
import * as Files from "./Files.ts"

/** A file that was replaced. `missing`: it is not there, so that it and those before it cannot be checked. */
export interface Replaced {
  readonly file: string
  readonly state: "intact" | "changed" | "missing"
}

/** The closes that a close replaces, the latest first. Throws {@link CloseFailed} where a file cannot be read. */
export const check = (path: string, close: Document.Content): ReadonlyArray<Replaced> => {
  const { company, period, replaces } = close
  const found: Array<Replaced> = []
  let [expected, revision] = [replaces, close.revision - 1]
  while (expected !== null && revision > 0) {
    const file = Files.closePath(dirname(path), period.month, company.name, revision)
    if (!ReadFile.exists(file)) return [...found, { file, state: "missing" }]
    if (Files.sha256Of(file) !== expected) return [...found, { file, state: "changed" }]
    found.push({ file, state: "intact" })
    expected = Document.parse(file, Files.readText(file)).content().replaces
    revision -= 1
  }
  return found
}
