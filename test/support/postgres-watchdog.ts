/**
 * The watchdog that cleans up after a killed test run: `node postgres-watchdog.ts <folder> <root>`.
 *
 * Its standard input is a pipe from the run. The pipe ends whenever the run ends. Then the watchdog joins the server
 * and leaves it like any other user, which stops it, and removes the folder.
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
