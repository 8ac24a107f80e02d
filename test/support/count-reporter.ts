/** A vitest reporter that ends a run with one plain line of counts, for programs that read the output. */
import type { Reporter, TestModule } from "vitest/node"

export default class CountReporter implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    const counts = { passed: 0, failed: 0, skipped: 0 }
    for (const module of modules) {
      if (module.state() === "failed" && module.children.size === 0) counts.failed += 1
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state !== "pending") counts[state] += 1
      }
    }
    const skipped = counts.skipped === 0 ? "" : `, ${counts.skipped} skipped`
    process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed${skipped}\n`)
  }
}
