/**
 * The build of the program into `dist`: for a package, since Node refuses to run TypeScript below `node_modules`, and for a
 * checkout, where a command starts in a third of the time. `npm ci` runs it, too. Plain JavaScript, so that any Node can.
 *
 * Promise: the program does the same in `dist` as in its sources. Modules of the project and of effect become a few files in
 * `dist/src`; other packages stay imports. A path that a module makes from its own address is the path of its place in
 * `dist`, where the files that the program reads are copied to. Types are not checked; `npm run check` does that.
 */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative } from "node:path"
import { parseArgs } from "node:util"
import { fileURLToPath } from "node:url"

const { values } = parseArgs({ options: { "if-possible": { type: "boolean", default: false } } })
const root = fileURLToPath(new URL("..", import.meta.url))
const dist = join(root, "dist")

/** The folders of files that the program reads while it runs. */
const folders = ["connectors", "migrations", "src"]

/** Every file is in this folder, whatever module it came from. */
const output = join(dist, "src")

/** The address of a module in the bundle. */
const ownAddress = {
  name: "own-address",
  transform(code, id) {
    if (!id.startsWith(root) || id.includes("node_modules") || !code.includes("import.meta.url")) return null
    const place = relative(output, join(dist, relative(root, id))).replaceAll("\\", "/")
    return code.replaceAll("import.meta.url", `new URL(${JSON.stringify(place)}, import.meta.url).href`)
  }
}

const build = async () => {
  const { rolldown } = await import("rolldown")
  rmSync(dist, { recursive: true, force: true })
  for (const folder of folders) {
    cpSync(join(root, folder), join(dist, folder), {
      recursive: true,
      // The launcher stays outside of `dist`, where `bin` of package.json names it.
      filter: (path) => !/\.(?:ts|md)$/.test(path) && basename(path) !== "launch.js"
    })
  }
  const packages = dirname(fileURLToPath(import.meta.resolve("effect/package.json")))
  cpSync(join(packages, "LICENSE"), join(dist, "effect.LICENSE"))
  const { name, version, type } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  writeFileSync(join(dist, "package.json"), `${JSON.stringify({ name, version, type })}\n`)
  const bundle = await rolldown({
    input: join(root, "src", "main.ts"),
    platform: "node",
    external: (id) => /^[a-z@]/.test(id) && !/^(?:effect|@effect\/)/.test(id),
    plugins: [ownAddress]
  })
  await bundle.write({ dir: output, format: "esm", entryFileNames: "main.js", chunkFileNames: "[name]-[hash].js" })
  await bundle.close()
}

try {
  await build()
} catch (error) {
  // A part of `dist` must not run.
  rmSync(dist, { recursive: true, force: true })
  if (!values["if-possible"]) throw error
  process.stderr.write(
    `The program runs from its sources, which starts more slowly (${error.message.split("\n")[0]}).\n`
  )
}
