/**
 * The permissions of files and folders that the program makes. The mask of the process narrows them further.
 *
 * Promise: no other user of the machine reads records of the books or secrets. A file that is replaced gets no wider
 * permissions than it had.
 */
import { chmodSync, statSync } from "node:fs"
import * as Folder from "./Folder.ts"

/** Files with records: exports, closes, rejected rows. Their owner writes them, and their group reads them. */
export const dataFile = 0o640
const dataFolder = 0o750
/** Keys, tokens and passwords. */
export const secretFile = 0o600
/** Settings and schemas, which have no secrets. */
export const settingsFile = 0o644

/** Creates a folder for files with records, and the folders above it, where they do not exist. */
export const makeDataFolder = (path: string): void => {
  Folder.make(path, dataFolder)
}

/** Takes the permissions beyond `mode` from a file that exists; a pipe or a device stays as it is. */
export const narrow = (path: string, mode: number): void => {
  const stat = statSync(path)
  if (stat.isFile() && (stat.mode & 0o777 & ~mode) !== 0) chmodSync(path, stat.mode & mode)
}
