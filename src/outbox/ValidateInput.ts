/** Validation of all records of an input, and the problems of records with the same externalid. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Resource } from "../catalogue/Resource.ts"
import type { InputRecord } from "./input/InputRecord.ts"
import type { Operation, Problem } from "./Push.ts"
import { isInvalid, isSupported, makeValidator, type ValidRecord } from "./Validate.ts"
import { plural } from "../text/Count.ts"

export interface InputOptions<E, R> {
  /** Its name in the configuration. */
  readonly company: string
  readonly resource: Resource
  readonly operation: Operation
  readonly records: Stream.Stream<InputRecord, E, R>
  /** The column or member that holds the externalid; null is the source's name of it. */
  readonly externalidFrom?: string | null
  /** Runs for every problem, as it is found. */
  readonly onProblem: (problem: Problem) => Effect.Effect<void>
}

/** A valid record and its line in the input. */
export interface ValidInput extends ValidRecord {
  readonly line: number
}

/** Nothing was stored. */
export class EnqueueRejected extends Data.TaggedError("EnqueueRejected")<{
  /** How many problems were reported. */
  readonly problems: number
  readonly message: string
}> {}

export const rejectedFor = (problems: number) =>
  new EnqueueRejected({
    problems,
    message: `${plural(problems, "problem")} in the input: nothing was stored`
  })

export const emptyInput = new EnqueueRejected({ problems: 0, message: "the input has no records" })

/** Validates the records and passes the valid ones on in batches; returns the number of problems. */
export const validateInput = <E, R, E2, R2>(
  { resource, operation, externalidFrom = null, onProblem, records }: InputOptions<E, R>,
  onValid: (records: ReadonlyArray<ValidInput>) => Effect.Effect<void, E2, R2>
): Effect.Effect<number, E | E2 | EnqueueRejected, R | R2> =>
  Effect.gen(function* () {
    const validator = makeValidator(resource, operation, { externalidFrom })
    if (!isSupported(validator)) {
      yield* onProblem(validator)
      return yield* new EnqueueRejected({ problems: 1, message: validator.message })
    }
    let problems = 0
    yield* Stream.runForEachArray(records, (inputs) =>
      Effect.gen(function* () {
        const valid: Array<ValidInput> = []
        for (const input of inputs) {
          const result = validator.validateInput(input)
          if (result === null) continue
          if (!isInvalid(result)) {
            valid.push({ ...result, line: input.line })
            continue
          }
          problems += result.length
          yield* Effect.forEach(result, onProblem, { discard: true })
        }
        if (valid.length > 0) yield* onValid(valid)
      })
    )
    return problems
  })

/** The problem of a record whose externalid is in an earlier line. */
export const duplicateProblem = (field: string, line: number, externalid: string, first: number): Problem => ({
  line,
  field,
  message: `"${externalid}" is given twice: in line ${first} and in line ${line}`
})

/** The problem of a record whose externalid differs in spelling from an earlier one; null is one of the outbox. */
export const spellingProblem = (
  field: string,
  line: number,
  externalid: string,
  other: string,
  first: number | null
): Problem => ({
  line,
  field,
  message:
    `"${externalid}" differs from "${other}" ${first === null ? "of the outbox" : `in line ${first}`} in case or Unicode form alone: ` +
    "the service may treat them as one; give one of them another externalid"
})
