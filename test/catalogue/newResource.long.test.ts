/** `npm run new:resource`, run in a copy of the catalogue. */
import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, it } from "vitest"
import { resources } from "../../connectors/service-v2/catalogue/resources/index.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const parts = ["package.json", "config/new-resource.ts", "connectors/service-v2/catalogue", "src/catalogue"]
const indexPath = "connectors/service-v2/catalogue/resources/index.ts"

let copy = ""
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "tributary-new-resource-"))
  for (const part of parts) cpSync(join(root, part), join(copy, part), { recursive: true })
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
})
afterAll(() => rmSync(copy, { recursive: true, force: true }))

const run = (...names: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [join(copy, "config/new-resource.ts"), ...names], { encoding: "utf8" })

/** The paths of the copy's catalogue, in their order. */
const pathsInCopy = (): ReadonlyArray<string> => {
  const program = `import { serviceV2 } from "./connectors/service-v2/catalogue/index.ts"
    console.log([...serviceV2.resources.keys()].join())`
  const args = ["--input-type=module", "--eval", program]
  return execFileSync(process.execPath, args, { cwd: copy, encoding: "utf8" }).trim().split(",")
}

it("new:resource adds a resource to the catalogue", () => {
  const before = resources.map(({ path }) => path)
  assert.strictEqual(run("mmmachines").status, 0)
  assert.strictEqual(run("aaaccounts").status, 0)
  assert.strictEqual(run("zzzones2").status, 0)
  assert.deepStrictEqual(pathsInCopy(), [...before, "mmmachines", "aaaccounts", "zzzones2"])
  const imports = readFileSync(join(copy, indexPath), "utf8").match(/^import \{ \w+ \} from "\.\/.*$/gm)!
  assert.deepStrictEqual(imports, [...imports].sort())
  const oxfmt = join(root, "node_modules/.bin/oxfmt")
  execFileSync(oxfmt, ["--config", join(root, "config/oxfmt.json"), "--check", "connectors"], { cwd: copy })
})
