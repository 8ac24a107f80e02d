/** The files that a command of the build loads: each one costs as much as its code. */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { root } from "../support/reference.ts"

/** Prints the address of each file that Node loads, at the end. */
const printFiles = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module"
  import { writeSync } from "node:fs"
  registerHooks({ load: (url, context, next) => (writeSync(2, "loaded " + url + "\\n"), next(url, context)) })
`)}`

describe("the build", () => {
  it("is loaded from few files: each one costs as much as its code", () => {
    assert.isTrue(existsSync(join(root, "dist/src/main.js")), "npm run build")
    for (const [line, filesMax] of [
      [["--help"], 3],
      [["query", "--help"], 8],
      [["mcp"], 16]
    ] as const) {
      const { status, stderr } = spawnSync(
        process.execPath,
        ["--import", printFiles, join(root, "dist/src/main.js"), ...line],
        { cwd: tmpdir(), encoding: "utf8", input: "" }
      )
      assert.strictEqual(status, 0, stderr)
      const files = [...stderr.matchAll(/^loaded file:.*\/dist\/src\/[^/]*$/gm)]
      assert.isAtLeast(files.length, 1)
      assert.isAtMost(files.length, filesMax, `tributary ${line.join(" ")}: ${files.map(([one]) => one).join("\n")}`)
    }
  })
})
