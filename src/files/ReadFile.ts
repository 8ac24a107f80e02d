/**
 * Files that the program reads.
 *
 * Promise: only a file that does not exist is absent. A file that exists and cannot be used (a folder that this process
 * may not enter, a missing right, a broken symbolic link, a folder, a text that is not UTF-8) is a {@link FileProblem},
 * which names the path, its owner and its mode, and what to do.
 */
import { accessSync, closeSync, constants, lstatSync, openSync, readlinkSync, readSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"

export class FileProblem extends Data.TaggedError("FileProblem")<{
  readonly path: string
  /** The path, what is wrong with it, and what to do. */
  readonly message: string
}> {}

const errnoOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code

const problem = (path: string, what: string) => new FileProblem({ path, message: `${path} ${what}` })

/** The target of a symbolic link; undefined for anything else. */
const linkOf = (path: string): string | undefined =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : undefined

/** The first part of a path that this process may not use: a folder that it may not enter, or the file itself. */
const closedPart = (path: string, linksMax = 8): string => {
  const parts = [path]
  for (let at = path; dirname(at) !== at; at = dirname(at)) parts.unshift(dirname(at))
  for (const folder of parts.slice(0, -1)) {
    try {
      accessSync(folder, constants.X_OK)
    } catch {
      return folder
    }
  }
  const target = linksMax > 0 ? linkOf(path) : undefined
  return target === undefined ? path : closedPart(resolve(dirname(path), target), linksMax - 1)
}

/** The owner and the mode of a closed path, and a command that opens it for this process. */
const accessText = (path: string, mustOwn: boolean): string => {
  const [uid, gids] = [process.getuid?.(), process.getgroups?.() ?? []]
  if (uid === undefined) return "this process has no right to it. Run it as another user, or change the rights"
  const closed = closedPart(resolve(path))
  try {
    // A file that cannot be made is a matter of its folder.
    const isNew = lstatSync(closed, { throwIfNoEntry: false }) === undefined
    const part = isNew ? dirname(closed) : closed
    const stat = statSync(part)
    const isFile = !stat.isDirectory()
    const mode = (stat.mode & 0o7777).toString(8).padStart(4, "0")
    const whose = stat.uid === uid ? "u" : gids.includes(stat.gid) ? "g" : "o"
    const isOthers = mustOwn || (whose === "o" && (isFile || isNew))
    const command = isOthers ? `chown ${uid}` : `chmod ${whose}+${isFile ? "r" : isNew ? "wx" : "x"}`
    return (
      `${part} belongs to user ${stat.uid} and group ${stat.gid} with mode ${mode}, and this process runs as user ${uid}. ` +
      `Run it as another user, or give it the right, for example: ${command} ${part}`
    )
  } catch {
    return `this process, which runs as user ${uid}, has no right to ${closed}. Run it as another user`
  }
}

/** An error of the file system as a problem with its remedy. */
export const problemOf = (path: string, error: unknown): FileProblem => {
  if (error instanceof FileProblem) return error
  switch (errnoOf(error)) {
    case "ENOENT":
      return problem(path, "does not exist")
    case "EACCES":
    case "EPERM":
      return problem(path, `cannot be used: ${accessText(path, errnoOf(error) === "EPERM")}`)
    case "EISDIR":
      return problem(
        path,
        "is a folder, and a file is needed. A container makes a folder where a mounted file is missing"
      )
    case "ENOTDIR":
      return problem(path, "cannot be used: a part of the path is a file, and a folder is needed. Correct the path")
    case "ELOOP":
      return problem(path, "cannot be used: its symbolic links lead to each other. Correct the link")
    case "ENAMETOOLONG":
      return problem(path.slice(0, 80), "… cannot be used: the name is too long. Correct the path")
    case "ENOSPC":
    case "EDQUOT":
      return problem(path, "cannot be written: the disk is full. Free space there")
    case "EROFS":
      return problem(path, "cannot be written: its file system is read-only. Choose another folder")
    case "EIO":
    case "ESTALE":
      return problem(path, `cannot be read (${errnoOf(error)}): check the disk or the network mount`)
    default:
      return problem(path, `cannot be used: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** What the path stands for; null where nothing exists there. Throws {@link FileProblem} where that cannot be known. */
const look = (path: string) => {
  try {
    return statSync(path)
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw problemOf(path, error)
  }
  const target = linkOf(path)
  if (target === undefined) return null
  throw problem(path, `is a symbolic link to ${target}, which does not exist. Correct the link`)
}

/** Whether the path exists. Throws {@link FileProblem} where that cannot be known. */
export const exists = (path: string): boolean => look(path) !== null

const chunkBytes = 64 * 1024
const textSizeMaxBytes = 16 * 1024 * 1024

/** Reads a file, a pipe or a device to its end. */
const readAll = (path: string, sizeMaxBytes: number): Buffer => {
  const file = openSync(path, "r")
  try {
    const chunks: Array<Buffer> = []
    for (let size = 0; ;) {
      const chunk = Buffer.allocUnsafe(chunkBytes)
      const read = readSync(file, chunk)
      if (read === 0) return Buffer.concat(chunks)
      size += read
      if (size > sizeMaxBytes) throw problem(path, `is larger than ${sizeMaxBytes / 1024 / 1024} MB. Check the path`)
      chunks.push(chunk.subarray(0, read))
    }
  } finally {
    closeSync(file)
  }
}

/** The bytes of a file; null where it does not exist. Throws {@link FileProblem}. */
export const bytesIfPresent = (path: string, sizeMaxBytes = Number.POSITIVE_INFINITY): Buffer | null => {
  if (!exists(path)) return null
  try {
    return readAll(path, sizeMaxBytes)
  } catch (error) {
    // It was removed meanwhile.
    if (errnoOf(error) === "ENOENT") return null
    throw problemOf(path, error)
  }
}

/** The text of a file in UTF-8, without a byte order mark; null where it does not exist. Throws {@link FileProblem}. */
export const textIfPresent = (path: string, sizeMaxBytes = textSizeMaxBytes): string | null => {
  const bytes = bytesIfPresent(path, sizeMaxBytes)
  try {
    return bytes === null ? null : new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    throw problem(path, "is not text in UTF-8. Save it in that encoding")
  }
}

const required = <A>(path: string, found: A | null): A => {
  if (found === null) throw problem(path, "does not exist")
  return found
}

/** The bytes of a file that has to exist. Throws {@link FileProblem}. */
export const bytes = (path: string): Buffer => required(path, bytesIfPresent(path))

/** The text of a file that has to exist. Throws {@link FileProblem}. */
export const text = (path: string, sizeMaxBytes = textSizeMaxBytes): string =>
  required(path, textIfPresent(path, sizeMaxBytes))

/** Runs an operation of the file system on a path. */
export const attempt = <A>(path: string, run: () => A): Effect.Effect<A, FileProblem> =>
  Effect.try({ try: run, catch: (error) => problemOf(path, error) })
