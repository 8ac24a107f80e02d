/**
 * A PgBouncer in front of the test server. Nothing is installed here: without `pgbouncer`, tests are skipped with the
 * reason.
 */
import { spawn, spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { Effect, Redacted, Schedule, type Scope } from "effect"
import { freePort } from "./freePort.ts"
import { temporaryFolder } from "./servers.ts"

const program = "pgbouncer"

const isThere = spawnSync(program, ["--version"]).error === undefined

/** Why tests with PgBouncer are skipped; null when they run. */
export const absent: string | null = isThere ? null : "skipped: pgbouncer is not installed (apt-get install pgbouncer)"
if (absent !== null) process.stderr.write(`${absent}\n`)

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => resolve((socket.destroy(), true)))
    socket.once("error", () => resolve(false))
  })

/** The same database behind a PgBouncer in this mode. It ends with the scope. */
export const pooled = (
  url: Redacted.Redacted,
  mode: "session" | "transaction" | "statement",
  poolSize: number
): Effect.Effect<Redacted.Redacted, never, Scope.Scope> =>
  Effect.gen(function* () {
    const target = new URL(Redacted.value(url))
    const port = yield* Effect.promise(freePort)
    const folder = yield* temporaryFolder
    const file = join(folder, "pgbouncer.ini")
    writeFileSync(
      file,
      [
        "[databases]",
        `* = host=${target.hostname} port=${target.port} user=${target.username} password=${decodeURIComponent(target.password)}`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        `listen_port = ${port}`,
        "unix_socket_dir =",
        "auth_type = any",
        `pool_mode = ${mode}`,
        `default_pool_size = ${poolSize}`,
        "max_client_conn = 200"
      ].join("\n")
    )
    yield* Effect.acquireRelease(
      // PgBouncer refuses to run as root.
      Effect.sync(() =>
        spawn(program, ["-q", file], { stdio: "ignore", ...(process.getuid?.() === 0 ? { uid: 65_534 } : {}) })
      ),
      (child) =>
        Effect.promise(async () => {
          const ended = new Promise((resolve) => child.once("exit", resolve))
          if (child.exitCode === null && child.signalCode === null) {
            child.kill("SIGKILL")
            await ended
          }
        })
    )
    yield* Effect.promise(() => answers(port)).pipe(
      Effect.filterOrFail(
        (isUp) => isUp,
        () => "not yet"
      ),
      Effect.retry({ times: 200, schedule: Schedule.spaced("25 millis") }),
      Effect.orDie
    )
    const behind = new URL(target.href)
    behind.hostname = "127.0.0.1"
    behind.port = String(port)
    return Redacted.make(behind.href)
  })
