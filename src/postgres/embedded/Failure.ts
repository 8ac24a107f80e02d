/** The errors of the embedded server, with the step that failed and a hint. */
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"

export class EmbeddedPostgresError extends Data.TaggedError("EmbeddedPostgresError")<{
  /** The step that failed: binaries, folder, initdb, start, wait, enter. */
  readonly step: string
  readonly message: string
  /** What to do about it. */
  readonly hint: string | undefined
}> {}

export const useDatabaseUrl = "set DATABASE_URL to a Postgres server"

export const fail = (step: string, message: string, hint?: string) => new EmbeddedPostgresError({ step, message, hint })

export const errnoOf = (error: unknown): string | undefined =>
  Predicate.hasProperty(error, "code") && typeof error.code === "string" ? error.code : undefined
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const folderHint = (error: unknown, root: string): string | undefined => {
  switch (errnoOf(error)) {
    case "EACCES":
    case "EPERM":
      return `${root} belongs to another user: run as that user, set TRIBUTARY_HOME to a folder of your own, or ${useDatabaseUrl}`
    case "EROFS":
      return `set TRIBUTARY_HOME to a folder that can be written, or ${useDatabaseUrl}`
    case "ENOSPC":
      return "make room on the disk"
    case "ENOTDIR":
    case "EEXIST":
      return `there is a file where a folder is needed: rename it, or set TRIBUTARY_HOME`
    default:
      return undefined
  }
}
