/** The time from the start of a command to its output, against the promised bound, and the files that it loads. */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { root } from "../support/reference.ts"
import { makeWorld } from "../support/world.ts"
import { boundAt, fastest, describeStart } from "./Start.ts"

describe("a command of the checkout", () => {
  it.live(
    "starts within the promised bound",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const env = {
            PATH: process.env["PATH"],
            HOME: process.env["HOME"],
            DATABASE_URL: world.databaseUrl,
            SERVICE_API_URL: world.reference.baseUrl,
            SERVICE_API_TOKEN: yield* Effect.promise(() => world.reference.token(1))
          }
          const options = { cwd: world.folder, env }
          const first = yield* world.run(["sync", "customers"])
          assert.strictEqual(first.code, 0, first.stderr)
          const launcher = join(root, "src/cli/launch.js")
          const bound = boundAt(process.execPath, options)
          const slow: Array<string> = []
          for (const line of [
            ["--version"],
            ["--help"],
            ["sync", "--help"],
            ["status", "--help"],
            ["serve", "--help"],
            ["webhooks", "ensure", "--help"],
            ["push", "--help"],
            ["schema", "plan", "--help"],
            ["query", "select 1"],
            ["explain", "customers", "1"],
            ["push", "status"],
            ["status"]
          ]) {
            const start = fastest(process.execPath, [launcher, ...line], options, bound)
            const words = `tributary ${line.join(" ")}: ${describeStart(start, bound)}`
            console.log(words)
            if (start.ms > bound) slow.push(words)
          }
          assert.deepStrictEqual(slow, [])
        })
      ),
    { timeout: 180_000 }
  )
})

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
