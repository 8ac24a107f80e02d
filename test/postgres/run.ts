/**
 * The tests that use Postgres, on other versions than the embedded one.
 *
 *   npm run test:postgres                     # the gate: statements, migrations and merges, on 14
 *   npm run test:postgres -- --full           # every test below, on 14 to 17
 *   npm run test:postgres -- --full --version 15                 # on one version
 *   npm run test:postgres -- --version 15 test/integration       # other tests
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { startServer } from "./server.ts"

/** The tests of the gate: every statement, the migrations, COPY, merge, tables that change, and the views. */
const gate = [
  "test/integration/land",
  "test/integration/models/Views.test.ts",
  "test/integration/postgres/Copy.test.ts",
  "test/integration/postgres/Migrations.test.ts",
  "test/integration/postgres/SessionSettings.test.ts",
  "test/integration/postgres/Statements.test.ts"
]

/** Also a company that moves to the embedded server, the change feed, the figures of a close, history, verify, grants, and syncs. */
const full = [
  ...gate,
  "test/integration/changes",
  "test/integration/close/Figures.test.ts",
  "test/integration/companies/Move.test.ts",
  "test/integration/models/Roles.test.ts",
  "test/integration/postgres/LockWait.long.test.ts",
  "test/integration/sync/Engine.test.ts",
  "test/integration/sync/SyncResource.test.ts",
  "test/integration/verify",
  "test/integration/warehouse"
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

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { full: { type: "boolean", default: false }, version: { type: "string", multiple: true } }
})
const tests = positionals.length > 0 ? positionals : values.full ? full : gate
for (const version of values.version ?? (values.full ? ["14", "15", "16", "17"] : ["14"])) {
  const status = await runOn(version, tests)
  if (status !== 0) process.exitCode = status
}
