/**
 * The tests that use Postgres, on other versions than the embedded one.
 *
 *   npm run test:postgres                          # 14, and one of 15 to 17, chosen by the commit
 *   npm run test:postgres -- --version 15          # one version
 *   npm run test:postgres -- --version 15 test/integration   # other tests than the default ones
 */
import { execFileSync, spawnSync } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { startServer } from "./server.ts"

/** The default tests: a company that moves to the embedded server, the change feed, the figures of a close, landing, merge, history, views, migrations, models, verify, grants, and a whole sync. */
const usual = [
  "test/integration/changes",
  "test/integration/close/Figures.test.ts",
  "test/integration/companies/Move.test.ts",
  "test/integration/endtoend/OddValues.long.test.ts",
  "test/integration/land/Merge.test.ts",
  "test/integration/land/SchemaDrift.test.ts",
  "test/integration/warehouse",
  "test/integration/models/Views.test.ts",
  "test/integration/models/Roles.test.ts",
  "test/integration/sync/Engine.test.ts",
  "test/integration/sync/SyncResource.test.ts",
  "test/integration/postgres/Copy.test.ts",
  "test/integration/postgres/LockWait.test.ts",
  "test/integration/postgres/Migrations.test.ts",
  "test/integration/postgres/SessionSettings.long.test.ts",
  "test/integration/postgres/SessionSettings.test.ts",
  "test/integration/verify"
]

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Runs the tests on a server of the version. Returns vitest's exit code. */
const runOn = async (version: string, tests: ReadonlyArray<string>): Promise<number> => {
  const server = await startServer(version, ["fsync=off", "max_connections=300", "shared_buffers=256MB"])
  try {
    process.stdout.write(`\nPostgres ${server.version}\n`)
    const { status } = spawnSync(
      process.execPath,
      [join(root, "node_modules/vitest/vitest.mjs"), "run", "--config", "config/vitest.config.ts", ...tests],
      { cwd: root, stdio: "inherit", env: { ...process.env, TEST_POSTGRES_URL: server.url } }
    )
    return status ?? 1
  } finally {
    await server.stop()
  }
}

/** Version 14, and one of 15 to 17, chosen by the commit. */
const byCommit = (): ReadonlyArray<string> => {
  const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" })
  return ["14", ["15", "16", "17"][Number.parseInt(commit.slice(0, 8), 16) % 3]!]
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { version: { type: "string", multiple: true } }
})
const tests = positionals.length === 0 ? usual : positionals
for (const version of values.version ?? byCommit()) {
  const status = await runOn(version, tests)
  if (status !== 0) process.exitCode = status
}
