import * as Data from "effect/Data"
import { FileProblem } from "../files/ReadFile.ts"

/** An export that could not be written: the folder, the disk or DuckDB. The manifest of an earlier export stays. */
export class ExportFailed extends Data.TaggedError("ExportFailed")<{ readonly message: string }> {
  static from(what: string) {
    return (error: unknown) =>
      new ExportFailed({
        message:
          error instanceof FileProblem
            ? error.message
            : `${what}: ${error instanceof Error ? error.message : String(error)}`
      })
  }
}
