/** The script of the pages: it words an age as the server does. */
import { readFileSync } from "node:fs"
import { runInNewContext } from "node:vm"
import { assert, it } from "vitest"
import { duration } from "../../src/web/Components.ts"

const script = readFileSync(new URL("../../src/web/assets/live.js", import.meta.url), "utf8")

it("words an age as the server does", () => {
  const [source] = /const duration = [\s\S]*?\n {2}\}\n/.exec(script)!
  const inBrowser = runInNewContext(`(() => { ${source}; return duration })()`) as typeof duration
  const [pattern] = /(?<=const isAge = \/).*(?=\/\n)/.exec(script)!
  const edges = [1_000, 90_000, 90 * 60_000, 36 * 3_600_000]
  const lengths = [0, 0.4, 999.6, 5_000, 400 * 86_400_000, ...edges.flatMap((edge) => [edge - 1, edge, edge + 1])]
  for (const ms of lengths) {
    assert.strictEqual(inBrowser(ms), duration(ms))
    assert.match(`${duration(ms)} ago`, new RegExp(pattern))
    assert.match(`in ${duration(ms)}`, new RegExp(pattern))
  }
  for (const text of ["2026-11-28 09:03:55", "09:03", "5 s", "ago"]) assert.notMatch(text, new RegExp(pattern))
})
