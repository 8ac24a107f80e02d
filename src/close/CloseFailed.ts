/** Why a period cannot be closed, or a close cannot be read, and what to do. */
import * as Data from "effect/Data"
import { FileProblem } from "../files/ReadFile.ts"

export class CloseFailed extends Data.TaggedError("CloseFailed")<{
  readonly message: string
  /** `usage`: the command line; `invalid`: the file is not what was signed. */
  readonly kind: "usage" | "configuration" | "invalid"
}> {
  /** A failure of the file system. */
  static readonly from =
    (what: string) =>
    (cause: unknown): CloseFailed =>
      cause instanceof CloseFailed
        ? cause
        : new CloseFailed({
            kind: "configuration",
            message:
              cause instanceof FileProblem
                ? cause.message
                : `${what}: ${cause instanceof Error ? cause.message : String(cause)}`
          })
}

export const usage = (message: string) => new CloseFailed({ kind: "usage", message })
export const invalid = (message: string) => new CloseFailed({ kind: "invalid", message })
