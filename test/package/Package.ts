/**
 * The package as a user gets it: packed from the checkout, installed with npm into an empty folder, and run by a given
 * Node. It needs the package registry.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { promisify } from "node:util"
import { root } from "../support/reference.ts"

const execute = promisify(execFile)

const npm = (args: ReadonlyArray<string>, cwd: string) =>
  execute("npm", [...args, "--no-audit", "--no-fund", "--loglevel=error"], { cwd, maxBuffer: 64 * 1024 * 1024 })

export interface Installation {
  /** The temporary folder of the installation. Other users can enter it, which Postgres needs under root. */
  readonly folder: string
  readonly tarball: string
  readonly files: ReadonlyArray<{ readonly path: string; readonly size: number }>
  /** Sizes of the tarball and of its contents. */
  readonly bytes: { readonly packed: number; readonly unpacked: number }
  /** The folder of the installed package. */
  readonly packageFolder: string
  readonly remove: () => void
}

/** Packs the checkout into a new folder. */
const pack = async (): Promise<Omit<Installation, "packageFolder">> => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-package-"))
  chmodSync(folder, 0o755)
  const { stdout } = await npm(["pack", "--json", "--pack-destination", folder], root)
  const packed: unknown = JSON.parse(stdout)
  // npm 12 prints an object by package name, older versions print a list.
  const [packageReport] = Object.values(packed as Record<string, unknown>) as ReadonlyArray<{
    readonly filename: string
    readonly size: number
    readonly unpackedSize: number
    readonly files: Installation["files"]
  }>
  if (packageReport === undefined) throw new Error(`npm pack printed ${stdout}`)
  return {
    folder,
    tarball: join(folder, packageReport.filename),
    files: packageReport.files,
    bytes: { packed: packageReport.size, unpacked: packageReport.unpackedSize },
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Packs the checkout and installs the tarball globally, with its own prefix. */
export const install = async (): Promise<Installation> => {
  const packed = await pack()
  const { folder, tarball } = packed
  const empty = join(folder, "empty")
  mkdirSync(empty)
  await npm(["install", "--global", "--prefix", join(folder, "prefix"), tarball], empty)
  return { ...packed, packageFolder: join(folder, "prefix", "lib", "node_modules", "tributary-sync") }
}

/** Packs the checkout and installs the tarball into a new project, without the optional packages. */
export const installInProject = async (): Promise<Installation & { readonly project: string }> => {
  const packed = await pack()
  const project = join(packed.folder, "project")
  mkdirSync(project)
  writeFileSync(join(project, "package.json"), '{"type":"module","private":true}\n')
  await npm(["install", "--omit=optional", packed.tarball], project)
  return { ...packed, project, packageFolder: join(project, "node_modules", "tributary-sync") }
}

/** Installs packages of exact versions into a project. */
export const addPackages = (project: string, ...packages: ReadonlyArray<string>) =>
  npm(["install", "--omit=optional", ...packages], project)

/** The folder of a Node of exactly this version, from the registry's package for this platform. */
export const nodeOf = async (installation: Installation, version: string): Promise<string> => {
  const folder = join(installation.folder, `node-${version}`)
  mkdirSync(folder)
  const name = `node-${process.platform}-${process.arch}`
  await npm(["install", "--prefix", folder, `${name}@${version}`], folder)
  return join(folder, "node_modules", name, "bin")
}

/** The folder of the Node that runs this process. */
export const nodeOfTests = dirname(process.execPath)

export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The installed command, run by the Node of a folder, in a given working folder. */
export const commandOf = (installation: Installation, node: string, cwd: string) => {
  const program = join(installation.folder, "prefix", "bin", "tributary")
  const own = { PATH: [node, "/usr/bin", "/bin"].join(delimiter), HOME: process.env["HOME"], CI: "true" }
  const start = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): ChildProcess =>
    spawn(program, args, { cwd, env: { ...own, ...env }, stdio: ["ignore", "pipe", "pipe"] })
  const run = (args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) => ended(start(args, env))
  return { program, options: { cwd, env: own }, start, run }
}

/** Ends the children that still run by SIGTERM, the newest first. */
export const ending = async (children: ReadonlyArray<ChildProcess>): Promise<void> => {
  for (const child of children.toReversed()) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill("SIGTERM")
    await new Promise((resolve) => child.once("close", resolve))
  }
}

/** The complete output of a command, once it has ended. */
export const ended = (child: ChildProcess): Promise<CommandResult> => {
  let stdout = ""
  let stderr = ""
  child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()))
  return new Promise((resolve, reject) => {
    child.once("error", reject)
    child.once("close", (code) => resolve({ code, stdout, stderr }))
  })
}

/** The first line that a command prints. */
export const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let stderr = ""
    child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()))
    createInterface({ input: child.stdout! }).once("line", resolve)
    child.once("error", reject)
    child.once("close", (code) => reject(new Error(`ended with ${code} before it printed anything: ${stderr}`)))
  })
