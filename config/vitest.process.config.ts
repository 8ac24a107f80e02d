import { defineConfig, mergeConfig } from "vitest/config"
import standard from "./vitest.config.ts"

/**
 * The tests that need real processes: a kill with -9, a signal, an installation, a pooler. At most 40, part of the gate.
 * `npm run test:process`.
 */
export default mergeConfig(
  { ...standard, test: { ...standard.test, include: [], exclude: [], isolate: true, sequence: {} } },
  // They wait for a line, a row or the end of a process, and have no other limit. The timeouts end what hangs.
  defineConfig({
    test: { include: ["test/**/*.process.test.ts"], maxWorkers: 2, testTimeout: 900_000, hookTimeout: 600_000 }
  })
)
