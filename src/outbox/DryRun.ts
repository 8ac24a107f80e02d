/** A dry run of a push: it validates an input as `enqueue` does, needs no warehouse and changes nothing. */
import * as Effect from "effect/Effect"
import { externalKeyOf, foldExternalid } from "./Externalid.ts"
import type { Problem } from "./Push.ts"
import type { ValidRecord } from "./Validate.ts"
import {
  duplicateProblem,
  emptyInput,
  type EnqueueRejected,
  type InputOptions,
  spellingProblem,
  validateInput,
  type ValidInput
} from "./ValidateInput.ts"

export interface DryRunOptions<E, R, E2 = never> extends InputOptions<E, R> {
  /** Records of one request, where the resource accepts several. */
  readonly batchRecordsMax: number
  readonly useBatch: boolean
  /** Runs for valid records, in the order of the input. */
  readonly onValid?: (records: ReadonlyArray<ValidInput>) => Effect.Effect<void, E2>
}

/** The result of a dry run: the records and requests that a push would send. */
export interface DryRunReport {
  /** Valid records. */
  readonly given: number
  readonly problems: number
  /** The size of all bodies, in bytes of UTF-8. */
  readonly bytes: number
  /** Requests that write, when nothing fails: of several records, and of a single one. */
  readonly calls: { readonly batch: number; readonly single: number }
  /** The first records as they would be sent. */
  readonly first: ReadonlyArray<ValidRecord>
}

const firstMax = 3

type Lines = Map<string, { readonly line: number; readonly externalid: string }>

/** Notes the line of an externalid; returns a problem when an earlier line has it. */
const addLine = (field: string, lines: Lines, { line, externalid }: ValidInput): ReadonlyArray<Problem> => {
  if (externalid === null) return []
  const folded = foldExternalid(externalid)
  const earlier = lines.get(folded)
  if (earlier === undefined) {
    lines.set(folded, { line, externalid })
    return []
  }
  return [
    earlier.externalid === externalid
      ? duplicateProblem(field, line, externalid, earlier.line)
      : spellingProblem(field, line, externalid, earlier.externalid, earlier.line)
  ]
}

type BatchOptions = Pick<DryRunOptions<never, never>, "batchRecordsMax" | "operation" | "resource" | "useBatch">

/** Records of one request. */
export const rowsPerBatch = ({ batchRecordsMax, operation, resource, useBatch }: BatchOptions): number => {
  const isBatch = operation === "create" && useBatch && resource.operations.includes("B")
  return isBatch ? Math.min(batchRecordsMax, resource.traits.batchRecordsMax) : 1
}

/** The number of requests for this many records. */
const requestCounts = (options: BatchOptions, records: number): DryRunReport["calls"] => {
  const recordsMax = rowsPerBatch(options)
  if (recordsMax <= 1) return { batch: 0, single: records }
  // A last record that is left alone is sent without a batch.
  const single = records % recordsMax === 1 ? 1 : 0
  return { batch: Math.ceil(records / recordsMax) - single, single }
}

/** Validates an input and reports what a push would send. */
export const dryRun = <E, R, E2 = never>(
  options: DryRunOptions<E, R, E2>
): Effect.Effect<DryRunReport, E | E2 | EnqueueRejected, R> =>
  Effect.gen(function* () {
    const lines: Lines = new Map()
    const first: Array<ValidRecord> = []
    let given = 0
    let bytes = 0
    let duplicates = 0
    const invalid = yield* validateInput(options, (records) => {
      given += records.length
      for (const { externalid, recordId, text } of records) {
        bytes += Buffer.byteLength(text)
        if (first.length < firstMax) first.push({ externalid, recordId, text })
      }
      const problems =
        options.operation === "create"
          ? records.flatMap((record) => addLine(externalKeyOf(options.resource), lines, record))
          : []
      duplicates += problems.length
      const noted = Effect.forEach(problems, options.onProblem, { discard: true })
      return options.onValid === undefined ? noted : Effect.andThen(noted, options.onValid(records))
    })
    if (given === 0 && invalid === 0) return yield* emptyInput
    return { given, problems: invalid + duplicates, bytes, calls: requestCounts(options, given), first }
  })
