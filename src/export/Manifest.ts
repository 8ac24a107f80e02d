/**
 * The manifest of an export: the files of each table, as of one moment.
 *
 * Promise: the manifest is replaced as a whole, after all its files are on disk. A reader that takes its files from the
 * manifest sees one complete export.
 */
import { join } from "node:path"
import * as Schema from "effect/Schema"
import * as AtomicFile from "../files/AtomicFile.ts"
import * as ReadFile from "../files/ReadFile.ts"

export const formats = ["parquet", "csv", "ndjson"] as const
export type Format = (typeof formats)[number]

const Manifest = Schema.Struct({
  /** The version of this document. */
  version: Schema.Literal(2),
  /** The time of the snapshot, RFC 3339 in UTC, by the warehouse's clock. */
  exportedAt: Schema.String,
  format: Schema.Literals(formats),
  /** A position of the change feed: later changes may be missing in the files, and earlier ones are in them. */
  position: Schema.String,
  /** The position after which records changed that are in the files; null: the files have every record. */
  since: Schema.NullOr(Schema.String),
  /** The number of the only company; null for all companies. */
  companyId: Schema.NullOr(Schema.String),
  tables: Schema.Array(
    Schema.Struct({
      /** Dataset and name in the warehouse. */
      table: Schema.String,
      rows: Schema.Number,
      /** Whether the files have every record, and others have to be removed: always without `since`. */
      complete: Schema.Boolean,
      columns: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String })),
      /** Paths relative to the manifest, with `/`. */
      files: Schema.Array(Schema.Struct({ path: Schema.String, rows: Schema.Number, bytes: Schema.Number }))
    })
  )
})
export type Manifest = typeof Manifest.Type

const fileName = "manifest.json"
const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Manifest))

/** The manifest of a folder; null where there is none. Throws when the file is none of an export. */
export const read = (folder: string): Manifest | null => {
  const text = ReadFile.textIfPresent(join(folder, fileName))
  if (text === null) return null
  try {
    return decode(text)
  } catch {
    throw new Error(`${join(folder, fileName)} is not the manifest of an export`)
  }
}

/** Replaces the manifest of a folder; `draft` is a file of the same file system. */
export const write = (folder: string, draft: string, manifest: Manifest): void =>
  AtomicFile.replace(join(folder, fileName), `${JSON.stringify(manifest, null, 2)}\n`, { draft })
