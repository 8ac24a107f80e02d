import { defineConfig, mergeConfig } from "vitest/config"
import standard from "./vitest.config.ts"

/** The long tests: whole programs, killed and compared. `npm run test:long`. */
export default mergeConfig(
  { ...standard, test: { ...standard.test, include: [], exclude: [], isolate: true, sequence: {} } },
  // These tests mostly wait for programs. The timeouts end what hangs; they leave a slow machine three times the usual.
  defineConfig({
    test: { include: ["test/**/*.long.test.ts"], maxWorkers: 2, testTimeout: 180_000, hookTimeout: 120_000 }
  })
)
