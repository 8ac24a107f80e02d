import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/**/*.long.test.ts", "test/**/*.browser.test.ts"],
    pool: "forks",
    // The default leaves one of two cores idle.
    maxWorkers: 2,
    globalSetup: ["test/support/postgres-global.ts"],
    testTimeout: 30_000,
    reporters: ["default", fileURLToPath(new URL("../test/support/count-reporter.ts", import.meta.url))]
  }
})
