/**
 * The files of closes in a folder.
 *
 * Promise: a file appears whole or not at all. A close is never replaced: a later one of the same period is a new revision
 * beside it. Drafts replace each other.
 */
import { createHash } from "node:crypto"
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { CloseFailed, usage } from "./CloseFailed.ts"

/** Writes a file beside its place, and waits until it is on disk. */
const writeDraft = (path: string, bytes: string | Uint8Array, mode: number): string => {
  const draft = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`)
  const file = openSync(draft, "w", mode)
  try {
    writeFileSync(file, bytes)
    fsyncSync(file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
  return draft
}

/** Creates a file; false where it exists. */
export const createFile = (path: string, bytes: string | Uint8Array, mode = 0o644): boolean => {
  const draft = writeDraft(path, bytes, mode)
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Creates or replaces a file. */
export const replaceFile = (path: string, bytes: string | Uint8Array): void =>
  renameSync(writeDraft(path, bytes, 0o644), path)

export const draftPath = (folder: string, month: string, company: string): string =>
  join(folder, `${month}-${company}.draft.json`)

export const closePath = (folder: string, month: string, company: string, revision: number): string =>
  join(folder, `${month}-${company}${revision === 1 ? "" : `.${revision}`}.json`)

export const pdfPath = (path: string): string => path.replace(/json$/, "pdf")

/** The latest revision of a close; 0: there is none. */
export const latestRevision = (folder: string, month: string, company: string): number => {
  mkdirSync(folder, { recursive: true })
  const names = new Set(readdirSync(folder))
  let revision = 0
  while (names.has(basename(closePath(folder, month, company, revision + 1)))) revision += 1
  return revision
}

/** Writes a close and its pages; a close that exists is not replaced. Throws {@link CloseFailed}. */
export const writeClose = (path: string, text: string, pdf: Uint8Array, isDraft: boolean): void => {
  if (isDraft) replaceFile(path, text)
  else if (!createFile(path, text)) throw usage(`${path} was written by another close at the same time`)
  replaceFile(pdfPath(path), pdf)
}

export const sha256Of = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex")

export const readText = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch (error) {
    throw CloseFailed.from(path)(error)
  }
}
