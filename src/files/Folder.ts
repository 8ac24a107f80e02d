/** Folders that the program makes. */
import { mkdirSync, statSync } from "node:fs"
import { dirname } from "node:path"

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/**
 * Makes a folder and the missing ones above it, and returns the first one that it made; undefined where the folder exists.
 * Throws the error of the file system. `recursive` of Node's `mkdir` never ends where the kernel makes no folders, such as
 * in /proc.
 */
export const make = (path: string, mode = 0o777): string | undefined => {
  if (isFolder(path)) return undefined
  const above = dirname(path)
  const first = above === path ? undefined : make(above, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Another process may have made it.
    if (!isFolder(path)) throw error
  }
  return first ?? path
}
