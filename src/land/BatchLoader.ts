/**
 * Writing records into their table.
 *
 * Promise: a round of records is merged as a whole; where Postgres refuses a value, the round is halved around it until
 * that record stands alone, and only that one is set aside. Where Postgres refuses each of two or more records, or refuses
 * for a reason that is not a value (rights, disk, a missing column), the landing fails and sets nothing aside. A first load goes straight into the table until a key turns
 * out to stand there already.
 */
import * as Effect from "effect/Effect"
import type { QueryResultRow } from "pg"
import type { SourceRecord } from "../connector/Connector.ts"
import { copyIn } from "../postgres/Copy.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { absentPositions, copyLines, copyValue } from "./CopyText.ts"
import { countStaleAnswers, type MergeSql, planForKeys } from "./MergeSql.ts"
import type { ResourceLock } from "./ResourceLock.ts"

/** A record, when its read began (text of the warehouse's clock), and what brought it. */
export interface StagedRecord {
  readonly record: SourceRecord
  readonly observedAt: string
  readonly source: string
}

export interface LoadResult {
  readonly inserted: number
  readonly updated: number
  /** Rows written whose own stamp is older than the threshold. */
  readonly late: number
  /** The earliest stamp among the rows written, in milliseconds since 1970; null when none has one. */
  readonly earliestMs: number | null
  /** Records older than the row that was kept. */
  readonly wentBack: number
  readonly refused: ReadonlyArray<{ readonly carried: StagedRecord; readonly error: DatabaseError }>
}

