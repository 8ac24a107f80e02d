/**
 * Ends what a killed test run left: `node postgres-watchdog.ts <folder> <root>`.
 *
 * Its standard input is a pipe from the run. The pipe ends when the run does, however it does; then the server is
 * entered and left like by any other user, which stops it, and the folder is removed.
 */
import { existsSync, rmSync } from "node:fs"
import { Effect } from "effect"
import { start } from "../../src/postgres/EmbeddedPostgres.ts"

const [folder, root] = process.argv.slice(2)
if (folder === undefined || root === undefined) throw new Error("usage: postgres-watchdog.ts <folder> <root>")

process.stdin.resume()
process.stdin.once("close", () => {
  const stopped = existsSync(folder)
    ? Effect.runPromise(Effect.ignore(Effect.scoped(start({ root, port: 0, durable: false }))))
    : Promise.resolve()
  void stopped.then(() => rmSync(folder, { recursive: true, force: true }))
})
