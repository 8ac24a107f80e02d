/**
 * Files that are written as a whole.
 *
 * Promise: a file appears with all its bytes, or not at all, and both the file and its name are on disk when the function
 * returns. A crash leaves the former file, the new one, or also a draft beside it, which the next write of that process
 * number replaces.
 */
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { basename, dirname, join } from "node:path"
import * as Mode from "./Mode.ts"
import * as ReadFile from "./ReadFile.ts"

export interface WriteOptions {
  /** The permissions of the file, as far as the mask of the process allows them. Default: those of a file with records. */
  readonly mode?: number
  /** Where the bytes are written first; in the file system of the file. Default: beside it. */
  readonly draft?: string
}

/** Waits until a file, or the names of a folder, are on disk. */
export const sync = (path: string): void => {
  // Windows cannot open folders.
  if (process.platform === "win32") return
  const file = openSync(path, "r")
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

const writeDraft = (
  path: string,
  bytes: string | Uint8Array,
  { mode = Mode.dataFile, draft }: WriteOptions
): string => {
  const place = draft ?? join(dirname(path), `.${basename(path)}.${process.pid}.tmp`)
  rmSync(place, { force: true })
  const file = openSync(place, "wx", mode)
  try {
    writeFileSync(file, bytes)
    fsyncSync(file)
  } catch (error) {
    rmSync(place, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
  return place
}

/** Creates a file; false where it exists. Throws the error of the file system. */
export const create = (path: string, bytes: string | Uint8Array, options: WriteOptions = {}): boolean => {
  const draft = writeDraft(path, bytes, options)
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
  sync(dirname(path))
  return true
}

/**
 * Creates or replaces a file; a symbolic link stays, and its file is replaced. The new file has no permission that the
 * former one lacks. Throws the error of the file system.
 */
export const replace = (path: string, bytes: string | Uint8Array, options: WriteOptions = {}): void => {
  const isReplaced = ReadFile.exists(path)
  const target = isReplaced ? realpathSync(path) : path
  const draft = writeDraft(target, bytes, options)
  try {
    if (isReplaced) Mode.narrow(draft, statSync(target).mode)
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  sync(dirname(target))
}
