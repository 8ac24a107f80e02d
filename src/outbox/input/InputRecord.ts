/**
 * Records of an input, before they are validated.
 *
 * Promise: every part of an input is passed on with its line, also a part that cannot be read.
 */
import * as Data from "effect/Data"

/** A record as JSON text. */
export interface JsonRecord {
  readonly _tag: "Json"
  readonly line: number
  readonly json: string
  /** Whether null is a value that was not given, as in the row of a query. */
  readonly nullIsAbsent: boolean
}

/** The names of the columns, once and before the first {@link CsvRow}. */
export interface CsvHeader {
  readonly _tag: "Header"
  readonly line: number
  readonly names: ReadonlyArray<string>
}

/** A record as cells of text, as many as the header has names; an empty cell is a value that was not given. */
export interface CsvRow {
  readonly _tag: "Cells"
  readonly line: number
  readonly cells: ReadonlyArray<string>
}

/** A part of the input that is no record. */
export interface InvalidInput {
  readonly _tag: "Unreadable"
  readonly line: number
  readonly message: string
}

export type InputRecord = JsonRecord | CsvHeader | CsvRow | InvalidInput

/** The input cannot be read, or not to its end. */
export class InputError extends Data.TaggedError("InputError")<{
  readonly message: string
  readonly remedy: string
}> {}

/** A longer record is invalid: no write is as long. */
export const recordBytesMax = 1024 * 1024
