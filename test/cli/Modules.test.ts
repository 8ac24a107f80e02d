/** The modules that a command loads at its start: its own, and not those of other commands. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { root } from "../support/reference.ts"

const folder = mkdtempSync(join(tmpdir(), "tributary-modules-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Prints the address of each module that Node loads. */
const printAddresses = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module"
  import { writeSync } from "node:fs"
  registerHooks({ load: (url, context, next) => (writeSync(2, "loaded " + url + "\\n"), next(url, context)) })
`)}`

/** The modules that a command line loads until it ends, by their paths in the project. Its input is empty. */
const loadedBy = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const command = `exec "$0" "$@" 2>&1 >/dev/null </dev/null`
  const text = execFileSync(
    "sh",
    ["-c", command, process.execPath, "--import", printAddresses, join(root, "src/main.ts"), ...args],
    { cwd: folder, encoding: "utf8", env: { PATH: process.env["PATH"] } }
  )
  return [...text.matchAll(/^loaded file:\/\/(.*)$/gm)].flatMap(([, path]) =>
    path!.startsWith(root) ? [path!.slice(root.length).replace(/^\//, "")] : []
  )
}

/** The modules of commands, each beside its folder. */
const commands = readdirSync(join(root, "src/cli")).filter((name) => /^[a-z]\w*\.ts$/.test(name))

/** The parts that sync, serve, verify and the reference server need. */
const engine =
  /^(?:src\/(?:land|extract|inbox|ingest|reconcile|serve|close|export)\/|src\/sync\/Sync|connectors\/[^/]+\/(?:client|reference-server|demo)\/)/

describe("the start of a command", () => {
  it("loads no command and no driver of the database for the help", () => {
    const loaded = loadedBy(["--help"])
    assert.include(loaded, "src/cli/Program.ts")
    assert.deepStrictEqual(
      loaded.filter((path) => commands.includes(path.replace("src/cli/", ""))),
      []
    )
    assert.deepStrictEqual(
      loaded.filter((path) => engine.test(path) || /^src\/(?:postgres|budget)\/|^node_modules\/pg\//.test(path)),
      []
    )
  })

  it.each([
    ["mcp.ts", ["mcp"]],
    ["query.ts", ["query", "--help"]],
    ["status.ts", ["status", "--help"]]
  ] as const)("loads its own command and no engine: %s", (own, args) => {
    const loaded = loadedBy(args)
    assert.deepStrictEqual(
      loaded.filter((path) => commands.includes(path.replace("src/cli/", ""))),
      [`src/cli/${own}`]
    )
    assert.deepStrictEqual(
      loaded.filter((path) => engine.test(path)),
      []
    )
  })
})
