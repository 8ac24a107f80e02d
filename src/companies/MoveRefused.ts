/** The error of a move that cannot be made: nothing was moved, or it can be repeated. */
import * as Data from "effect/Data"

export class MoveRefused extends Data.TaggedError("MoveRefused")<{
  /** What is wrong, and what to do. */
  readonly message: string
}> {}
