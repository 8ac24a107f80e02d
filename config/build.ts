/**
 * The compiler of the program for a package: Node refuses to run TypeScript below `node_modules`.
 *
 * Promise: `dist` is the checkout with JavaScript in the place of TypeScript, and nothing else. Each file keeps its
 * relative path, so a path from one file to another is right in both. Types are not checked; `npm run check` does that.
 */
import { spawnSync } from "node:child_process"
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const dist = join(root, "dist")

/** The folders of files that the program reads while it runs. The compiler writes the rest. */
const folders = ["connectors", "migrations", "src"]

rmSync(dist, { recursive: true, force: true })
const compiler = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url))
const { status } = spawnSync(process.execPath, [compiler, "--project", join(root, "config/tsconfig.build.json")], {
  stdio: "inherit"
})
if (status !== 0) throw new Error("the program could not be compiled")
for (const folder of folders) {
  cpSync(join(root, folder), join(dist, folder), {
    recursive: true,
    // The launcher stays outside of `dist`, where `bin` of package.json names it.
    filter: (path) => !/\.(?:ts|md)$/.test(path) && basename(path) !== "launch.js"
  })
}
const { name, version, type } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Record<string, string>
writeFileSync(join(dist, "package.json"), `${JSON.stringify({ name, version, type })}\n`)
