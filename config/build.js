/**
 * The build of the program into `dist`: for a package, since Node refuses to run TypeScript below `node_modules`, and for a
 * checkout, where a command starts in a third of the time. `npm ci` runs it, too. Plain JavaScript, so that any Node can.
 *
 * `dist` also has the modules that other programs import (`exports` of package.json), their declarations, and the types
 * and schemas that are made from the catalogue.
 *
 * Promise: the program does the same in `dist` as in its sources. Modules of the project and of effect become a few files in
 * `dist/src`; other packages stay imports. What every command loads is one file, and what most commands load is another:
 * Node needs about as long to find a file as to load its code from the compile cache. A path that a module makes from its
 * own address is the path of its place in `dist`, where the files that the program reads are copied to. `dist` is replaced
 * as a whole, and its time is that of the begin of the build. Types are not checked; `npm run check` does that.
 */
import { execFileSync } from "node:child_process"
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { createRequire, isBuiltin } from "node:module"
import { basename, dirname, join, relative } from "node:path"
import { parseArgs } from "node:util"
import { fileURLToPath, pathToFileURL } from "node:url"

const { values } = parseArgs({ options: { "if-possible": { type: "boolean", default: false } } })
const root = fileURLToPath(new URL("..", import.meta.url))
const {
  name: packageName,
  version,
  type,
  engines,
  dependencies,
  optionalDependencies
} = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

/** The modules that other programs import, by their name in `dist/src`. */
const publicModules = {
  client: "connectors/service-v2/sdk/index.ts",
  "reference-server": "connectors/service-v2/reference-server/index.ts"
}
/** The modules with declarations; that of the types of records has nothing to run. */
const declared = [...Object.values(publicModules), "connectors/service-v2/package/records.ts"]
/**
 * What the modules import first. An older Node fails in their dependencies, with errors that do not name the cause.
 * `src/cli/launch.js` does the same for the command.
 */
const [, neededMajor, neededMinor] = /^>=(\d+)\.(\d+)/.exec(engines.node)
const supportedNode = `const [major, minor] = process.versions.node.split(".").map(Number)
if (major < ${neededMajor} || (major === ${neededMajor} && minor < ${neededMinor})) {
  throw new Error("${packageName} needs Node ${neededMajor}.${neededMinor} or later; this is Node " + process.versions.node)
}
`
/** The module that makes files from the catalogue. */
const generator = "connectors/service-v2/package/generate.ts"
/** A module that this many parts of the program load is in the file that most commands load. */
const commandsMin = 14
/** The folders of files that the program reads while it runs. */
const folders = ["connectors", "migrations", "src"]
/** A folder of an earlier build that did not end is removed after this time. */
const abandonedMs = 600_000
/** The kernel's time of a change may be a few milliseconds behind the clock. */
const clockMs = 10

const prefix = ".dist-"
const draft = join(root, `${prefix}${process.pid}`)
const [dist, former] = [join(root, "dist"), `${draft}-former`]
/** Every file is in this folder, whatever module it came from. */
const output = join(draft, "src")

const remove = (path) => rmSync(path, { recursive: true, force: true, maxRetries: 3 })

const isExternal = (id) => {
  const [scope, second] = id.split("/")
  const found = scope.startsWith("@") ? `${scope}/${second}` : scope
  const isBundled = found === "effect" || scope === "@effect"
  return isBuiltin(id) || (!isBundled && (found in dependencies || found in optionalDependencies))
}

/** The address of a module in the bundle. */
const ownAddress = {
  name: "own-address",
  transform(code, id) {
    if (!id.startsWith(root) || id.includes("node_modules") || !code.includes("import.meta.url")) return null
    const place = relative(output, join(draft, relative(root, id))).replaceAll("\\", "/")
    return code.replaceAll("import.meta.url", `new URL(${JSON.stringify(place)}, import.meta.url).href`)
  }
}

/** The folders of the packages whose code is in the bundle. */
const bundledFolders = new Set()
const folderOfPackage = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/

/** Writes modules and what they import into the draft. */
const bundle = async (rolldown, { input, codeSplitting, banner }) => {
  const made = await rolldown({
    input,
    cwd: root,
    platform: "node",
    external: isExternal,
    plugins: [ownAddress],
    // A module that the source files load on demand may be in the file of the start anyway.
    checks: { ineffectiveDynamicImport: false }
  })
  const written = await made.write({
    dir: output,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    // Node reads and compares the whole text at each start, even if the compile cache has its code.
    comments: { legal: true, annotation: false, jsdoc: false },
    ...(banner === undefined ? {} : { banner }),
    ...(codeSplitting === undefined ? {} : { codeSplitting })
  })
  await made.close()
  for (const id of written.output.flatMap(({ moduleIds = [] }) => moduleIds)) {
    const [folder] = folderOfPackage.exec(id.replaceAll("\\", "/")) ?? []
    if (folder !== undefined) bundledFolders.add(folder)
  }
  const files = new Set(written.output.map(({ fileName }) => fileName))
  const missing = written.output
    .flatMap(({ imports = [], dynamicImports = [] }) => [...imports, ...dynamicImports])
    .filter((id) => !files.has(id) && !isExternal(id))
  if (missing.length > 0) throw new Error(`the program imports ${missing.join(", ")}, which package.json does not name`)
}

