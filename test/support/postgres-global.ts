/**
 * One embedded Postgres for a whole vitest run, in a folder of its own under the temporary folder.
 *
 * Promise: neither server nor folder outlives the run. A run that ends removes them itself. For a killed run, a
 * watchdog process (`postgres-watchdog.ts`) does so when its input ends.
 */
import { spawn } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import type { TestProject } from "vitest/node"
import { Database } from "../../src/postgres/Database.ts"
import { start } from "../../src/postgres/EmbeddedPostgres.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** The server of this run: a URL of its superuser, with the password. */
    readonly postgresUrl: string
    /** A database to copy: migrated, without rows. */
    readonly migratedDatabase: string
    /** How `create database` copies: the fastest strategy of the server. */
    readonly copyStrategy: string
  }
}

const migratedDatabase = "test_migrated"

/** Creates the database that tests copy, and provides its name and the server's URL. */
const provide = async (project: TestProject, postgresUrl: string): Promise<void> => {
  const client = new pg.Client({ connectionString: postgresUrl })
  await client.connect()
  await client.query(`drop database if exists ${migratedDatabase}`)
  await client.query(`create database ${migratedDatabase}`)
  const url = new URL(postgresUrl)
  url.pathname = `/${migratedDatabase}`
  await Effect.runPromise(Effect.provide(Migrations.migrate(), Database.layerUrl(Redacted.make(url.href))))
  const version = await client.query<{ readonly number: number }>(
    "select current_setting('server_version_num')::int as number"
  )
  await client.end()
  project.provide("postgresUrl", postgresUrl)
  project.provide("migratedDatabase", migratedDatabase)
  // Postgres 14 has only this strategy, without a keyword for it.
  project.provide("copyStrategy", version.rows[0]!.number >= 150000 ? "strategy file_copy" : "")
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Another version, started by `test/postgres/run.ts`.
  const existingUrl = process.env["TEST_POSTGRES_URL"]
  if (existingUrl !== undefined) {
    await provide(project, existingUrl)
    return () => Promise.resolve()
  }
  const folder = mkdtempSync(join(tmpdir(), "tributary-test-"))
  // mkdtemp makes it private. As root, the server runs as another user, who needs access.
  chmodSync(folder, 0o755)
  const root = join(folder, "postgres")
  const watchdog = spawn(
    process.execPath,
    [fileURLToPath(new URL("./postgres-watchdog.ts", import.meta.url)), folder, root],
    { detached: true, stdio: ["pipe", "ignore", "ignore"], windowsHide: true }
  )
  watchdog.unref()
  const scope = Scope.makeUnsafe()
  const server = await Effect.runPromise(
    start({ root, port: 0, durable: false }).pipe(Effect.provideService(Scope.Scope, scope))
  )
  const { host, port, user, password } = server.endpoint
  await provide(project, `postgres://${user}:${Redacted.value(password)}@${host}:${port}/postgres`)
  return async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    rmSync(folder, { recursive: true, force: true })
    watchdog.stdin.end()
  }
}
