import { defineConfig, mergeConfig } from "vitest/config"
import standard from "./vitest.config.ts"

/** The tests of the pages in a real browser (Chromium). `npm run test:browser`. */
export default mergeConfig(
  { ...standard, test: { ...standard.test, include: [], exclude: [], isolate: true, sequence: {} } },
  defineConfig({ test: { include: ["test/**/*.browser.test.ts"], testTimeout: 120_000, hookTimeout: 180_000 } })
)
