/**
 * Files of the warehouse's tables in a folder.
 *
 * Promise: all files of an export show the warehouse at one moment. They are complete before the manifest names them: an
 * export that fails or is killed leaves the manifest and the files of the one before. One export at a time writes to a
 * folder. The files of the export before the last are removed.
 */
import { createWriteStream, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { dirname, join, resolve } from "node:path"
import { pipeline } from "node:stream/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import * as AtomicFile from "../files/AtomicFile.ts"
import * as Mode from "../files/Mode.ts"
import * as ReadFile from "../files/ReadFile.ts"
import { type Client, query, queryNamed } from "../postgres/driver/Connection.ts"
import { copyOut } from "../postgres/driver/Copy.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { isAlive, nameOf } from "../postgres/embedded/Process.ts"
import * as Statement from "../postgres/Statement.ts"
import * as Reader from "../warehouse/Reader.ts"
import * as ReaderMark from "../warehouse/ReaderMark.ts"
import { identifier } from "../warehouse/Identifier.ts"
import { ExportFailed } from "./ExportFailed.ts"
import {
  columnsStatement,
  copyStatement,
  type ExportTable,
  type RowSelection,
  tableOfRow,
  truncatedStatement
} from "./ExportTable.ts"
import * as Manifest from "./Manifest.ts"
import * as Parquet from "./Parquet.ts"

export interface ExportOptions {
  readonly folder: string
  readonly format: Manifest.Format
  readonly datasets: { readonly current: string; readonly history: string }
  /** Names of tables. Those that do not exist yet are left out. */
  readonly tables: ReadonlyArray<string>
  /** Exports every version of the records, too. */
  readonly history: boolean
  /** Exports the records that changed after this position of the change feed only; null exports all. */
  readonly since: ChangeFeed.Position | null
  /** Exports the rows of this company only; null exports all. */
  readonly companyId: bigint | null
  /** Runs after each table. */
  readonly onTable?: (table: string, rows: number) => Effect.Effect<void>
}

const failing = <A>(what: string, attempt: () => A): Effect.Effect<A, ExportFailed> =>
  Effect.try({ try: attempt, catch: ExportFailed.from(what) })

/** Creates the folder of unfinished files, which also excludes other exports; one of a process that ended is replaced. */
const createPartial = (folder: string): string => {
  const partial = join(folder, ".partial")
  Mode.makeDataFolder(folder)
  const owner = join(partial, "owner")
  for (const isLast of [false, true]) {
    try {
      mkdirSync(partial, { mode: 0o700 })
      writeFileSync(owner, `${nameOf(process.pid)} ${hostname()}`, { mode: Mode.dataFile })
      return partial
    } catch (error) {
      if (isLast || (error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    }
    // Without the file, its process was killed at once.
    const [name = "", host] = ReadFile.textIfPresent(owner)?.split(" ") ?? ["", hostname()]
    if (host !== hostname() || isAlive(name))
      throw new Error(
        `process ${name.split(".")[0]} on ${host} exports to this folder; if it has ended, delete ${partial}`
      )
    rmSync(partial, { recursive: true, force: true })
  }
  throw new Error(`${partial} cannot be created`)
}

const acquirePartial = (folder: string) =>
  Effect.acquireRelease(
    failing(folder, () => createPartial(folder)),
    (partial) => Effect.sync(() => rmSync(partial, { recursive: true, force: true, maxRetries: 3 }))
  )

/** Writes the output of a COPY to a file. Returns the number of rows. */
const copyToFile = (client: Client, statement: string, path: string): Effect.Effect<number, DatabaseError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const rows = copyOut(client, statement)
      await pipeline(rows, createWriteStream(path, { highWaterMark: 1024 * 1024, mode: Mode.dataFile }), { signal })
      return rows.rowCount
    },
    catch: DatabaseError.from("export")
  })

export const snapshotStatement = Statement.make({
  name: "read the time of the snapshot",
  columns: { at: "text" },
  text: `select to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`
})

/** A session that sees the warehouse at one moment, for as long as the export takes, with all that was committed before. */
const openSnapshot = Effect.gen(function* () {
  const client = yield* Reader.connect
  yield* query(client, "begin to export", "rollback")
  yield* query(client, "begin to export", "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0")
  yield* ReaderMark.begin(client, "begin to export", yield* ReaderMark.make)
  const [row] = yield* queryNamed(client, snapshotStatement)
  return { client, at: row!.at }
})

type FileOf = (
  table: ExportTable,
  selection: RowSelection
) => Effect.Effect<{ readonly path: string; readonly rows: number }, ExportFailed | DatabaseError>

