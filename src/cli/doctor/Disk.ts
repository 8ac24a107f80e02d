/**
 * The free space of the warehouse's disk, for `doctor` and for alerts. It is known only where the server runs on this
 * machine: SQL does not show it.
 */
import * as Effect from "effect/Effect"
import type { DiskProblem } from "../../alerts/Observations.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as ReadFile from "../../files/ReadFile.ts"
import { Database } from "../../postgres/Database.ts"
import { isLoopback } from "../../postgres/DatabaseUrl.ts"
import * as Statement from "../../postgres/Statement.ts"
import { about, type About } from "./Finding.ts"
import { disk, space } from "./Machine.ts"

export const directoryStatement = Statement.make({
  name: "look for the folder of the server",
  columns: { folder: "text" },
  text: "select current_setting('data_directory') as folder"
})

/** The disk of a server that is not embedded. */
export const serverDisk = Effect.fnUntraced(function* (its: About, host: string) {
  const isHere = host.startsWith("/") || isLoopback(host)
  // Only an administrator may read this setting.
  const [row] = isHere ? yield* Effect.orElseSucceed(Statement.run(directoryStatement), () => []) : []
  // This process may have no right to look there, or the server may be in a container with folders of its own.
  const isFound =
    row !== undefined &&
    (yield* Effect.orElseSucceed(
      ReadFile.attempt(row.folder, () => ReadFile.exists(row.folder)),
      () => false
    ))
  return !isFound
    ? its.skipped("SQL does not show the free space of the server's disk")
    : yield* space(its, row.folder, "the server")
})

/** The problem of the warehouse's disk; null without one, and where its free space is not known. */
export const problem = Effect.fnUntraced(function* (settings: Configuration) {
  const { embedded, endpoint } = yield* Database
  const its = about("disk")
  const findings = embedded ? yield* disk(its, settings) : [yield* serverDisk(its, endpoint.host)]
  const found = findings.find(({ status }) => status === "warning" || status === "failed")
  return found === undefined
    ? null
    : ({
        isCritical: found.status === "failed",
        message: found.message,
        remedy: found.remedy ?? ""
      } satisfies DiskProblem)
})