/** Writes the build into the draft. */
const build = async (rolldown) => {
  const startedMs = Date.now() - clockMs
  for (const folder of folders) {
    cpSync(join(root, folder), join(draft, folder), {
      recursive: true,
      // The launcher stays outside of `dist`, where `bin` of package.json names it. Examples are for readers.
      filter: (path) => !/\.(?:ts|md)$/.test(path) && !["launch.js", "examples"].includes(basename(path))
    })
  }
  writeFileSync(join(draft, "package.json"), `${JSON.stringify({ name: packageName, version, type })}\n`)
  await bundle(rolldown, {
    input: { main: "src/main.ts" },
    codeSplitting: {
      groups: [
        { name: "start", tags: ["$initial"], priority: 2 },
        { name: "common", minShareCount: commandsMin, priority: 1 }
      ]
    }
  })
  // Apart from the program, whose files have what its commands need.
  put("src/supported-node.js", supportedNode)
  await bundle(rolldown, {
    input: publicModules,
    banner: ({ isEntry }) => (isEntry ? 'import "./supported-node.js"' : "")
  })
  listBundled()
  await generate(rolldown)
  declare()
  utimesSync(join(output, "main.js"), startedMs / 1000, startedMs / 1000)
}

/** Writes a file of the draft. */
const put = (path, text) => {
  const file = join(draft, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

/** Writes the list of the bundled packages, which the package contains without depending on them, and their licences. */
const listBundled = () => {
  const packages = [...bundledFolders]
    .toSorted((one, other) => one.localeCompare(other, "en"))
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
      put(`licenses/${name.replaceAll("/", "-")}.txt`, readFileSync(join(folder, "LICENSE"), "utf8"))
      return { name, version, license }
    })
  put("bundled.json", `${JSON.stringify(packages, null, 2)}\n`)
}

/** Writes the files that follow from the catalogue. */
const generate = async (rolldown) => {
  const bundle = await rolldown({ input: generator, cwd: root, platform: "node" })
  const folder = mkdtempSync(join(draft, "generate-"))
  await bundle.write({ dir: folder, format: "esm", entryFileNames: "generate.mjs" })
  await bundle.close()
  const made = await import(pathToFileURL(join(folder, "generate.mjs")).href)
  for (const [path, text] of made.generate()) put(path, text)
  remove(folder)
}

/** The modules that a declaration file imports. */
const importsOf = (text) => [...text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map(([, id]) => id)

/** Writes the declarations of the public modules: each is reachable from one of them, and needs no other package. */
const declare = () => {
  const folder = mkdtempSync(join(draft, "declare-"))
  const settings = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      incremental: false,
      noCheck: true,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir: folder,
      types: ["node"],
      plugins: []
    },
    include: [],
    files: declared.map((path) => join(root, path))
  }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings))
  const { bin } = createRequire(import.meta.url)("typescript/package.json")
  const compiler = join(dirname(fileURLToPath(import.meta.resolve("typescript/package.json"))), bin.tsc)
  execFileSync(process.execPath, [compiler, "--project", join(folder, "tsconfig.json")], { stdio: "inherit" })
  const pending = [...declared]
  const done = new Set()
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (done.has(path)) continue
    done.add(path)
    const name = path.replace(/\.ts$/, ".d.ts")
    const text = readFileSync(join(folder, name), "utf8")
    for (const id of importsOf(text)) {
      if (!id.startsWith(".")) throw new Error(`the declarations of ${path} need ${id}`)
      pending.push(relative(root, join(root, dirname(path), id)).replaceAll("\\", "/"))
    }
    put(
      join("types", name),
      text.replace(/((?:from|import\()\s*"\.[^"]+)\.ts"/g, '$1.js"').replace(' preserve="true"', "")
    )
  }
  remove(folder)
}

/** Puts the draft in the place of `dist`. */
const replace = () => {
  try {
    renameSync(dist, former)
  } catch (error) {
    if (error.code !== "ENOENT") throw error
  }
  renameSync(draft, dist)
}

const removeAbandoned = () => {
  for (const entry of readdirSync(root)) {
    if (entry.startsWith(prefix) && Date.now() - statSync(join(root, entry)).mtimeMs > abandonedMs)
      remove(join(root, entry))
  }
}

try {
  const { rolldown } = await import("rolldown")
  try {
    removeAbandoned()
    await build(rolldown)
    replace()
  } finally {
    remove(draft)
    remove(former)
  }
} catch (error) {
  if (!values["if-possible"]) throw error
  process.stderr.write(`The program runs without a new build (${error.message.split("\n")[0]}).\n`)
}
