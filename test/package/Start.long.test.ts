/**
 * How long a command takes from the return key to its answer, against the bound that was promised: 0.6 s.
 *
 * The fastest of several starts counts, and on a machine that is busy with other things the bound grows as much as the bare
 * start of Node does.
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { root } from "../support/reference.ts"
import { makeWorld } from "../support/world.ts"

const boundMs = 600
/** The bare start of Node on a quiet machine with two cores. */
const bareMs = 30
const times = 5

const fastest = (args: ReadonlyArray<string>, options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }) => {
  let best = Infinity
  for (let time = 0; time < times; time += 1) {
    const began = performance.now()
    const { status, stderr } = spawnSync(process.execPath, args, { ...options, encoding: "utf8" })
    assert.strictEqual(status, 0, stderr)
    best = Math.min(best, performance.now() - began)
  }
  return Math.round(best)
}

describe("a command", () => {
  it.live(
    "starts within the bound",
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
          const bare = fastest(["--eval", "0"], options)
          const bound = Math.round(boundMs * Math.max(1, bare / bareMs))
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
            const took = fastest([launcher, ...line], options)
            const told = `tributary ${line.join(" ")}: ${took} ms`
            console.log(`${told} (bound ${bound} ms, Node alone ${bare} ms)`)
            if (took > bound) slow.push(told)
          }
          assert.deepStrictEqual(slow, [])
        })
      ),
    { timeout: 180_000 }
  )
})
