/** Hints name a command that starts this program, and never the package of another publisher. */
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { invocationOf, packageName, withInvocation } from "../../src/cli/Invocation.ts"
import { root } from "../support/reference.ts"

const folder = mkdtempSync(join(tmpdir(), "tributary-invocation-"))
afterAll(() => rmSync(folder, { recursive: true }))

/** A folder with files and links, by path; a link has the path that it leads to. */
const made = (name: string, links: Readonly<Record<string, string>> = {}) => {
  const path = join(folder, name)
  mkdirSync(join(path, "node_modules", ".bin"), { recursive: true })
  writeFileSync(join(path, "package.json"), "{}")
  for (const [link, target] of Object.entries(links)) symlinkSync(target, join(path, "node_modules", ".bin", link))
  return path
}

const launcher = join(root, "src/cli/launch.js")

describe("a hint", () => {
  it("begins with npx in the checkout, and where the project has the program", () => {
    assert.strictEqual(invocationOf(launcher, root, false), "npx tributary")
    const own = made("own", { tributary: launcher })
    for (const isNpx of [false, true]) {
      assert.strictEqual(invocationOf(join(own, "node_modules/.bin/tributary"), own, isNpx), "npx tributary")
    }
    mkdirSync(join(own, "deep", "er"), { recursive: true })
    assert.strictEqual(invocationOf(launcher, join(own, "deep", "er"), false), "npx tributary")
  })

  it("is what TRIBUTARY_COMMAND says, as in a container", () => {
    const { stderr } = spawnSync(process.execPath, [launcher, "status"], {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: process.env["PATH"], TRIBUTARY_COMMAND: "docker compose exec tributary tributary" }
    })
    assert.include(stderr, ": docker compose exec tributary tributary init prepares one")
  })

  it("names no package of another publisher elsewhere", () => {
    const strange = made("strange", { tributary: "/bin/true" })
    for (const place of [made("empty"), strange, "/", folder]) {
      assert.strictEqual(invocationOf(launcher, place, false), "tributary", place)
      assert.strictEqual(invocationOf(launcher, place, true), "npx tributary-sync", place)
    }
  })

  it("has the name of the package", () => {
    const { name } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly name: string }
    assert.strictEqual(name, packageName)
  })

  it("changes commands only", () => {
    const as = (text: string) => withInvocation(text, "npx tributary")
    assert.strictEqual(
      as("run tributary sync --full, then tributary verify"),
      "run npx tributary sync --full, then npx tributary verify"
    )
    for (const text of [
      "another tributary process",
      "the schema tributary",
      "npx tributary sync",
      "/usr/bin/tributary sync",
      "tributary.runs",
      "tributary-sync serve",
      "restart tributary"
    ]) {
      assert.strictEqual(as(text), text)
    }
    assert.strictEqual(withInvocation("tributary sync", "tributary"), "tributary sync")
  })
})