/** Writes one table to a file of the folder of unfinished files. */
const makeFileOf = Effect.fnUntraced(function* (
  { format }: ExportOptions,
  client: Client,
  partial: string
): Effect.fn.Return<FileOf, ExportFailed, Scope.Scope> {
  const parquet = format === "parquet" ? yield* Parquet.open(join(partial, "duckdb")) : null
  return (table, selection) =>
    Effect.gen(function* () {
      const path = join(partial, `${table.dataset}.${table.name}.${format}`)
      const copied = parquet === null ? path : `${path}.csv`
      const rows = yield* copyToFile(client, copyStatement(table, format, selection), copied)
      if (parquet === null) return { path, rows }
      const written = yield* parquet.write(copied, table.columns, path)
      if (written !== rows)
        return yield* new ExportFailed({ message: `${table.name}: DuckDB wrote ${written} of ${rows} rows` })
      yield* failing("remove a temporary file", () => rmSync(copied))
      return { path, rows }
    })
})

const exportedFile = /^\d{8}T\d{12}Z\.(?:parquet|csv|ndjson)$/

/** Removes the files of exports that neither of these manifests names. */
const removeOthers = (folder: string, kept: ReadonlyArray<Manifest.Manifest>): void => {
  const named = new Set(kept.flatMap(({ tables }) => tables.flatMap(({ files }) => files.map(({ path }) => path))))
  const folders = new Set([...named].map((path) => dirname(path)))
  for (const below of folders) {
    for (const name of readdirSync(join(folder, below))) {
      const path = `${below}/${name}`
      if (exportedFile.test(name) && !named.has(path)) rmSync(join(folder, path))
    }
  }
}

/** Exports the tables. */
export const run = Effect.fn("Export.run")(function* (
  options: ExportOptions
): Effect.fn.Return<
  Manifest.Manifest,
  ExportFailed | DatabaseError | ChangeFeed.PositionLost,
  Database | SqlClient | Scope.Scope
> {
  const { format, datasets, history, companyId, since } = options
  const folder = resolve(options.folder)
  const previous = yield* failing(folder, () => Manifest.read(folder))
  const partial = yield* acquirePartial(folder)
  yield* ChangeFeed.order
  if (since !== null) yield* ChangeFeed.confirm(since)
  const { client, at } = yield* openSnapshot
  const [end] = yield* queryNamed(client, ChangeFeed.endStatement)
  const truncated = new Set(
    since === null ? [] : (yield* queryNamed(client, truncatedStatement, [since.number])).map(({ view }) => view)
  )
  const selectionOf = ({ dataset, name }: ExportTable): RowSelection => {
    const view = `${identifier(datasets.history)}.${identifier(name)}`
    const isComplete = since === null || truncated.has(view)
    return {
      companyId,
      changed: isComplete ? null : { since: since.number, view, isHistory: dataset === datasets.history }
    }
  }
  const read = history ? [datasets.current, datasets.history] : [datasets.current]
  const found = (yield* queryNamed(client, columnsStatement, [read, options.tables])).map(tableOfRow)
  const fileOf = yield* makeFileOf(options, client, partial)
  const stamp = at.replaceAll(/[-:.]/g, "")
  const drafts: Array<{
    readonly table: ExportTable
    readonly draft: string
    readonly rows: number
    readonly complete: boolean
  }> = []
  for (const table of found) {
    const selection = selectionOf(table)
    const { path: draft, rows } = yield* fileOf(table, selection)
    yield* failing(draft, () => {
      // DuckDB makes files that every user reads; the one that names the owner has the permissions that the mask allows.
      Mode.narrow(draft, statSync(join(partial, "owner")).mode)
      AtomicFile.sync(draft)
    })
    drafts.push({ table, draft, rows, complete: selection.changed === null })
    yield* options.onTable?.(`${table.dataset}.${table.name}`, rows) ?? Effect.void
  }
  const tables = yield* failing(folder, () =>
    drafts.map(({ table, draft, rows, complete }) => {
      const below = table.dataset === datasets.current ? table.name : `history/${table.name}`
      const path = `${below}/${stamp}.${format}`
      Mode.makeDataFolder(join(folder, below))
      renameSync(draft, join(folder, path))
      AtomicFile.sync(join(folder, below))
      const { size: bytes } = statSync(join(folder, path))
      return {
        table: `${table.dataset}.${table.name}`,
        rows,
        complete,
        columns: table.columns,
        files: [{ path, rows, bytes }]
      }
    })
  )
  const manifest: Manifest.Manifest = {
    version: 2,
    exportedAt: at,
    position: ChangeFeed.textOf(end!),
    since: since === null ? null : ChangeFeed.textOf(since),
    format,
    companyId: companyId === null ? null : String(companyId),
    tables
  }
  yield* failing("write the manifest", () => {
    Manifest.write(folder, join(partial, "manifest.json"), manifest)
    removeOthers(folder, previous === null ? [manifest] : [manifest, previous])
  })
  return manifest
}, Effect.scoped)
