/**
 * A folder for running the commands of the documents: `tributary` and `tributary` there are the checkout's. The
 * environment names a reference server with a small business as the installation, and an empty database.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import { certificate } from "./certificate.ts"
import { freePort } from "./freePort.ts"
import { until } from "./until.ts"
import { makeWorld, type World } from "./world.ts"

const launcher = fileURLToPath(new URL("../../src/cli/launch.js", import.meta.url))

export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Stage {
  readonly world: World
  readonly token: string
  /** The address of `webhooks.listen` of the configuration, with TLS that the reference server trusts. */
  readonly receiverUrl: string
  /** Ports that were free when the stage was created. */
  readonly ports: readonly [number, number]
  /** Writes a file into the folder. */
  readonly file: (name: string, text: string) => void
  /** Runs a shell command to its end. */
  readonly shell: (line: string) => Effect.Effect<CommandResult>
  /**
   * Starts a shell command that runs until it is stopped. Returns when it has printed the text that means ready. It
   * ends with the scope at the latest.
   */
  readonly begin: (line: string, ready: RegExp) => Effect.Effect<RunningCommand, Error>
}

export interface RunningCommand {
  /** Stops it as Ctrl-C in its terminal does. */
  readonly stop: Effect.Effect<CommandResult>
}

/** A substitute for `psql` where it is not installed: runs its input as one text. */
const psqlStandIn = (pg: string) => `#!${process.execPath}
const { Client } = require(${JSON.stringify(pg)})
const { text } = require("node:stream/consumers")
void (async () => {
  const client = new Client({ connectionString: process.env.DATABASE_URL })
  await client.connect()
  await client.query(await text(process.stdin))
  await client.end()
  console.log("done")
})()
`

/** A stage. All of it ends with the scope. */
export const makeStage = Effect.gen(function* () {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  const { folder, reference, databaseUrl } = world
  const token = yield* Effect.promise(() => reference.token(1))
  const port = yield* Effect.promise(freePort)
  const { cert, key } = certificate(["localhost"])
  const file = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  // The embedded Postgres of the demo runs as another user when this process is root.
  chmodSync(folder, 0o755)
  file("cert.pem", cert)
  file("key.pem", key)
  mkdirSync(join(folder, "home"))
  const bin = join(folder, "node_modules", ".bin")
  mkdirSync(bin, { recursive: true })
  symlinkSync(launcher, join(bin, "tributary"))
  const found = (process.env["PATH"] ?? "").split(delimiter)
  if (!found.some((one) => existsSync(join(one, "psql")))) {
    file("node_modules/.bin/psql", psqlStandIn(fileURLToPath(import.meta.resolve("pg"))))
    chmodSync(join(bin, "psql"), 0o755)
  }
  yield* world.control("POST", "/trust", { caPem: cert })
  yield* world.control("PUT", "/limits", { allowPrivateReceivers: true })

  const at = new URL(databaseUrl)
  const env = {
    PATH: [bin, dirname(process.execPath), ...found].join(delimiter),
    HOME: join(folder, "home"),
    CI: "true",
    DATABASE_URL: databaseUrl,
    SERVICE_API_URL: reference.baseUrl,
    SERVICE_API_TOKEN: token,
    // The certificate of the stage's receiver.
    NODE_EXTRA_CA_CERTS: join(folder, "cert.pem"),
    PGHOST: at.hostname,
    PGPORT: at.port,
    PGUSER: at.username,
    PGPASSWORD: decodeURIComponent(at.password),
    PGDATABASE: at.pathname.slice(1)
  }
  const launch = (line: string) => {
    const child = spawn("bash", ["-c", `set -euo pipefail\n${line}`], {
      cwd: folder,
      env,
      // A process group of its own, as a terminal gives every command.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"]
    })
    const output = { stdout: "", stderr: "" }
    child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString()))
    const done = new Promise<CommandResult>((resolve) => child.once("close", (code) => resolve({ code, ...output })))
    return { child, output, done }
  }
  const signal = (child: ChildProcess, name: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, name)
  }
  const running = new Set<ReturnType<typeof launch>>()
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      for (const one of running) {
        signal(one.child, "SIGKILL")
        await one.done
      }
    })
  )

  const stage: Stage = {
    world,
    token,
    ports: [yield* Effect.promise(freePort), yield* Effect.promise(freePort)],
    receiverUrl: `https://localhost:${port}`,
    file,
    shell: (line) =>
      Effect.promise(async () => {
        const one = launch(line)
        running.add(one)
        const ran = await one.done
        running.delete(one)
        return ran
      }),
    begin: Effect.fnUntraced(function* (line, ready) {
      const one = launch(line)
      running.add(one)
      const printed = () => `${one.output.stdout}\n${one.output.stderr}`
      const ended = () => one.child.exitCode !== null
      const isReady = () => ready.test(printed())
      yield* until(`${line} is ready`, Effect.sync(printed), () => isReady() || ended(), 60).pipe(
        Effect.catchDefect((error) => Effect.fail(error as Error)),
        Effect.filterOrFail(isReady, (text) => new Error(`${line}: ended early\n${text}`)),
        // A command that is not ready would disturb the next one.
        Effect.onError(() => Effect.sync(() => signal(one.child, "SIGKILL")))
      )
      return {
        stop: Effect.promise(async () => {
          signal(one.child, "SIGINT")
          const ran = await one.done
          running.delete(one)
          return ran
        })
      }
    })
  }
  return stage
})
