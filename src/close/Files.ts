/**
 * The files of closes in a folder.
 *
 * Promise: a file appears whole or not at all ({@link AtomicFile}). A close is never replaced: a later one of the same period is a new revision
 * beside it. Drafts replace each other.
 */
import { createHash } from "node:crypto"
import { readdirSync } from "node:fs"
import { basename, join } from "node:path"
import * as AtomicFile from "../files/AtomicFile.ts"
import * as Mode from "../files/Mode.ts"
import * as ReadFile from "../files/ReadFile.ts"
import { CloseFailed, usage } from "./CloseFailed.ts"

export const draftPath = (folder: string, month: string, company: string): string =>
  join(folder, `${month}-${company}.draft.json`)

export const closePath = (folder: string, month: string, company: string, revision: number): string =>
  join(folder, `${month}-${company}${revision === 1 ? "" : `.${revision}`}.json`)

export const pdfPath = (path: string): string => path.replace(/json$/, "pdf")

/** Makes the folder of closes where it does not exist. */
export const makeFolder = (folder: string): void => Mode.makeDataFolder(folder)

/** The latest revision of a close; 0: there is none. */
export const latestRevision = (folder: string, month: string, company: string): number => {
  const names = new Set(ReadFile.exists(folder) ? readdirSync(folder) : [])
  let revision = 0
  while (names.has(basename(closePath(folder, month, company, revision + 1)))) revision += 1
  return revision
}

/** Writes a close and its pages; a close that exists is not replaced. Throws {@link CloseFailed}. */
export const writeClose = (path: string, text: string, pdf: Uint8Array, isDraft: boolean): void => {
  if (isDraft) AtomicFile.replace(path, text)
  else if (!AtomicFile.create(path, text)) throw usage(`${path} was written by another close at the same time`)
  AtomicFile.replace(pdfPath(path), pdf)
}

const read = (path: string): Buffer => {
  try {
    return ReadFile.bytes(path)
  } catch (error) {
    throw CloseFailed.from(path)(error)
  }
}

/** Throws {@link CloseFailed}, as the next one. */
export const sha256Of = (path: string): string => createHash("sha256").update(read(path)).digest("hex")

export const readText = (path: string): string => read(path).toString("utf8")
