/**
 * The load of records into their table.
 *
 * Promise: a batch of records is merged as a whole. Where Postgres rejects a value, the batch is halved until that record is
 * alone, and only that record is quarantined. The landing fails and quarantines nothing where Postgres rejects each of two
 * or more records, or for a reason that is not a value (rights, disk, a missing column). A first load is copied straight
 * into the table until a key exists there already.
 */
import * as Effect from "effect/Effect"
import type { QueryResultRow } from "../postgres/driver/Connection.ts"
import type { SourceRecord } from "../connector/Connector.ts"
import { copyIn } from "../postgres/driver/Copy.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as ChangeBatch from "./ChangeBatch.ts"
import { absentPositions, copyLines, copyValue } from "./CopyText.ts"
import { countStaleAnswers, type MergeSql, planForKeys } from "./MergeSql.ts"
import type { ResourceLock } from "./ResourceLock.ts"
import { plural } from "../text/Count.ts"

/** A record, when its read began (text of the warehouse's clock), and what brought it. */
export interface StagedRecord {
  readonly record: SourceRecord
  readonly observedAt: string
  readonly source: string
}

export interface LoadResult {
  readonly inserted: number
  readonly updated: number
  /** Rows written whose own stamp is older than the threshold, and that were not here with that stamp. */
  readonly late: number
  /** The earliest stamp among the late rows, in milliseconds since 1970; null when no row is late. */
  readonly earliestMs: number | null
  /** Records older than the row that was kept. */
  readonly staleVersions: number
  readonly rejected: ReadonlyArray<{ readonly staged: StagedRecord; readonly error: DatabaseError }>
}

export interface BatchLoaderOptions {
  readonly lock: ResourceLock
  readonly sql: MergeSql
  /** `server_version_num` of the warehouse. */
  readonly serverVersion: number
  readonly runId: bigint
  readonly origin: string
  /** Whether the company may have rows in the table: false copies a batch straight into it. */
  readonly hasRows: boolean
  /** Rows stamped before this instant count as late, unless they were here with that stamp; null counts none. */
  readonly lateBefore: string | null
  /** Whether it is a full scan, which also returns rows that were lost here. */
  readonly isFullScan: boolean
  /** Resources whose records are read again when a row changes here. */
  readonly children: ReadonlyArray<{ readonly resource: string; readonly field: string }>
}

interface WrittenRow extends QueryResultRow {
  readonly written: number
  readonly late: number
  readonly earliest_ms: number | null
}

interface MergedRow extends WrittenRow {
  readonly updated: number
}

const nothing: LoadResult = { inserted: 0, updated: 0, late: 0, earliestMs: null, staleVersions: 0, rejected: [] }

const combine = (left: LoadResult, right: LoadResult): LoadResult => ({
  inserted: left.inserted + right.inserted,
  updated: left.updated + right.updated,
  late: left.late + right.late,
  earliestMs:
    left.earliestMs === null || right.earliestMs === null
      ? (left.earliestMs ?? right.earliestMs)
      : Math.min(left.earliestMs, right.earliestMs),
  staleVersions: left.staleVersions + right.staleVersions,
  rejected: [...left.rejected, ...right.rejected]
})

/** The rows of a COPY do not have the columns of its table: a fault of the table or the program, never of a value. */
const badCopyFormat = "22P04"

/** Whether Postgres rejects a value, not the statement: then the record is isolated and quarantined. */
const isValueError = ({ code }: DatabaseError) =>
  code !== badCopyFormat && (code?.startsWith("22") === true || code === "54000")

/** When Postgres rejects all of at least this many records, their values are not the reason: the run fails. */
const allRejectedMin = 2

const allRejected = (records: number, { code, message }: DatabaseError) =>
  new DatabaseError({
    operation: "load",
    code,
    message: `Postgres refuses each of ${plural(records, "record")} (${code ?? "no code"}: ${message}), so that the table is wrong, not the records: run tributary doctor`,
    isRetryable: false
  })

/** Splits records so that no id occurs twice in a batch: a later version is merged with the earlier one in the table. */
const batchesOf = (records: Iterable<StagedRecord>): ReadonlyArray<ReadonlyArray<StagedRecord>> => {
  const result: Array<Array<StagedRecord>> = []
  let batch: Array<StagedRecord> = []
  let ids = new Set<string>()
  for (const staged of records) {
    if (ids.has(staged.record.id)) {
      result.push(batch)
      batch = []
      ids = new Set()
    }
    ids.add(staged.record.id)
    batch.push(staged)
  }
  if (batch.length > 0) result.push(batch)
  return result
}

type LoadBatch = (
  options: BatchLoaderOptions,
  batch: ReadonlyArray<StagedRecord>
) => Effect.Effect<LoadResult, DatabaseError>

const savepoint = <A>({ lock: { run } }: BatchLoaderOptions, attempt: Effect.Effect<A, DatabaseError>) =>
  run("mark", "savepoint round").pipe(
    Effect.andThen(attempt),
    Effect.tap(() => run("release", "release savepoint round")),
    Effect.tapError((error) =>
      error.isRetryable ? Effect.void : run("undo", "rollback to savepoint round; release savepoint round")
    )
  )

