import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: ["test/**/*.test.ts"],
    // `test/postgres/run.ts` names its files, of both kinds.
    exclude: [
      ...(process.env["TEST_POSTGRES_URL"] === undefined ? ["test/**/*.long.test.ts"] : []),
      "test/**/*.browser.test.ts",
      "test/**/*.process.test.ts"
    ],
    pool: "forks",
    // Files that run in one process share its modules: loading them for each file took a fifth of the time. A file
    // restores what it changes of the process (`process.env`, the working directory).
    isolate: false,
    // One more than the two cores of CI: some files wait for Postgres or for real time.
    maxWorkers: 3,
    // No test may need what an earlier test of its file left behind. The seed is fixed, and reverses most pairs of tests.
    sequence: { shuffle: { tests: true }, seed: 2_625_553 },
    globalSetup: ["test/support/postgres-global.ts"],
    setupFiles: ["test/support/seed.ts"],
    // No test measures time: these limits only end what hangs, also on a slow machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ["default", fileURLToPath(new URL("../test/support/count-reporter.ts", import.meta.url))]
  }
})
