/** The errors of the embedded server, with the step that failed and a hint. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as ReadFile from "../../files/ReadFile.ts"

export class EmbeddedPostgresError extends Data.TaggedError("EmbeddedPostgresError")<{
  /** The step that failed: binaries, folder, disk, initdb, start, wait, enter. */
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

/** The path that an error of the file system is about. */
const pathOf = (error: unknown): string | undefined =>
  Predicate.hasProperty(error, "path") && typeof error.path === "string" ? error.path : undefined

const isDisk = (error: unknown): boolean => ["ENOSPC", "EDQUOT", "EIO"].includes(errnoOf(error) ?? "")

/** The failure of an operation of the file system in the data directory. */
export const folderFailure = (error: unknown, root: string, step = "folder"): EmbeddedPostgresError =>
  error instanceof EmbeddedPostgresError
    ? error
    : fail(
        isDisk(error) ? "disk" : step,
        errnoOf(error) === "EEXIST"
          ? `${pathOf(error) ?? root} is a file, and a folder is needed. Rename it`
          : ReadFile.problemOf(pathOf(error) ?? root, error).message,
        `or set TRIBUTARY_HOME to another folder, or ${useDatabaseUrl}`
      )

export const onFolder = <A>(root: string, run: () => A): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.try({ try: run, catch: (error) => folderFailure(error, root) })