export interface BatchLoaderOptions {
  readonly lock: ResourceLock
  readonly sql: MergeSql
  /** `server_version_num` of the warehouse. */
  readonly serverVersion: number
  readonly runId: bigint
  readonly origin: string
  /** Whether the company may have rows in the table: false lets a round go straight in. */
  readonly hasRows: boolean
  /** Rows stamped before this instant count as late; null counts none. */
  readonly lateBefore: string | null
  /** Whose records are to be read again when a row changes here. */
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

const nothing: LoadResult = { inserted: 0, updated: 0, late: 0, earliestMs: null, wentBack: 0, refused: [] }

const both = (left: LoadResult, right: LoadResult): LoadResult => ({
  inserted: left.inserted + right.inserted,
  updated: left.updated + right.updated,
  late: left.late + right.late,
  earliestMs:
    left.earliestMs === null || right.earliestMs === null
      ? (left.earliestMs ?? right.earliestMs)
      : Math.min(left.earliestMs, right.earliestMs),
  wentBack: left.wentBack + right.wentBack,
  refused: [...left.refused, ...right.refused]
})

/** The rows of a COPY do not have the columns of its table: a fault of the table or the program, never of a value. */
const badCopyFormat = "22P04"

/** Postgres refuses the value, not the statement: the row is looked for and set aside. */
const isValueError = ({ code }: DatabaseError) =>
  code !== badCopyFormat && (code?.startsWith("22") === true || code === "54000")

/** Where all of so many records are refused, their values are not the reason: the run fails and nothing is set aside. */
const allRefusedMin = 2

const refusesAll = (records: number, { code, message }: DatabaseError) =>
  new DatabaseError({
    operation: "load",
    code,
    message: `Postgres refuses each of ${records} records (${code ?? "no code"}: ${message}), so that the table is wrong, not the records: run npx tributary doctor`,
    isRetryable: false
  })

/** Splits records so that no id stands twice in a round: a later version must meet the earlier one in the table. */
const rounds = (records: Iterable<StagedRecord>): ReadonlyArray<ReadonlyArray<StagedRecord>> => {
  const result: Array<Array<StagedRecord>> = []
  let round: Array<StagedRecord> = []
  let ids = new Set<string>()
  for (const carried of records) {
    if (ids.has(carried.record.id)) {
      result.push(round)
      round = []
      ids = new Set()
    }
    ids.add(carried.record.id)
    round.push(carried)
  }
  if (round.length > 0) result.push(round)
  return result
}

export interface BatchLoader {
  /** Loads records inside the transaction of a landing. */
  readonly load: (records: Iterable<StagedRecord>) => Effect.Effect<LoadResult, DatabaseError>
}

export const make = (options: BatchLoaderOptions): BatchLoader => {
  const { lock, sql, runId, origin, children, hasRows } = options
  const { run, client, companyId } = lock

  const savepoint = <A>(attempt: Effect.Effect<A, DatabaseError>) =>
    run("mark", "savepoint round").pipe(
      Effect.andThen(attempt),
      Effect.tap(() => run("release", "release savepoint round")),
      Effect.tapError((error) =>
        error.isRetryable ? Effect.void : run("undo", "rollback to savepoint round; release savepoint round")
      )
    )

  const direct = (round: ReadonlyArray<StagedRecord>): Effect.Effect<LoadResult, DatabaseError> =>
    Effect.suspend(() => {
      const lines = function* (): Generator<readonly [SourceRecord, string]> {
        let [observedAt, source, end] = ["", "", ""]
        for (const carried of round) {
          if (carried.observedAt !== observedAt || carried.source !== source) {
            ;({ observedAt, source } = carried)
            end = `${runId}\t${observedAt}\t${copyValue(source)}\t${origin}`
          }
          yield [carried.record, end]
        }
      }
      return Effect.flatMap(client, (lent) => copyIn(lent, sql.copyDirect, copyLines(lines(), `${companyId}\t`))).pipe(
        Effect.map((inserted) => ({ ...nothing, inserted }))
      )
    })

  const parameters = [companyId, origin, runId, options.lateBefore]
  /** Merges the stage; the versions that are replaced go to the history. */
  const replace: Effect.Effect<MergedRow, DatabaseError> =
    options.serverVersion >= countStaleAnswers
      ? Effect.map(run<MergedRow>("merge", sql.mergeKeeping, parameters), ({ rows }) => rows[0]!)
      : Effect.gen(function* () {
          const { affected: updated } = yield* run("keep earlier versions of", sql.supersede, [companyId])
          const { rows } = yield* run<WrittenRow>("merge", sql.merge, parameters)
          return { ...rows[0]!, updated }
        })

  const merged = (round: ReadonlyArray<StagedRecord>): Effect.Effect<LoadResult, DatabaseError> =>
    Effect.gen(function* () {
      yield* run("prepare the merge of", `${planForKeys}; ${sql.createStage}; ${sql.emptyStage}`)
      let partial = false
      const lines = function* (): Generator<readonly [SourceRecord, string]> {
        for (const { record, observedAt, source } of round) {
          if (record.partial) partial = true
          yield [record, `${absentPositions(record)}\t${observedAt}\t${copyValue(source)}`]
        }
      }
      yield* copyIn(yield* client, sql.copyStage, copyLines(lines(), ""))
      if (partial) yield* run("complete", sql.fillAbsent, [companyId])
      const { written, updated, late, earliest_ms: earliestMs } = yield* replace
      if (written > 0 && children.length > 0) {
        yield* run("ask for the children of", sql.askChildren, [
          companyId,
          runId,
          children.map((child) => child.resource),
          children.map((child) => child.field)
        ])
      }
      let wentBack = 0
      if (written < round.length && sql.wentBack !== null) {
        const { rows: older } = yield* run<{ records: number }>("look for older versions of", sql.wentBack, [companyId])
        wentBack = older[0]!.records
      }
      return { inserted: written - updated, updated, late, earliestMs, wentBack, refused: [] }
    })

  /** Loads a round; halves it around a value that Postgres refuses until that record stands alone. */
  const loadRound = (round: ReadonlyArray<StagedRecord>): Effect.Effect<LoadResult, DatabaseError> => {
    if (round.length === 0) return Effect.succeed(nothing)
    const first = hasRows || round.some(({ record }) => record.partial) ? merged : direct
    return savepoint(first(round)).pipe(
      // A key that stands already: this is no first load any more.
      Effect.catchIf(
        (error) => first === direct && error.code === "23505",
        () => savepoint(merged(round))
      ),
      Effect.catchIf(isValueError, (error) => {
        if (round.length === 1) return Effect.succeed({ ...nothing, refused: [{ carried: round[0]!, error }] })
        const middle = Math.floor(round.length / 2)
        return Effect.zipWith(loadRound(round.slice(0, middle)), loadRound(round.slice(middle)), both)
      })
    )
  }

  const load = Effect.fnUntraced(function* (records: Iterable<StagedRecord>) {
    let loaded = nothing
    for (const [index, round] of rounds(records).entries()) {
      const one = yield* loadRound(round)
      // The first round holds every id; later ones hold further versions only.
      if (index === 0 && round.length >= allRefusedMin && one.refused.length === round.length) {
        return yield* refusesAll(round.length, one.refused[0]!.error)
      }
      loaded = both(loaded, one)
    }
    return loaded
  })

  return { load }
}
