/** The launcher's choice between the sources and the build, in a small checkout of its own. */
import { execFileSync } from "node:child_process"
import { appendFileSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { root } from "../support/reference.ts"

let folder = ""

const write = (name: string, text = "") => {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), text)
}

const build = () => write("dist/src/main.js", `console.log("build")`)

const launch = () =>
  execFileSync(process.execPath, [join(folder, "src/cli/launch.js")], { encoding: "utf8", stdio: "pipe" }).trim()

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-launch-"))
  for (const name of ["config/build.js", "package-lock.json", "connectors/one/a.ts", "migrations/0001.sql"]) write(name)
  write("package.json", `{ "type": "module" }`)
  write("src/main.ts", `console.log("sources" as string)`)
  mkdirSync(join(folder, "src/cli"))
  copyFileSync(join(root, "src/cli/launch.js"), join(folder, "src/cli/launch.js"))
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it("runs the sources without a build, and a build that is newer than all of them", () => {
  expect(launch()).toBe("sources")
  build()
  expect(launch()).toBe("build")
})

it.each(["src/main.ts", "connectors/one/a.ts", "migrations/0001.sql", "package-lock.json", "config/build.js"])(
  "runs the sources after a change of %s",
  (name) => {
    build()
    appendFileSync(join(folder, name), "\n")
    expect(launch()).toBe("sources")
  }
)

it("runs the sources after a file was removed, and the new build after that", () => {
  build()
  rmSync(join(folder, "connectors/one/a.ts"))
  expect(launch()).toBe("sources")
  build()
  expect(launch()).toBe("build")
})

it("runs the sources beside a file that cannot be read, as an editor's lock", () => {
  build()
  symlinkSync("user@host.1", join(folder, "src/.#main.ts"))
  expect(launch()).toBe("sources")
})

it("runs the build where there are no sources, as in an installed package", () => {
  build()
  rmSync(join(folder, "src/main.ts"))
  expect(launch()).toBe("build")
})
