/**
 * One embedded Postgres for a whole vitest run, in a folder of its own under the temporary folder.
 *
 * Promise: neither server nor folder outlives the run. A run that ends removes them itself. For a killed run, a
 * watchdog process (`postgres-watchdog.ts`) does so when its input ends.
 */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Redacted } from "effect"
import pg from "pg"
import type { TestProject } from "vitest/node"
import { Database } from "../../src/postgres/Database.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"
import { databaseAt, makeFolder, startPostgres } from "./servers.ts"

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
  const url = Redacted.make(databaseAt(postgresUrl, migratedDatabase))
  await Effect.runPromise(Effect.provide(Migrations.migrate(), Database.layerUrl(url)))
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
  const folder = makeFolder("test")
  const watchdog = spawn(
    process.execPath,
    [fileURLToPath(new URL("./postgres-watchdog.ts", import.meta.url)), folder, join(folder, "postgres")],
    { detached: true, stdio: ["pipe", "ignore", "ignore"], windowsHide: true }
  )
  watchdog.unref()
  const server = await startPostgres(folder, false)
  await provide(project, server.url)
  return async () => {
    await server.stop()
    watchdog.stdin.end()
  }
}
