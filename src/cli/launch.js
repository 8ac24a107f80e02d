#!/usr/bin/env node
// The `tributary` command. It is plain JavaScript, so that any Node can start it. In a checkout the program is TypeScript
// and needs Node 24, which `npm ci` installs beside the other dependencies: an older Node starts that one. `npm ci` also
// builds it into `dist`, which starts faster and runs until a source file changes (`npm run build` builds it again). In an
// installed package there is `dist` alone, and it runs on any Node that its dependencies allow.
import { spawn } from "node:child_process"
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs"
import * as modules from "node:module"
import { fileURLToPath, pathToFileURL } from "node:url"
import * as v8 from "node:v8"

const root = fileURLToPath(new URL("../../", import.meta.url))
const [source, built] = [`${root}src/main.ts`, `${root}dist/src/main.js`]
const isCheckout = existsSync(source)
const needed = isCheckout ? "24" : "22.19"

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
const [neededMajor = 0, neededMinor = 0] = needed.split(".").map(Number)

if (process.argv.length === 3 && /^(?:--version|-v)$/.test(process.argv[2] ?? "")) {
  // The answer is here because loading the program takes several times as long.
  const { version } = JSON.parse(readFileSync(`${root}package.json`, "utf8"))
  process.stdout.write(`tributary v${version}\n`)
} else if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) {
  // Where an older Node (below) started this process, it ends with that one, also after kill -9.
  if (process.send !== undefined && process.env["TRIBUTARY_HANDED_OVER"] !== undefined) {
    process.on("disconnect", () => process.kill(process.pid, "SIGKILL"))
    process.channel?.unref()
  }
  // A second Ctrl-C ends the program at once. The terminal sends the signal to every process of the command, and npx, npm
  // and an older Node (below) forward it: a signal within 300 ms after the first is the same Ctrl-C.
  let isSecond = false
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, () => {
      if (isSecond) {
        // `process.exit` waits for threads, and so for a pipe that no program writes to. The first process of a container
        // gets no signal without a handler.
        process.removeAllListeners(signal)
        process.kill(process.pid, signal)
        process.exit(130)
      }
      setTimeout(() => (isSecond = true), 300).unref()
    })
  }
  // V8 lets the space for young objects grow to 48 MB and more, and does not shrink it. A sync creates mostly bytes, which
  // are elsewhere: it is no slower with the few MB that loading the first modules needs. With less, loading the others
  // would need a hundred collections. The reference server is excluded: its records are objects.
  const isBuilt = !isCheckout || isNewest(built)
  if (!isBuilt) await import("effect/Effect")
  if (process.argv[2] !== "reference-server") v8.setFlagsFromString("--semi-space-growth-factor=1")
  // V8 also lets garbage grow to the size of the live objects. A verify or close of a large table would need twice the memory,
  // and the memory of a push would grow with the number of records.
  const growth = new Map([
    ["close", 40],
    ["verify", 40],
    ["push", 80]
  ]).get(process.argv[2] ?? "")
  if (growth !== undefined) v8.setFlagsFromString(`--heap-growing-percent=${growth}`)
  // After the flags: V8 refuses code that was compiled with others, and Node keeps a cache for each set of flags.
  modules.enableCompileCache?.()
  await import(pathToFileURL(isBuilt ? built : source).href)
} else {
  const newer = installedNode()
  if (newer === undefined) {
    process.stderr.write(
      `tributary needs Node ${needed} or later; this is Node ${process.versions.node}.\n` +
        (isCheckout
          ? "Run npm ci in the project's folder (it installs Node 24 beside the other packages), or install Node 24.\n"
          : "Install a newer Node (https://nodejs.org), then run the command again.\n")
    )
    process.exit(2)
  }
  const child = spawn(newer, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, TRIBUTARY_HANDED_OVER: "1" }
  })
  // The terminal signals the whole group; a signal sent to this process alone is passed on.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal))
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** Whether a build, whose time is that of its begin, is newer than everything that it is made of. */
function isNewest(file) {
  const builtMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
  // Not the time of modification, which a copy may keep. The time of a folder shows that a file was removed.
  const isOlder = (path) => (statSync(path, { throwIfNoEntry: false })?.ctimeMs ?? Infinity) < builtMs
  const isFolderOlder = (folder) =>
    isOlder(folder) &&
    readdirSync(folder, { withFileTypes: true }).every((entry) => {
      const path = `${folder}/${entry.name}`
      return entry.isDirectory() ? isFolderOlder(path) : isOlder(path)
    })
  return (
    builtMs > 0 &&
    ["config/build.js", "package.json", "package-lock.json"].every((name) => isOlder(`${root}${name}`)) &&
    ["connectors", "migrations", "src"].every((name) => isFolderOlder(`${root}${name}`))
  )
}

/** The Node that `npm ci` installs in a checkout (config/node). */
function installedNode() {
  const isWindows = process.platform === "win32"
  const platform = `${isWindows ? "win" : process.platform}-${process.arch}`
  return [`node-${platform}`, `node-bin-${platform}`]
    .map((name) => `${root}node_modules/${name}/bin/${isWindows ? "node.exe" : "node"}`)
    .find((binary) => existsSync(binary))
}
