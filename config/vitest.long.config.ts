import { defineConfig, mergeConfig } from "vitest/config"
import standard from "./vitest.config.ts"

/** The tests that take long: whole programs, killed and compared. `npm run test:long`. */
export default mergeConfig(
  { ...standard, test: { ...standard.test, include: [], exclude: [], isolate: true } },
  // Most of what these tests take is waiting for programs.
  defineConfig({
    test: { include: ["test/**/*.long.test.ts"], maxWorkers: 2, testTimeout: 60_000, hookTimeout: 60_000 }
  })
)
