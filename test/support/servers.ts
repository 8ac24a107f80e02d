/** Programs and servers that suites start by themselves: the simulation, the campaigns, the bench. */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Effect, Exit, Logger, Redacted, Scope } from "effect"
import { start } from "../../src/postgres/EmbeddedPostgres.ts"

/** A Postgres for a run. */
export interface Postgres {
  /** Of the database `postgres`, for the superuser. */
  readonly url: string
  readonly pid: () => number
  readonly stop: () => Promise<void>
}

/** A new folder under the temporary one, which other users may enter: as root, Postgres runs as another user. */
export const makeFolder = (name: string): string => {
  const folder = mkdtempSync(join(tmpdir(), `tributary-${name}-`))
  chmodSync(folder, 0o755)
  return folder
}

/** Such a folder, deleted with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => makeFolder("test")),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Starts the embedded Postgres in a folder, with its default durability or without any. */
export const startPostgres = async (folder: string, durable = true): Promise<Postgres> => {
  const scope = Scope.makeUnsafe()
  const { endpoint, pid } = await Effect.runPromise(
    start({ root: join(folder, "postgres"), port: 0, durable }).pipe(
      Effect.provideService(Scope.Scope, scope),
      // A server that a campaign kills loses connections.
      Effect.provide(Logger.layer([]))
    )
  )
  const { host, port, user, password } = endpoint
  return {
    url: `postgres://${user}:${Redacted.value(password)}@${host}:${port}/postgres`,
    pid,
    stop: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** The URL of another database of the same server. */
export const databaseAt = (url: string, name: string): string => {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}

/** A function that closes once, also at an interruption, which then ends the process. */
export const closing = (close: () => Promise<void>): (() => Promise<void>) => {
  let closed: Promise<void> | undefined
  const closeOnce = () =>
    (closed ??= close().finally(() => {
      for (const signal of signals) process.off(signal, interrupted)
    }))
  const interrupted = () => void closeOnce().finally(() => process.exit(130))
  const signals = ["SIGINT", "SIGTERM"] as const
  for (const signal of signals) process.once(signal, interrupted)
  return closeOnce
}

/** The first line that a program prints. Rejects when it ends before. */
export const firstLineOf = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).once("line", resolve)
    child.once("close", (code) => reject(new Error(`ended with ${code} before it printed a line`)))
  })

/** Starts a program of the tests: a module by its URL. It ends with its input, or by itself. */
export const startProgram = (
  module: URL,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
): ChildProcess => {
  const child = spawn(process.execPath, [fileURLToPath(module), ...args], {
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"]
  })
  // A program whose output is not read would wait.
  child.stdout.resume()
  return child
}