/** Copies a batch straight into the table. */
const copyDirect: LoadBatch = ({ lock, sql, runId, origin }, batch) =>
  Effect.suspend(() => {
    const ids: Array<string> = []
    let began = batch[0]!.observedAt
    const lines = function* (): Generator<readonly [SourceRecord, string]> {
      let [observedAt, source, end] = ["", "", ""]
      for (const staged of batch) {
        if (staged.observedAt !== observedAt || staged.source !== source) {
          ;({ observedAt, source } = staged)
          end = `${runId}\t${observedAt}\t${copyValue(source)}\t${origin}`
        }
        ids.push(staged.record.id)
        if (staged.observedAt < began) began = staged.observedAt
        yield [staged.record, end]
      }
    }
    return Effect.flatMap(lock.client, (client) =>
      copyIn(client, sql.copyDirect, copyLines(lines(), `${lock.companyId}\t`))
    ).pipe(
      Effect.tap(() => ChangeBatch.addFirst(lock, lock.table, lock.companyId, ids, began)),
      Effect.map((inserted) => ({ ...nothing, inserted }))
    )
  })

/** Merges the stage; the versions that are replaced go to the history. */
const mergeStage = ({ lock, sql, runId, origin, lateBefore, isFullScan, serverVersion }: BatchLoaderOptions) => {
  const { run, companyId } = lock
  const parameters = [companyId, origin, runId, lateBefore, isFullScan]
  return serverVersion >= countStaleAnswers
    ? Effect.map(run<MergedRow>("merge", sql.mergeKeeping, parameters), ({ rows }) => rows[0]!)
    : Effect.gen(function* () {
        const { affected: updated } = yield* run("keep earlier versions of", sql.supersede, [companyId])
        const { rows } = yield* run<WrittenRow>("merge", sql.merge, parameters)
        return { ...rows[0]!, updated } satisfies MergedRow
      })
}

/** Copies a batch into the stage and merges it. */
const copyAndMerge: LoadBatch = Effect.fnUntraced(function* (options, batch) {
  const { lock, sql, runId, children } = options
  const { run, companyId } = lock
  yield* run("prepare the merge of", `${planForKeys}; ${sql.createStage}; ${sql.emptyStage}`)
  let partial = false
  const lines = function* (): Generator<readonly [SourceRecord, string]> {
    for (const { record, observedAt, source } of batch) {
      if (record.partial) partial = true
      yield [record, `${absentPositions(record)}\t${observedAt}\t${copyValue(source)}`]
    }
  }
  yield* copyIn(yield* lock.client, sql.copyStage, copyLines(lines(), ""))
  if (partial) yield* run("complete", sql.fillAbsent, [companyId])
  const { written, updated, late, earliest_ms: earliestMs } = yield* mergeStage(options)
  if (written > 0 && children.length > 0) {
    yield* run("request the children of", sql.requestChildren, [
      companyId,
      runId,
      children.map((child) => child.resource),
      children.map((child) => child.field)
    ])
  }
  let staleVersions = 0
  if (written < batch.length && sql.countStale !== null) {
    const { rows: older } = yield* run<{ records: number }>("look for older versions of", sql.countStale, [companyId])
    staleVersions = older[0]!.records
  }
  return { inserted: written - updated, updated, late, earliestMs, staleVersions, rejected: [] }
})

/** Loads a batch; halves it until a record whose value Postgres rejects is alone. */
const loadBatch: LoadBatch = (options, batch) => {
  if (batch.length === 0) return Effect.succeed(nothing)
  const isDirect = !options.hasRows && !batch.some(({ record }) => record.partial)
  return savepoint(options, (isDirect ? copyDirect : copyAndMerge)(options, batch)).pipe(
    // The table has the key already: this is not a first load.
    Effect.catchIf(
      (error) => isDirect && error.code === "23505",
      () => savepoint(options, copyAndMerge(options, batch))
    ),
    Effect.catchIf(isValueError, (error) => {
      if (batch.length === 1) return Effect.succeed({ ...nothing, rejected: [{ staged: batch[0]!, error }] })
      const middle = Math.floor(batch.length / 2)
      return Effect.zipWith(
        loadBatch(options, batch.slice(0, middle)),
        loadBatch(options, batch.slice(middle)),
        combine
      )
    })
  )
}

export const load = Effect.fnUntraced(function* (options: BatchLoaderOptions, records: Iterable<StagedRecord>) {
  let loaded = nothing
  for (const [index, batch] of batchesOf(records).entries()) {
    const one = yield* loadBatch(options, batch)
    // The first batch has every id; later ones have further versions only.
    if (index === 0 && batch.length >= allRejectedMin && one.rejected.length === batch.length) {
      return yield* allRejected(batch.length, one.rejected[0]!.error)
    }
    loaded = combine(loaded, one)
  }
  return loaded
})
